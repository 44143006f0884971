"""What the results say while a run goes on. A planned fault may keep them from everybody, and that is no answer."""

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

# A look at all results costs more than all else that the harness does while it waits for the end.
LOOK_EVERY_S = 0.25
LOOK_SHARE = 1 / 4  # of the time: a look at millions of cells takes seconds, in which the engine needs the CPU

T = TypeVar("T")


@dataclass(frozen=True)
class ExpectedSentinels:
    """Marks that have to be answered: the cells of the first value in which they lie, and what they make of each."""

    marks: int
    value: Value
    cells: Mapping[int, int]

    def answered(self, seen: Observed) -> int:
        """How many of the marks. One of several windows is an answer, and so is any number that is no count: whether it
        is the right one is for the checks to say, which a run that never begins would not reach."""
        if self.value.kind is Kind.COUNT:
            counted, made = sum(map(seen.counts.count, self.cells)), sum(self.cells.values())
            return counted if made >= self.marks else counted * self.marks // made  # a pair is one row of two events
        there = sum(cell in seen.counts or cell in seen.zeros for cell in self.cells)
        return self.marks * there // len(self.cells) if self.value.kind is Kind.PER_EVENT else self.marks * bool(there)


class ResultPoller:
    """The counts of cells, by the last look at them."""

    def __init__(self, world: World, oracle: Oracle, codec: Codec, keys: Sequence[str]) -> None:
        self._world, self._oracle, self._codec = world, oracle, codec
        self._numbers = {name: number for number, name in enumerate(keys)}
        self._seen: tuple[object, Observed] | None = None  # and what the results were when it was seen
        self.unreadable = ""  # why they could not be read at the last look, as the end of a sentence

    def unless_away(self, ask: Callable[[], T], away: T) -> T:
        """A planned fault that is at work may keep a service from everybody; then this is the answer."""
        if not self._world.reachable():
            return away
        try:
            return ask()
        except ServiceGone:
            if self._world.fault.settled():
                raise
            return away

    def snapshot(self) -> object:
        """What can't be seen does not stand still: such a look equals no other."""
        return self.unless_away(self._world.snapshot, object())

    def answered(self, awaited: ExpectedSentinels) -> int:
        """A table that the engine has not made yet can't be read, and holds nothing. To read all results takes twenty
        times as long as to look at them, and an engine that starts needs the CPU: only what changed is read again."""
        try:
            snapshot = self.snapshot()
            if self._seen is None or self._seen[0] != snapshot:
                self._seen = snapshot, self.interpreted(self.unless_away(self._world.results, list[Row]()))
        except UnreadableError as error:
            self.unreadable, self._seen = f"; {error}", None
            return 0
        self.unreadable = ""
        return awaited.answered(self._seen[1])

    def counted(self, awaited: ExpectedSentinels, kind: SentinelKind) -> str:
        """How many of the marks, and where they are looked for, in words."""
        seen = f"{self.answered(awaited)} of {awaited.marks} {kind} events are counted"
        fields = self.fields_of(awaited)
        where = f"window {fields[0]}" if len(fields) == 1 else f"{len(fields)} fields, {fields[0]} the first of them"
        return f"{seen} in {where}{self.unreadable}"

    def interpreted(self, rows: Sequence[Row]) -> Observed:
        seen = interpret(rows, self._numbers, self._oracle.codes, ())
        return in_totals(seen, self._oracle) if isinstance(self._oracle, InTotals) else seen

    def awaited(self, marks: Sequence[Sentinel]) -> ExpectedSentinels:
        """Mostly all of them lie in one cell; where each event has a cell of its own, each lies in its own."""
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
        """Windows begin at multiples of it."""
        return self._oracle.part_ms

    def spread_keys(self, most: int) -> range:
        """The numbers of so many keys at the most, from all over those that no probe has to itself. What lies in a cell
        together is of the key that it is drawn with."""
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
    return HarnessError(f"No event of the workload lies in a cell at {clock(marks[0].event_time_ms)}.")


def covers(progress: Progress | None, ends: Mapping[int, int]) -> bool:
    """All of the log below these offsets is done."""
    return progress is not None and all(progress.offsets.get(p, 0) >= end for p, end in ends.items())
