"""Why events are missing: what a watermark drops, by the order in which the engine read the partitions."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from harness.evidence.observed import Observed
from harness.judging.checks import CHECKS
from harness.model import Progress
from harness.selftest.by_hand import EPOCH_MS, LANDED, SPEC, case, events, ledger

LOG = events(1200)  # 10/s for two minutes
BEHIND_MS = 12_000  # by so much the engine read partition 0 later than partition 1
AT_MS = LOG.time_ms - EPOCH_MS
READ_MS = AT_MS + np.where(LOG.partition == 0, BEHIND_MS, 0)
DICE = np.random.default_rng(1)


def told(every_ms=1000):
    return tuple(
        Progress(EPOCH_MS + ms, number, 0, {p: int(((LOG.partition == p) & (ms >= READ_MS)).sum()) for p in (0, 1)})
        for number, ms in enumerate(range(0, int(READ_MS.max()) + every_ms, every_ms))
    )


def dropped(grace_ms):
    """By one clock of all partitions, as behind a repartition: the newest event of all that was read before each."""
    order = np.lexsort((AT_MS, READ_MS))
    newest_ms = np.empty(len(LOG), dtype=np.int64)
    newest_ms[order] = np.maximum.accumulate(LOG.time_ms[order])
    return newest_ms >= LOG.closes_ms + grace_ms


def lost(missing, **more):
    without = case(
        LOG,
        spec=replace(SPEC, watermark_ms=20_000),
        observed=Observed(ledger(LOG, ~missing), ()),
        drops_late=True,
        told=told(),
    )
    return CHECKS["lost"](replace(without, **more))


@pytest.mark.parametrize(("grace_ms", "every_ms"), [(0, 1000), (1500, 1000), (0, 3000), (1500, 8000)])
def test_what_one_partition_ahead_makes_late_in_another_is_a_short_watermark(grace_ms, every_ms):
    """Also where progress is reported so seldom that only most of it is surely late."""
    found = lost(dropped(grace_ms), told=told(every_ms))

    assert found.count > 50
    assert found.word == "late-dropped", found.sentence
    assert "the watermark of the job is shorter" in found.sentence


@pytest.mark.parametrize(
    "missing",
    [
        DICE.random(len(LOG)) < 0.2,
        (LOG.partition == 0) & (AT_MS > 30_000) & (AT_MS < 50_000),  # what came while that was far behind
        (AT_MS > 30_000) & (AT_MS < 34_000),
        dropped(0) & (AT_MS > 60_000),  # half of what that watermark makes late
        dropped(0) | (DICE.random(len(LOG)) < 0.2),
    ],
    ids=["any", "of a partition", "of some seconds", "half", "any beside it"],
)
def test_a_loss_is_no_short_watermark_however_the_partitions_were_read(missing):
    assert lost(missing).word == "lost"


def test_progress_that_comes_too_seldom_to_say_what_was_late_explains_nothing():
    assert lost((AT_MS > 30_000) & (AT_MS < 40_000), told=told(every_ms=60_000)).word == "lost"


def struck(at_ms, landed_ms):
    return (replace(LANDED, at_ms=EPOCH_MS + at_ms, landed_ms=EPOCH_MS + landed_ms),)


def test_what_was_skipped_around_a_fault_is_named_with_both_its_edges():
    skipped = (AT_MS >= 35_400) & (AT_MS < 42_800)
    found = lost(skipped, faults=struck(40_000, 41_000))

    assert re.search(r"all that was sent from \+35\.[34] s to \+42\.[78] s is missing: it was skipped", found.sentence)


def test_an_engine_that_came_back_without_its_state_lacks_everything_before_that_in_its_open_cells():
    forgotten = (AT_MS >= 40_000) & (AT_MS < 44_000)
    found = lost(forgotten, faults=struck(44_000, 44_500))

    assert "everything before the fault at" in found.sentence
    assert "is missing from the cells that went on after it" in found.sentence
