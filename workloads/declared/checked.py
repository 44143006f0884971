"""The check of a declared workload: sample events, the expected rows, and the limits of judging them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from harness.model import UsageError
from harness.util.texts import many, shown
from harness.util.toml_reader import MistakeError
from workloads.declared import declaration
from workloads.declared.answers import DeclaredOracle
from workloads.declared.codec import DeclaredCodec
from workloads.declared.declaration import Declaration
from workloads.declared.fields import leaves, time_path
from workloads.declared.judged import unjudged
from workloads.declared.oracle import CELLS_SQL, CLOSES, COUNT, FOLD_SQL, Limits, Oracle, Question, answered_twice
from workloads.declared.sample import SEED, sample
from workloads.declared.tables import InRedis, in_kafka, in_redis
from workloads.sentinels import why_unanswered

FIRST = 2  # first events and rows of tables to show
ROWS = 3
WIDTH = 80
LONGEST = 200  # most characters of a record
LIMITS = Limits(deadline_s=20.0)  # a minute of events takes far less


@dataclass(frozen=True)
class Checked:
    """The output of `streamgauge workload check`."""

    id: str
    asks: str
    format: str
    fields: int
    events: int
    schema: str  # needed to read records; "" for none
    examples: tuple[str, ...]  # records, or a description of binary ones
    tables: tuple[str, ...]
    placed: int  # pairs of an event and its cell
    groups: int  # combinations of the keys that are texts
    keys: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]  # all expected rows
    unjudged: tuple[str, ...]


def load(place: Path, *, shipped: bool = False) -> tuple[Declaration, Checked]:
    """Read and check the declaration of a folder, so that mistakes in its queries are reported before anything
    starts.
    """
    declared = declaration.load(place, shipped=shipped)
    try:
        return declared, _once(declared.sealed)
    except MistakeError as mistake:
        raise UsageError(f"The workload {declaration.file_in(place)}: {mistake}") from mistake


# Cached, because an experiment plans many runs of one declaration.
@lru_cache(maxsize=4)
def _once(sealed: str) -> Checked:
    return check(declaration.unsealed(sealed))


def check(declared: Declaration) -> Checked:
    """Run the oracle on sample events. Raises MistakeError for an oracle that can't judge."""
    columns, events = sample(declared)
    tables = declared.relations(SEED)
    cells = Oracle(declared.question, tables, LIMITS).cells(events)
    answer = answered_twice(declared.question, tables, events, time_path(declared.fields), LIMITS)
    _check_counts(declared.question, len(cells), answer)
    groups = declared.groups(SEED)
    declared.question.numbered(answer, groups)
    _refuse_equal_names(declared.question, groups)
    if why := why_unanswered(DeclaredOracle(declared, SEED), DeclaredCodec(declared, SEED)):
        raise MistakeError(why)
    format_ = declared.records(SEED)
    records = format_.write({path: column[:FIRST] for path, column in columns.items()})
    return Checked(
        id=declared.id,
        asks=declared.asks,
        format=_format(declared),
        fields=len([*leaves(declared.fields)]),
        events=len(events),
        schema=format_.schema,
        examples=tuple(map(format_.say, records)),
        tables=tuple(_tables(declared)),
        placed=len(cells),
        groups=len(groups),
        keys=declared.question.keys,
        rows=tuple(answer.to_pylist()),
        unjudged=tuple(unjudged(declared.question, closing=cells.column(CLOSES).null_count < len(cells))),
    )


def _check_counts(question: Question, placed: int, answer: pa.Table) -> None:
    """A count must include all events of each cell. A ranking, a filter or a count of distinct values includes
    fewer.
    """
    for name in (name for name, kind in question.values.items() if kind == COUNT):
        counted = pc.sum(answer.column(name)).as_py() or 0
        if counted != placed:
            raise MistakeError(
                f'{FOLD_SQL} gives {name}, which [oracle.values] calls a "count": on a sample of events the counts add '
                f"up to {counted:,}, and {CELLS_SQL} gives {placed:,} rows. A count is of every row of its cell, and "
                f'no cell is left out. Put a filter into {CELLS_SQL}. Write "monotone" for what can only grow, such as '
                'a number of different ones, and "ranked" for a place among others, such as the first n.'
            )


def _refuse_equal_names(question: Question, groups: Sequence[tuple[str, ...]]) -> None:
    """The results name a cell by its texts, joined by colons."""
    known: dict[str, tuple[str, ...]] = {}
    for texts in groups:
        if (other := known.setdefault(":".join(texts), texts)) != texts:
            raise MistakeError(
                f"Two cells would be called {':'.join(texts)!r} in the results: {', '.join(question.groups)} are "
                f"{other} for one and {texts} for the other. Choose texts without colons."
            )


def lines(checked: Checked) -> Iterator[str]:
    """Yield the lines for a terminal."""
    yield from _wrapped(f"{checked.id}: {checked.asks}", "")
    events = f"{checked.events:,} of one minute were tried: {many(checked.fields, 'field')}, {checked.format}, such as"
    yield from textwrap.wrap(f"  events   {events}", WIDTH, subsequent_indent=" " * 11)
    yield from _wrapped(shown(checked.examples[0], LONGEST), "    ")
    if checked.schema:
        yield "  schema   by which a job reads them; `--json` has it in one line"
        yield from _wrapped(checked.schema, "    ")
    for table in checked.tables:
        yield from textwrap.wrap(f"  table    {shown(table, LONGEST)}", WIDTH, subsequent_indent=" " * 11)
    cells = f"{many(len(checked.rows), 'row')} expected, of {checked.placed:,} pairs of event and cell; the first"
    yield f"  oracle   {cells}"
    yield from (f"    {line}" for line in _aligned(checked.rows[:ROWS]))
    yield "  not judged"
    for sentence in checked.unjudged:
        yield from _wrapped(sentence, "    ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent or "  ")


def _aligned(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        return
    table = [
        [*rows[0]],
        *([shown("NULL" if value is None else str(value), 36) for value in row.values()] for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()


def _format(declaration: Declaration) -> str:
    if declaration.registry_id is None:
        return declaration.format
    return f"{declaration.format} behind five bytes of schema {declaration.registry_id}"


def _tables(declaration: Declaration) -> Iterator[str]:
    for table in declaration.tables:
        rows = table.rows(declaration.fields, SEED)
        if isinstance(table.place, InRedis):
            key, field, value = next(in_redis(table.place, rows))
            yield f"{table.name}, {many(len(rows), 'row')} in Redis: {key}{f' {field}' if field else ''} -> {value}"
        else:
            (_, record), topic = next(in_kafka(rows)), f"{{topic}}.{table.place.topic}"
            yield f"{table.name}, {many(len(rows), 'row')} in the topic {topic}: {record.decode()}"
