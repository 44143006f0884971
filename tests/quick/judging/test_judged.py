"""A log that is judged in parts gives the verdict that it gives as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import pytest

from harness.judging import judged
from harness.judging.checks.case import RunFacts
from harness.judging.judge import conclude
from harness.judging.judged import Judged, JudgedLog
from harness.selftest import planted
from harness.selftest.by_hand import HONEST

ROWS = 37  # of a part: two partitions share one
PARTS = ("counts", "late_events", "evidence", "faults", "meanwhile", "states", "checksummed", "visits")


def in_parts(case: RunFacts) -> RunFacts:
    whole = case.judged.whole
    columns = {each.name: getattr(whole, each.name) for each in fields(Judged) if each.name != "events"}

    def parts() -> Iterator[Judged]:
        ends = np.append(np.flatnonzero(whole.events.begins_record)[ROWS::ROWS], len(whole.events))
        for begin, end in zip([0, *ends.tolist()], ends.tolist(), strict=False):
            rows = np.arange(begin, end)
            yield Judged(whole.events.only(rows), **{name: column[rows] for name, column in columns.items()})

    return replace(case, judged=JudgedLog(parts))


@pytest.mark.parametrize("part", PARTS)
def test_the_verdict_does_not_depend_on_the_parts(part: str, monkeypatch: pytest.MonkeyPatch):
    for name, case in planted.PARTS[part]():
        verdict = conclude(case)
        for held in (0, 10_000):
            monkeypatch.setattr(judged, "MOST_HELD", held)
            assert conclude(in_parts(case)) == verdict, (name, held)


@pytest.mark.parametrize(("most", "passes"), [(len(HONEST.events), 1), (len(HONEST.events) - 1, 3)])
def test_few_events_are_read_once_and_many_in_each_pass(most: int, passes: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(judged, "MOST_HELD", most)
    begun = []

    def parts() -> Iterator[Judged]:
        begun.append(True)
        yield from in_parts(HONEST).judged

    log = JudgedLog(parts)
    assert {sum(len(part.events) for part in log) for _ in range(3)} == {len(HONEST.events)}
    assert len(begun) == passes


def test_an_honest_run_is_judged_without_all_events_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(judged, "MOST_HELD", 0)
    log = in_parts(HONEST).judged
    conclude(replace(HONEST, judged=log))
    assert "whole" not in vars(log)
