"""Whole runs in the fake world: all nine steps, every sink and crash point, every planted bug, in a moment each."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from generators.disorder import PRESETS
from harness.config import plan
from harness.engines import fake
from harness.engines.fake_memory import FAKE_NOW_MS
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.measuring import measure
from harness.model import HarnessError, LastWords, Outcome, UsageError
from harness.results.redis_scan import HASH, Row, UnreadableError
from harness.rundir.store import Store
from harness.runner.engine_supervisor import RESTART_PAUSES_S
from harness.runner.foreign_results import POLL_EVERY_MS
from harness.runner.run import run
from harness.runner.world.fake import FakeWorld
from harness.util.texts import clock

SMALL = {
    "engine": "fake",
    "rate": 200,
    "duration": "15s",
    "window": "5s",
    "campaigns": 5,
    "probes": 10,
    "servers": 2,
    "disorder": "none",
}


class Silent:
    """A screen that nobody looks at; it keeps the phases."""

    def __init__(self):
        self.phases, self.details = [], {}

    def phase(self, name, waits_for=""):
        self.phases.append(name)
        self.details[name] = waits_for

    def update(self, facts):
        assert facts["done"] >= -1


def fake_run(folder, world=FakeWorld, manifest=fake.MANIFEST, **changes):
    spec, manifest = plan.resolve("test", SMALL | changes, {}, lambda *_: manifest)
    store = Store.create(folder, "test-fake")
    screen = Silent()
    verdict = run(
        spec, manifest, environment={}, world=world(spec, store, manifest), stored=StoredRun(store), screen=screen
    )
    return verdict, store, screen


def test_who_waits_for_a_window_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.load.start_time.next_ms", lambda now_ms, _: now_ms + 30_000)
    verdict, store, screen = fake_run(tmp_path)
    (epoch_ms,) = (told["epoch_ms"] for told in store.history("epoch"))

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert screen.phases[3:6] == ["fleet", "wait", "load"]
    assert clock(epoch_ms) in screen.details["wait"], "as long as it waits this stays on the screen, and stays true"
    assert min(store.read_table("sends.parquet").column("sent_us").to_pylist()) >= 0
    assert all(told["at_ms"] > epoch_ms for told in store.history("loaded"))


def test_the_nine_steps_come_in_their_order(tmp_path):
    verdict, store, screen = fake_run(tmp_path)

    assert screen.phases == ["seal", "services", "engine", "fleet", "load", "drain", "read", "stop", "stop", "judge"]
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert verdict.slack == 0
    for name in ("spec.json", "plan.json", "environment.json", "verdict.json", "batches.json"):
        assert store.has(name)


def test_a_stored_run_is_judged_again_alike(tmp_path):
    verdict, store, _ = fake_run(tmp_path, sink="increment")

    assert judge(StoredRun.open(store.path)) == verdict


@pytest.mark.parametrize("point", ["c1", "c2", "c3", "c4"])
@pytest.mark.parametrize("sink", ["absolute", "fenced", "increment"])
def test_each_sink_at_each_crash_point_is_of_its_known_class(tmp_path, sink, point):
    verdict, _, _ = fake_run(tmp_path, sink=sink, fault=f"kill@{point}:batch=3", disorder="mobile")

    wrong = sink == "increment" and point in ("c2", "c3")
    assert verdict.outcome is (Outcome.FAIL if wrong else Outcome.PASS), verdict.sentence
    assert verdict.words == (("duplicated",) if wrong else ())
    fault = next(check for check in verdict.checks if check.name == "fault")
    assert "landed" in fault.sentence


@pytest.mark.parametrize("fault", ["kill@c3:batch=3", "kill@c4:batch=3", "kill@offset=50%"])
def test_a_fault_strikes_by_the_clock_of_the_world(tmp_path, fault):
    _, store, _ = fake_run(tmp_path, fault=fault)

    (epoch,), (loaded,), (told,) = (list(store.history(kind)) for kind in ("epoch", "loaded", "fault"))
    assert epoch["epoch_ms"] < told["report"]["at_ms"] < loaded["at_ms"]


WARM_UP = {"warm_up": "17s", "disorder": "mobile"}


def test_a_warm_up_is_sent_before_the_epoch_and_only_the_load_is_measured(tmp_path):
    _, without, _ = fake_run(tmp_path / "without", disorder="mobile")
    verdict, store, screen = fake_run(tmp_path / "with", **WARM_UP)
    alone, plan_json = without.read_json("plan.json"), store.read_json("plan.json")
    measurement = measure.save(StoredRun(store), verdict)
    assert measurement

    assert screen.phases[3:6] == ["fleet", "warm-up", "load"]
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert plan_json["tape"] == alone["tape"]
    assert alone["warm_up"] is None
    assert plan_json["warm_up"]["digest"] not in (None, alone["tape"]["digest"])
    planned = sum(plan_json[name]["total"] for name in ("tape", "warm_up"))
    assert verdict.totals["planned"] == planned + len(marks_of(store))
    assert measurement.events == plan_json["tape"]["total"]
    (epoch,) = store.history("epoch")
    assert epoch["epoch_ms"] % 5000 == 0
    due_us = store.read_table("sends.parquet").column("intended_us").to_pylist()
    assert min(due_us) < -16_900_000
    assert abs(sum(due <= 0 for due in due_us) / sum(due > 0 for due in due_us) - 17 / 15) < 0.1
    seconds = store.read_table("timeline.parquet").column("second").to_pylist()
    assert seconds[0] == 0
    probes = measurement.latency_by("probes")
    assert probes
    assert probes.corrected.count <= 30, "those of the warm-up have no latency"


@pytest.mark.parametrize("disorder", sorted(PRESETS))
def test_a_warm_up_is_judged_with_the_load_to_the_single_event(tmp_path, disorder):
    verdict, _, _ = fake_run(tmp_path, warm_up="7s", disorder=disorder, late_dropped_max="any")

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert verdict.slack == 0


class Hidden(FakeWorld):
    """Of one cell of the warm-up another count is read in the end."""

    by = 0

    def rows(self):
        rows = super().rows()
        if not self._epoch_ms or not self.status().finished:
            return rows
        place = next(i for i, row in enumerate(rows) if row.field.isdigit() and self.is_early(row))
        changed = rows[place]._replace(value=str(int(rows[place].value) + self.by))
        return [*rows[:place], changed, *rows[place + 1 :]]

    def is_early(self, row):
        assert self._epoch_ms
        return self._epoch_ms - 15_000 <= int(row.field) < self._epoch_ms - 10_000 and int(row.value) > 1


@pytest.mark.parametrize(("by", "word"), [(-1, "lost"), (1, "duplicated")])
def test_one_event_of_a_warm_up_too_few_or_too_many_is_found(tmp_path, by, word):
    verdict, _, _ = fake_run(tmp_path, type("Changed", (Hidden,), {"by": by}), **WARM_UP)

    assert verdict.outcome is Outcome.FAIL
    found = next(check for check in verdict.checks if check.word == word)
    assert found.count == 1
    assert "(-15 s)" in found.witnesses[0].cell


@pytest.mark.parametrize("fault", ["kill@c3:batch=3", "kill@offset=50%", "kill@t>=5s", "kill@batch>=2"])
def test_no_fault_strikes_in_a_warm_up_and_its_positions_count_from_the_epoch(tmp_path, fault):
    verdict, store, _ = fake_run(tmp_path, fault=fault, **WARM_UP)

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    (epoch,), (told,) = (list(store.history(kind)) for kind in ("epoch", "fault"))
    struck_s = (told["report"]["at_ms"] - epoch["epoch_ms"]) / 1000
    assert struck_s >= 0
    if "50%" in fault:
        assert 7 <= struck_s <= 10
    (recovered,) = measure.recoveries(StoredRun(store), verdict)
    assert (recovered.quantities["peak_backlog"].value or 0) > 0


def test_an_engine_that_ends_in_its_warm_up_has_crashed(tmp_path):
    verdict, store, _ = fake_run(tmp_path, warm_up="60s", conf={"misbehave": "die"})

    assert verdict.sentence.startswith("crashed: ")
    assert not list(store.history("loaded"))


def marks_of(store):
    return [mark for entry in store.history("marks") for mark in entry["marks"]]


def test_an_engine_that_stops_again_and_again_is_started_after_growing_pauses_and_then_given_up(tmp_path):
    verdict, store, _ = fake_run(tmp_path, fault="kill@batch>=1", conf={"misbehave": "die"})

    ends = [entry["at_ms"] for entry in store.history("restart")]
    assert len(ends) > 5
    for pause_s, before, after in zip(RESTART_PAUSES_S[1:], ends, ends[1:], strict=False):
        assert after - before >= pause_s * 1000
    assert verdict.outcome is Outcome.FAIL
    assert set(verdict.words) & {"crashed", "stuck"}, verdict.sentence
    notes = [note for entry in store.history("closed") for note in entry["notes"]]
    assert any(note.startswith(f"it ended by itself {len(ends)} times and was started again") for note in notes), notes


class Away(FakeWorld):
    """The results can't be looked at for twenty seconds from the first look of the drain on."""

    since_ms = 0

    def reachable(self):
        if self.status().finished and not self.since_ms:
            self.since_ms = self.now_ms()
        return not self.since_ms or self.now_ms() - self.since_ms >= 20_000

    def snapshot(self):
        assert self.reachable()
        return super().snapshot()


