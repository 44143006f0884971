"""What the results say while a run goes on. A planned fault may keep them from everybody, and that is no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from generators.marks import closes_ms_of, totals_of
from harness.judging.readings import Observed
from harness.model import Mark, MarkKind, Progress
from harness.observe import Row, UnreadableError, in_totals, interpret
from harness.worlds.base import ServiceGone, World
from workloads.base import Codec, Kind, Oracle, Value
from workloads.totals import InTotals

# A look at all results costs more than all else that the harness does while it waits for the end.
LOOK_EVERY_S = 0.25

T = TypeVar("T")


@dataclass(frozen=True)
class Awaited:
    """Marks that have to be answered: the cells of the first value in which they lie, and what they make of each."""

    marks: int
    value: Value
    cells: Mapping[int, int]

    def answered(self, seen: Observed) -> int:
        """How many of the marks. Of what is no count a cell holds what they make of it, or does not yet."""
        if self.value.kind is Kind.COUNT:
            return sum(map(seen.counts.count, self.cells))
        return self.marks * sum(self._holds(seen, cell) for cell in self.cells) // len(self.cells)

    def _holds(self, seen: Observed, cell: int) -> bool:
        """What grows may still grow. What is something else is right or wrong, and the checks say which."""
        if self.value.kind is Kind.MONOTONE:
            return seen.counts.count(cell) >= self.cells[cell]
        return cell in seen.counts or cell in seen.zeros


class Answers:
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

    def answered(self, awaited: Awaited) -> int:
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

    def counted(self, awaited: Awaited, kind: MarkKind) -> str:
        """How many of the marks, and where they are looked for, in words."""
        seen = f"{self.answered(awaited)} of {awaited.marks} {kind} events are counted"
        fields = self.fields_of(awaited)
        where = f"window {fields[0]}" if len(fields) == 1 else f"{len(fields)} fields, {fields[0]} the first of them"
        return f"{seen} in {where}{self.unreadable}"

    def interpreted(self, rows: Sequence[Row]) -> Observed:
        seen = interpret(rows, self._numbers, self._oracle.codes, ())
        return in_totals(seen, self._oracle) if isinstance(self._oracle, InTotals) else seen

    def awaited(self, marks: Sequence[Mark]) -> Awaited:
        """Mostly all of them lie in one cell; where each event has a cell of its own, each lies in its own."""
        cells, values = (column.tolist() for column in totals_of(self._oracle, self._codec, marks))
        made = dict(zip(cells, values, strict=True))
        first = {cell: value for cell, value in made.items() if self._oracle.codes.key(cell) < self._oracle.groups}
        return Awaited(len(marks), self._oracle.values[0], first)

    def closes_ms_of(self, marks: Sequence[Mark]) -> int:
        return closes_ms_of(self._oracle, self._codec, marks)

    def fields_of(self, awaited: Awaited) -> list[int]:
        return sorted({self._oracle.codes.field(cell) for cell in awaited.cells})


def covers(progress: Progress | None, ends: Mapping[int, int]) -> bool:
    """All of the log below these offsets is done."""
    return progress is not None and all(progress.offsets.get(p, 0) >= end for p, end in ends.items())
