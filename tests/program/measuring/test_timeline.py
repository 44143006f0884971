"""The seconds of a run and what is read off them: invented files first, then a whole run in the fake world."""

from __future__ import annotations

import json
from dataclasses import replace
from shutil import copytree

import numpy as np
import pyarrow as pa
import pytest

from generators.tape import Tape
from harness.config import plan
from harness.engines import fake
from harness.judging import progress_curve
from harness.judging.progress_curve import (
    Curve,
    by_progress,
    by_results,
    catch_up_per_s,
    seen_before_told,
    told_before_seen,
)
from harness.judging.stored_run import StoredRun
from harness.measuring import cost
from harness.measuring.measure import save
from harness.measuring.measurement import TIMELINE, Measurement
from harness.measuring.timeline import timeline
from harness.model import Outcome, Progress, RunSpec
from harness.rundir.store import Store
from harness.runner.run import run
from harness.runner.screen import NullScreen
from harness.runner.world.fake import FakeWorld

EPOCH_MS = 1_000_000


def curve(*points, took_s=0.0):
    at_s, total = (np.array(each, dtype=np.float64) for each in zip(*points, strict=True))
    return Curve(at_s, total, np.full(len(points), took_s))


def line(at_s, done):
    return Progress(EPOCH_MS + at_s * 1000, 0, 0, {0: done // 2, 1: done - done // 2})


def test_what_is_known_is_a_staircase_and_what_is_spread_a_line():
    steps = curve((1.0, 100.0), (3.0, 300.0), took_s=1.0)

    moments = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 9.0])
    assert steps.known(moments).tolist() == [0, 0, 100, 100, 100, 300, 300]
    assert steps.spread(moments).tolist() == [0, 50, 100, 100, 200, 300, 300]


def test_a_batch_is_never_spread_over_the_one_before():
    steps = curve((-1.0, 0.0), (1.0, 100.0), (1.5, 300.0), took_s=5.0)

    assert steps.spread(np.array([-0.5, 0.0, 0.5, 1.0, 1.25])).tolist() == [0, 0, 50, 100, 200]


def test_progress_leaves_the_opening_events_out_and_never_goes_back():
    told = by_progress([line(2, 104), line(1, 4), line(3, 54), line(4, 204)], EPOCH_MS, opening=4)

    assert told is not None
    assert told.at_s.tolist() == [1, 2, 3, 4]
    assert told.total.tolist() == [0, 100, 100, 200]
    assert by_progress([], EPOCH_MS, 4) is None


def test_results_tell_the_processed_where_the_engine_does_not():
    rows = [(1.0, 0, 10), (2.0, 1, 10), (3.0, 0, 5), (4.0, 0, 30), (5.0, 1, 10)]  # at 3 s a cell dipped
    samples = pa.table(
        {
            "at_us": [int(EPOCH_MS * 1000 + at_s * 1e6) for at_s, *_ in rows],
            "campaign": [campaign for _, campaign, _ in rows],
            "window_ms": [0] * len(rows),
            "count": [count for *_, count in rows],
        }
    )

    told = by_results(samples, EPOCH_MS, records=400.0)

    assert told is not None
    assert told.total.tolist() == [100, 200, 200, 400, 400]
    assert by_results(samples.slice(0, 0), EPOCH_MS, 400.0) is None


def test_catching_up_is_the_rate_while_there_was_enough_to_do():
    """500/s are offered; at 10 s the engine comes back, does 2,000/s until 13.3 s, and then waits for the offer."""
    offered = curve(*((t / 10, 50.0 * t) for t in range(1, 300)))
    work = [min(500.0 * t / 10, 2000.0 * (t / 10 - 10)) for t in range(100, 300)]

    found = catch_up_per_s(curve(*((t / 10, done) for t, done in zip(range(100, 300), work, strict=True))), offered)

    assert found == pytest.approx(2000, rel=0.01)


