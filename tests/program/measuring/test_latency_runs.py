"""Latency of whole runs in the fake world, held against what really happened in it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from generators.tape import Tape
from harness.config import plan
from harness.engines import fake, progress
from harness.judging import verdict_file
from harness.judging.stored_run import StoredRun
from harness.measuring import measure
from harness.measuring.latency import latencies, quantiles
from harness.model import INDEX_BITS, MARK_SERVER, RunSpec, Verdict
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from harness.runner.run import run
from harness.runner.world.fake import CRANK_MS, FakeWorld
from reports import outside, run_page, screen
from reports.evidence import Evidence
from reports.exports.markdown import as_text
from reports.page import render
from reports.result import read as read_result
from tests.program.runner.test_run import Silent
from tests.quality import tampered
from workloads.ad_impressions.records import VIEW_EVENT
from workloads.ad_impressions.schema import VIEW

LOG = ["partition", "offset", "event_id", "kind"]

SETTINGS = {
    "engine": "fake",
    "rate": 500,
    "duration": "15s",
    "window": "5s",
    "campaigns": 20,
    "probes": 200,
    "servers": 3,
    "fault": "none",
}


class Witnessed(FakeWorld):
    """Writes down at every crank how much of the log the engine has committed; may keep the ad servers from sending."""

    def __init__(self, spec, store, stall_ms=(0, 0)):
        super().__init__(spec, store)
        self.committed = []
        self.stall_ms = stall_ms

    def _poll(self):
        super()._poll()
        if progress := self.engine.progress():
            self.committed.append((self.now_ms(), progress.offsets))

    def _send_due(self):
        begin, end = self.stall_ms
        if not begin <= self.now_ms() - (self._epoch_ms or 0) < end:
            super()._send_due()

    def visible_ms(self, partition, offset):
        at = np.array([at_ms for at_ms, _ in self.committed])
        ends = np.array([ends[partition] for _, ends in self.committed])
        return at[np.searchsorted(ends, offset, side="right")]


def ended(folder, stall_ms=(0, 0), **changes):
    spec, manifest = plan.resolve("test", SETTINGS | changes, {}, lambda *_: fake.MANIFEST)
    store = Store.create(folder, "test-fake")
    world = Witnessed(spec, store, stall_ms)
    run(spec, manifest, environment={}, world=world, stored=StoredRun(store), screen=Silent())
    return store, world


def truth_ms(store, world):
    """When each view of the log was due, and when it became visible, each in its own order."""
    spec = store.read_as("spec.json", RunSpec)
    table = store.read_table("log.parquet")
    log = {name: np.asarray(table.column(name).to_numpy()) for name in LOG}
    rows = (log["kind"] == VIEW_EVENT) & (log["event_id"] >> INDEX_BITS != MARK_SERVER)
    visible_ms = np.empty(len(rows))
    for partition in range(spec.tape.partitions):
        mine = log["partition"] == partition
        visible_ms[mine] = world.visible_ms(partition, log["offset"][mine])
    due_ms: dict[int, float] = {}
    for block in Tape(spec.tape).blocks():
        views = (block.content["event_type"] == VIEW) & (block.poison == 0)
        due_ms |= zip(block.id[views].tolist(), (block.intended_us[views] / 1000).tolist(), strict=True)
    epoch_ms = next(store.history("epoch"))["epoch_ms"]
    due = np.array([due_ms[number] + epoch_ms for number in log["event_id"][rows].tolist()])
    return log["event_id"][rows] >> INDEX_BITS == spec.tape.servers, visible_ms[rows] - due


def by_way(store):
    return {each.way: each for each in latencies(StoredRun(store)).latency}


@pytest.mark.parametrize("rate", [50, 500, 2000])
def test_both_rules_say_what_happened_and_agree(tmp_path, rate):
    store, world = ended(tmp_path, rate=rate, disorder="none")
    probing, truth = truth_ms(store, world)
    found = by_way(store)
    probes, ranks = found["probes"].corrected, found["rank-matched"].corrected

    assert probes.count == 600
    assert ranks.count == len(truth)
    for name in ("p50", "p90", "p99", "p999", "mean", "max"):
        assert getattr(ranks, name) == pytest.approx(getattr(quantiles(truth), name), abs=CRANK_MS)
        assert getattr(probes, name) == pytest.approx(getattr(quantiles(truth[probing]), name), abs=CRANK_MS)
        assert getattr(probes, name) == pytest.approx(getattr(ranks, name), abs=CRANK_MS)
    assert not found["rank-matched"].tail_is_lower_bound


def test_disorder_of_event_times_changes_nothing_of_it(tmp_path):
    """An event that is old when it is sent is as quick to be seen; a cell into which two probes came is no probe."""
    store, world = ended(tmp_path, disorder="mobile")
    probing, truth = truth_ms(store, world)
    found = by_way(store)

    assert 400 < found["probes"].corrected.count < 600
    assert found["rank-matched"].corrected.mean == pytest.approx(truth.mean(), abs=CRANK_MS)
    assert found["probes"].corrected.p99 == pytest.approx(np.quantile(truth[probing], 0.99), abs=CRANK_MS)


def test_copies_are_events_of_their_own_and_dropped_ones_are_none(tmp_path):
    dials = "storm,silent_servers=0,duplicate_share=0.2"
    kept, _ = ended(tmp_path / "kept", disorder=dials, sink="fenced")
    dropped, _ = ended(tmp_path / "dropped", disorder=dials, late_dropped_max="any")
    events, fewer = (by_way(store)["rank-matched"].corrected for store in (kept, dropped))
    counted = [store.read_json("verdict.json")["totals"] for store in (kept, dropped)]
    marks = 8

    assert counted[1]["late_dropped"] > 10
    assert (events.count, fewer.count) == tuple(each["counted"] - marks for each in counted)
    for store, found in ((kept, events), (dropped, fewer)):
        assert (found.censored, latencies(StoredRun(store)).never_final_share) == (0, 0.0)
        assert 0 < found.p50 < found.max < 2 * fake.BATCH_MS, "a copy that were taken for its original would be too old"


def test_a_stall_of_the_ad_servers_is_latency_from_due_times_only(tmp_path):
    store, _ = ended(tmp_path, stall_ms=(5_000, 8_000))
    found = by_way(store)

    for way in ("probes", "rank-matched", "final value", "first seen"):
        corrected, uncorrected = found[way].corrected, found[way].uncorrected
        assert corrected.max > 3_000, way
        assert uncorrected.max <= fake.BATCH_MS + 2 * CRANK_MS, way
    seconds = {row["second"]: row["p99_ms"] for row in latencies(StoredRun(store)).by_second.to_pylist()}
    assert seconds[5] > 2_500
    assert seconds[9] < 1_000


def test_a_wrong_count_is_never_final(tmp_path):
    store, _ = ended(tmp_path, conf={"misbehave": "drop:100"})
    result = latencies(StoredRun(store))

    assert result.never_final_share is not None
    assert 0 < result.never_final_share < 1
    assert result.latency[1].corrected.censored == 0, "cells with wrong counts are left out"


def test_a_crash_is_in_the_figures(tmp_path):
    store, _ = ended(tmp_path, fault="kill@c3:batch=5")

    assert by_way(store)["probes"].corrected.max > fake.START_MS


@pytest.mark.parametrize("name", ["samples.parquet", "sends.parquet", "log.parquet", "observed.parquet", "plan.json"])
def test_a_missing_file_is_named(tmp_path, name):
    store, _ = ended(tmp_path, duration="2s")
    (store.path / name).unlink()

    with pytest.raises(MissingEvidence, match=name):
        latencies(StoredRun(Store(store.path)))


def test_where_there_is_no_latency_no_share_of_cells_is_told_either(tmp_path):
    store, _ = ended(tmp_path, duration="2s")
    verdict = store.read_as("verdict.json", Verdict)
    looked = measure.save(StoredRun(store), verdict)
    (store.path / "samples.parquet").unlink()
    unseen = measure.save(StoredRun(store), verdict)

    assert looked is not None
    assert unseen is not None
    assert (looked.never_final_share, looked.dipped_share) == (0.0, 0.0)
    assert (unseen.latency, unseen.never_final_share, unseen.dipped_share) == ((), None, None)
    assert store.read_json("measurement.json")["dipped_share"] is None


def test_a_run_that_nobody_looked_at_says_so(tmp_path):
    store, _ = ended(tmp_path, duration="2s")
    lines = (store.path / "history.jsonl").read_text().splitlines(keepends=True)
    (store.path / "history.jsonl").write_text("".join(line for line in lines if '"observer"' not in line))

    with pytest.raises(MissingEvidence, match="not looked at"):
        latencies(StoredRun(store))


def with_ends_told(folder, every_s, *ends_s):
    """A run whose results come twice a second, and whose engine tells of what is done so seldom, with these ends."""
    store, world = ended(folder)
    epoch_ms = next(store.history("epoch"))["epoch_ms"]
    told = {at_ms // (1000 * every_s): (at_ms, offsets) for at_ms, offsets in world.committed}
    lines = [
        {"at": at_ms, "batch": batch, "rows": 1, "offsets": offsets}
        for batch, (at_ms, offsets) in enumerate(told.values())
    ]
    spans_ms = ([epoch_ms + round(each * 1000) for each in end_s] for end_s in ends_s)
    last = lines[-1] | {"at": world.now_ms()}
    lines += [last | {"batch": len(lines) + number, "end_ms": end_ms} for number, end_ms in enumerate(spans_ms)]
    (store.path / progress.FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    verdict = store.read_as("verdict.json", Verdict)
    tampered.with_digests(store)
    measure.save(StoredRun(store), verdict)
    verdict_file.keep(store, verdict)
    return store


def shown(store):
    """In measurement.json, on the screen, in the summary and on the page."""
    evidence, result = Evidence(store), read_result(store.path)
    page = render(run_page.page_of(evidence))
    return evidence.measurement.outside_ends, " ".join("\n".join(screen.lines(result)).split()), as_text(result), page


def test_latency_outside_the_ends_of_batches_stands_beside_the_whole_everywhere(tmp_path):
    found, *places = shown(with_ends_told(tmp_path, 5, (4.0, 4.5), (9.0, 9.6)))

    assert (found.ends, found.longest_ms, found.withheld) == (2, 600, "")
    assert [each.way for each in found.latency] == ["probes", "rank-matched"]
    assert found.left_out_share == pytest.approx(1.1 / 15, abs=0.02)
    assert all(outside.NAME in place and outside.share(found) in place for place in places)


def test_an_engine_that_calls_everything_an_end_gets_no_such_figure_anywhere(tmp_path):
    found, *places = shown(with_ends_told(tmp_path, 5, (0, 15)))

    assert (found.latency, found.left_out_share) == ((), 1.0)
    assert all("withheld: more than 10% of the events were due in them" in place for place in places)


def test_an_engine_whose_results_wait_for_the_end_of_a_batch_gets_no_such_figure(tmp_path):
    """It has no latency that an end would interrupt."""
    found, *places = shown(with_ends_told(tmp_path, 1, (4.0, 4.2)))

    assert found.latency == ()
    assert all("its results appear only when a batch is over" in place for place in places)
