"""Latency outside the ends of batches: right where an engine tells them honestly, and nothing for one that lies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measuring.latency import ends, measured
from harness.model import Progress
from reports import outside
from reports.outage import Outage
from tests.quick.latencies import EPOCH_MS, PERIOD_MS, looked_at, offered, world

NOBODY_WAITED = Outage(0.0, 60.0)
ROAD_MS = 40
PAUSES_MS = ((20_000, 21_000), (40_000, 41_200))  # 2.2 of 60 s


def line(end_ms):
    """A line of progress, relative to the epoch."""
    begin_ms, until_ms = (EPOCH_MS + each for each in end_ms)
    return Progress(at_ms=until_ms, batch=1, rows=1, offsets={}, end_ms=(begin_ms, until_ms))


def known(quantiles):
    """By name."""
    return vars(quantiles)


def told_by(*spans_ms):
    return ends.told(map(line, spans_ms))


@pytest.fixture
def waited():
    """An engine that shows each event at once, but for those that are due in a pause."""
    campaign, due_us = offered(300, 60, campaigns=20, probes=300)
    free_us = due_us.copy()
    for begin_ms, end_ms in PAUSES_MS:
        free_us[(due_us >= begin_ms * 1000) & (due_us < end_ms * 1000)] = end_ms * 1000
    truth = world(campaign, due_us, free_us + ROAD_MS * 1000, probes_from=20)
    return looked_at(truth, turn=truth.visible_us)


def test_what_was_due_in_an_end_is_left_out_and_the_whole_stays(waited):
    alone = measured(waited)
    found = measured(replace(waited, ends=told_by(*PAUSES_MS)))

    assert found.latency == alone.latency
    assert alone.outside_ends is None
    assert found.outside_ends is not None
    assert (found.outside_ends.ends, found.outside_ends.longest_ms) == (2, 1_200)
    assert found.outside_ends.left_out_share == pytest.approx(2.2 / 60, abs=0.002)
    for whole, free in zip(found.latency[:2], found.outside_ends.latency, strict=True):
        assert whole.way == free.way
        assert known(whole.corrected)["p99"] > 600
        assert ROAD_MS <= known(free.corrected)["p50"] <= known(free.corrected)["max"] <= ROAD_MS + PERIOD_MS
        assert known(free.uncorrected)["max"] <= ROAD_MS + PERIOD_MS


def test_an_engine_that_calls_everything_an_end_gets_no_figure(waited):
    found = measured(replace(waited, ends=told_by((0, 60_000)))).outside_ends

    assert found is not None
    assert (found.left_out_share, found.latency) == (1.0, ())
    assert outside.clause(found, NOBODY_WAITED) == (
        "outside the ends of batches withheld: more than 10% of the events were due in them (100.0%)"
    )


def test_an_engine_that_hides_only_its_probes_gets_no_figure(waited):
    """Their share of all events is small."""
    ((_, events),) = waited.events.parts()
    due_us = events.due_us[waited.cells.key[events.cell] >= waited.probes_from]
    moments_ms = (due_us // 1000 - EPOCH_MS).tolist()
    found = measured(replace(waited, ends=told_by(*((each, each + 1) for each in moments_ms)))).outside_ends

    assert found is not None
    assert found.left_out_share == 1.0
    assert found.latency == ()


@pytest.mark.parametrize(("until_ms", "given"), [(5_990, True), (6_060, False)])
def test_the_most_that_may_be_left_out_is_a_tenth(waited, until_ms, given):
    """Of 60 s."""
    found = measured(replace(waited, ends=told_by((0, until_ms)))).outside_ends

    assert found is not None
    assert bool(found.latency) is given


def test_ends_outside_the_load_are_not_counted(waited):
    found = measured(replace(waited, ends=told_by((-9_000, -5_000), (20_000, 21_000), (70_000, 75_000)))).outside_ends

    assert found is not None
    assert (found.ends, found.longest_ms) == (1, 1_000)


def test_an_engine_that_tells_none_has_none():
    assert ends.told([Progress(at_ms=1, batch=1, rows=1, offsets={})]) is None


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted), min_size=1, max_size=6)


@given(spans, st.lists(st.integers(-5, 55), min_size=1))
def test_a_moment_lies_in_an_end_if_one_holds_it(told_ms, moments_ms):
    """They may overlap and come in any order."""
    found = told_by(*told_ms)
    assert found is not None

    held = found.hold((np.array(moments_ms) + EPOCH_MS) * 1000)

    assert held.tolist() == [any(begin <= at < end for begin, end in told_ms) for at in moments_ms]


def test_words_have_the_share_and_the_page_has_how_many_and_how_long(waited):
    found = measured(replace(waited, ends=told_by(*PAUSES_MS))).outside_ends
    assert found is not None

    assert outside.clause(found, NOBODY_WAITED).startswith("outside the ends of batches p50 ")
    assert outside.clause(found, NOBODY_WAITED).endswith(f" ms ({found.left_out_share:.1%} of the events left out)")
    said = " ".join(outside.sentences(found))
    assert "2 ends of batches, by the engine's own times; the longest took 1.2 s" in said
    assert f"{found.left_out_share:.1%} of the events were due in them" in said
