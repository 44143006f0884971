"""The events of a declaration as a codec: see `workloads.base.Codec`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.model import Sentinel
from harness.util.seeded_draws import Lane
from workloads.base import COUNTS, NO_EVENT, NOTHING, Columns, Draws, Ints, Mask, Planned, Values
from workloads.declared.arrow import Arrow
from workloads.declared.declaration import Declaration
from workloads.declared.draws import content, names
from workloads.declared.fields import Named, Time, leaves, time_path
from workloads.declared.oracle import EVENT, EVENT_ID, MATCH, Oracle
from workloads.sentinels import SOME_DAY_MS, TRIED

TIME, ID = "event_time_ms", "event_id"  # columns of a log
FIELD = "field:"  # prefix of a field's path as a column, so that no declared name collides with one of the harness
TRIES = 64  # draws to find an event that belongs to a cell


class DeclaredCodec:
    def __init__(self, declaration: Declaration, seed: int) -> None:
        self._declaration, self._seed = declaration, seed
        self._time = time_path(declaration.fields)
        self._fields = {path: each for path, each in leaves(declaration.fields) if not isinstance(each, Time)}
        self._records = declaration.records(seed)
        self.content = tuple(map(column_of, self._fields))
        self.decisive = self.content
        self.poisons = len(self._records.poisons)
        self._arrow = Arrow(declaration.fields, seed)
        self._begin_ms = begin_ms(declaration.question.step_ms)
        self._marks: dict[tuple[int, ...], Mapping[str, int]] = {}
        self._groups: dict[int, Sequence[Mapping[str, int]]] = {}

        # Names are made now, because making them takes too long when the first slice is due.
        self._records.write(
            {**content(declaration.fields, seed, np.zeros(1, dtype=np.uint64)), self._time: np.zeros(1, dtype=np.int64)}
        )

    def draw(self, draws: Draws, *, probes: Ints | None, hot: Mask, sure: Mask) -> Columns:
        assert probes is None, "no cell of a declared workload can be planned to hold one event"
        columns = self._drawn(draws)
        for path, field in self._fields.items():
            if isinstance(field, Named):
                columns[column_of(path)][hot] = 0
        if sure.any():
            for name, column in self._in_cells(draws[sure]).items():
                columns[name][sure] = column
        return columns

    def counts(self, content: Columns) -> Mask:
        events = self._at_a_beginning(content)
        return np.isin(np.arange(len(events)), self._oracle.placed(events))

    def _at_a_beginning(self, content: Columns) -> pa.Table:
        """Events of this content, all at the beginning of a window."""
        return self._events(content, np.full(_length(content), self._begin_ms))

    def _events(self, content: Columns, times_ms: Ints) -> pa.Table:
        numbers = np.arange(len(times_ms))
        return relation(self._declaration, self._seed, {**content, TIME: times_ms}, numbers)

    @cached_property
    def mark_size(self) -> int:
        return len(self._group(0))

    def mark(self, mark: Sentinel) -> Mapping[str, int]:
        """Return the cached content. A query is too slow for the many calls."""
        key = mark.id, mark.campaign, mark.group, mark.part
        if key not in self._marks:
            groups = self._group(mark.group) if self.mark_size > 1 else []
            self._marks[key] = groups[mark.part % len(groups)] if groups else self._alone(mark)
        return self._marks[key]

    def _group(self, number: int) -> Sequence[Mapping[str, int]]:
        """A minimal set of events that have a cell together, a millisecond apart; empty if there is none."""
        if number not in self._groups:
            tried = self._drawn(Lane.of(self._seed, "marks", number).at(np.arange(TRIED)))
            order = self._nearest(tried)
            found = fewest(len(order), lambda at: self._lie(_taken(tried, order, at)))
            rows = sorted(order[at] for at in found)
            self._groups[number] = [{name: int(column[row]) for name, column in tried.items()} for row in rows]
        return self._groups[number]

    def _nearest(self, tried: Columns) -> Sequence[int]:
        """Return an order of these events. Those of a match come first, which saves most of the queries."""
        question = self._declaration.question
        if MATCH not in question.values.values() or question.number != EVENT_ID:
            return range(TRIED)
        events = self._events(tried, self._begin_ms + np.arange(TRIED))
        match, placed = self._oracle.answer(events).slice(0, 1), self._oracle.cells(events)
        if not len(match):
            return ()
        groups = self._declaration.groups(self._seed)
        own = question.numbered(placed, groups) == question.numbered(match, groups)
        named = match.column(EVENT_ID)[0].as_py()
        return sorted(placed.column(EVENT).to_numpy()[own].tolist(), key=lambda row: abs(row - named))

    def _lie(self, events: Columns) -> bool:
        """Check if they have a cell. An event that completes no match has one, and is in no answer."""
        together = self._events(events, self._begin_ms + np.arange(_length(events)))
        if MATCH in self._declaration.question.values.values():
            return len(self._oracle.answer(together)) > 0
        return len(self._oracle.cells(together)) > 0

    def _alone(self, mark: Sentinel) -> Mapping[str, int]:
        """A sentinel record with the texts of its key, in a cell if any tried event has one."""
        tried = self._drawn(Lane.of(self._seed, "mark", mark.id).at(np.arange(TRIED)))
        groups = self._declaration.groups(self._seed)
        wanted = mark.campaign % len(groups)
        for name, text in zip(self._declaration.question.groups, groups[wanted], strict=True):
            for path, field in self._fields.items():
                if path.rpartition(".")[2] == name and isinstance(field, Named):
                    tried[column_of(path)][:] = names(field, self._seed, path).index(text)
        placed = self._oracle.cells(self._at_a_beginning(tried))
        rows = placed.column(EVENT).to_numpy()
        right = rows[self._declaration.question.numbered(placed, groups) == wanted]
        row = int(min(right, default=min(rows, default=0)))
        return {name: int(column[row]) for name, column in tried.items()}

    def write(self, events: Planned, epoch_ms: int) -> Values:
        fields = {path: events.content[column_of(path)] for path in self._fields}
        written = self._records.write({**fields, self._time: events.event_time_rel_ms + epoch_ms})
        values: list[bytes | None] = [*written]
        for row in np.flatnonzero(events.poison):
            values[row] = self._records.poison(self._records.poisons[events.poison[row] - 1], written[row])
        return Values.of(values)

    def read(self, values: Values, ids: Ints) -> Columns:  # noqa: ARG002  (no field repeats them)
        rows, found = self._records.read([*values])
        kind = np.full(len(values), NO_EVENT, dtype=np.int8)
        kind[rows] = COUNTS
        columns: dict[str, NDArray[Any]] = {"kind": kind, TIME: np.full(len(values), NOTHING, dtype=np.int64)}
        columns |= {name: np.full(len(values), NOTHING, dtype=np.int64) for name in self.content}
        for path, column in found.items():
            columns[TIME if path == self._time else column_of(path)][rows] = column
        return columns

    def say(self, content: Columns, row: int) -> str:
        """Describe the event by the fields that name its cells, else by its first field."""
        named = [path for path, field in self._fields.items() if isinstance(field, Named)]
        keys = [path for path in named if path.rpartition(".")[2] in self._declaration.question.groups]
        shown = keys or named[:1] or [*self._fields][:1]
        units = {path: content[column_of(path)][row : row + 1] for path in shown}
        return ", ".join(f"{path} {self._arrow.flat(path, each)[0].as_py()}" for path, each in units.items())

    def texts(self, log: Columns) -> Mapping[str, Any]:
        held = log["kind"] != NO_EVENT
        return {path: self._arrow.known(path, log[column_of(path)], held) for path in self._fields}

    @cached_property
    def _oracle(self) -> Oracle:
        return Oracle(self._declaration.question, self._declaration.relations(self._seed))

    def _in_cells(self, draws: Draws) -> Columns:
        """One event per draw that belongs to a cell, if one of the tried events does."""
        lanes = (Lane.of(self._seed, "sure", number) for number in range(TRIES))
        tried = np.stack([lane.at(draws.view(np.int64)) for lane in lanes], axis=1).ravel()
        drawn = self._drawn(tried)
        first = np.argmax(self.counts(drawn).reshape(-1, TRIES), axis=1)
        return {name: column[np.arange(len(draws)) * TRIES + first] for name, column in drawn.items()}

    def _drawn(self, draws: Draws) -> dict[str, NDArray[Any]]:
        drawn = content(self._declaration.fields, self._seed, draws)
        return {column_of(path): column for path, column in drawn.items()}


def begin_ms(step_ms: int) -> int:
    """Return the start of a window at an arbitrary time. Planned times count from there, because the load start is
    unknown yet; it differs from this by whole steps.
    """
    return -(-SOME_DAY_MS // step_ms) * step_ms


def column_of(path: str) -> str:
    """Name the column of a field in a tape or a log, which also have columns of their own."""
    return f"{FIELD}{path}"


def fewest(count: int, lie: Callable[[list[int]], bool]) -> list[int]:
    """Return few of `count` rows for which `lie` holds, such that it fails without any of them; empty if it never
    holds.
    """
    ends = [1 << power for power in range(count.bit_length())]
    rows = next((found for end in ends if lie(found := [*range(end)])), [])
    step = len(rows) // 2
    while step:
        at = 0
        while at < len(rows):
            less = rows[:at] + rows[at + step :]
            if less and lie(less):
                rows = less
            else:
                at += step
        step //= 2
    return rows


def _taken(tried: Columns, order: Sequence[int], at: Sequence[int]) -> Columns:
    rows = sorted(order[each] for each in at)
    return {name: column[rows] for name, column in tried.items()}


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))


def relation(declaration: Declaration, seed: int, columns: Columns, ids: Ints) -> pa.Table:
    """Convert columns of a tape or a log to the relation `events`."""
    paths = leaves(declaration.fields)
    own = {path: columns[TIME if isinstance(field, Time) else column_of(path)] for path, field in paths}
    table = Arrow(declaration.fields, seed).table(own)
    return table.append_column(EVENT, pa.array(np.arange(len(ids)))).append_column(EVENT_ID, pa.array(ids))