def test_an_engine_that_never_had_to_catch_up_has_no_such_rate():
    offered = curve(*((float(t), 500.0 * t) for t in range(1, 60)))

    assert catch_up_per_s(curve(*((t + 0.5, 500.0 * t) for t in range(1, 50))), offered) is None


def resources(*rows):
    names = ("at_ms", "part", "cpu_user_s", "cpu_system_s", "rss_bytes")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def test_cost_is_what_was_used_between_the_first_look_and_the_last():
    table = resources(
        (1000, "engine", 20.0, 2.0, 100 << 20),
        (1000, "kafka", 5.0, 1.0, 50 << 20),
        (2000, "engine", 21.0, 2.5, 300 << 20),
        (2000, "kafka", 5.0, 1.0, 50 << 20),
        (2000, "python workers", 0.25, 0.25, 10 << 20),
        (3000, "engine", 23.0, 3.0, 0),
        (3000, "kafka", 6.0, 1.0, 50 << 20),
        (3000, "python workers", 0.5, 0.5, 10 << 20),
    )

    engine, workers, kafka = cost.costs(table, 2_000_000)

    assert (engine.cpu_user_s, engine.cpu_system_s, engine.peak_rss_mib) == (3.0, 1.0, 300)
    assert engine.cpu_s_per_million == 2.0
    assert (workers.part, workers.cpu_user_s, workers.cpu_system_s) == ("python workers", 0.5, 0.5)
    assert (kafka.cpu_user_s, kafka.cpu_system_s) == (1.0, 0.0)
    assert cost.engine_s_per_million((engine, workers, kafka)) == 2.5
    assert cost.engine_s_per_million((kafka,)) is None
    assert cost.cpu_share(table, "kafka") == 0.5
    assert cost.cpu_share(table.slice(0, 2), "kafka") is None


SMALL = {"engine": "fake", "rate": 400, "duration": "40s", "window": "5s", "campaigns": 5, "servers": 2, "probes": 5}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    spec, manifest = plan.resolve("test", SMALL, {}, lambda *_: fake.MANIFEST)
    store = Store.create(tmp_path_factory.mktemp("runs"), "test")

    class Silent:
        def phase(self, name, waits_for=""):
            pass

        def update(self, facts):
            pass

    verdict = run(
        spec, manifest, environment={}, world=FakeWorld(spec, store), stored=StoredRun(store), screen=Silent()
    )
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    return store, verdict


def column(table, name):
    return [value for value in table.column(name).to_pylist() if value is not None]


def test_a_run_as_seconds(stored):
    store, _ = stored
    total = Tape(store.read_as("spec.json", RunSpec).tape).total

    table = timeline(StoredRun(store), None)

    assert tuple(table.column_names) == TIMELINE
    assert column(table, "second") == list(range(table.num_rows))
    assert sum(column(table, "offered_per_s")) == pytest.approx(total)
    assert sum(column(table, "sent_per_s")) == total
    assert sum(column(table, "processed_per_s")) == pytest.approx(total, abs=10)  # and the closing events
    assert column(table, "backlog")[-1] == 0
    assert max(column(table, "backlog")) > 400, "the engine was killed, so something was waiting"
    assert 10_000 < np.median(column(table, "watermark_lag_ms")) < 12_000
    for unknown in ("cpu_engine", "state_bytes", "latency_p50_ms"):
        assert column(table, unknown) == []