def test_results_that_cannot_be_looked_at_do_not_stand_still(tmp_path):
    verdict, store, _ = fake_run(tmp_path, Away)

    (loaded,), (engine,) = (list(store.history(kind)) for kind in ("loaded", "engine"))
    assert engine["at_ms"] - loaded["at_ms"] >= 20_000
    assert verdict.outcome is Outcome.PASS, verdict.sentence


class Tallied(FakeWorld):
    """It tells how often all of its results were read."""

    readings = 0

    def rows(self):
        Tallied.readings += 1
        return super().rows()


def test_of_an_engine_that_is_not_ready_all_results_are_read_once_and_not_at_every_beat(tmp_path, monkeypatch):
    monkeypatch.setattr(Tallied, "readings", 0)
    verdict, _, _ = fake_run(tmp_path, Tallied, fault="none", conf={"misbehave": "mute"})

    assert verdict.words == ("stuck",), verdict.sentence
    looks = 30_000 // POLL_EVERY_MS  # for results in another layout
    assert Tallied.readings <= 4 + looks, "one while it waited; the others are for the diagnosis and the end"


def test_a_replay_counted_twice_names_batch_and_windows(tmp_path):
    verdict, _, _ = fake_run(tmp_path, sink="increment", fault="kill@c3:batch=5")

    check = next(check for check in verdict.checks if check.name == "duplicated")
    assert "exactly batch 5 once more, which was replayed after kill@c3:batch=5, windows" in check.sentence


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ("drop:100", ("lost",)),
        ("double:100", ("duplicated",)),
        ("future-window:100", ("lost", "phantom")),
        ("stranger:100", ("lost", "phantom")),
        ("garble:50", ("lost", "unreadable")),
        ("stall", ("stuck",)),
        ("mute", ("stuck",)),
        ("die", ("crashed",)),
    ],
)
def test_each_planted_bug_fails_under_its_right_name(tmp_path, bug, words):
    verdict, _, _ = fake_run(tmp_path, fault="none", conf={"misbehave": bug})

    assert verdict.outcome is Outcome.FAIL
    assert verdict.words == words, verdict.sentence


