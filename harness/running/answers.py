"""What the results say while a run goes on. A planned fault may keep them from everybody, and that is no answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from generators.marks import closes_ms_of, totals_of
from harness.judging.readings import Observed
from harness.model import Mark
from harness.observe import Row, UnreadableError, interpret
from harness.worlds.base import ServiceGone, World
from workloads.base import Codec, Oracle

T = TypeVar("T")


class Answers:
    """The counts of cells, by the last look at them."""

    def __init__(self, world: World, oracle: Oracle, codec: Codec, keys: Sequence[str]) -> None:
        self._world, self._oracle, self._codec = world, oracle, codec
        self._numbers = {name: number for number, name in enumerate(keys)}
        self._counted: tuple[tuple[int, object], int] | None = None  # of a cell, when the results were as they were
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

    def count_of(self, cell: int) -> int:
        """A table that the engine has not made yet can't be read, and holds nothing. To read all results takes twenty
        times as long as to look at them, and an engine that starts needs the CPU: only what changed is read again."""
        try:
            seen = cell, self.snapshot()
            if self._counted is None or self._counted[0] != seen:
                rows = self.unless_away(self._world.results, list[Row]())
                self._counted = seen, self.interpreted(rows).counts.count(cell)
        except UnreadableError as error:
            self.unreadable, self._counted = f"; {error}", None
            return 0
        self.unreadable = ""
        return self._counted[1]

    def interpreted(self, rows: Sequence[Row]) -> Observed:
        return interpret(rows, self._numbers, self._oracle.codes, ())

    def cell_of(self, marks: Sequence[Mark]) -> int:
        """All marks of a kind lie in one cell."""
        return int(totals_of(self._oracle, self._codec, marks).cell[0])

    def closes_ms_of(self, marks: Sequence[Mark]) -> int:
        return closes_ms_of(self._oracle, self._codec, marks)

    def window_of(self, cell: int) -> str:
        return f"window {self._oracle.codes.field(cell)}"
