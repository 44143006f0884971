"""Full disks: foretold before a run, and named when one fills up, whoever was writing."""

from __future__ import annotations

import errno
import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from generators.tape import Tape
from harness.config import plan
from harness.drivers import one_run
from harness.drivers import search as drive_search
from harness.engines import fake
from harness.engines import manifest as manifests
from harness.engines.manifest import load
from harness.experiments.folder import Folder
from harness.experiments.searching import search
from harness.experiments.searching.searched import read
from harness.host import disk_space
from harness.host.disk_space import MB, Disk, NoRoomError
from harness.install import environment, installer, ivy
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import DEFAULT_SCENARIO, Exit, HarnessError, Outcome
from harness.rundir.store import HISTORY, Store
from harness.runner.world import fake as fake_world
from harness.runner.world.fake import FakeWorld
from harness.services import owners
from harness.services.small_disk import SmallDisk, impossible
from harness.terminal.command_end import cache_folder, ended
from harness.util.wait import wait_until
from reports import saved
from tests.program import pages
from tests.program.calls import exit_code
from tests.program.runner.test_run import fake_run

DOCS = Path(__file__).resolve().parents[3] / "docs"
RUN_MD, MACHINE_MD = DOCS / "reference" / "run.md", DOCS / "start" / "machine.md"
FULL = OSError(errno.ENOSPC, "No space left on device")
ON_A_JVM = replace(fake.MANIFEST, ivy="spark")
OWN_JAR = replace(fake.MANIFEST, command=("{java}", "-jar", "mine.jar", "{config}"))
FAST = ["run", "--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]


def needs(out="runs", temporary="tmp", **changes):
    asked = {"manifest": fake.MANIFEST, "events": 600_000, "brokers": 1, "runs": 1, **changes}
    return disk_space.needs(out=Path(out), temporary=Path(temporary), **asked)


def one_disk(free):
    return lambda _: Disk(1, free)


@pytest.fixture
def disk(tmp_path):
    """A real one of 60 MB."""
    if why := impossible():
        pytest.skip(f"NO REAL FULL DISK IS TRIED: none can be mounted here ({why})")
    made = SmallDisk(tmp_path / "disk", 60)
    made.mount()
    yield made
    made.unmount()


# ---------------------------------------------------------------- Before the start


def test_the_parts_on_one_disk_need_their_room_together():
    wanted = needs()
    total = sum(need.size for need in wanted) + disk_space.AS_GOOD_AS_FULL

    disk_space.refuse(wanted, one_disk(total))
    with pytest.raises(NoRoomError, match=r"may need \d+ MB .*, but only \d+ MB are free there\. .*--out.*TMPDIR"):
        disk_space.refuse(wanted, one_disk(total - 1))


def test_each_of_two_disks_is_asked_for_its_own_parts():
    free = {"runs": Disk(1, 1000 * MB), "tmp": Disk(2, 1 * MB)}

    with pytest.raises(NoRoomError, match=r"below tmp .*set TMPDIR") as refused:
        disk_space.refuse(needs(), lambda place: free[place.name])

    assert "--out" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"events": 1_200_000}, 600_000 * (disk_space.LOG_PER_EVENT + disk_space.KEPT_PER_EVENT)),
        ({"brokers": 3}, 2 * (600_000 * disk_space.LOG_PER_EVENT + disk_space.LOG_PER_BROKER)),
        ({"brokers": 0}, -(600_000 * disk_space.LOG_PER_EVENT + disk_space.LOG_PER_BROKER)),
        ({"manifest": ON_A_JVM}, disk_space.JVMS_OWN - disk_space.ENGINES_OWN),
        ({"manifest": OWN_JAR}, disk_space.JVMS_OWN - disk_space.ENGINES_OWN),
        ({"runs": 3}, 2 * (disk_space.KEPT_PER_RUN + 600_000 * disk_space.KEPT_PER_EVENT)),
        ({"in_state": 600_000}, 0),
        (
            {"manifest": ON_A_JVM, "in_state": 600_000},
            disk_space.JVMS_OWN - disk_space.ENGINES_OWN + 600_000 * disk_space.CHECKPOINT_PER_EVENT,
        ),
    ],
    ids=[
        "twice the events",
        "three brokers",
        "no broker",
        "on a JVM",
        "of one's own on a JVM",
        "three runs",
        "a state without a checkpoint",
        "a state that nothing leaves",
    ],
)
def test_what_is_needed_grows_with_events_brokers_and_what_is_kept(changes, more):
    before, after = (sum(need.size for need in each) for each in (needs(), needs(**changes)))

    assert after - before == more