def test_the_seconds_of_latency_cpu_and_state_are_joined_in(stored, tmp_path):
    store, _ = stored
    copy = Store(tmp_path)
    for file in ("spec.json", "history.jsonl"):
        (tmp_path / file).write_bytes((store.path / file).read_bytes())
    epoch_ms = next(store.history("epoch"))["epoch_ms"]
    copy.write_table(
        "resources.parquet",
        dict(
            zip(
                ("at_ms", "part", "cpu_user_s", "cpu_system_s", "rss_bytes"),
                zip(*((epoch_ms - 500 + 1000 * t, "engine", 0.5 * t, 0.25 * t, 1) for t in range(20)), strict=True),
                strict=True,
            )
        ),
    )
    copy.write_table("state.parquet", {"at_ms": [epoch_ms + 1500], "checkpoint_bytes": [7], "gc_s": [0.0]})
    latency = pa.table({"second": [-1, 2, 10_000], "p50_ms": [1.0, 5.0, 1.0], "p99_ms": [1.0, 9.0, 1.0]})

    table = timeline(StoredRun(copy), latency)

    assert table.column("cpu_engine").to_pylist()[:5] == pytest.approx([0.75] * 5)
    assert table.column("state_bytes").to_pylist()[:4] == [None, 7, 7, 7]
    assert table.column("latency_p50_ms").to_pylist()[:4] == [None, None, 5.0, None]
    assert table.column("latency_p99_ms").to_pylist()[2] == 9.0
    assert column(table, "sent_per_s") == column(table, "backlog") == []


def test_the_state_that_an_engine_tells_goes_before_the_size_of_its_checkpoint(stored, tmp_path):
    store, _ = stored
    for file in ("spec.json", "history.jsonl"):
        (tmp_path / file).write_bytes((store.path / file).read_bytes())
    epoch_ms = next(store.history("epoch"))["epoch_ms"]
    Store(tmp_path).write_table("state.parquet", {"at_ms": [epoch_ms], "checkpoint_bytes": [7], "gc_s": [0.0]})
    (tmp_path / "progress.jsonl").write_text(
        json.dumps({"at": epoch_ms + 1500, "batch": 1, "rows": 1, "offsets": {"0": 9}, "state_bytes": 500})
    )

    assert timeline(StoredRun(Store(tmp_path)), None).column("state_bytes").to_pylist()[:3] == [None, 500, 500]


def test_a_run_is_measured(stored):
    store, verdict = stored

    found = save(StoredRun(store), verdict)

    assert found is not None
    assert found.processed_per_s == pytest.approx(found.offered_per_s, rel=0.05)
    assert found.steady is not None
    assert found.steady.from_s is not None
    assert 0 <= found.drain_s < 10
    assert found.cost == ()
    assert {each.way for each in found.latency} >= {"probes", "rank-matched"}
    assert column(store.read_table("timeline.parquet"), "latency_p50_ms")
    assert store.read_table("latency.parquet").num_rows > 1000
    assert store.read_as("measurement.json", Measurement) == found


def test_our_own_waiting_is_not_in_the_drain(tmp_path):
    keys = {"engine": "fake", "rate": 200, "duration": "12s", "window": "4s", "campaigns": 5, "probes": 5}
    spec, manifest = plan.resolve("test", keys | {"fault": "none", "disorder": "none"}, {}, lambda *_: fake.SILENT)
    store = Store.create(tmp_path, "silent")
    world = FakeWorld(spec, store, manifest)
    verdict = run(spec, manifest, environment={}, world=world, stored=StoredRun(store), screen=NullScreen())
    found = save(StoredRun(store), verdict)

    (loaded,), (engine,) = (list(store.history(kind)) for kind in ("loaded", "engine"))
    assert engine["at_ms"] - loaded["at_ms"] > 30_000
    assert found is not None
    assert found.drain_s < 5
    assert found.processed_as_seen


def test_what_was_seen_goes_before_commits_that_are_rare(stored, tmp_path):
    store, verdict = stored
    copytree(store.path, tmp_path / "run")
    again = Store.open(tmp_path / "run")
    lines = (again.path / "progress.jsonl").read_text().splitlines(keepends=True)
    (again.path / "progress.jsonl").write_text(lines[0] + lines[-1])
    before, after = (save(StoredRun(each), verdict) for each in (store, again))

    assert before is not None
    assert after is not None
    assert (before.processed_as_seen, after.processed_as_seen) == (False, True)
    assert after.processed_per_s == pytest.approx(before.processed_per_s, rel=0.1)
    assert max(column(again.read_table("timeline.parquet"), "backlog")) < after.offered_per_s * 3


