"""Compares the cells of a run with the plan while it goes on, by the polls of the results. Pure.

This is no judgement. A cell with fewer events than planned is open: its events may be on their way, or late ones may be
dropped rightly. Which cells are lost, duplicated or phantoms is decided from the log when the run is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise

import numpy as np

from workloads.base import Columns, Kind, Oracle, Totals

MOST_CELLS = 50_000  # in a map; of more cells only the numbers are kept
_FALLS_NEVER = (Kind.COUNT, Kind.MATCH, Kind.MONOTONE)


class Stands(IntEnum):
    """How a cell stands."""

    OPEN = 0
    RIGHT = 1
    TOO_MANY = 2
    WRONG = 3  # no planned event belongs there, or the output for an event differs from the planned one


Group = tuple[int, int, str]  # a field (mostly the start of a window), how its cells stand, and their keys as ranges


def standing(kind: Kind, planned: int | None, seen: int, *, merges: bool = False) -> Stands:
    """Return how a cell stands. `planned` is None if no planned event belongs there; while sessions merge, such a cell
    may vanish again.
    """
    if planned is None:
        return Stands.WRONG if seen and not merges else Stands.OPEN
    if seen == planned:
        return Stands.RIGHT
    if kind is Kind.PER_EVENT and seen:
        return Stands.WRONG
    return Stands.TOO_MANY if kind in _FALLS_NEVER and seen > planned else Stands.OPEN


class CellsSoFar:
    """The polled cells of one run. `keys` are the numbers of the polled keys."""

    def __init__(self, oracle: Oracle, keys: Collection[int], planned: Totals) -> None:
        self._oracle, self._keys = oracle, np.array(sorted(keys), dtype=np.int64)
        self._kinds = [value.kind for value in oracle.values]
        self._counts = any(kind is Kind.COUNT for kind in self._kinds)
        self._planned: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._stands: dict[int, Stands] = {}
        self._of_sentinels: set[int] = set()
        self.visible = 0  # without the sentinels
        self._expect(planned)
        self.planned_visible = sum(map(self._weight, self._planned, self._planned.values()))

    def also(self, sentinels: Totals) -> list[Group]:
        """Expect the harness's own opening and closing events too."""
        self._of_sentinels.update(cell for cell in sentinels.cell.tolist() if cell not in self._planned)
        return self._grouped(self._expect(sentinels))

    def take(self, changes: Columns) -> list[Group]:
        """Take changes of the results, as columns of samples.parquet. Return the cells that stand differently now."""
        codes = self._oracle.codes.of(changes["campaign"], changes["window_ms"]).tolist()
        changed: dict[int, None] = {}
        for cell, count in zip(codes, changes["count"].tolist(), strict=True):
            if cell not in self._of_sentinels:
                self.visible += self._weight(cell, count) - self._weight(cell, self._seen.get(cell, 0))
            self._seen[cell] = count
            if self._stand(cell):
                changed[cell] = None
        return self._grouped(changed)

    def all(self) -> list[Group]:
        return self._grouped(self._stands)

    def _grouped(self, cells: Iterable[int]) -> list[Group]:
        return _groups(self._oracle, cells, self._stands) if len(self._stands) <= MOST_CELLS else []

    @property
    def numbers(self) -> Mapping[str, int]:
        """Return how many cells stand in each way."""
        counted = Counter(self._stands.values())
        return {each.name.lower(): counted[each] for each in Stands}

    @property
    def visible_is(self) -> str:
        """Return what `visible` counts: a number that counts no events says nothing of how many were seen."""
        return "events" if self._counts else "cells"

    def _weight(self, cell: int, count: int) -> int:
        if not self._counts:
            return int(bool(count))
        return max(0, count) if self._kind(cell) is Kind.COUNT else 0

    def _kind(self, cell: int) -> Kind:
        number = self._oracle.codes.key(cell) // self._oracle.groups
        return self._kinds[number] if number < len(self._kinds) else Kind.COUNT

    def _expect(self, totals: Totals) -> list[int]:
        polled = np.isin(self._oracle.codes.keys(totals.cell), self._keys)
        cells, values = totals.cell[polled].tolist(), totals.value[polled].tolist()
        for cell, value in zip(cells, values, strict=True):
            self._planned[cell] = self._planned.get(cell, 0) + value
        return [cell for cell in cells if self._stand(cell)]

    def _stand(self, cell: int) -> bool:
        """Find how a cell stands; return whether that is new."""
        planned, seen = self._planned.get(cell), self._seen.get(cell, 0)
        stands = standing(self._kind(cell), planned, seen, merges=self._oracle.merges)
        before, self._stands[cell] = self._stands.get(cell), stands
        return before is not stands


def _groups(oracle: Oracle, cells: Iterable[int], stands: Mapping[int, Stands]) -> list[Group]:
    """Group cells by field and standing, so that a line of many cells is short."""
    keys: dict[tuple[int, int], list[int]] = {}
    for cell in cells:
        keys.setdefault((oracle.codes.field(cell), int(stands[cell])), []).append(oracle.codes.key(cell))
    return [(field, stand, ranges(found)) for (field, stand), found in sorted(keys.items())]


def ranges(numbers: Sequence[int]) -> str:
    """Write whole numbers as "0-4,7"."""
    ordered = sorted(set(numbers))
    if not ordered:
        return ""
    begins = [ordered[0], *(after for before, after in pairwise(ordered) if after != before + 1)]
    ends = [*(before for before, after in pairwise(ordered) if after != before + 1), ordered[-1]]
    return ",".join(str(lo) if lo == hi else f"{lo}-{hi}" for lo, hi in zip(begins, ends, strict=True))
