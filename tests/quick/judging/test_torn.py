"""Whole batches: what a poll shows is a number of whole batches, or the check says which one was torn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.judging.checks import torn
from harness.judging.checks.case import RunFacts
from harness.model import BatchLog, EarlierRun, Outcome
from harness.selftest import rows

PLANTED = dict(rows.planted())
HONEST, HALF = PLANTED["rows, all of them right"], PLANTED["half a batch that a reader saw"]


def shown_at(case: RunFacts, at_us: np.ndarray) -> RunFacts:
    assert case.watched is not None
    return replace(case, watched=replace(case.watched, at_us=at_us))


def test_the_batch_that_was_torn_is_named_with_its_later_events():
    found = torn.check(HALF)
    (witness,) = found.witnesses

    assert (found.outcome, found.word, found.count) == (Outcome.FAIL, "half a batch", 1)
    assert (witness.cell, witness.batches) == ("batch 2", (2,))
    assert (witness.expected, witness.seen) == ("all 50 events at once", "25 of them first")
    assert witness.event_ids
    assert all(int(each, 16) % rows.BATCH >= rows.BATCH // 2 for each in witness.event_ids)


def test_a_torn_batch_is_dated_from_its_first_event_to_its_last():
    assert HALF.watched is not None
    cells, at_us = HALF.watched.cell[:3], np.array([1000, 2000, 5000])
    witness = torn._witness(HALF, torn.Shown(2, cells, at_us))

    assert (witness.from_ms, witness.until_ms) == (1, 5)
    assert len(witness.event_ids) == 2


def test_a_poll_may_show_several_batches_at_once():
    assert HONEST.watched is not None
    assert torn.check(shown_at(HONEST, np.full_like(HONEST.watched.at_us, 5))).outcome is Outcome.PASS


def test_a_batch_that_was_planned_anew_belonged_to_others_before():
    anew = EarlierRun(1, 2, {}, {}, 0, committed=True)
    told = BatchLog((), drops_late=False, complete=True, earlier=(anew,))

    assert torn.check(replace(HALF, batch_log=told)).outcome is Outcome.PASS
    before = replace(anew, batch=3)
    assert torn.check(replace(HALF, batch_log=replace(told, earlier=(before,)))).outcome is Outcome.FAIL


@pytest.mark.parametrize(("blind", "outcome"), [("", Outcome.UNKNOWN), ("a command prints them", Outcome.PASS)])
def test_without_polls_nothing_is_known(blind, outcome):
    assert torn.check(replace(HALF, watched=None, blind=blind)).outcome is outcome


def test_a_sink_that_claims_nothing_is_shown_what_a_reader_saw():
    found = torn.check(replace(HALF, whole_batches=False))

    assert (found.outcome, found.asked) == (Outcome.PASS, False)
    assert found.sentence.endswith("a reader saw a part of 1 batch of 12 before the rest")
    assert "reader" not in torn.check(replace(HONEST, whole_batches=False)).sentence


def test_final_outputs_do_not_come_with_the_batch_of_their_events():
    found = torn.check(replace(HALF, final=True))

    assert (found.outcome, found.word) == (Outcome.UNKNOWN, "no batches")
