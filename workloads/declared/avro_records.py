"""Declared events as Avro, by fastavro: plain, or after the five bytes of a schema registry (a zero, and the id)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal as Exact
from io import BytesIO
from typing import Any

from numpy.typing import NDArray

from harness.util.suggest import nearest
from harness.util.toml_reader import MistakeError
from workloads.declared.arrow import Arrow
from workloads.declared.draws import Columns
from workloads.declared.fields import Choice, Decimal, Field, Fields, Integer, Nested, Time, leaves
from workloads.declared.records import Columnar, Events, iso8601, of_dict, parsed_each

NAMESPACE = "streamgauge"
MAGIC = b"\0"
PRECISION = 18
EXACT_IN_DOUBLES = 10**15  # a decimal of up to 15 digits is the shortest text of its double


class AvroRecords:
    """Writes and reads the events of one declaration."""

    def __init__(self, fields: Fields, seed: int, schema: Any, registry_id: int | None) -> None:
        import fastavro

        self._fastavro = fastavro
        self._fields = fields
        fitted = fitting(schema, fields)
        self._doubles = frozenset(_doubles(fitted, fields))
        self._schema = fastavro.parse_schema(fitted)
        self.schema = json.dumps(schema or schema_of(fields))
        self._arrow, self._columnar = Arrow(fields, seed), Columnar(fields, seed, self._getter)
        self._prefix = b"" if registry_id is None else MAGIC + registry_id.to_bytes(4, "big")

    @property
    def poisons(self) -> tuple[str, ...]:
        """A truncated record ends within the first field, so that no reader can count it."""
        return ("null-value", "empty", *(("no-magic",) if self._prefix else ()), "truncated")

    def say(self, record: bytes) -> str:
        return f"{json.dumps(self._parse(record), default=str)} as {len(record)} bytes"

    def write(self, columns: Columns) -> list[bytes]:
        values = {path: self._values(path, field, columns[path]) for path, field in leaves(self._fields)}
        return [self._record(_nested(self._fields, values, row)) for row in range(len(next(iter(columns.values()))))]

    def poison(self, kind: str, value: bytes) -> bytes | None:
        start = len(self._prefix)
        return {"null-value": None, "empty": b"", "no-magic": b"\1" + value[1:], "truncated": value[: start + 1]}[kind]

    def read(self, values: Sequence[bytes | None]) -> Events:
        errors = (EOFError, ValueError, TypeError, KeyError, IndexError, OverflowError)
        return self._columnar.events(*parsed_each(values, self._parse, errors))

    def _record(self, event: Mapping[str, Any]) -> bytes:
        out = BytesIO()
        out.write(self._prefix)
        self._fastavro.schemaless_writer(out, self._schema, event)
        return out.getvalue()

    def _parse(self, value: bytes) -> Any:
        if not value.startswith(self._prefix):
            raise ValueError("it begins with another prefix")
        rest = BytesIO(value)
        rest.seek(len(self._prefix))
        event = self._fastavro.schemaless_reader(rest, self._schema, None)
        if rest.tell() != len(value):
            raise ValueError("there is more behind it")
        return event

    def _values(self, path: str, field: Field, column: NDArray[Any]) -> list[Any]:
        if path in self._doubles and isinstance(field, Decimal):
            return list((column / 10.0**field.digits).tolist())
        is_text = isinstance(field, Time) and field.form == "iso8601"
        values: list[Any] = (iso8601(column) if is_text else self._arrow.flat(path, column)).to_pylist()
        return values

    def _getter(self, path: str) -> Callable[[Any], Any]:
        """A double is read as its shortest decimal, which is the one that was written."""
        get = of_dict(path)
        return (lambda event: Exact(repr(get(event)))) if path in self._doubles else get


def _nested(fields: Fields, values: Mapping[str, list[Any]], row: int, path: str = "") -> dict[str, Any]:
    return {
        name: _nested(field.fields, values, row, f"{path}{name}.")
        if isinstance(field, Nested)
        else values[path + name][row]
        for name, field in fields.items()
    }


def schema_of(fields: Fields, name: str = "Event") -> dict[str, Any]:
    """Derive the schema from the fields, for a declaration without one."""
    inner = [{"name": each, "type": _type_of(each, field)} for each, field in fields.items()]
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": inner}


def _type_of(name: str, field: Field) -> Any:
    match field:
        case Nested():
            return schema_of(field.fields, name)
        case Integer():
            return "long"
        case Time(form="ms"):
            return {"type": "long", "logicalType": "timestamp-millis"}
        case Decimal():
            return {"type": "bytes", "logicalType": "decimal", "precision": PRECISION, "scale": field.digits}
    return "string"


def fitting(schema: Any, fields: Fields) -> Any:
    """Return the schema with plain types, or raise MistakeError if it can't hold events of these fields. Logical types
    of times and uuids are dropped, because they would only be converted back and forth.
    """
    import fastavro

    if schema is None:
        schema = schema_of(fields)
    try:
        fastavro.parse_schema(schema)
    except Exception as error:  # noqa: BLE001 - a user's schema may raise anything
        raise MistakeError(f"[event] schema is no Avro schema: {type(error).__name__}: {error}.") from None
    return _fitted(schema, fields, "the schema")


def _doubles(schema: Any, fields: Fields, path: str = "") -> Iterator[str]:
    """Decimals that the schema stores as doubles."""
    types = {each["name"]: each["type"] for each in schema["fields"]}
    for name, field in fields.items():
        branches = types[name] if isinstance(types[name], list) else [types[name]]
        if isinstance(field, Nested):
            yield from _doubles(next(each for each in branches if each != "null"), field.fields, f"{path}{name}.")
        elif "double" in branches:
            yield path + name


def _fitted(schema: Any, fields: Fields, where: str) -> Any:
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise MistakeError(f"[event] schema: {where} is {_said(schema)}; a record of the event's fields is expected.")
    there = {each["name"]: each for each in schema["fields"]}
    for name in fields:
        if name not in there:
            raise MistakeError(
                f"[event] schema has no field {name!r} in {where}; it has {', '.join(there)}{nearest(name, there)}. "
                "Name each field there that [event.fields] has."
            )
    for name, each in there.items():
        if name not in fields and "default" not in each:
            raise MistakeError(
                f"[event] schema has a field {name!r} in {where} without a default, and [event.fields] does not; "
                "declare it, or give it a default."
            )
    inner = [
        {**each, "type": _fitted_type(each["type"], fields[name], name)} if name in fields else each
        for name, each in there.items()
    ]
    return {**schema, "fields": inner}


def _fitted_type(schema: Any, field: Field, name: str) -> Any:
    """The type of one field, with the null of a union. Only the used branch has to fit."""
    branches = schema if isinstance(schema, list) else [schema]
    if isinstance(field, Nested):
        records = [each for each in branches if isinstance(each, dict) and each.get("type") == "record"]
        fitted = [_fitted(each, field.fields, f"{name}") for each in records[:1]]
    else:
        fitted = [_plain(each) for each in branches if _fits(each, field)][:1]
    if not fitted:
        raise MistakeError(
            f"[event] schema gives {name} as {_said(schema)}, and the field is a {type(field).__name__.lower()}; "
            f"{_wanted(field)} is expected."
        )
    return ["null" if each == "null" else fitted[0] for each in branches] if isinstance(schema, list) else fitted[0]


def _plain(schema: Any) -> Any:
    """The type without a logical type that would convert a number to a datetime or a text to a UUID."""
    if isinstance(schema, dict) and schema.get("logicalType") in ("timestamp-millis", "uuid"):
        return schema["type"]
    return schema


def _fits(schema: Any, field: Field) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else schema
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    match field:
        case Integer():
            return logical is None and (
                kind == "long" or (kind == "int" and -(1 << 31) <= field.low <= field.high < 1 << 31)
            )
        case Time(form="ms"):
            return kind == "long" and logical in (None, "timestamp-millis")
        case Decimal():
            digits = len(str(largest := max(abs(field.low), abs(field.high))))
            same = logical == "decimal" and schema.get("scale", 0) == field.digits
            exact = kind == "double" and largest <= EXACT_IN_DOUBLES
            return exact or (kind == "bytes" and same and schema.get("precision", 0) >= digits)
        case Choice() if kind == "enum":
            return set(field.values) <= set(schema["symbols"])
    return kind == "string" and logical in (None, "uuid")


def _wanted(field: Field) -> str:
    match field:
        case Nested():
            return "a record"
        case Integer():
            return "a long, or an int if its range fits,"
        case Time(form="ms"):
            return "a long, with or without timestamp-millis,"
        case Decimal():
            return f'a double, or bytes with the logical type "decimal", scale {field.digits} and enough precision,'
        case Choice():
            return "a string, or an enum with all of its values,"
    return "a string"


def _said(schema: Any) -> str:
    if isinstance(schema, dict):
        return " ".join(str(schema[key]) for key in ("type", "logicalType") if key in schema)
    return " or ".join(map(_said, schema)) if isinstance(schema, list) else repr(schema)