def test_results_that_follow_the_commits_leave_the_commits_their_say():
    told = curve(*((float(second), 100 * second) for second in range(1, 31)))
    at_once = curve(*((tenth / 10, 10 * tenth) for tenth in range(1, 300)))
    with_windows = curve((10.0, 900), (20.0, 1900), (30.0, 2900))
    rarely = curve((0.5, 1), (30.0, 3000))

    assert not seen_before_told(told, at_once)
    assert not seen_before_told(told, with_windows)
    assert not seen_before_told(rarely, rarely)
    assert seen_before_told(rarely, at_once)


def test_what_no_reader_saw_for_long_is_not_done_by_the_word_of_the_engine():
    told = curve(*((float(second), 100 * second) for second in range(1, 31)))
    seen = curve(*((second + 2.5, 100 * second) for second in range(1, 31)))
    much_later = curve(*((second + 9.0, 100 * second) for second in range(1, 31)))

    assert not told_before_seen(told, seen)
    assert told_before_seen(told, much_later)


def test_the_screen_shows_what_readers_saw_where_the_engine_tells_of_more(stored, tmp_path):
    store, verdict = stored
    honest = save(StoredRun(store), verdict)
    later = Store(copytree(store.path, tmp_path / "later"))
    samples = later.read_table("samples.parquet")
    at_us = pa.array(np.asarray(samples.column("at_us")) + 6_000_000)
    later.write_table("samples.parquet", {**{n: samples.column(n) for n in samples.column_names}, "at_us": at_us})

    found = save(StoredRun(later), verdict)

    assert honest is not None
    assert found is not None
    assert (honest.processed_as_seen, found.processed_as_seen) == (False, True)
    assert (found.processed_per_s or 0) < (honest.processed_per_s or 0)


def test_nothing_is_processed_faster_than_it_was_sent(stored, tmp_path):
    store, verdict = stored
    eager = Store(copytree(store.path, tmp_path / "eager"))
    lines = [json.loads(line) for line in (eager.path / "progress.jsonl").read_text().splitlines()]
    twice = [{**line, "offsets": {part: 2 * end for part, end in line["offsets"].items()}} for line in lines]
    (eager.path / "progress.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in twice))

    found = save(StoredRun(eager), verdict)

    assert found is not None
    assert 0 < (found.processed_per_s or 0) <= found.offered_per_s * 1.1


def test_no_latency_is_left_beside_wrong_answers(stored):
    store, verdict = stored
    save(StoredRun(store), verdict)

    assert save(StoredRun(store), replace(verdict, outcome=Outcome.FAIL)) is None
    assert not store.has("latency.parquet")
    assert column(store.read_table("timeline.parquet"), "latency_p50_ms") == []


def test_a_run_without_a_load_has_no_measurement(stored, tmp_path):
    _, verdict = stored

    assert save(StoredRun(Store(tmp_path)), verdict) is None
    assert not (tmp_path / "timeline.parquet").exists()


def test_a_lost_file_costs_its_own_figures_only(stored, tmp_path):
    store, verdict = stored
    for file in store.path.iterdir():
        if file.is_file() and file.name not in ("samples.parquet", "progress.jsonl"):
            (tmp_path / file.name).write_bytes(file.read_bytes())

    found = save(StoredRun(Store(tmp_path)), verdict)

    assert found is not None
    assert found.latency == ()
    assert found.processed_per_s is None
    assert found.offered_per_s > 0
    assert found.steady is not None
    assert "the backlog is not known" in found.steady.sentence


def test_torn_progress_costs_its_own_line(tmp_path):
    whole = json.dumps({"at": 5, "offsets": {"0": 7}, "batch": 1, "rows": 1})
    (tmp_path / "progress.jsonl").write_text(f'{whole}\n{{"at": 6, "off\n[]\n\n{{"at": null, "offsets": {{}}}}\n')

    assert [each.at_ms for each in progress_curve.progress_lines(Store(tmp_path))] == [5]
