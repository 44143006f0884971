"""By which time an event belongs to a window: what is written down of it, and what is left where nothing is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from harness.config import plan
from harness.engines import fake, manifest
from harness.evidence.observed import STAMPED, Observed, folded
from harness.judging.times import OWN, are_written_down, retimed
from harness.measuring.misplaced import _differ, _places
from harness.model import Batch, BatchLog, RunSpec, UsageError
from harness.results.redis_scan import in_totals
from harness.selftest import visits
from harness.selftest.by_hand import EPOCH_MS
from harness.selftest.declared import events, in_cells
from reports.evidence import Evidence
from reports.figures.times import shares
from reports.sections.times import section
from workloads.base import COUNTS, NEVER, Kind
from workloads.registry import oracle_of
from workloads.totals import InTotals

SPEC = visits.asked("page_visits")
SENT = events(SPEC.tape)
LOG = pa.table({**SENT, "kind": np.full(len(SENT[OWN]), COUNTS, dtype=np.int8)})
TWO_BATCHES = BatchLog(
    (Batch(0, {0: 100, 1: 150}, 0, at_ms=5_000), Batch(1, {0: 300, 1: 300}, 0, at_ms=7_000)), True, complete=True
)


def test_an_events_own_time_is_left_alone():
    assert retimed(LOG, "event", None) is LOG


@pytest.mark.parametrize("time", ["ingestion", "append"])
def test_kafkas_time_is_what_the_record_has_there(time):
    assert retimed(LOG, time, None).column(OWN).to_pylist() == LOG.column(STAMPED).to_pylist()


def test_all_events_of_a_batch_were_processed_when_it_began():
    at_ms = retimed(LOG, "processing", TWO_BATCHES).column(OWN).to_numpy()

    assert at_ms.tolist() == [5_000] * 100 + [7_000] * 200 + [5_000] * 150 + [7_000] * 150


def test_what_no_batch_took_is_dated_by_the_newest_of_all():
    """Ten records more than any batch has read in one partition, and a hundred and fifty in the other."""
    behind = replace(TWO_BATCHES, batches=(TWO_BATCHES.batches[0], Batch(1, {0: 290, 1: 150}, 0, at_ms=7_000)))

    at_ms = retimed(LOG, "processing", behind).column(OWN).to_numpy()

    assert at_ms.tolist() == [5_000] * 100 + [7_000] * 200 + [5_000] * 150 + [7_000] * 150


def test_a_batch_that_says_nothing_of_a_partition_took_nothing_of_it():
    """The third one takes the rest of partition 1, and the second one had none of it."""
    quiet = replace(
        TWO_BATCHES,
        batches=(
            TWO_BATCHES.batches[0],
            Batch(1, {0: 300}, 0, at_ms=7_000),
            Batch(2, {0: 300, 1: 300}, 0, at_ms=9_000),
        ),
    )

    at_ms = retimed(LOG, "processing", quiet).column(OWN).to_numpy()

    assert at_ms.tolist() == [5_000] * 100 + [7_000] * 200 + [5_000] * 150 + [9_000] * 150


@pytest.mark.parametrize(
    "batch_log",
    [
        None,
        replace(TWO_BATCHES, complete=False),
        replace(TWO_BATCHES, batches=(replace(TWO_BATCHES.batches[0], at_ms=None),)),
    ],
    ids=["none", "with a gap", "of another engine"],
)
def test_without_whole_evidence_nobody_knows_when_an_event_was_processed(batch_log):
    assert not are_written_down("processing", batch_log)
    assert are_written_down("append", batch_log)
    assert are_written_down("processing", TWO_BATCHES)


def test_in_totals_any_time_gives_the_same_and_what_is_no_count_is_left_out():
    oracle = InTotals(oracle_of(SPEC))
    own, other = (folded(oracle, in_cells(retimed(LOG, time, None), oracle)) for time in ("event", "append"))
    keys = oracle.codes.keys(own.cells)

    assert dict(own) == dict(other)
    assert sum(own.values()) == len(LOG)
    assert {oracle.values[key // oracle.groups].kind for key in keys} == {Kind.COUNT}
    assert set(oracle.codes.fields(own.cells)) == {0}
    assert (oracle.places(SENT).closes_ms == NEVER).all()


def test_in_totals_the_results_are_added_up_over_their_windows():
    oracle = oracle_of(SPEC)
    windows = folded(oracle, in_cells(SENT, oracle))
    totals = InTotals(oracle)
    seen = in_totals(Observed(windows, (), zeros=(7,)), totals)

    assert dict(seen.counts) == dict(folded(totals, in_cells(SENT, totals)))
    assert not seen.zeros
    assert totals.name(int(min(seen.counts)), 0).endswith(", all windows together")


def test_an_event_is_misplaced_if_any_of_its_windows_is_another_one():
    for workload, length_ms in (("page_visits", 10_000), ("page_visits_sliding", 2_000)):
        oracle, later = oracle_of(visits.asked(workload)), SENT[OWN] + 350
        differ = _differ(_places(LOG, SENT[OWN], oracle), _places(LOG, later, oracle), len(LOG))

        assert differ.tolist() == (SENT[OWN] // length_ms != later // length_ms).tolist()
        assert 0 < differ.sum() < len(LOG) / 4


def test_shares_are_told_of_delays_that_enough_events_have():
    delay_ms = np.array([10] * 30 + [700] * 40 + [9_000] * 5)
    found = shares(delay_ms, {"append": np.arange(75) >= 50})

    assert found.delay_ms.tolist() == [10, 700]
    assert found.of["append"].tolist() == [0.0, 0.5]


KEYS = {"workload": "page_visits", "engine": "spark", "duration": "12s"}


def test_a_job_that_does_not_claim_a_time_is_not_asked_for_it():
    for changed in ({"sink": "increment"}, {"workload": "page_visits_sessions"}, {"workload": "ad_impressions"}):
        with pytest.raises(UsageError, match=r"time = 'append'.*event.*those of sink"):
            plan.resolve("test", {**KEYS, "time": "append", **changed}, {}, manifest.load)


@pytest.mark.parametrize(
    ("changed", "claim", "said"),
    [
        ({"progress": False}, {}, "reports its progress"),
        ({}, {"final": True}, "when a window closes"),
    ],
)
def test_a_time_that_could_not_be_judged_is_refused(changed, claim, said):
    sink = replace(fake.MANIFEST.sinks[0], times=("event", "append"), **claim)
    engine = replace(fake.MANIFEST, sinks=(sink,), **changed)
    with pytest.raises(UsageError, match=said):
        plan.resolve("test", {**KEYS, "time": "append", "fault": "none"}, {}, lambda *_: engine)


def test_an_unknown_time_is_answered_with_those_that_there_are():
    with pytest.raises(UsageError, match="event, ingestion, append, processing"):
        plan.resolve("test", {**KEYS, "time": "log"}, {}, manifest.load)


@dataclass(frozen=True)
class Run:
    """As much of a stored run as its section needs."""

    spec: RunSpec
    batch_log: BatchLog | None = None
    epoch_ms: int = EPOCH_MS

    @property
    def log(self):
        return LOG

    @property
    def sends(self):
        """One slice, sent when it was due, of all events."""
        rows = {"server": 0, "slot_lo": 0, "slot_hi": len(LOG), "sent_us": 0, "intended_us": 0}
        return pa.table({name: [value] for name, value in rows.items()})


@pytest.mark.parametrize(
    ("time", "batch_log", "told"),
    [
        ("append", None, ["ingestion", "append"]),
        ("ingestion", None, ["ingestion"]),
        ("processing", TWO_BATCHES, ["ingestion", "processing"]),
    ],
)
def test_a_page_tells_how_many_events_each_time_misplaces(time, batch_log, told):
    made = section(cast(Evidence, Run(replace(SPEC, time=time), batch_log)))
    assert made
    rows = made.tables[0].rows

    assert [row[0] for row in rows] == told
    assert f"counts by {time} time" in made.text[0]
    assert ("was not recorded" in made.text[0]) is (batch_log is None)
    by_kafkas = int((SENT[OWN] // 10_000 != SENT[STAMPED] // 10_000).sum())
    assert f"{by_kafkas:,}" in {row[2] for row in rows}


def test_a_page_of_a_job_that_counts_by_the_events_own_time_has_no_such_section():
    assert section(cast(Evidence, Run(SPEC))) is None


def test_a_partition_that_the_first_batch_does_not_mention_begins_with_a_later_one():
    batches = (Batch(0, {0: 300}, 0, at_ms=5_000), Batch(1, {0: 300, 1: 300}, 0, at_ms=7_000))

    at_ms = retimed(LOG, "processing", replace(TWO_BATCHES, batches=batches)).column(OWN).to_numpy()

    assert at_ms.tolist() == [5_000] * 300 + [7_000] * 300