def test_a_fault_that_never_comes_makes_the_run_unknown(tmp_path):
    verdict, _, _ = fake_run(tmp_path, fault="kill@c3:batch=100000")

    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.words == ("not landed",)
    assert verdict.sentence.count("did not land") == 1


def test_late_events_are_counted_exactly_and_bounded_when_told(tmp_path):
    allowed, _, _ = fake_run(tmp_path, disorder="late", fault="none")
    refused, _, _ = fake_run(tmp_path, disorder="late", fault="none", late_dropped_max=0)
    kept, _, _ = fake_run(tmp_path, disorder="late", fault="none", sink="fenced")

    assert allowed.outcome is Outcome.PASS, allowed.sentence
    assert allowed.totals["late_dropped"] > 0
    assert refused.words == ("late-dropped",)
    assert kept.outcome is Outcome.PASS
    assert kept.totals["late_dropped"] == 0


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize("sink", ["absolute", "fenced"])
def test_every_preset_passes(tmp_path, preset, sink):
    verdict, _, _ = fake_run(tmp_path, disorder=preset, sink=sink)

    assert verdict.outcome is Outcome.PASS, verdict.sentence


@given(seed=st.integers(0, 10_000), preset=st.sampled_from(sorted(PRESETS)), rate=st.integers(50, 400))
@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_honest_runs_pass_whatever_the_seed(tmp_path_factory, seed, preset, rate):
    verdict, _, _ = fake_run(tmp_path_factory.mktemp("run"), seed=seed, disorder=preset, rate=rate)

    assert verdict.outcome is Outcome.PASS, verdict.sentence


