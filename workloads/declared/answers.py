"""The SQL of a declaration as the oracle of a run: see `workloads.base.Oracle`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.util.texts import clock
from workloads.base import NEVER, NOTHING, NULL, Columns, Ints, Kind, Places, Planned, Totals, Value
from workloads.cells import Codes
from workloads.declared.codec import ID, TIME, begin_ms, column_of, relation
from workloads.declared.declaration import Declaration
from workloads.declared.fields import Time, leaves, time_path
from workloads.declared.oracle import CLOSES, EVENT, EVENT_ID, OPENS, Oracle, answered_twice, two_ends

NUMBER = "place"  # index among all rows that `places` has returned
# An event may be in a hundred windows. A query holds all of its rows several times, so it gets fewer events then.
FIRST_EVENTS, MOST_ROWS = 1 << 15, 1 << 21  # of one query; the first one shows how many rows an event has


class DeclaredOracle:
    """An oracle whose keys are combinations of a value and the texts that name a cell. A field is the cell's whole
    number.
    """

    def __init__(self, declaration: Declaration, seed: int) -> None:
        self._declaration, self._seed, self._question = declaration, seed, declaration.question
        self._names = declaration.groups(seed)
        self._tables = declaration.relations(seed)
        self._time = time_path(declaration.fields)
        self._placed: list[pa.Table] = []  # the rows from `places`, for `fold`
        self.codes = Codes()
        self.values = tuple(Value(name, Kind(kind)) for name, kind in self._question.values.items())
        self.groups = self.probed_from = len(self._names)
        self.keeps_rows = True
        self.part_ms, self.merges = self._question.step_ms, self._question.merge
        paths = (path for path, field in leaves(declaration.fields) if not isinstance(field, Time))
        self._columns = (TIME, ID, *map(column_of, paths))

    def plan(self, blocks: Iterable[Planned]) -> Columns:
        parts: dict[str, list[NDArray[Any]]] = {name: [np.zeros(0, dtype=np.int64)] for name in self._columns}
        for block in blocks:
            sound = block.poison == 0
            known = {**block.content, TIME: block.event_time_rel_ms + self._nominal_ms, ID: block.id.astype(np.int64)}
            for name, part in parts.items():
                part.append(known[name][sound])
        events = self._events({name: np.concatenate(part[1:] or part) for name, part in parts.items()})
        answer = answered_twice(self._question, self._tables, events, self._time)
        key, field, value = self._rows(answer)
        shift = self._nominal_ms if self._question.number == OPENS else 0
        order = np.lexsort((field, key))
        return {"key": key[order], "field": field[order] - shift, "value": value[order]}

    def settle(self, planned: Columns, epoch_ms: int) -> Totals:
        shift = epoch_ms if self._question.number == OPENS else 0
        return Totals(self.codes.of(planned["key"], planned["field"] + shift), planned["value"])

    def places(self, events: Columns) -> Places:
        """Return the cells. Each place has a number, by which `fold` finds the rows of the query again."""
        parts = [self._places_of(events, slice(0, FIRST_EVENTS))]
        if (all_of := len(events[TIME])) > FIRST_EVENTS:
            step = max(1, FIRST_EVENTS * MOST_ROWS // max(len(parts[0].row), 1))
            parts += [self._places_of(events, slice(at, at + step)) for at in range(FIRST_EVENTS, all_of, step)]
        if not self.merges:
            self._refuse_two_ends(parts)
        row, cell, closes_ms = (np.concatenate(columns) for columns in zip(*(part[:3] for part in parts), strict=True))
        return Places(row, cell, closes_ms, {NUMBER: np.concatenate([part.columns[NUMBER] for part in parts])})

    def _refuse_two_ends(self, parts: Sequence[Places]) -> None:
        """Each query checks the cells of its own events."""
        ends = [
            _ends(part.cell[first], part.closes_ms[first]) for part in parts if (first := self._is_first(part)).any()
        ]
        cell, closes_ms = np.concatenate(ends, axis=1) if len(ends) > 1 else np.zeros((2, 0), dtype=np.int64)
        order = np.lexsort((closes_ms, cell))
        differ = (np.diff(cell[order]) == 0) & (np.diff(closes_ms[order]) != 0)
        if differ.any():
            raise two_ends(self.name(int(cell[order][int(np.flatnonzero(differ)[0])]), 0))

    def _is_first(self, places: Places) -> NDArray[np.bool_]:
        """Select the places of the first value."""
        return np.asarray(places.cell < self._value_step)

    def _places_of(self, events: Columns, rows: slice) -> Places:
        own = {name: column[rows] for name, column in events.items()}
        placed = Oracle(self._question, self._tables).cells(self._events(own))
        numbers = np.arange(len(placed)) + sum(map(len, self._placed))
        self._placed.append(_compact(placed))
        times = len(self.values)
        row, cell = np.tile(placed.column(EVENT).to_numpy(), times), self._of_each_value(self._codes(placed))
        closes_ms = np.tile(placed.column(CLOSES).cast(pa.int64()).fill_null(NEVER).to_numpy(), times)
        order = np.lexsort((cell, row))
        columns = {NUMBER: np.tile(numbers, times)[order]}
        return Places(row[order].astype(np.intp) + rows.start, cell[order], closes_ms[order], columns)

    def fold(self, cells: Ints, columns: Columns) -> Totals:
        value = self.codes.keys(cells) // self.groups
        answers: dict[bytes, pa.Table] = {}  # mostly all values have the same places
        totals = []
        for number in range(len(self.values)):
            places = np.sort(columns[NUMBER][value == number])
            if (same := places.tobytes()) not in answers:
                answers[same] = Oracle(self._question).fold(self._rows_of(places))
            totals.append(self._totals_of(number, answers[same]))
        return Totals(np.concatenate([each.cell for each in totals]), np.concatenate([each.value for each in totals]))

    def begins_ms(self, cells: Ints) -> Ints:
        return self.codes.fields(cells) if self._question.number == OPENS else np.zeros(len(cells), dtype=np.int64)

    def name(self, cell: int, epoch_ms: int) -> str:
        value, group = divmod(self.codes.key(cell), self.groups)
        known = 0 <= value < len(self.values)
        texts = zip(self._question.groups, self._names[group] if known else (), strict=False)
        said = [f"{name} {text}" for name, text in texts]
        field = self.codes.field(cell)
        if self._question.number == OPENS:
            said.append(f"from {clock(field)} on ({round((field - epoch_ms) / 1000):+d} s)")
        elif self._question.number == EVENT_ID:
            said.append(f"event {field:012x}")
        return f"{self.values[value].name if known else '?'} of {', '.join(said) or 'all'}"

    @property
    def _nominal_ms(self) -> int:
        return begin_ms(self.part_ms)

    @property
    def _value_step(self) -> int:
        """The distance between the codes of a cell's values."""
        return self.codes.one(self.groups, 0)

    def _events(self, columns: Columns) -> pa.Table:
        ids = columns[ID] if ID in columns else np.full(len(columns[TIME]), NOTHING)
        return relation(self._declaration, self._seed, columns, ids)

    def _codes(self, rows: pa.Table) -> Ints:
        """Codes of the first value."""
        number = self._question.number
        field = rows.column(number).to_numpy() if number else np.zeros(len(rows), dtype=np.int64)
        return self.codes.of(self._question.numbered(rows, self._names), field)

    def _rows(self, answer: pa.Table) -> tuple[Ints, Ints, Ints]:
        """Key, field and value of each cell."""
        group = self._question.numbered(answer, self._names)
        number = self._question.number
        field = answer.column(number).to_numpy() if number else np.zeros(len(answer), dtype=np.int64)
        keys = np.concatenate([group + value * self.groups for value in range(len(self.values))])
        values = np.concatenate([_numbers(answer, value.name) for value in self.values])
        return keys, np.tile(field, len(self.values)), values

    def _of_each_value(self, cells: Ints) -> Ints:
        """Codes of all values, from codes of the first one."""
        return np.concatenate([cells + self._value_step * number for number in range(len(self.values))])

    def _rows_of(self, places: Ints) -> pa.Table:
        return pa.concat_tables(self._placed).unify_dictionaries().take(places)

    def _totals_of(self, number: int, answer: pa.Table) -> Totals:
        value = _numbers(answer, self.values[number].name)
        return Totals(self._codes(answer) + number * self._value_step, value)


def _ends(cell: Ints, closes_ms: Ints) -> Ints:
    """Return each cell once, and when it closes."""
    cells, at = np.unique(cell, return_index=True)
    return np.stack((cells, closes_ms[at]))


def _compact(placed: pa.Table) -> pa.Table:
    """Return the rows with each text as its number in a list. An event in 60 windows has its texts 60 times."""
    for at, field in enumerate(placed.schema):
        if pa.types.is_string(field.type):
            placed = placed.set_column(at, field.name, placed.column(at).dictionary_encode())
    return placed


def _numbers(answer: pa.Table, value: str) -> Ints:
    return np.asarray(answer.column(value).fill_null(NULL).to_numpy())
