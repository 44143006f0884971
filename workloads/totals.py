"""A question summed over all windows, for runs where the time by which an event was counted is unknown.

For a value that counts events, the sum over all windows is the same whatever time decides the window. Other values
can't be judged then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from workloads.base import NEVER, Columns, Ints, Kind, Oracle, Places, Planned, Totals

CELL = "cell of its window"  # column of places


class InTotals:
    """An oracle whose cells are keys, with 0 as the field. See `workloads.base.Oracle`."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.codes, self.values, self.part_ms = oracle.codes, oracle.values, oracle.part_ms
        self.groups, self.probed_from = oracle.groups, oracle.probed_from
        self.merges = self.keeps_rows = False
        counted = [number for number, value in enumerate(oracle.values) if value.kind is Kind.COUNT]
        self._counted = np.array(counted, dtype=np.int64)

    def plan(self, blocks: Iterable[Planned]) -> Columns:
        return self._oracle.plan(blocks)

    def settle(self, planned: Columns, epoch_ms: int) -> Totals:
        return self.in_all(self._oracle.settle(planned, epoch_ms))

    def places(self, events: Columns) -> Places:
        row, cell, _, columns = self._oracle.places(events)
        here = self._is_counted(cell)
        kept = {name: column[here] for name, column in columns.items()} | {CELL: cell[here]}
        return Places(row[here], self._key_alone(cell[here]), np.full(int(here.sum()), NEVER), MappingProxyType(kept))

    def fold(self, cells: Ints, columns: Columns) -> Totals:  # noqa: ARG002  (the windows' own cells are in the columns)
        return self.in_all(self._oracle.fold(columns[CELL], columns))

    def in_all(self, totals: Totals) -> Totals:
        """Sum the values of each key over all of its windows."""
        here = self._is_counted(totals.cell)
        cell, place = np.unique(self._key_alone(totals.cell[here]), return_inverse=True)
        value = np.zeros(len(cell), dtype=np.int64)
        np.add.at(value, place, totals.value[here])
        return Totals(cell, value)

    def in_all_of(self, counts: Mapping[int, int]) -> Totals:
        cells, values = (np.array([*each], dtype=np.int64) for each in (counts.keys(), counts.values()))
        return self.in_all(Totals(cells, values))

    def begins_ms(self, cells: Ints) -> Ints:
        return np.zeros(len(cells), dtype=np.int64)

    def name(self, cell: int, epoch_ms: int) -> str:
        key, _, _ = self._oracle.name(cell, epoch_ms).rpartition(", ")
        return f"{key}, all windows together"

    def _is_counted(self, cells: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.isin(self.codes.keys(cells) // self.groups, self._counted)

    def _key_alone(self, cells: Ints) -> Ints:
        return self.codes.of(self.codes.keys(cells), np.zeros(len(cells), dtype=np.int64))