class Elsewhere(FakeWorld):
    """An engine whose keys are not those that are looked for."""

    def rows(self):
        return [row._replace(key=f"stats:{row.key}:views") for row in super().rows()]


def test_counts_under_other_keys_are_named_with_the_lines_that_the_manifest_needs(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Elsewhere)

    engine = next(check for check in verdict.checks if check.name == "engine")
    assert verdict.sentence.startswith(
        "stuck: its results are not where its manifest declares them; 0 of 4 opening events have been counted in "
        "window "
    )
    assert "the job wrote keys such as 'stats:" in verdict.sentence
    assert [w.detail for w in engine.witnesses if w.cell == "manifest.toml"] == [
        'results = "redis:template"',
        'key = "stats:{campaign}:views"',
        'field = "{window}"',
    ]


@pytest.mark.parametrize(
    ("rows", "seconds"),
    [
        ([Row("stats", "{window}", "4", HASH)], 30),  # which can't be a result: no {campaign} is in it
        ([Row("log", "lines", "4", HASH)], 150),  # nothing of ours is in it
    ],
)
def test_a_layout_that_names_our_windows_is_waited_for_no_longer(tmp_path, rows, seconds):
    class Writes(FakeWorld):
        def rows(self):
            opens = super().rows()[0].field if super().rows() else "0"
            return [row._replace(field=row.field.format(window=opens)) for row in rows]

    _, store, _ = fake_run(tmp_path, Writes, manifest=replace(fake.MANIFEST, ready_s=120.0))
    (gone,) = store.history("gone")
    (begin,) = store.history("begin")

    assert gone["state"] == "stuck"
    assert abs((gone["at_ms"] - begin["at_ms"]) / 1000 - seconds) < 30


class InAnotherDatabase(FakeWorld):
    def rows(self):
        return []

    def other_databases(self):
        return {3: 8}


def test_counts_in_another_database_are_found(tmp_path):
    verdict, _, _ = fake_run(tmp_path, InAnotherDatabase)

    assert "database 3 holds 8 keys" in verdict.sentence


class Ended(FakeWorld):
    """Its engine ends as soon as it was started."""

    def send(self, marks):
        super().send(marks)
        self.engine.kill()


def test_an_engine_that_ended_before_it_answered_is_not_asked_what_it_wrote(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Ended)

    assert verdict.sentence.startswith("crashed: ")
    assert verdict.sentence.endswith("although no fault killed it")


def test_one_that_ended_because_it_was_started_before_its_services_is_told_by_which_key(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Ended, manifest=replace(fake.MANIFEST, waits_for_services=True))

    assert verdict.sentence.startswith("crashed: ")
    assert "waits_for_services = true" in verdict.sentence


def test_an_engine_that_wrote_nothing_is_said_to_have_written_nothing(tmp_path):
    verdict, _, _ = fake_run(tmp_path, conf={"misbehave": "mute"})

    assert "the job wrote nothing to Redis" in verdict.sentence


def test_progress_in_seconds_is_refused_before_the_load(tmp_path):
    with pytest.raises(UsageError, match=r"Line 1 of progress.jsonl has at = \d{10}: .* this looks like seconds"):
        fake_run(tmp_path, conf={"misbehave": "seconds"}, fault="none")

    (store,) = (Store.open(path) for path in tmp_path.iterdir())
    assert not list(store.history("epoch"))


