"""What somebody can change in the files of a stored run: each field, column and line by one, removed, or doubled."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

REMOVED, DOUBLED = "removed", "doubled"
BY_ONE = {"one more": 1, "one less": -1}
WAYS = (*BY_ONE, REMOVED, DOUBLED)
Keys = tuple[Any, ...]


@dataclass(frozen=True)
class Edit:
    """One of them. `apply` gets the folder of a run."""

    file: str
    what: str
    apply: Callable[[Path], None]

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def drawn(run: Path, seed: int, count: int) -> list[Edit]:
    """Of all that this run has, so many from each kind of file."""
    draw = random.Random(seed)
    by_suffix: dict[str, list[Edit]] = {}
    for path in sorted(path for path in run.rglob("*") if path.suffix in EDITS and path.is_file()):
        by_suffix.setdefault(path.suffix, []).extend(EDITS[path.suffix](path, str(path.relative_to(run)), draw))
    share = -(-count // len(by_suffix))
    return [edit for edits in by_suffix.values() for edit in draw.sample(edits, min(share, len(edits)))]


def _of_json(path: Path, name: str, _: random.Random) -> Iterator[Edit]:
    for keys in _places(json.loads(path.read_bytes())):
        for way in WAYS:
            yield Edit(name, f"{'.'.join(map(str, keys))} {way}", partial(_edit_json, name, keys, way))


def _of_lines(path: Path, name: str, _: random.Random) -> Iterator[Edit]:
    for number, line in enumerate(path.read_bytes().splitlines()):
        for way in (REMOVED, DOUBLED):
            yield Edit(name, f"line {number} {way}", partial(_edit_lines, name, number, way))
        for keys in _places(json.loads(line)):
            for way in WAYS:
                what = f"line {number}, {'.'.join(map(str, keys))} {way}"
                yield Edit(name, what, partial(_edit_line, name, number, keys, way))


def _of_table(path: Path, name: str, draw: random.Random) -> Iterator[Edit]:
    table = pq.read_table(path)
    for column in table.column_names:
        for way in WAYS:
            yield Edit(name, f"column {column} {way}", partial(_edit_column, name, column, way))
    for row in draw.sample(range(table.num_rows), min(20, table.num_rows)):
        for way in (REMOVED, DOUBLED):
            yield Edit(name, f"row {row} {way}", partial(_edit_rows, name, row, way))
        for column in table.column_names:
            for way, by in BY_ONE.items():
                yield Edit(name, f"{column} of row {row} {way}", partial(_edit_cell, name, column, row, by))


EDITS: dict[str, Callable[[Path, str, random.Random], Iterator[Edit]]] = {
    ".json": _of_json,
    ".jsonl": _of_lines,
    ".parquet": _of_table,
}


def _places(value: Any, above: Keys = ()) -> Iterator[Keys]:
    """Of each value within, by its keys."""
    within: Sequence[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        within = [*value.items()]
    if isinstance(value, list):
        within = [*enumerate(value)]
    for key, each in within:
        yield (*above, key)
        yield from _places(each, (*above, key))


def _edited(value: Any, keys: Keys, way: str) -> Any:
    """The same value, but for what lies at these keys."""
    *above, last = keys
    holder = value
    for key in above:
        holder = holder[key]
    if way in BY_ONE:
        holder[last] = _other(holder[last], BY_ONE[way])
    elif way == REMOVED:
        del holder[last]
    elif isinstance(holder, list):
        holder.insert(last, holder[last])
    else:
        holder[last] = _twice(holder[last])
    return value


def _other(value: Any, by: int) -> Any:
    """Changed by one: a number, also one that is written as text; a letter; or what a list or a table holds."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + by
    if isinstance(value, str):
        if value.isdecimal():
            return str(int(value) + by)
        return f"{value[:-1]}{chr(ord(value[-1]) ^ 1)}" if value else "x"
    if isinstance(value, list):
        return [*value, 0]
    return 0 if value is None else {**value, "x": 0}


def _twice(value: Any) -> Any:
    """JSON has a key once, so that its value is doubled."""
    if isinstance(value, (bool, dict)) or value is None:
        return [value, value]
    return value * 2


def _edit_json(name: str, keys: Keys, way: str, run: Path) -> None:
    path = run / name
    path.write_text(json.dumps(_edited(json.loads(path.read_bytes()), keys, way)))


def _edit_lines(name: str, number: int, way: str, run: Path) -> None:
    lines = (run / name).read_bytes().splitlines(keepends=True)
    lines[number : number + 1] = [] if way == REMOVED else [lines[number]] * 2
    (run / name).write_bytes(b"".join(lines))


def _edit_line(name: str, number: int, keys: Keys, way: str, run: Path) -> None:
    lines = (run / name).read_bytes().splitlines(keepends=True)
    lines[number] = json.dumps(_edited(json.loads(lines[number]), keys, way)).encode() + b"\n"
    (run / name).write_bytes(b"".join(lines))


def _edit_column(name: str, column: str, way: str, run: Path) -> None:
    table = pq.read_table(run / name)
    if way == REMOVED:
        table = table.drop_columns(column)
    elif way == DOUBLED:
        table = table.append_column(f"{column} again", table.column(column))
    else:
        table = _with(table, column, [_other(value, BY_ONE[way]) for value in table.column(column).to_pylist()])
    pq.write_table(table, run / name)


def _edit_rows(name: str, row: int, way: str, run: Path) -> None:
    table = pq.read_table(run / name)
    parts = [table.slice(0, row + (way == DOUBLED)), table.slice(row + (way == REMOVED))]
    pq.write_table(pa.concat_tables(parts), run / name)


def _edit_cell(name: str, column: str, row: int, by: int, run: Path) -> None:
    table = pq.read_table(run / name)
    values = table.column(column).to_pylist()
    pq.write_table(_with(table, column, [*values[:row], _other(values[row], by), *values[row + 1 :]]), run / name)


def _with(table: pa.Table, column: str, values: list[Any]) -> pa.Table:
    return table.set_column(table.column_names.index(column), column, pa.array(values))
