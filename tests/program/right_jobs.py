"""A right job of any declared question, in the fake world: it has seen the declaration and nothing of the harness. It
reads what lies in Kafka by a reader of its own, and answers by the declared SQL over all events that have come, in a
DuckDB of its own. Sessions it finds by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal as Exact
from functools import cached_property
from io import BytesIO
from itertools import groupby
from typing import Any, NamedTuple

import duckdb
import fastavro
import numpy as np
import pyarrow as pa

from harness.engines import fake
from harness.engines.fake import FakeEngine, _Batch
from harness.engines.fake_memory import FakeStore, Tally
from harness.model import EngineManifest, RunSpec, SinkClaim
from harness.runner.world.fake import FakeWorld, _Record
from workloads.declared.arrow import kind_of
from workloads.declared.avro_records import schema_of
from workloads.declared.declaration import Declaration, unsealed
from workloads.declared.fields import Fields, Nested, Time, leaves
from workloads.declared.oracle import CLOSES, EVENT, EVENT_ID, OPENS
from workloads.registry import length_ms_of

KEEPS = replace(fake.SILENT, sinks=(SinkClaim("absolute", late="keep", guarantee="exactly-once"),))
DROPS = replace(fake.MANIFEST, sinks=fake.MANIFEST.sinks[:1])
FINAL = replace(fake.MANIFEST, sinks=(replace(fake.MANIFEST.sinks[0], final=True),))
MANIFESTS: Mapping[str, EngineManifest] = {"keeps": KEEPS, "drops": DROPS, "final": FINAL}
MACROS = (
    "CREATE MACRO tumbling(ms, size) AS ms - ((ms % size) + size) % size",
    "CREATE MACRO sliding(ms, size, step) AS range(tumbling(ms - size, step) + step, ms + 1, step)",
)
NEVER = 1 << 60


class Reader:
    """Records as a job reads them."""

    def __init__(self, declared: Declaration) -> None:
        self._fields, self._declared = declared.fields, declared
        self._schema = None if declared.format == "json" else fastavro.parse_schema(schema_of(declared.fields))
        self.types = pa.struct([pa.field(name, _type(field)) for name, field in declared.fields.items()])

    def read(self, record: bytes | None) -> dict[str, Any] | None:
        try:
            return self._converted(self._fields, self._parsed(record or b""))
        except (ValueError, EOFError, KeyError, IndexError, TypeError):
            return None

    def _parsed(self, record: bytes) -> Any:
        if self._schema is None:
            return json.loads(record, parse_float=Exact)
        skipped = 0 if self._declared.registry_id is None else 5
        if skipped and record[:1] != b"\0":
            raise ValueError(record)
        return fastavro.schemaless_reader(BytesIO(record[skipped:]), self._schema, None)

    def _converted(self, fields: Fields, event: Any) -> dict[str, Any]:
        return {name: self._value(field, event[name]) for name, field in fields.items()}

    def _value(self, field: Any, value: Any) -> Any:
        if isinstance(field, Nested):
            return self._converted(field.fields, value)
        if isinstance(value, datetime):
            return round(value.timestamp() * 1000)
        if isinstance(field, Time) and isinstance(value, str):
            return round(datetime.fromisoformat(value).timestamp() * 1000)
        if pa.types.is_decimal(kind_of(field)):
            return round(Exact(str(value)), field.digits)
        return value


def _type(field: Any) -> pa.DataType:
    if isinstance(field, Nested):
        return pa.struct([pa.field(name, _type(each)) for name, each in field.fields.items()])
    return kind_of(field)


class Wrong(NamedTuple):
    """A bug: one event too many or too few in this cell, whenever it is written."""

    key: str
    field: str
    surplus: int


class Memory(dict[tuple[str, int], Tally]):
    """Its answers, and the events of which they are, each with the watermark that it met."""

    events: tuple[tuple[bytes, dict[str, Any], int], ...] = ()


class RightJob(FakeEngine):
    """As the fake engine it works in batches, keeps its state with each, and drops by the watermark of its batch."""

    def __init__(self, spec: RunSpec, manifest: EngineManifest, wrong: Wrong | None, *where: Any) -> None:
        claim = manifest.sinks[0]
        super().__init__(*where, sink="absolute", window_ms=1, watermark_ms=spec.watermark_ms, manifest=manifest)
        self._declared = unsealed(spec.tape.declaration)
        self._reader, self._of, self._wrong = Reader(self._declared), claim, wrong
        self._length_ms = (length_ms_of(spec) or 0) if manifest.window_key == "end" else 0

    @cached_property
    def _sql(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(":memory:", config={"threads": "1"})
        for macro in MACROS:
            connection.execute(macro)
        return connection

    def _count(self, number: int) -> _Batch:
        before = self._planned.get(number - 1, {})
        spans = ((p, before.get(p, 0), end) for p, end in self._planned[number].items())
        records: list[Any] = [record for p, begin, end in spans for record in self._log[p][begin:end]]
        met_ms = self._watermarks[number]
        new = [(key, event, met_ms) for key, value in records if (event := self._reader.read(value)) is not None]
        state = Memory()
        state.events = (*getattr(self._state, "events", ()), *new)
        newest_ms = max([self._newest_ms, *map(self._time_of, (event for _, event, _ in new))])
        if new or self._of.final:
            state.update(self._answers(state.events, max(met_ms, self._next_watermark_ms)))
        else:
            state.update(self._state)
        return _Batch(dict(state), state, newest_ms)

    def _time_of(self, event: Any) -> int:
        path = next(path for path, field in leaves(self._declared.fields) if isinstance(field, Time))
        for name in path.split("."):
            event = event[name]
        return int(event)

    def _answers(
        self, events: Sequence[tuple[bytes, dict[str, Any], int]], over_ms: int
    ) -> Iterator[tuple[tuple[str, int], Tally]]:
        question = self._declared.question
        rows = self._in_time(self._cells(events), np.array([met_ms for *_, met_ms in events]))
        if question.merge:
            rows = _merged(rows, question.groups)
        if self._of.final:
            rows = rows.filter(pa.array(_closes_ms(rows) <= over_ms))
        for row in self._queried(question.fold, "cells", rows).to_pylist():
            texts = [row[name] for name in question.groups]
            field = row[question.number] + self._length_ms if question.number else 0
            for value in question.values:
                key = ":".join((value, *texts))
                hit = self._wrong is not None and (key, str(field)) == self._wrong[:2]
                yield (key, field), Tally(row[value] + (self._wrong.surplus if hit and self._wrong else 0))

    def _cells(self, events: Sequence[tuple[bytes, dict[str, Any], int]]) -> pa.Table:
        table = pa.Table.from_struct_array(pa.array([event for _, event, _ in events], self._reader.types))
        table = table.append_column(EVENT, pa.array(range(len(events)), pa.int64()))
        table = table.append_column(EVENT_ID, pa.array([int(key, 16) for key, *_ in events], pa.int64()))
        return self._queried(self._declared.question.cells, "events", table)

    def _queried(self, query: str, name: str, table: pa.Table) -> pa.Table:
        self._sql.register("given", table)
        return self._sql.sql(f"WITH {name} AS (FROM given) SELECT * FROM ({query})").to_arrow_table()

    def _in_time(self, rows: pa.Table, met_ms: Any) -> pa.Table:
        if self._of.late == "keep":
            return rows
        return rows.filter(pa.array(_closes_ms(rows) > met_ms[rows.column(EVENT).to_numpy()]))

    def _commit(self, number: int) -> None:
        if self._work is not None and number > self._committed:
            for key, field in {*self._state} - {*self._work.state}:  # a session that has become part of another
                if self._store.get(key, str(field)) is not None:
                    self._store.delete(key, str(field))
        super()._commit(number)


def _closes_ms(rows: pa.Table) -> Any:
    return rows.column(CLOSES).cast(pa.int64()).fill_null(NEVER).to_numpy()


def _merged(rows: pa.Table, groups: Sequence[str]) -> pa.Table:
    """Rows that overlap or touch have the first opening and the last close of them all."""

    def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in groups)

    merged: list[dict[str, Any]] = []
    for _, some in groupby(sorted(rows.to_pylist(), key=lambda row: (key_of(row), row[OPENS])), key_of):
        sessions: list[list[dict[str, Any]]] = []
        for row in some:
            if sessions and row[OPENS] <= max(each[CLOSES] for each in sessions[-1]):
                sessions[-1].append(row)
            else:
                sessions.append([row])
        for session in sessions:
            span = {OPENS: session[0][OPENS], CLOSES: max(row[CLOSES] for row in session)}
            merged += [{**row, **span} for row in session]
    return pa.Table.from_pylist(merged, rows.schema)


class Named(FakeStore):
    """What a reader of results makes of a job's own: windows are named by their ends there."""

    def __init__(self, own: FakeStore, length_ms: int) -> None:
        self._own, self._length_ms = own, length_ms

    @property
    def writes(self) -> int:  # type: ignore[override]
        return self._own.writes

    @property
    def lives_ms(self) -> dict[str, int]:  # type: ignore[override]
        return self._own.lives_ms

    @property
    def hashes(self) -> dict[str, dict[str, str]]:  # type: ignore[override]
        return {
            key: {str(int(field) - self._length_ms): value for field, value in fields.items() if field.isdecimal()}
            for key, fields in self._own.hashes.items()
        }


class QuestionWorld(FakeWorld):
    """The fake world with a right job in it, or a wrong one."""

    def __init__(self, *given: Any, wrong: Wrong | None = None) -> None:
        self._wrong = wrong
        super().__init__(*given)

    def _engine_of(self, manifest: EngineManifest, sink: str, misbehave: str, made: Any = RightJob) -> Any:
        own = self._redis
        if manifest.window_key == "end":
            self._redis = Named(own, length_ms_of(self._spec) or 0)
        return made(self._spec, manifest, self._wrong, self._engine_log, own, self._clock)

    def _as_records(self, messages: Sequence[Mapping[str, bytes | None]]) -> list[_Record]:
        pairs = [(message["key"] or b"", message["value"]) for message in messages]
        return [_Record(key, value, (key, value)) for key, value in pairs]  # type: ignore[arg-type]