def test_an_engine_that_begins_slowly_needs_patience(tmp_path):
    hurried = replace(fake.MANIFEST, ready_s=1.0)
    stuck, _, _ = fake_run(tmp_path / "a", manifest=hurried, fault="none")
    patient, _, _ = fake_run(tmp_path / "b", manifest=hurried, fault="none", patience=3)

    assert stuck.words == ("stuck",)
    assert patient.outcome is Outcome.PASS, patient.sentence


@pytest.mark.parametrize("bug", ["dedupe-values", "dedupe-keys"])
@pytest.mark.parametrize("manifest", [fake.MANIFEST, fake.SILENT])
def test_a_job_that_drops_equal_records_drops_none_of_ours(tmp_path, bug, manifest):
    verdict, store, _ = fake_run(tmp_path, manifest=manifest, fault="none", conf={"misbehave": bug})
    marks = [mark for entry in store.history("marks") for mark in entry["marks"]]

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert len({(mark["user"], mark["page"]) for mark in marks}) == len(marks) == 8


class Blind(FakeWorld):
    """Nobody looks while the load goes on."""

    def changed(self):
        return None


def test_where_nobody_looks_under_load_a_change_has_to_be_seen_afterwards(tmp_path):
    verdict, store, _ = fake_run(tmp_path, Blind, manifest=fake.SILENT, fault="none")

    (engine,) = store.history("engine")
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert engine["report"]["state"] == "unsettled"


class Crowded(FakeWorld):
    """The engine's thread runs a tenth of the time and is ready to run all of it."""

    def threads(self):
        return {(1, 1): (self.now_ms() * 100_000, self.now_ms() * 900_000)}


def test_a_crowded_machine_starves_an_engine_and_one_that_ends_by_itself_has_crashed(tmp_path):
    killed, _, _ = fake_run(tmp_path / "a", Crowded, fault="kill@batch>=1", conf={"misbehave": "die"})
    alone, _, _ = fake_run(tmp_path / "b", Crowded, fault="none", conf={"misbehave": "die"})

    assert (killed.outcome, killed.words) == (Outcome.UNKNOWN, ("starved",))
    assert (alone.outcome, alone.words) == (Outcome.FAIL, ("crashed",))


class CrowdedAtFirst(FakeWorld):
    """Its engine waits for a CPU for 20 s, and then wants none."""

    def threads(self):
        for_ms = min(self.now_ms() - FAKE_NOW_MS, 20_000)
        return {(1, 1): (for_ms * 100_000, for_ms * 900_000)}


def test_one_that_had_the_machine_for_the_last_30_s_is_stuck_and_not_starved(tmp_path):
    for ready_s, word in ((60.0, "stuck"), (25.0, "starved")):
        manifest = replace(fake.MANIFEST, ready_s=ready_s)
        verdict, _, _ = fake_run(tmp_path / word, CrowdedAtFirst, manifest=manifest, conf={"misbehave": "mute"})

        assert word in verdict.words, verdict.sentence


def test_a_wrong_count_is_wrong_on_a_crowded_machine_too(tmp_path):
    stuck, _, _ = fake_run(tmp_path / "a", Crowded, fault="none", conf={"misbehave": "stall"})
    wrong, _, _ = fake_run(tmp_path / "b", Crowded, fault="none", conf={"misbehave": "double:100"})

    assert (stuck.outcome, stuck.words) == (Outcome.UNKNOWN, ("starved",))
    assert (wrong.outcome, wrong.words) == (Outcome.FAIL, ("duplicated",))


class Ponderous(FakeWorld):
    """It has so many cells that each look at them takes two seconds."""

    LOOKS: ClassVar[list[int]] = []

    def snapshot(self):
        self.LOOKS.append(self.now_ms())
        self._clock.now_ms += 2000
        return super().snapshot()


