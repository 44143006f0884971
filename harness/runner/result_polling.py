"""Polls the results during a run. A planned fault may make them unreachable; that is no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.evidence.observed import Observed
from harness.model import HarnessError, Progress, Sentinel, SentinelKind
from harness.results.redis_scan import Row, UnreadableError, in_totals, interpret
from harness.runner.world.base import ServiceGone, World
from harness.util.texts import clock
from workloads.base import Codec, Kind, Oracle, Value
from workloads.sentinels import closes_ms_of, totals_of
from workloads.totals import InTotals

# Polling all results costs more than all else that the harness does while it waits for the end.
POLL_EVERY_S = 0.25
POLL_SHARE = 1 / 4  # of the time: a poll of millions of cells takes seconds of CPU that the engine needs
# What begins later than this is a time; a window of a question without windows is 0.
EARLIEST_MS = 1_000_000_000_000

T = TypeVar("T")


@dataclass(frozen=True)
class ExpectedSentinels:
    """Sentinel records to be answered: their cells in the first value, and the result of each cell."""

    marks: int
    value: Value
    cells: Mapping[int, int]

    def answered(self, seen: Observed) -> int:
        """Return how many of them are answered. One of several windows is an answer, and so is any number that is no
        count: whether it is right is decided by the checks, which a run that never begins would not reach."""
        if self.value.kind in (Kind.COUNT, Kind.MATCH):
            counted, made = sum(map(seen.counts.count, self.cells)), sum(self.cells.values())
            # A pair of events makes one row or one match.
            return counted if made >= self.marks else counted * self.marks // made
        there = sum(cell in seen.counts or cell in seen.zeros for cell in self.cells)
        return self.marks * there // len(self.cells) if self.value.kind is Kind.PER_EVENT else self.marks * bool(there)


def _named(field: int) -> str:
    """Return a window as the results name it, and as a time of day if it is one."""
    return f"{field} ({clock(field)})" if field >= EARLIEST_MS else str(field)


class ResultPoller:
    """The counts of cells at the last poll."""

    def __init__(self, world: World, oracle: Oracle, codec: Codec, keys: Sequence[str]) -> None:
        self._results, self._servers, self._fault = world.results, world.servers, world.fault
        self._oracle, self._codec = oracle, codec
        self._numbers = {name: number for number, name in enumerate(keys)}
        self._seen: tuple[object, Observed] | None = None  # the snapshot, and its content
        self.unreadable = ""  # why the last poll failed, as the end of a sentence

    def undisturbed(self) -> bool:
        """Return whether the results can be read, and no fault may affect them."""
        return self._servers.reachable() and self._fault.settled()

    def unless_away(self, ask: Callable[[], T], away: T) -> T:
        """Return `away` if an active fault blocks the service."""
        if not self._servers.reachable():
            return away
        try:
            return ask()
        except ServiceGone:
            if self._fault.settled():
                raise
            return away

    def snapshot(self) -> object:
        """Return a value that differs if the results may have changed; an unreadable one equals no other."""
        return self.unless_away(self._results.snapshot, object())

    def answered(self, awaited: ExpectedSentinels) -> int:
        """Count the answered ones. A table that does not exist yet can't be read, and counts as empty. Reading all
        results takes twenty times as long as a snapshot, and a starting engine needs the CPU: results are read again
        only after a change."""
        try:
            snapshot = self.snapshot()
            if self._seen is None or self._seen[0] != snapshot:
                self._seen = snapshot, self.interpreted(self.unless_away(self._results.rows, list[Row]()))
        except UnreadableError as error:
            self.unreadable, self._seen = f"; {str(error).rstrip('.')}", None
            return 0
        self.unreadable = ""
        return awaited.answered(self._seen[1])

    def counted(self, awaited: ExpectedSentinels, kind: SentinelKind) -> str:
        """Describe how many are counted, and where."""
        seen = f"{self.answered(awaited)} of {awaited.marks} {kind} events have been counted"
        fields = self.fields_of(awaited)
        where = f"window {_named(fields[0])}"
        if len(fields) > 1:
            where = f"{len(fields)} fields, {fields[0]} the first of them"
        return f"{seen} in {where}{self.unreadable}"

    def interpreted(self, rows: Sequence[Row]) -> Observed:
        seen = interpret(rows, self._numbers, self._oracle.codes, ())
        return in_totals(seen, self._oracle) if isinstance(self._oracle, InTotals) else seen

    def awaited(self, marks: Sequence[Sentinel]) -> ExpectedSentinels:
        """Return their cells: usually one for all, or one each if every event has its own cell."""
        cells, values = (column.tolist() for column in totals_of(self._oracle, self._codec, marks))
        made = dict(zip(cells, values, strict=True))
        first = {cell: value for cell, value in made.items() if self._oracle.codes.key(cell) < self._oracle.groups}
        if not first:
            raise _in_no_cell(marks)
        return ExpectedSentinels(len(marks), self._oracle.values[0], first)

    @property
    def group_size(self) -> int:
        """See `Codec.mark_size`."""
        return self._codec.mark_size

    @property
    def part_ms(self) -> int:
        """Return the distance between possible window starts."""
        return self._oracle.part_ms

    def spread_keys(self, most: int) -> range:
        """Return up to `most` key numbers, spread over all keys without a probe. Events of a shared cell get the key
        that they are drawn with."""
        keys = max(1, min(self._oracle.groups, self._oracle.probed_from)) if self.group_size == 1 else 1
        return range(0, keys, -(-keys // most))

    def closes_ms_of(self, marks: Sequence[Sentinel]) -> int:
        closes_ms = closes_ms_of(self._oracle, self._codec, marks)
        if closes_ms is None:
            raise _in_no_cell(marks)
        return closes_ms

    def fields_of(self, awaited: ExpectedSentinels) -> list[int]:
        return sorted({self._oracle.codes.field(cell) for cell in awaited.cells})


def _in_no_cell(marks: Sequence[Sentinel]) -> HarnessError:
    return HarnessError(f"The workload has no cell for a sentinel record at {clock(marks[0].event_time_ms)}.")


def covers(progress: Progress | None, ends: Mapping[int, int]) -> bool:
    """Return whether all of the log below these offsets is done."""
    return progress is not None and all(progress.offsets.get(p, 0) >= end for p, end in ends.items())
