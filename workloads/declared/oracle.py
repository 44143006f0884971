"""The right answer as SQL: one query maps events to cells, and one folds cells to values.

`cells` reads the relation `events`: the declared fields, `event` (a unique number for each record), and `event_id`
(from the record's key; an event that is sent twice has the same id twice). It returns a row for each event and cell:
`event`, the keys of the cell, `closes` (when it is complete; NULL: never, thus nothing is late for it), and whatever
the fold needs. If cells merge, as sessions do, cells with equal keys that overlap or touch become one, from its first
`opens` on.

`fold` reads the relation `cells`, which has those rows. It returns a row for each cell: its keys and its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harness.util.texts import many
from harness.util.toml_reader import MistakeError
from workloads.declared.sandbox import DEADLINE_S, GIVEN, MEMORY_MIB, Sandbox

EVENTS, CELLS = "events", "cells"  # relations
EVENT, EVENT_ID, OPENS, CLOSES = "event", "event_id", "opens", "closes"
COUNT, SUM, MONOTONE, PER_EVENT, MATCH = "count", "sum", "monotone", "per event", "match"
RANKED = "ranked"
# What each kind of value is, which decides what a wrong one can show; in Markdown.
KINDS: Mapping[str, str] = {
    COUNT: "the number of rows of the cell, so a surplus is a number of events",
    SUM: "a sum of numbers that may be negative, so it may fall during the run",
    MONOTONE: "never less for more events, and at least 1 in each cell: a distinct count or a maximum",
    PER_EVENT: f"one value for each event, whose cell is named by `{EVENT_ID}`",
    RANKED: "a place among others, or the number that it is given for; the fold has no row for what has no place",
    MATCH: "1 for a match, which several events make and one of them names; the fold has no row where there is none",
}
CELLS_SQL, FOLD_SQL = "[oracle] cells", "[oracle] fold"
WHOLE = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
)


@dataclass(frozen=True)
class Question:
    """The question of a declaration."""

    cells: str
    fold: str
    keys: tuple[str, ...]  # columns of texts, and at most one whole number: OPENS or EVENT_ID
    values: Mapping[str, str]  # column -> one of KINDS
    merge: bool = False
    step_ms: int = 1  # if all events move by this, all cells move by it, and nothing else changes

    @property
    def groups(self) -> tuple[str, ...]:
        """The keys that are texts."""
        return tuple(key for key in self.keys if key not in (OPENS, EVENT_ID))

    @property
    def number(self) -> str:
        """The key that is a whole number; "" if there is none."""
        return next((key for key in self.keys if key in (OPENS, EVENT_ID)), "")

    def numbered(self, rows: pa.Table, groups: Sequence[tuple[str, ...]]) -> NDArray[np.int64]:
        """Return the index in `groups` of each row's texts. Raises MistakeError for texts that are not in it."""
        if not self.groups:
            return np.zeros(len(rows), dtype=np.int64)
        keys = [pc.cast(rows.column(name).combine_chunks(), pa.string()) for name in self.groups]
        texts = pc.binary_join_element_wise(*keys, "\0")
        numbers = pc.index_in(texts, pa.array("\0".join(group) for group in groups))
        if numbers.null_count:
            at = int(np.flatnonzero(np.asarray(numbers.is_null()))[0])
            raise MistakeError(
                f"{FOLD_SQL} gives the key {_row(rows.slice(at, 1).select(list(self.groups)))}, which is none of the "
                f"{len(groups):,} that the fields can make; list those that SQL makes up in [oracle.domains]."
            )
        return np.asarray(numbers).astype(np.int64)


@dataclass(frozen=True)
class Limits:
    threads: int = 1
    deadline_s: float = DEADLINE_S
    memory_mib: int = MEMORY_MIB