@pytest.mark.parametrize("bug", ["mute", "stall"])
def test_looks_that_take_long_leave_the_engine_most_of_the_time(tmp_path, monkeypatch, bug):
    """It waits for the opening events or in the drain for 30 s, until the engine is stuck."""
    monkeypatch.setattr(Ponderous, "LOOKS", [])

    verdict, _, _ = fake_run(tmp_path, Ponderous, fault="none", conf={"misbehave": bug})

    assert verdict.words == ("stuck",)
    *looks_ms, _at_the_deadline = Ponderous.LOOKS[-4:]
    assert min(np.diff(looks_ms)) >= 8000


@pytest.mark.parametrize(("bug", "word"), [("die", "crashed"), ("stall", "stuck")])
def test_a_heap_that_was_used_up_is_named_in_the_verdict(tmp_path, monkeypatch, bug, word):
    words = LastWords("logs/engine-1.log", ("java.lang.OutOfMemoryError: Java heap space",))
    monkeypatch.setattr(fake.FakeEngine, "last_words", lambda _: words)

    verdict, _, _ = fake_run(tmp_path, fault="none", conf={"misbehave": bug})

    assert (verdict.outcome, verdict.words) == (Outcome.FAIL, (word,))
    assert "OutOfMemoryError: Java heap space" in verdict.sentence


def test_whom_the_kernel_killed_for_memory_has_not_crashed(tmp_path):
    """A heap that is used up is an engine's own: then it ends by itself, and the kernel has killed nobody."""
    killed, store, _ = fake_run(tmp_path / "a", fault="none", conf={"misbehave": "eat-memory"})
    heap, _, _ = fake_run(tmp_path / "b", fault="none", conf={"misbehave": "die"})

    assert (killed.outcome, killed.words) == (Outcome.UNKNOWN, ("no-memory",))
    assert (heap.outcome, heap.words) == (Outcome.FAIL, ("crashed",))
    engine = next(check for check in killed.checks if check.name == "engine")
    assert "ran out of memory: the kernel killed 1 process to free some; 1.00 GB are granted" in engine.sentence
    assert "exit code -9" in engine.sentence
    assert next(store.history("begin"))["memory"] == {"granted_bytes": 1_000_000_000, "killed": 0}
    assert judge(StoredRun.open(store.path)) == killed


def test_an_engine_that_the_kernel_kills_again_and_again_is_started_again_and_not_blamed(tmp_path):
    verdict, store, _ = fake_run(tmp_path, fault="kill@batch>=1", conf={"misbehave": "eat-memory"})

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("no-memory",))
    assert len(list(store.history("restart"))) == len(RESTART_PAUSES_S)


def test_a_fault_that_did_not_land_for_want_of_memory_is_not_the_headline(tmp_path):
    verdict, _, _ = fake_run(tmp_path, fault="kill@batch>=9", conf={"misbehave": "eat-memory"})

    assert verdict.words == ("not landed", "no-memory")
    assert verdict.sentence.startswith("no-memory: the machine ran out of memory")


class Swept(FakeWorld):
    """The kernel kills something of the run when a third of the load is sent."""

    def swept(self):
        return super().status().sent > 1000

    def memory(self):
        return replace(super().memory(), killed=int(self.swept()))


class SweptFleet(Swept):
    """... and that was the fleet."""

    def status(self):
        if self.swept():
            raise HarnessError("The fleet ended with -9.")
        return super().status()


def test_a_fleet_that_the_kernel_killed_leaves_a_verdict(tmp_path):
    verdict, _, _ = fake_run(tmp_path, SweptFleet, fault="none")

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("no-memory",))
    engine = next(check for check in verdict.checks if check.name == "engine")
    assert "The fleet ended with -9." in engine.sentence


def test_a_wrong_count_is_wrong_without_memory_too_and_a_right_one_right(tmp_path):
    """An engine that comes back from a kill has to count right, whoever killed it; that one was killed is told."""
    wrong, _, _ = fake_run(tmp_path / "a", Swept, fault="none", conf={"misbehave": "double:100"})
    right, _, _ = fake_run(tmp_path / "b", Swept, fault="none")

    assert (wrong.outcome, wrong.words) == (Outcome.FAIL, ("duplicated",))
    assert right.outcome is Outcome.PASS
    for verdict in (wrong, right):
        engine = next(check for check in verdict.checks if check.name == "engine")
        assert "the kernel killed 1 process" in engine.sentence