# Seen on real disks while runs went on, and when they had ended, in MB.
SEEN = [
    # engine, events, below the run at the most, kept in the end
    ("reference", 309_000, 87.0, 5.6),
    ("spark", 206_000, 58.3, 4.2),
    ("reference", 601_800, 162.7, 8.8),
    ("spark", 601_800, 172.8, 6.9),
    ("spark-rtm", 601_800, 170.6, 9.3),
    ("flink", 601_800, 166.2, 9.1),
    ("kafka-streams", 601_800, 179.3, 9.2),
    ("spark-rtm", 2_251_350, 569.2, 29.6),
]
SEEN_OF_ENGINES_OWN = {"reference": 0.5, "spark": 77.0}


@pytest.mark.parametrize(("engine", "events", "below_the_run", "kept"), SEEN)
def test_what_is_foretold_holds_what_real_runs_took_and_not_twice_as_much(engine, events, below_the_run, kept):
    log, stays, _ = needs(manifest=load(engine), events=events)

    assert below_the_run * MB < log.size + stays.size < 2 * below_the_run * MB
    assert kept * MB < stays.size


@pytest.mark.parametrize("engine", SEEN_OF_ENGINES_OWN)
def test_what_is_foretold_holds_what_real_engines_wrote(engine):
    assert needs(manifest=load(engine))[-1].size > SEEN_OF_ENGINES_OWN[engine] * MB
    assert disk_space.JVMS_OWN > 162.9 * MB  # the most of any in a comparison of five engines


@pytest.mark.parametrize(("name", "in_state"), [("big-state", 2_700_000), ("bursts", 0)])
def test_a_checkpoint_needs_room_where_nothing_leaves_the_state_while_the_load_goes_on(name, in_state, monkeypatch):
    asked = []
    monkeypatch.setattr(disk_space, "refuse", lambda wanted, _: asked.extend(wanted))
    _, scenario = plan.read_scenario(name)
    spec, manifest = plan.resolve(name, scenario, {"engine": "spark"}, load)

    one_run.refuse_without_room(spec, manifest, Path("runs"))

    assert asked[-1].size - disk_space.JVMS_OWN == pytest.approx(in_state * disk_space.CHECKPOINT_PER_EVENT, rel=0.01)


def test_what_is_foretold_holds_the_checkpoint_of_a_state_that_nothing_left():
    """Of 2.7 million events in 662,619 cells, after 17 batches and three kills."""
    assert needs(manifest=load("spark"), events=2_700_000, in_state=2_700_000)[-1].size > 232 * MB + 77 * MB


def test_the_documents_tell_the_same_figures():
    told = RUN_MD.read_text(encoding="utf-8")

    assert (
        f"of each broker {disk_space.LOG_PER_BROKER // MB} MB, and {disk_space.LOG_PER_EVENT} bytes of each event"
        in told
    )
    assert (
        f"of each run {disk_space.KEPT_PER_RUN // MB} MB, and {disk_space.KEPT_PER_EVENT} bytes of each event" in told
    )
    assert (
        f"{disk_space.JVMS_OWN // MB} MB for an engine on a JVM, {disk_space.ENGINES_OWN // MB} MB for any other"
        in told
    )
    assert f"with a lateness that outlasts the load, {disk_space.CHECKPOINT_PER_EVENT} bytes of each event" in told
    assert f"each disk of these | {disk_space.AS_GOOD_AS_FULL // MB} MB |" in told
    assert f"less than {disk_space.AS_GOOD_AS_FULL // MB} MB are left" in told


def test_the_documents_tell_what_the_default_run_needs():
    spec, manifest = plan.resolve(*plan.read_scenario(DEFAULT_SCENARIO), {}, manifests.load)
    parts = needs(manifest=manifest, events=Tape(spec.tape).total)

    needed = disk_space.size_in_words(sum(part.size for part in parts) + disk_space.AS_GOOD_AS_FULL)
    assert f"| disk | {needed} |" in MACHINE_MD.read_text(encoding="utf-8")


def test_a_run_without_room_is_refused_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_space, "disk_of", one_disk(60 * MB))
    spec, manifest = plan.resolve(
        "ad-impressions", {}, {}, lambda *_: replace(fake.MANIFEST, id="other", command=("other",))
    )

    with pytest.raises(NoRoomError, match="not enough disk space for this run"):
        one_run.drive(spec, manifest, tmp_path / "runs")

    assert list(tmp_path.iterdir()) == []