class Oracle:
    """Answers a question about any events. Each query gets its own connection, so that none affects the next."""

    def __init__(
        self, question: Question, tables: Mapping[str, pa.Table] | None = None, limits: Limits = Limits()
    ) -> None:
        self.question, self._tables, self._limits = question, tables or {}, limits

    def cells(self, events: pa.Table) -> pa.Table:
        """Return a row for each event and cell, as the query returns them, before any merge."""
        with self._sandbox({EVENTS: events, **self._tables}) as sandbox:
            return self._placed(sandbox, len(events))

    def placed(self, events: pa.Table) -> NDArray[np.int64]:
        """Return the numbers of the events that have a cell, without a row for each pair of them."""
        with self._sandbox({EVENTS: events, **self._tables}) as sandbox:
            select, types = self._cells(sandbox)
            self._check_cells(types)
            rows = sandbox.rows(f"SELECT DISTINCT {EVENT} FROM {select} ORDER BY {EVENT}", CELLS_SQL)
            return np.asarray(rows.column(EVENT).to_numpy(), dtype=np.int64)

    def fold(self, cells: pa.Table) -> pa.Table:
        """Return the values of some or all rows of `cells`."""
        with self._sandbox({CELLS: cells}) as sandbox:
            return self._folded(sandbox)

    def answer(self, events: pa.Table) -> pa.Table:
        """Return the values of all events with one statement, which does not materialize the cells."""
        with self._sandbox({EVENTS: events, **self._tables}) as sandbox:
            select, types = self._cells(sandbox)
            self._check_cells(types)
            sandbox.do(f"CREATE TEMP VIEW {GIVEN}{CELLS} AS SELECT * FROM {select}", CELLS_SQL)
            return self._folded(sandbox)

    def _cells(self, sandbox: Sandbox) -> tuple[str, dict[str, str]]:
        """The query with its relations, and the types of its columns."""
        select = sandbox.reading(sandbox.select(self.question.cells, CELLS_SQL), (EVENTS, *self._tables))
        return select, sandbox.types(select, CELLS_SQL)

    def _sandbox(self, relations: Mapping[str, pa.Table]) -> Sandbox:
        limits = self._limits
        return Sandbox(relations, threads=limits.threads, deadline_s=limits.deadline_s, memory_mib=limits.memory_mib)

    def _placed(self, sandbox: Sandbox, events: int) -> pa.Table:
        select, types = self._cells(sandbox)
        self._check_cells(types)
        columns = ", ".join(_cast(name, kind) for name, kind in types.items())
        sandbox.do(f"CREATE TEMP TABLE placed AS SELECT {columns} FROM {select}", CELLS_SQL)
        placed = sandbox.rows("SELECT * FROM placed", CELLS_SQL)
        self._check_rows(sandbox, placed, events)
        return placed

    def _check_cells(self, types: Mapping[str, str]) -> None:
        wanted = (EVENT, *self.question.keys, CLOSES, *((OPENS,) if self.question.merge else ()))
        if missing := [name for name in dict.fromkeys(wanted) if name not in types]:
            raise MistakeError(
                f"{CELLS_SQL} gives no column {' and none '.join(missing)}; it gives {', '.join(types)}. Expected are "
                f"{', '.join(dict.fromkeys(wanted))}, and whatever the fold needs."
            )
        for name in dict.fromkeys((EVENT, *self.question.keys)):
            _check_key(CELLS_SQL, name, types[name])
        for name in (OPENS, CLOSES):
            if name in types and types[name] not in WHOLE | {"NULL"}:
                raise MistakeError(
                    f"{CELLS_SQL} gives {name} as {types[name]}; milliseconds since 1970 as a BIGINT are expected."
                )

    def _check_rows(self, sandbox: Sandbox, placed: pa.Table, events: int) -> None:
        """Checks for what types can't show: duplicate rows, NULL in keys, cells that close at two times."""
        question = self.question
        never_null = (EVENT, *question.keys, *((OPENS, CLOSES) if question.merge else ()))
        _check_nulls(CELLS_SQL, placed, never_null)
        numbers = placed.column(EVENT).to_numpy()
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < events):
            raise MistakeError(f"{CELLS_SQL} gives an event {EVENT} that `events` does not hold; select its own.")
        keys = ", ".join(map(_quoted, dict.fromkeys((EVENT, *question.keys))))
        twice = sandbox.rows(f"SELECT {keys} FROM placed GROUP BY {keys} HAVING count(*) > 1 LIMIT 1", CELLS_SQL)
        if len(twice):
            raise MistakeError(
                f"{CELLS_SQL} gives a row twice: {_row(twice)}. An event belongs to a cell once; look for a join that "
                "finds more than one row."
            )
        if not question.merge:
            keys = ", ".join(map(_quoted, question.keys))
            split = sandbox.rows(
                f"SELECT {keys}, min({CLOSES}) AS one, max({CLOSES}) AS other FROM placed GROUP BY {keys} "
                f"HAVING min({CLOSES}) <> max({CLOSES}) OR count({CLOSES}) NOT IN (0, count(*)) LIMIT 1",
                CELLS_SQL,
            )
            if len(split):
                raise two_ends(_row(split))
        if OPENS in placed.column_names:
            self._refuse_closed_before(sandbox)

    def _refuse_closed_before(self, sandbox: Sandbox) -> None:
        """No event could be in time for such a cell."""
        keys = ", ".join(map(_quoted, dict.fromkeys((*self.question.keys, OPENS, CLOSES))))
        back = sandbox.rows(f"SELECT {keys} FROM placed WHERE {CLOSES} <= {OPENS} LIMIT 1", CELLS_SQL)
        if len(back):
            raise MistakeError(f"{CELLS_SQL} has a cell that {CLOSES} before it {OPENS}: {_row(back)}.")

    def _folded(self, sandbox: Sandbox) -> pa.Table:
        sandbox.do(f"CREATE TEMP VIEW {CELLS} AS {self._merged()}", FOLD_SQL)
        select = sandbox.select(self.question.fold, FOLD_SQL)
        types = sandbox.types(select, FOLD_SQL)
        self._check_fold(types)
        keys = [_cast(name, types[name]) for name in self.question.keys]
        values = [_cast(name, types[name]) for name in self.question.values]
        order = ", ".join(map(_quoted, self.question.keys))
        folded = sandbox.rows(f"SELECT {', '.join(keys + values)} FROM {select} ORDER BY {order}", FOLD_SQL)
        self._check_folded(folded)
        return folded

    def _merged(self) -> str:
        """Cells of equal keys that overlap or touch become one, from the first opening to the last close."""
        if not self.question.merge:
            return f"SELECT * FROM {GIVEN}{CELLS}"
        apart = "".join(f"{_quoted(key)}, " for key in self.question.groups)
        by = f"PARTITION BY {apart[:-2]} " if apart else ""
        before = f"{by}ORDER BY {OPENS}, {CLOSES} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        up_to = f"{by}ORDER BY {OPENS}, {CLOSES} RANGE UNBOUNDED PRECEDING"  # equal rows together
        # A space in our names prevents a collision with fields.
        return f"""
            WITH begun AS (
                SELECT *, coalesce({OPENS} > max({CLOSES}) OVER ({before}), true)::INTEGER AS "cell begins"
                FROM {GIVEN}{CELLS}
            ), numbered AS (
                SELECT *, sum("cell begins") OVER ({up_to}) AS "cell number" FROM begun
            )
            SELECT * EXCLUDE ("cell begins", "cell number")
                REPLACE (min({OPENS}) OVER whole AS {OPENS}, max({CLOSES}) OVER whole AS {CLOSES})
            FROM numbered WINDOW whole AS (PARTITION BY {apart}"cell number")
        """

    def _check_fold(self, types: Mapping[str, str]) -> None:
        wanted = (*self.question.keys, *self.question.values)
        if set(wanted) != set(types):
            raise MistakeError(
                f"{FOLD_SQL} gives the columns {', '.join(types)}; expected are the keys and the values, "
                f"{', '.join(wanted)}, and no others."
            )
        for name in self.question.keys:
            _check_key(FOLD_SQL, name, types[name])
        for name in self.question.values:
            _check_value(name, types[name])

    def _check_folded(self, folded: pa.Table) -> None:
        values = self.question.values
        _check_nulls(FOLD_SQL, folded, (name for name in folded.column_names if values.get(name) != PER_EVENT))
        keys = folded.select(list(self.question.keys))
        if len(keys) > 1:  # sorted by keys: equal ones are adjacent
            same = np.ones(len(keys) - 1, dtype=np.bool_)
            for column in keys.columns:
                whole = column.combine_chunks()
                same &= np.asarray(pc.equal(whole[1:], whole[:-1]))
            if same.any():
                at = int(np.flatnonzero(same)[0])
                raise MistakeError(
                    f"{FOLD_SQL} gives the cell {_row(keys.slice(at, 1))} twice; group by all keys, and by nothing "
                    "else."
                )