class Unopened(FakeWorld):
    def memory(self):
        return replace(super().memory(), killed=self.tried)

    tried = 0

    def open(self):
        self.tried = 2
        raise HarnessError("The broker ended.")


def test_what_breaks_for_want_of_memory_before_the_start_says_so(tmp_path):
    with pytest.raises(
        HarnessError, match=r"^The machine ran out of memory: .* 2 processes .* The broker ended\. To go"
    ):
        fake_run(tmp_path, Unopened)


def test_the_wait_before_the_closing_events_is_no_silence_of_the_engine(tmp_path):
    """While the first ones are read, results come: they end a silence of ours."""
    final = tuple(replace(sink, final=True) for sink in fake.SILENT.sinks)
    manifest = replace(fake.SILENT, ready_s=120.0, sinks=final)
    verdict, store, _ = fake_run(tmp_path, manifest=manifest, fault="none", sink="absolute", duration="30s")

    (engine,) = store.history("engine")
    *_, last = store.history("marks")
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert engine["at_ms"] - last["at_ms"] < 40_000


class Counting(FakeWorld):
    scans = 0

    def rows(self):
        type(self).scans += self.status().finished
        return super().rows()


def test_all_results_are_read_only_when_there_is_something_new(tmp_path):
    verdict, store, _ = fake_run(tmp_path, Counting, manifest=fake.SILENT, fault="none")

    (loaded,), (engine,) = (list(store.history(kind)) for kind in ("loaded", "engine"))
    looks = (engine["at_ms"] - loaded["at_ms"]) / 250
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert looks > 150
    assert 2 <= Counting.scans < 20


class Locked(FakeWorld):
    """What prints the results fails for a while when the load is over, as one does whose database is locked."""

    since_ms = 0
    failed = 0
    read_failed = False

    def rows(self):
        """Once it fails between a look and the reading."""
        if self.status().finished and not self.read_failed:
            self.read_failed = True
            raise UnreadableError("`read.py` ended with exit code 1: database is locked")
        return super().rows()

    def snapshot(self):
        self.since_ms = self.since_ms or self.now_ms()
        if self.now_ms() - self.since_ms < self.locked_ms:
            self.failed += 1
            raise UnreadableError("`read.py` ended with exit code 1: database is locked")
        return super().snapshot()

    locked_ms = 20_000


class Broken(Locked):
    locked_ms = 10**9


def test_results_that_can_not_be_read_for_a_while_are_waited_for(tmp_path):
    verdict, _, _ = fake_run(tmp_path / "a", Locked, manifest=fake.SILENT, fault="none")
    broken, _, _ = fake_run(tmp_path / "b", Broken, manifest=fake.SILENT, fault="none")

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert broken.words == ("stuck",)
    assert "database is locked" in broken.sentence


def test_a_start_that_takes_longer_than_stillness_loses_nothing(tmp_path):
    killed = {"fault": "kill@t>=14s", "manifest": replace(fake.SILENT, ready_s=120.0, drain_s=120.0)}
    verdict, store, _ = fake_run(tmp_path, conf={"misbehave": "slow-start:65"}, **killed)

    (engine,) = store.history("engine")
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert engine["report"]["state"] == "drained"


@pytest.mark.parametrize(("back_after_s", "words"), [(65, ()), (1000, ("not landed", "stuck"))])
def test_a_start_with_progress_may_take_as_long_as_the_manifest_says(tmp_path, back_after_s, words):
    manifest = replace(fake.MANIFEST, ready_s=120.0, drain_s=10.0)
    slow = {"misbehave": f"slow-start:{back_after_s}"}
    verdict, _, _ = fake_run(tmp_path, manifest=manifest, fault="kill@offset=50%", conf=slow)

    assert verdict.words == words, verdict.sentence


def test_what_a_starved_engine_was_given_is_kept_for_the_judge(tmp_path):
    _, store, _ = fake_run(tmp_path, conf={"misbehave": "starve"}, fault="none")

    (cpu,) = store.history("cpu")
    assert cpu["starved"]
    assert "2 cores at load 25" in cpu["words"]
