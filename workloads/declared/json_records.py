"""Declared events as JSON: one object per record, with fields in the order of the declaration.

The writer joins constants and the texts of values as Arrow columns. The reader is msgspec with the expected type, and
shares no code with the writer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal as Exact
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from workloads.declared.arrow import decimals
from workloads.declared.draws import Columns, names
from workloads.declared.fields import Decimal, Field, Fields, Integer, Named, Nested, Time
from workloads.declared.records import Columnar, Events, iso8601, joined, of_struct, parsed_each


class JsonRecords:
    # No reader may count a poison, not even one that accepts parts of broken records: therefore a truncated record ends
    # within the name of the first field.
    poisons = ("null-value", "empty", "not-json", "truncated")
    schema = ""

    def __init__(self, fields: Fields, seed: int) -> None:
        self._fields, self._seed = fields, seed
        self._columnar = Columnar(fields, seed, of_struct)
        self._texts: dict[str, pa.Array] = {}  # JSON texts of the fields with a list of texts
        self._decoder = msgspec.json.Decoder(_shape("Event", fields))

    def say(self, record: bytes) -> str:
        return record.decode()

    def write(self, columns: Columns) -> list[bytes]:
        parts = joined(self._parts(self._fields, columns, ""))
        records: list[bytes] = pc.binary_join_element_wise(*parts, "").cast(pa.binary()).to_pylist()
        return records

    def poison(self, kind: str, value: bytes) -> bytes | None:
        return {"null-value": None, "empty": b"", "not-json": b"not an event", "truncated": value[:3]}[kind]

    def read(self, values: Sequence[bytes | None]) -> Events:
        errors = (msgspec.DecodeError, UnicodeDecodeError)
        return self._columnar.events(*parsed_each(values, self._decoder.decode, errors))

    def _parts(self, fields: Fields, columns: Columns, path: str) -> Iterator[str | pa.Array]:
        for number, (name, field) in enumerate(fields.items()):
            yield f"{', ' if number else '{'}{json.dumps(name)}: "
            if isinstance(field, Nested):
                yield from self._parts(field.fields, columns, f"{path}{name}.")
            else:
                yield from self._value(field, path + name, columns[path + name])
        yield "}"

    def _value(self, field: Field, path: str, column: NDArray[Any]) -> Iterator[str | pa.Array]:
        match field:
            case Decimal():
                yield decimals(column, field.digits).cast(pa.string())
            case Time(form="iso8601"):
                yield from ('"', iso8601(column), '"')
            case Integer() | Time():
                yield pa.array(column).cast(pa.string())
            case _:
                assert isinstance(field, Named)
                yield self._texts_of(field, path).take(pa.array(column))

    def _texts_of(self, field: Named, path: str) -> pa.Array:
        if path not in self._texts:
            self._texts[path] = pa.array(map(json.dumps, names(field, self._seed, path)))
        return self._texts[path]


def _shape(name: str, fields: Fields) -> type[msgspec.Struct]:
    return msgspec.defstruct(name, [(each, _type(each, field)) for each, field in fields.items()], gc=False)


def _type(name: str, field: Field) -> Any:
    match field:
        case Nested():
            return _shape(name, field.fields)
        case Integer() | Time(form="ms"):
            return int
        case Decimal():
            return Exact
    return str