def two_ends(cell: str) -> MistakeError:
    return MistakeError(
        f"{CELLS_SQL} closes one cell at two times: {cell}. Write `merge = true` if cells such as sessions are to "
        "merge, or make the time a key."
    )


def answered_twice(
    question: Question, tables: Mapping[str, pa.Table], events: pa.Table, time: str, limits: Limits = Limits()
) -> pa.Table:
    """Return the answer if it is deterministic: it must be the same with two threads and with all events one step
    later, in another order and with other numbers. Otherwise neither answer would be right. `time` is the path of the
    events' time.
    """
    one = Oracle(question, tables, replace(limits, threads=1)).answer(events)
    other = Oracle(question, tables, replace(limits, threads=2)).answer(_moved(events, time, question.step_ms))
    if question.number == OPENS:
        at = other.column_names.index(OPENS)
        other = other.set_column(at, OPENS, pc.subtract(other.column(OPENS), question.step_ms))
    if one.equals(other):
        _check_values(question, one)
        return one
    raise MistakeError(f"{FOLD_SQL} gives two answers to the same events: {_difference(one, other)}")


def _check_values(question: Question, answer: pa.Table) -> None:
    """A missing value counts as 0, thus a monotone value must not be less than 1."""
    for of, is_wrong, why in (
        (
            MONOTONE,
            pc.less,
            "a monotone value is 1 or more wherever there is anything, since it grows from nothing. Add something to "
            "it, as of max(celsius) + 100, here and in the job",
        ),
        (MATCH, pc.not_equal, "a match is there once: 1, and no row without one"),
    ):
        for name in (name for name, kind in question.values.items() if kind == of):
            wrong = answer.filter(is_wrong(answer.column(name), 1))
            if len(wrong):
                cell, value = _row(wrong.select(list(question.keys))), wrong.column(name)[0].as_py()
                raise MistakeError(f"{FOLD_SQL} gives the cell {cell} the {name} {value}; {why}.")


