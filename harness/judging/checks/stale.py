"""Stale: the engine says that it is done with a cell, and long afterwards the results still show too little.

So conservative that no honest engine can fail, one that writes a window only when it closes it included. The clock of
a cell starts at the first word of the engine's own progress by which all of the cell's events are done, and in every
partition also an event that lies beyond the end of the window by the whole watermark: then the window is closed by any
rule, and what is done is written. A sink whose results are final may need one step more for that, as Spark does, whose
batch makes the watermark of the next one: its clock starts at the engine's next word. From there on ten seconds, and
the longest time between two looks, are allowed. Where the machine's clock was set back meanwhile, the engine's word is
taken to be younger by that, which it is at most. An engine that reports no progress can't be stale by its own word; a
cell that is never right is `lost`.
"""

from __future__ import annotations

import numpy as np

from harness.judging.checks.case import EXAMPLES, Case, Ints, first_rows, nobody_looked
from harness.judging.checks.kinds import GROWING
from harness.judging.grouping import by_groups, numbered
from harness.judging.lateness import watermarks_ms
from harness.model import CheckResult, Outcome, Progress, Witness
from harness.texts import many
from workloads.base import NEVER as NEVER_CLOSES

ALLOWED_MS = 10_000
NEVER = np.iinfo(np.int64).max


def check(case: Case) -> CheckResult:
    if case.watched is None:
        return nobody_looked("stale", case)
    if not case.told:
        return CheckResult("stale", Outcome.PASS, "the engine reports no progress, so this is not judged")
    if odd := _outside(case):
        return _no_moments(case, odd)
    codes, right_ms = _first_right(case)
    told_ms = _told_ms(case, codes)
    known = told_ms < NEVER
    late_ms = np.where(known, right_ms - case.watched.longest_gap_ms - np.where(known, told_ms, 0), 0)
    rows = np.flatnonzero(late_ms > ALLOWED_MS)
    if not len(rows):
        judged = int(known.sum())
        sentence = (
            f"{many(judged, 'cell was', 'cells were')} right within {ALLOWED_MS / 1000:.0f} s after "
            "the engine reported them done"
        )
        if case.behind_ms:
            sentence += f"; its clock was set back by up to {case.behind_ms / 1000:.1f} s, which was allowed as well"
        return CheckResult("stale", Outcome.PASS, sentence)
    worst = rows[np.argsort(-late_ms[rows], kind="stable")]
    return CheckResult(
        "stale",
        Outcome.FAIL,
        f"{many(len(rows), 'cell')} showed too little, for up to {late_ms[worst[0]] / 1000:.1f} s after they were done",
        word="stale",
        count=len(rows),
        blame="engine",
        witnesses=tuple(
            _witness(case, int(codes[row]), int(told_ms[row]), int(right_ms[row]), float(late_ms[row]))
            for row in worst[:EXAMPLES]
        ),
    )


def _witness(case: Case, cell: int, told_ms: int, right_ms: int, late_ms: float) -> Witness:
    return Witness(
        cell=case.cell_name(cell),
        expected=f"{case.allowed.must.count(cell)} by {(told_ms - case.epoch_ms) / 1000:.1f} s",
        seen=f"right at {(right_ms - case.epoch_ms) / 1000:.1f} s",
        detail=f"{late_ms / 1000:.1f} s after the engine's progress had passed all of it",
        from_ms=told_ms,
        until_ms=right_ms,
    )


def _outside(case: Case) -> list[Progress]:
    """Lines that claim a moment at which there was no run: most likely in another unit."""
    if case.span_ms is None:
        return []
    begun_ms, ended_ms = case.span_ms
    return [line for line in case.told if not begun_ms <= line.at_ms <= ended_ms]


