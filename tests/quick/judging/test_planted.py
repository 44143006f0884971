"""Each bug that is planted by hand is called what the matrix says, and its witnesses name the events that it is about.

All of them are made and judged once; the rest of the selftest takes longer and lies with the quality tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from harness.judging.checks.case import RunFacts
from harness.judging.judge import conclude
from harness.model import Outcome, Verdict, Witness
from harness.selftest import planted
from harness.selftest.drive import expected
from harness.selftest.report import words_of

PAID_BACK = "payments that are all paid back"
ANOTHER_LENGTH = "visits in a window of another length"  # no event lies there
RIGHT_VISITS = (
    "visits, all of them right",
    "visits late for some of their windows, each of these named",
    "visits late for some of their windows, each named with its watermark",
    "visits by the broker's time, all of them right",
    "sessions, all of them right",
    "a session that nothing has closed, and no result",
)


@cache
def part_of(name: str) -> dict[str, RunFacts]:
    """Return the runs of one part of the matrix by their names."""
    return dict(planted.PARTS[name]())


def run_named(name: str) -> RunFacts:
    return next(part[name] for part in map(part_of, planted.PARTS) if name in part)


@cache
def verdicts_of(part: str) -> dict[str, Verdict]:
    return {name: conclude(case) for name, case in part_of(part).items()}


def wrongs(part: str) -> Iterator[tuple[str, Verdict, list[Witness]]]:
    for name, verdict in verdicts_of(part).items():
        yield name, verdict, [witness for check in verdict.checks for witness in check.witnesses]


@pytest.mark.parametrize("part", planted.PARTS)
def test_each_comes_out_as_the_matrix_says(part):
    assert {name: words_of(verdict) for name, verdict in verdicts_of(part).items()} == expected()[part]


def test_they_are_many():
    assert sum(len(expected()[part]) for part in planted.PARTS) >= 60


def test_mistakes_with_visits_name_cells_and_events():
    for name, _, wrong in wrongs("visits"):
        assert bool(wrong) is (name not in RIGHT_VISITS), name
        assert all(" of country country-" in each.cell or " of visitor " in each.cell for each in wrong), name
        assert name in (*RIGHT_VISITS, ANOTHER_LENGTH) or any(witness.event_ids for witness in wrong), name


def test_mistakes_with_payments_name_merchants_and_events():
    (right, *_), *others = wrongs("payments")
    assert right == "payments, all of them right"
    for name, _, wrong in others:
        if name != PAID_BACK:
            assert wrong, name
            assert all("of merchant " in each.cell and each.event_ids for each in wrong), name


def test_mistakes_with_orders_name_their_events():
    for name, verdict, wrong in wrongs("orders"):
        assert wrong or verdict.outcome is not Outcome.FAIL, name
        assert all(each.event_ids and each.event_ids[0] in each.cell for each in wrong), name
        assert "window" not in verdict.sentence, "no cell here has one"


@pytest.mark.parametrize("part", ["readers", "week"])
def test_mistakes_with_readers_name_them_and_events(part):
    for name, _, wrong in wrongs(part):
        assert bool(wrong) is not name.endswith(" right"), name
        assert all(" of reader " in each.cell and each.event_ids for each in wrong), name


def test_mistakes_with_late_reads_name_the_policy_and_the_events():
    for name, _, wrong in wrongs("late_reads"):
        assert all("policy " in each.cell and "part " in each.cell and each.event_ids for each in wrong), name