def test_rounds_that_fit_one_by_one_but_not_together_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(disk_space, "disk_of", one_disk(60 * MB))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(owners, "sweep", list)

    assert exit_code(*FAST, "--repeat", "5") == Exit.BROKEN

    assert "not enough disk space for this run" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_search_reserves_what_a_life_may_offer(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_space, "disk_of", one_disk(2000 * MB))
    monkeypatch.setattr(environment, "describe", dict)

    with pytest.raises(NoRoomError, match=r"may need \d\.\d GB"):
        drive_search.begin(pages.search_spec(), load("spark"), search.QUICK, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_not_made_yet_lies_on_the_disk_of_the_folder_above(tmp_path):
    assert disk_space.disk_of(tmp_path / "a" / "b").id == tmp_path.stat().st_dev


def test_a_disk_without_files_left_is_full_whatever_is_free(tmp_path, monkeypatch):
    seen = type("Seen", (), {"f_bavail": 10**6, "f_frsize": 4096, "f_favail": 0, "f_files": 1000})
    monkeypatch.setattr("os.statvfs", lambda _: seen)

    assert disk_space.disk_of(tmp_path).free == 0


# ---------------------------------------------------------------- When one is full


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(owners, "sweep", list)
    monkeypatch.setattr(environment, "describe", dict)
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)
    return tmp_path


def full(*_: object, **__: object) -> None:
    raise OSError(*FULL.args)


FILES = [
    "owner.json",
    "spec.json",
    "plan.json",
    "expected.parquet",
    "sends.parquet",
    "log.parquet",
    "observed.parquet",
    "batches.json",
    "digests.json",
    "verdict.json",
    "junit.xml",
]


@pytest.mark.parametrize("name", FILES)
def test_whichever_file_of_a_run_meets_a_full_disk_is_named(name, here, monkeypatch, capsys):
    write_bytes, write_table, writer = Path.write_bytes, pq.write_table, pq.ParquetWriter
    monkeypatch.setattr(Path, "write_bytes", lambda p, c: full() if p.name == f".{name}.part" else write_bytes(p, c))
    monkeypatch.setattr(
        pq, "write_table", lambda t, p, **more: full() if name in Path(p).name else write_table(t, p, **more)
    )
    monkeypatch.setattr(
        pq, "ParquetWriter", lambda p, s, **more: full() if name in Path(p).name else writer(p, s, **more)
    )

    assert exit_code(*FAST, "--json") == Exit.BROKEN

    said = capsys.readouterr()
    size = "" if name == "log.parquet" else " with 0."  # nobody knows it of a table that comes in parts
    assert f"{name} could not be written{size}" in said.err
    assert "Free some" in said.err
    assert "unexpected" not in said.err
    assert json.loads(said.out)["exit"] == Exit.BROKEN
    (run,) = (here / "runs").iterdir()
    assert not list(run.rglob("*.part"))


@pytest.mark.parametrize(
    "write",
    [lambda folder: saved.write("<p>", folder), lambda folder: Folder(folder).save("search")],
    ids=["page", "experiment"],
)
def test_what_is_written_without_a_run_names_its_file_too(write, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "write_bytes", full)

    with pytest.raises(NoRoomError, match=r"(report\.html|experiment\.json).* could not be written"):
        write(tmp_path)


def test_a_full_disk_does_not_hide_why_a_run_ended(here, monkeypatch, capsys):
    """That it ended early is told to its history, which can't be written either."""

    def broken(*_: object, **__: object) -> None:
        monkeypatch.setattr(Store, "tell", lambda *_, **__: full_at_history())
        raise HarnessError("Kafka did not come up.")

    def full_at_history() -> None:
        raise NoRoomError("history.jsonl could not be written")

    monkeypatch.setattr(one_run, "run_nine_steps", broken)

    assert exit_code(*FAST) == Exit.BROKEN

    assert "Kafka did not come up." in capsys.readouterr().err


def test_the_page_of_a_run_that_meets_a_full_disk_costs_no_verdict(here, monkeypatch, capsys):
    monkeypatch.setattr(one_run, "write_page", full)

    assert exit_code(*FAST) == Exit.BROKEN

    assert "A disk is full: No space left on device; " in capsys.readouterr().err
    (run,) = (here / "runs").iterdir()
    assert json.loads((run / "verdict.json").read_bytes())["outcome"] == "PASS"


def test_a_full_disk_hides_behind_what_came_of_it():
    try:
        try:
            full()
        except OSError:
            raise ValueError("half a file") from None
    except ValueError as error:
        found = disk_space.in_terms_of_room(error, [Path()])

    assert found is not None
    assert str(found).startswith("A disk is full: No space left on device; ")