def _no_moments(case: Case, odd: list[Progress]) -> CheckResult:
    begun_ms, ended_ms = case.span_ms or (0, 0)
    return CheckResult(
        "stale",
        Outcome.UNKNOWN,
        f"`at` of {len(odd):,} of {many(len(case.told), 'line')} of progress.jsonl lies outside "
        "of the run: it has to be in "
        f"{Progress.UNIT}, here from {begun_ms} to {ended_ms}; the first such line is of batch {odd[0].batch} and has "
        f'"at": {odd[0].at_ms}',
        word="no moments",
        count=len(odd),
        blame="engine",
    )


def _first_right(case: Case) -> tuple[Ints, Ints]:
    """The cells that were seen to hold what they must, and when that was first."""
    assert case.watched is not None
    must = case.only(case.allowed.must, GROWING)
    codes = must.cells
    order = np.argsort(codes)
    codes, least = codes[order], np.array(list(must.values()), dtype=np.int64)[order]
    place = np.searchsorted(codes, case.watched.cell)
    inside = np.append(codes, -1)[place] == case.watched.cell
    enough = np.flatnonzero(inside & (case.watched.count >= np.append(least, NEVER)[place]))
    firsts = enough[first_rows(case.watched.cell[enough])]
    return case.watched.cell[firsts], case.watched.at_us[firsts] // 1000


def _told_ms(case: Case, codes: Ints) -> Ints:
    """For each cell when the engine first said that it is done and closed; NEVER if it did not."""
    done_ms = _done_ms(case)
    _, cell = numbered(case.events.cell)
    order = by_groups(cell, np.arange(len(cell)))
    ordered = case.events.cell[order]
    begin, end = np.searchsorted(ordered, codes), np.searchsorted(ordered, codes, side="right")
    closes_ms = np.append(case.events.closes_ms[order], NEVER_CLOSES)[np.where(begin < end, begin, -1)]
    closed = _closed_ms(case, done_ms, np.unique(closes_ms))
    told = [int(done_ms[order[b:e]].max(initial=0)) for b, e in zip(begin, end, strict=True)]
    both = [max(ms, closed[closing]) for ms, closing in zip(told, closes_ms.tolist(), strict=True)]
    return np.array(both, dtype=np.int64)


def _done_ms(case: Case) -> Ints:
    """For each event when the engine first said that it is done, at the latest; which it was not before it was sent."""
    lines = sorted(case.told, key=lambda line: line.at_ms)
    words_ms = [line.at_ms + case.behind_ms for line in lines]
    at_ms = np.array([*words_ms[1 if case.final else 0 :], NEVER, NEVER], dtype=np.int64)
    result = np.full(len(case.events), NEVER, dtype=np.int64)
    for partition in np.unique(case.events.partition):
        ends = np.maximum.accumulate([line.offsets.get(int(partition), 0) for line in lines])
        rows = case.events.partition == partition
        result[rows] = at_ms[np.searchsorted(ends, case.events.offset[rows], side="right")]
    return np.maximum(result, case.sent_us // 1000)


def _closed_ms(case: Case, done_ms: Ints, closes_ms: Ints) -> dict[int, int]:
    """When the engine had done, in every partition, an event by which windows are closed that close at these moments,
    in order. What never closes has nothing to wait for."""
    moments_ms = closes_ms[closes_ms != NEVER_CLOSES]
    # How many of the moments each event closes: the first so many of them.
    closing = np.searchsorted(moments_ms + max(watermarks_ms(case.spec)), case.events.time_ms, side="right")
    last = np.zeros(len(moments_ms), dtype=np.int64)
    for partition in np.unique(case.events.partition):
        rows = case.events.partition == partition
        earliest = np.full(len(moments_ms) + 1, NEVER, dtype=np.int64)
        np.minimum.at(earliest, closing[rows], done_ms[rows])
        last = np.maximum(last, np.minimum.accumulate(earliest[:0:-1])[::-1])
    if not len(case.events):
        last[:] = NEVER
    return {NEVER_CLOSES: 0, **dict(zip(moments_ms.tolist(), last.tolist(), strict=True))}