def _moved(events: pa.Table, time: str, step_ms: int) -> pa.Table:
    """The events in reverse order, renumbered, and one step later."""
    backwards = events.take(np.arange(len(events))[::-1])
    columns = {name: backwards.column(name).combine_chunks() for name in backwards.column_names}
    columns[EVENT] = pa.array(np.arange(len(events)))
    first, *rest = time.split(".")
    columns[first] = _later(columns[first], rest, step_ms)
    return pa.table(columns)


def _later(column: pa.Array, path: list[str], step_ms: int) -> pa.Array:
    if not path:
        return pc.add(column, step_ms)
    names = [field.name for field in column.type]
    inner = [
        _later(each, path[1:], step_ms) if name == path[0] else each
        for name, each in zip(names, column.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(inner, names=names)


def _difference(one: pa.Table, other: pa.Table) -> str:
    """The first cell that differs."""
    ones, others = ({tuple(row.items()) for row in table.to_pylist()} for table in (one, other))
    here, there = (_said(min(some, key=str)) if some else "nothing" for some in (ones - others, others - ones))
    return (
        f"{here} with one thread, and {there} with two and the same events `step_ms` later in another order. Functions "
        "such as random(), now(), first() and any_value() do that, an order that leaves ties, and a `step_ms` that is "
        "no multiple of the windows' own."
    )


def _check_key(what: str, name: str, kind: str) -> None:
    is_number = name in (EVENT, EVENT_ID, OPENS)
    if kind in WHOLE if is_number else kind == "VARCHAR" or kind.startswith("ENUM"):
        return
    allowed = "a whole number" if is_number else "a text"
    cast = "BIGINT" if is_number else "VARCHAR"
    raise MistakeError(f"{what} gives the key {name} as {kind}; {allowed} is expected, as of CAST(x AS {cast}).")


def _check_value(name: str, kind: str) -> None:
    if kind in WHOLE:
        return
    why = " Cast it to a BIGINT."
    if kind in ("DOUBLE", "FLOAT"):
        why = " A float depends on the order in which it is added up, so that no answer would be the right one."
    elif kind.startswith("DECIMAL"):
        why = " Give it in its smallest unit, as of CAST(100 * sum(amount) AS BIGINT), as the job under test has to."
    raise MistakeError(f"{FOLD_SQL} gives {name} as {kind}; a whole number is expected.{why}")


def _check_nulls(what: str, table: pa.Table, names: Any) -> None:
    for name in names:
        if nulls := table.column(name).null_count:
            raise MistakeError(
                f"{what} gives NULL as {name} in {nulls:,} of {many(len(table), 'row')}; leave such "
                "rows out, or give them a "
                "value with coalesce()."
            )


def _cast(name: str, kind: str) -> str:
    """Cast to a type that all our readers support. DuckDB reports numbers that do not fit into 64 bits."""
    if kind in WHOLE or (kind == "NULL" and name in (OPENS, CLOSES)):
        return f"CAST({_quoted(name)} AS BIGINT) AS {_quoted(name)}"
    return f"CAST({_quoted(name)} AS VARCHAR) AS {_quoted(name)}" if kind.startswith("ENUM") else _quoted(name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _row(table: pa.Table) -> str:
    return _said(table.to_pylist()[0].items())


def _said(row: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row)
