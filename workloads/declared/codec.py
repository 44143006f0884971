"""The events of a declaration as a codec: see `workloads.base.Codec`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from generators.draws import Lane
from harness.model import Mark
from workloads.base import COUNTS, NO_EVENT, NOTHING, Columns, Draws, Ints, Mask, Planned, Values
from workloads.declared.arrow import Arrow
from workloads.declared.declaration import Declaration
from workloads.declared.draws import content, names
from workloads.declared.fields import Named, Time, leaves, time_path
from workloads.declared.oracle import EVENT, EVENT_ID, Oracle

TIME, ID = "event_time_ms", "event_id"  # columns of a log
# Of no run: where a plan's times count from, whose epoch is not known yet. Each run's own differs by whole steps.
NOMINAL_MS = 1_767_225_600_000
TRIES = 64  # draws, until an event lies in a cell ...
MARKS = 1024  # ... and until a mark lies in that of its key


class DeclaredCodec:
    """See `workloads.base.Codec`."""

    def __init__(self, declaration: Declaration, seed: int) -> None:
        self._declaration, self._seed = declaration, seed
        self._time = time_path(declaration.fields)
        self._fields = {path: each for path, each in leaves(declaration.fields) if not isinstance(each, Time)}
        self._records = declaration.records(seed)
        self.content = tuple(self._fields)
        self.decisive = self.content
        self.poisons = len(self._records.poisons)
        self._arrow = Arrow(declaration.fields, seed)

        # Names are made now, and not while the first slice is due.
        self._records.write(
            {**content(declaration.fields, seed, np.zeros(1, dtype=np.uint64)), self._time: np.zeros(1, dtype=np.int64)}
        )

    def draw(self, draws: Draws, *, probes: Ints | None, hot: Mask, sure: Mask) -> Columns:
        assert probes is None, "no cell of a declared workload can be planned to hold one event"
        columns = {
            path: np.where(hot, 0, each).astype(each.dtype) if isinstance(self._fields[path], Named) else each
            for path, each in content(self._declaration.fields, self._seed, draws).items()
        }
        if sure.any():
            for path, column in self._in_cells(draws[sure]).items():
                columns[path][sure] = column
        return columns

    def counts(self, content: Columns) -> Mask:
        placed = self._placed(content)
        return np.isin(np.arange(_length(content)), placed.column(EVENT).to_numpy())

    def _placed(self, content: Columns) -> pa.Table:
        """Events of this content, all at one time, and their cells."""
        numbers = np.arange(_length(content))
        columns = {**content, TIME: np.full(len(numbers), NOMINAL_MS)}
        events = relation(self._declaration, self._seed, columns, numbers)
        return Oracle(self._declaration.question, self._tables).cells(events)

    def mark(self, mark: Mark) -> Mapping[str, int]:
        """In a cell of its key's texts, as far as some of many events lie in one."""
        tried = content(self._declaration.fields, self._seed, Lane.of(self._seed, "mark", mark.id).at(np.arange(MARKS)))
        groups = self._declaration.groups(self._seed)
        wanted = mark.campaign % len(groups)
        for name, text in zip(self._declaration.question.groups, groups[wanted], strict=True):
            for path, field in self._fields.items():
                if path.rpartition(".")[2] == name and isinstance(field, Named):
                    tried[path][:] = names(field, self._seed, path).index(text)
        placed = self._placed(tried)
        rows = placed.column(EVENT).to_numpy()
        right = rows[self._declaration.question.numbered(placed, groups) == wanted]
        row = int(min(right, default=min(rows, default=0)))
        return {path: int(column[row]) for path, column in tried.items()}

    def write(self, events: Planned, epoch_ms: int) -> Values:
        written = self._records.write({**events.content, self._time: events.event_time_rel_ms + epoch_ms})
        values: list[bytes | None] = [*written]
        for row in np.flatnonzero(events.poison):
            values[row] = self._records.poison(self._records.poisons[events.poison[row] - 1], written[row])
        return Values.of(values)

    def read(self, values: Values, ids: Ints) -> Columns:  # noqa: ARG002  (no field repeats them)
        rows, found = self._records.read([*values])
        kind = np.full(len(values), NO_EVENT, dtype=np.int8)
        kind[rows] = COUNTS
        columns: dict[str, NDArray[Any]] = {"kind": kind, TIME: np.full(len(values), NOTHING, dtype=np.int64)}
        columns |= {path: np.full(len(values), NOTHING, dtype=np.int64) for path in self.content}
        for path, column in found.items():
            columns[TIME if path == self._time else path][rows] = column
        return columns

    def say(self, content: Columns, row: int) -> str:
        """By what names its cells, where its fields do."""
        named = [path for path in self.content if isinstance(self._fields[path], Named)]
        keys = [path for path in named if path.rpartition(".")[2] in self._declaration.question.groups]
        shown = keys or named[:1] or self.content[:1]
        return ", ".join(f"{path} {self._arrow.flat(path, content[path][row : row + 1])[0].as_py()}" for path in shown)

    @cached_property
    def _tables(self) -> dict[str, pa.Table]:
        return self._declaration.relations(self._seed)

    def _in_cells(self, draws: Draws) -> Columns:
        """Events that lie in a cell, one for each draw, if there is one among many."""
        lanes = (Lane.of(self._seed, "sure", number) for number in range(TRIES))
        tried = np.stack([lane.at(draws.view(np.int64)) for lane in lanes], axis=1).ravel()
        drawn = content(self._declaration.fields, self._seed, tried)
        first = np.argmax(self.counts(drawn).reshape(-1, TRIES), axis=1)
        return {path: column[np.arange(len(draws)) * TRIES + first] for path, column in drawn.items()}


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))


def relation(declaration: Declaration, seed: int, columns: Columns, ids: Ints) -> pa.Table:
    """Columns of a tape or a log as the relation `events`."""
    own = {path: columns[TIME if isinstance(field, Time) else path] for path, field in leaves(declaration.fields)}
    table = Arrow(declaration.fields, seed).table(own)
    return table.append_column(EVENT, pa.array(np.arange(len(ids)))).append_column(EVENT_ID, pa.array(ids))
