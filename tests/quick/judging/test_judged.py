"""A log that is judged in parts gives the verdict that it gives as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import pytest

from harness.evidence import long_rows
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
        for held in (1000, 1 << 24):  # in a file, in memory
            monkeypatch.setattr(long_rows, "BYTES_HELD", held)
            assert conclude(in_parts(case)) == verdict, (name, held)


def test_events_are_found_once_and_read_in_each_pass_also_by_two_readers_in_turns():
    begun = []

    def parts() -> Iterator[Judged]:
        begun.append(True)
        yield from in_parts(HONEST).judged

    log = JudgedLog(parts)
    first = [part.events.id.tolist() for part in log]
    pairs = [(one.events.id.tolist(), other.events.id.tolist()) for one, other in zip(log, log, strict=True)]
    assert pairs == [(ids, ids) for ids in first]
    assert len(first) > 2
    assert begun == [True]


def test_an_honest_run_is_judged_without_all_events_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(long_rows, "BYTES_HELD", 1000)
    log = in_parts(HONEST).judged
    conclude(replace(HONEST, judged=log))
    assert "whole" not in vars(log)