@pytest.mark.parametrize("words", disk_space.FULL_WORDS)
def test_what_another_program_says_of_a_full_disk_is_understood(words):
    found = disk_space.in_terms_of_room(HarnessError(f"Kafka ended: java.io.IOException: {words}."), [Path()])

    assert found is not None
    assert f"Kafka ended: java.io.IOException: {words}; " in str(found)


@pytest.mark.parametrize(
    ("left", "full"), [(disk_space.AS_GOOD_AS_FULL - 1, True), (disk_space.AS_GOOD_AS_FULL, False)]
)
def test_a_program_that_a_full_disk_ended_need_not_say_so(left, full, tmp_path, monkeypatch):
    monkeypatch.setattr(disk_space, "disk_of", lambda _: Disk(1, left))
    log = tmp_path / "log"

    assert disk_space.ended_of_full("Killed", tmp_path) == full
    assert disk_space.ended_of_full(f"cp: {disk_space.FULL_WORDS[0]}", tmp_path)
    assert ("the disk is full" in installer.explain("installing", 1, "Killed", log)) == full
    assert (f"the disk of {cache_folder()} is full" in ivy.explain_failure("toy", 1, "Killed", log)) == full


def test_of_all_places_those_that_are_full_are_named(monkeypatch):
    free = {"full": 3 * MB, "empty": 9000 * MB}
    monkeypatch.setattr(disk_space, "disk_of", lambda place: Disk(1, free[place.name]))

    found = disk_space.in_terms_of_room(FULL, [Path("full"), Path("empty")])

    assert "3.0 MB are free below full, but 16 MB are needed." in str(found)
    assert "empty" not in str(found)


def test_other_errors_are_none_of_a_disk():
    assert disk_space.in_terms_of_room(OSError(errno.EIO, "Input/output error"), [Path()]) is None
    assert disk_space.in_terms_of_room(HarnessError("Kafka ended."), [Path()]) is None


def test_a_thread_that_meets_a_full_disk_ends_the_command_in_such_a_sentence(here, capsys):
    def program() -> int:
        threading.Thread(target=full).start()
        wait_until(lambda: None, deadline_s=30, what="the broken thread to end the program")
        return Exit.PASS

    assert ended(["run"], program) == Exit.BROKEN

    assert "A disk is full: No space left on device; " in capsys.readouterr().err


# ---------------------------------------------------------------- While a run goes on


class Filling(FakeWorld):
    """Somebody fills the disk when a third of the load is sent."""

    left = 5 * MB

    def filled(self):
        return super().status().sent > 1000

    def free(self):
        return {str(self._store.path): self.left if self.filled() else 1000 * MB, "tmp": 1000 * MB}


class BrokerGone(Filling):
    """... and that is the end of the broker."""

    def status(self):
        if self.filled():
            raise HarnessError("The ad servers broke off.")
        return super().status()

    def read(self):
        raise HarnessError("Kafka at 127.0.0.1:9092 does not answer.")


class Torn(Filling):
    """... and the run's own files can't be written any more."""

    def read(self):
        full()


class EngineGone(Filling):
    """... and the engine ends of it, before anybody else looked."""

    def free(self):
        return {"tmp": 3 * MB} if self.engine.exit_code() is not None else {}


def test_a_load_is_ended_when_a_disk_runs_full_and_what_came_so_far_is_judged(tmp_path):
    verdict, store, _ = fake_run(tmp_path, Filling, fault="none")

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("no-room",))
    told = f"no-room: a disk is full: 5.0 MB are free below {store.path}, but 16 MB are needed ("
    assert verdict.sentence.startswith(told)
    assert re.match(r"[\d,]+ of 3,030 events were sent\); free some there", verdict.sentence.removeprefix(told))
    assert 1000 < store.read_table("log.parquet").num_rows < 3000
    assert judge(StoredRun.open(store.path)) == verdict


class Unaccounted(Filling):
    """... and what the load has cost can't be written any more."""

    def stop_accounting(self):
        raise NoRoomError("resources.parquet could not be written")


def test_what_can_not_be_written_at_the_end_does_not_hide_why_it_is_the_end(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Unaccounted, fault="none")

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("no-room",))
    assert "events were sent" in verdict.sentence
    assert "resources" not in verdict.sentence


def test_what_the_run_itself_will_write_is_kept_free_for_it(tmp_path, monkeypatch):
    """Nothing is full when it is ended: the log that is read afterwards has to go somewhere."""
    monkeypatch.setattr(Filling, "left", 30 * MB)
    fits, _, _ = fake_run(tmp_path / "a", Filling, fault="none")
    monkeypatch.setattr(disk_space, "KEPT_PER_EVENT", 20_000)
    ended, _, _ = fake_run(tmp_path / "b", Filling, fault="none")

    assert fits.outcome is Outcome.PASS
    assert (ended.outcome, ended.words) == (Outcome.UNKNOWN, ("no-room",))


