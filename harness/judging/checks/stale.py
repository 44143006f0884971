"""Stale: the engine reports a cell as done, and long afterwards the results still show too little.

The rule is conservative: no correct engine fails it, not even one that writes a window only when it closes it. The
clock of a cell starts at the first progress line that covers all of the cell's events and, in every partition, an event
beyond the end of the window by the whole watermark: then the window is closed by any rule. Two things move it:

- Some sinks need one step more, so their clock starts at the next progress line: one with final results, as in Spark,
  where a batch sets the watermark of the next one; and one with transactions, as in Flink, which commits them some time
  after the checkpoint is complete. A topic or a table may be written so.
- An engine that was restarted may have forgotten its watermark, as Flink does. If a fault was active when a window was
  closed, events that close it have to come twice in every partition, the second time after the progress line that
  covers the first ones.

No clock starts before the polls do. From then on ten seconds, plus the longest time between two polls, are allowed. If
the machine's clock was set back during the run, the line's time is assumed to be later by that, which is the most it
can be. Without progress lines nothing is judged; a cell that is never right is `lost`.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.judging.checks.case import EXAMPLES, Ints, RunFacts, failed, first_rows, nobody_looked
from harness.judging.checks.kinds import GROWING
from harness.judging.judged import Judged
from harness.judging.lateness import rows_by_partition, watermarks_ms
from harness.model import CheckResult, Outcome, Progress, Witness
from harness.util.texts import many
from workloads.base import NEVER as NEVER_CLOSES

ALLOWED_MS = 10_000
NEVER = np.iinfo(np.int64).max


def check(case: RunFacts) -> CheckResult:
    if case.watched is None:
        return nobody_looked("stale", case)
    if not case.told:
        words = "not judged: no line of progress.jsonl shows when the engine was done with a cell"
        return CheckResult("stale", Outcome.PASS, words, asked=False)
    if odd := _outside(case):
        return _no_moments(case, odd)
    codes, right_ms = _first_right(case)
    told_ms = np.maximum(_told_ms(case, codes), case.watched.begun_ms)
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
    longest_s = late_ms[worst[0]] / 1000
    sentence = f"{many(len(rows), 'cell')} showed too little, for up to {longest_s:.1f} s after they were done"
    witnesses = (
        _witness(case, int(codes[row]), int(told_ms[row]), int(right_ms[row]), float(late_ms[row]))
        for row in worst[:EXAMPLES]
    )
    return failed("stale", sentence, len(rows), witnesses)


def _witness(case: RunFacts, cell: int, told_ms: int, right_ms: int, late_ms: float) -> Witness:
    return Witness(
        cell=case.cell_name(cell),
        expected=f"{case.allowed.must.count(cell)} by {(told_ms - case.epoch_ms) / 1000:.1f} s",
        seen=f"right at {(right_ms - case.epoch_ms) / 1000:.1f} s",
        detail=f"{late_ms / 1000:.1f} s after the engine's progress had passed all of it",
        from_ms=told_ms,
        until_ms=right_ms,
    )


def _outside(case: RunFacts) -> list[Progress]:
    """Return lines with a time outside the run: most likely in another unit."""
    if case.span_ms is None:
        return []
    begun_ms, ended_ms = case.span_ms
    return [line for line in case.told if not begun_ms <= line.at_ms <= ended_ms]


def _no_moments(case: RunFacts, odd: list[Progress]) -> CheckResult:
    begun_ms, ended_ms = case.span_ms or (0, 0)
    return CheckResult(
        "stale",
        Outcome.UNKNOWN,
        f"`at` of {len(odd):,} of {many(len(case.told), 'line')} of progress.jsonl is outside of the run: it must "
        f"be in "
        f"{Progress.UNIT}, here from {begun_ms} to {ended_ms}; the first such line is of batch {odd[0].batch} and has "
        f'"at": {odd[0].at_ms}',
        word="no moments",
        count=len(odd),
        blame="engine",
    )


def _first_right(case: RunFacts) -> tuple[Ints, Ints]:
    """Return cells that were seen with at least their required value, and the first time."""
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


def _told_ms(case: RunFacts, codes: Ints) -> Ints:
    """Return for each cell when the engine first reported it as done and closed; NEVER if it did not."""
    order = np.argsort(codes)
    known, steps = codes[order], _steps(case)
    done, closes_ms = np.zeros(len(known), dtype=np.int64), np.full(len(known), NEVER_CLOSES)
    is_known = np.zeros(len(known), dtype=np.bool_)  # when it closes
    for part in case.judged:
        place = np.searchsorted(known, part.events.cell)
        rows = np.flatnonzero(np.append(known, -1)[place] == part.events.cell)
        place = place[rows]
        np.maximum.at(done, place, _done_ms(steps, part)[rows])
        new = np.flatnonzero(~is_known[place])[::-1]  # backwards, so that the first event of each cell wins
        closes_ms[place[new]] = part.events.closes_ms[rows[new]]
        is_known[place] = True
    closed = _closed_ms(case, steps, np.unique(closes_ms))
    both = [max(ms, closed[closes]) for ms, closes in zip(done.tolist(), closes_ms.tolist(), strict=True)]
    told_ms = np.empty(len(codes), dtype=np.int64)
    told_ms[order] = both
    return told_ms


@dataclass(frozen=True)
class _Steps:
    """The progress lines in order of time: their latest time, and when the results of each have to be visible."""

    lines: Sequence[Progress]
    at_ms: Ints
    shown_ms: Ints  # and NEVER, for events beyond the last line
    _ends: dict[int, Ints] = field(default_factory=dict)  # by partition, where each line ends

    def of(self, partition: int, offsets: NDArray[np.integer[Any]]) -> Ints:
        """Return for each offset the first line that covers it."""
        if partition not in self._ends:
            self._ends[partition] = np.maximum.accumulate([line.offsets.get(partition, 0) for line in self.lines])
        return np.searchsorted(self._ends[partition], offsets, side="right")


def _steps(case: RunFacts) -> _Steps:
    lines = sorted(case.told, key=lambda line: line.at_ms)
    at_ms = [line.at_ms + case.behind_ms for line in lines]
    shown_ms = _a_step_later_ms(lines, at_ms) if case.shows_a_step_later else at_ms
    return _Steps(lines, np.array(at_ms, dtype=np.int64), np.array([*shown_ms, NEVER], dtype=np.int64))


def _done_ms(steps: _Steps, part: Judged) -> Ints:
    """Return when the engine first reported each event as done, at the latest, but not before it was sent."""
    done_ms = part.sent_us // 1000
    for partition, rows in rows_by_partition(part.events.partition).items():
        shown_ms = steps.shown_ms[steps.of(partition, part.events.offset[rows])]
        np.maximum(done_ms[rows], shown_ms, out=done_ms[rows])
    return done_ms


def _a_step_later_ms(lines: Sequence[Progress], words_ms: Sequence[int]) -> Iterator[int]:
    """Yield for each line when its results have to be there: at the next line.

    A table that knows a replayed batch skips it: the line has offsets and no rows. Its events set no watermark then, so
    the next line with rows counts in its place.
    """
    later = [*words_ms[1:], NEVER]
    with_rows = [number for number, line in enumerate(lines) if line.rows]
    for number in range(len(lines)):
        if with_rows and _was_skipped(lines, number):
            after = bisect(with_rows, number)
            yield later[with_rows[after]] if after < len(with_rows) else NEVER
        else:
            yield later[number]


def _was_skipped(lines: Sequence[Progress], number: int) -> bool:
    before = lines[number - 1].offsets if number else {}
    line = lines[number]
    has_moved = any(end > before.get(partition, 0) for partition, end in line.offsets.items())
    return not line.rows and has_moved


def _closed_ms(case: RunFacts, steps: _Steps, closes_ms: Ints) -> dict[int, int]:
    """Return for each closing time when the engine had processed, in every partition, an event that closes such a
    window.

    A cell that never closes waits for nothing.
    """
    moments_ms, held_ms = closes_ms[closes_ms != NEVER_CLOSES], max(watermarks_ms(case.spec))
    shaken = _shaken(case, steps)
    # By partition and by how many of the (sorted) closing times an event covers: the earliest time at which one was
    # done.
    earliest: dict[int, Ints] = {}
    newest: dict[int, Ints] = {}
    for part in case.judged:
        done_ms, time_ms = _done_ms(steps, part), part.events.time_ms
        for partition, rows in rows_by_partition(part.events.partition).items():
            closing = np.searchsorted(moments_ms + held_ms, time_ms[rows], side="right")
            own = earliest.setdefault(partition, np.full(len(moments_ms) + 1, NEVER, dtype=np.int64))
            np.minimum.at(own, closing, done_ms[rows])
            if shaken:
                _add_newest(newest, steps, part, partition, rows)
    last = np.zeros(len(moments_ms), dtype=np.int64) if earliest else np.full(len(moments_ms), NEVER, dtype=np.int64)
    for own in earliest.values():
        last = np.maximum(last, np.minimum.accumulate(own[:0:-1])[::-1])
    if shaken:
        newest_ms = np.array([newest[partition][:-1] for partition in sorted(newest)])
        closed = _closed_again(newest_ms.reshape(len(newest), len(steps.lines)), moments_ms + held_ms, shaken)
        last = np.maximum(last, steps.shown_ms[closed])
    return {NEVER_CLOSES: 0, **dict(zip(moments_ms.tolist(), last.tolist(), strict=True))}


def _add_newest(newest: dict[int, Ints], steps: _Steps, part: Judged, partition: int, rows: slice) -> None:
    """Find by partition and line the largest time of the events that the line is the first to cover.

    There is one more, for events beyond the last line. An event that is reported before it is sent belongs to the first
    line after that.
    """
    own = newest.setdefault(partition, np.full(len(steps.lines) + 1, -1, dtype=np.int64))
    sent = np.searchsorted(steps.at_ms, part.sent_us[rows] // 1000)
    first = np.maximum(steps.of(partition, part.events.offset[rows]), sent)
    np.maximum.at(own, first, part.events.time_ms[rows])


def _shaken(case: RunFacts, steps: _Steps) -> frozenset[int]:
    """Return the lines during which, or before whose next line, the engine may have been restarted."""
    always = [(0, NEVER)] if case.engine.restarts and not case.faults else []
    active = [*always, *((fault.at_ms, fault.healed_ms or NEVER) for fault in case.faults if fault.at_ms)]
    until_ms = [*steps.at_ms[1:].tolist(), NEVER]
    lines = enumerate(zip(steps.at_ms.tolist(), until_ms, strict=True))
    return frozenset(
        line for line, (at_ms, next_ms) in lines if any(begin <= next_ms and at_ms <= end for begin, end in active)
    )


def _closed_again(newest_ms: NDArray[np.int64], closing_ms: Ints, shaken: frozenset[int]) -> Ints:
    """Return for each closing time the line by which every partition has had events beyond it: twice if the first such
    line is a shaken one.
    """
    closed = _closed_by(newest_ms, closing_ms)
    for line in shaken.intersection(closed.tolist()):
        some = closed == line
        closed[some] = line + 1 + _closed_by(newest_ms[:, line + 1 :], closing_ms[some])
    return closed


def _closed_by(newest_ms: NDArray[np.int64], closing_ms: Ints) -> Ints:
    if not len(newest_ms):
        return np.zeros(len(closing_ms), dtype=np.int64)
    return np.searchsorted(np.maximum.accumulate(newest_ms, axis=1).min(axis=0), closing_ms)