def test_an_engine_that_a_full_disk_ends_has_not_crashed(tmp_path):
    conf = {"misbehave": "die"}
    full_disk, _, _ = fake_run(tmp_path / "a", EngineGone, fault="none", conf=conf)
    enough, _, _ = fake_run(tmp_path / "b", fault="none", conf=conf)

    assert (enough.outcome, enough.words) == (Outcome.FAIL, ("crashed",))
    assert (full_disk.outcome, full_disk.words) == (Outcome.UNKNOWN, ("no-room",)), full_disk.sentence


def test_a_wrong_count_is_wrong_on_a_full_disk_too(tmp_path):
    verdict, _, _ = fake_run(tmp_path, Filling, fault="none", conf={"misbehave": "double:100"})

    assert (verdict.outcome, set(verdict.words)) == (Outcome.FAIL, {"duplicated", "no-room"})


@pytest.mark.parametrize("world", [BrokerGone, Torn])
def test_a_run_that_can_keep_no_log_says_why_and_recheck_is_honest(tmp_path, world):
    with pytest.raises(NoRoomError, match=r"disk is full: 5\.0 MB are free below .* but 16 MB are needed"):
        fake_run(tmp_path, world, fault="none")

    (path,) = tmp_path.iterdir()
    again = judge(StoredRun.open(path))
    assert again.outcome is Outcome.UNKNOWN
    assert "log.parquet is missing" in again.sentence
    assert (path / "expected.parquet").exists()


def test_what_is_expected_does_not_hide_why_a_run_ended(tmp_path, monkeypatch):
    class Broken(FakeWorld):
        def read(self):
            monkeypatch.setattr(pq, "write_table", full)
            raise HarnessError("Kafka does not answer.")

    with pytest.raises(HarnessError, match=r"^Kafka does not answer\.$"):
        fake_run(tmp_path, Broken, fault="none")


def test_results_that_could_not_be_kept_are_no_fault_of_the_engine(tmp_path, monkeypatch):
    write_table = pq.write_table
    monkeypatch.setattr(
        pq, "write_table", lambda t, p, **more: full() if "after-stop" in Path(p).name else write_table(t, p, **more)
    )

    with pytest.raises(NoRoomError, match=r"observed-after-stop\.parquet could not be written"):
        fake_run(tmp_path, fault="none")


def test_a_rate_is_not_held_against_an_engine_whose_disk_was_full(here, monkeypatch):
    monkeypatch.setattr(fake_world, "FakeWorld", Filling)
    spec = replace(pages.search_spec(), engine="fake")
    place = drive_search.begin(spec, fake.MANIFEST, pages.FEW_RATES, here)

    with pytest.raises(HarnessError, match=r"disk is full"):
        drive_search.drive(place, spec, fake.MANIFEST)

    assert read(place).lives == ()


# ---------------------------------------------------------------- A real one


def test_a_table_that_a_real_full_disk_refuses_leaves_nothing(disk):
    place = Store.create(disk.folder, "run")
    disk.fill()

    with pytest.raises(NoRoomError, match=r"log\.parquet could not be written with 8\.0 MB: No space left"):
        place.write_table("log.parquet", {"a": list(range(1_000_000))})

    assert not list(place.path.rglob("*.part"))


def test_a_line_of_history_that_was_torn_takes_no_other_with_it(disk):
    """The next line would be glued to its first half, and why a run ended would be lost."""
    place = Store.create(disk.folder, "run")
    place.tell("begin")
    disk.fill()
    with pytest.raises(NoRoomError, match=r"history\.jsonl could not be written"):
        place.tell("fleet", words="x" * 20_000)
    disk.free()
    place.tell("ended early", why="a full disk")

    told = [json.loads(line)["kind"] for line in (place.path / HISTORY).read_bytes().splitlines()]
    assert told[-2:] == ["begin", "ended early"]


def test_a_run_on_a_real_disk_of_60_mb_is_refused(disk, tmp_path, monkeypatch):
    spec, manifest = plan.resolve(
        "ad-impressions", {}, {}, lambda *_: replace(fake.MANIFEST, id="other", command=("other",))
    )

    with pytest.raises(NoRoomError, match=r"only 6[0-3] MB are free there"):
        one_run.drive(spec, manifest, disk.folder / "runs")

    assert list(disk.folder.iterdir()) == []
