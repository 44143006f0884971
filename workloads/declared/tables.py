"""Tables in Redis or Kafka that exist before an engine starts. The engine and the oracle join events with them.

[tables.merchants]
each = "merchant"                                  # a row for each value that this field of the event can have
columns = { country = { kind = "choice", values = ["de", "fr"] } }
redis = { key = "merchant:{merchant}", value = "{country}" }
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from harness.util.suggest import nearest
from harness.util.toml_key import TomlKey, read
from harness.util.toml_reader import MistakeError, expected, table, text
from workloads.declared import draws
from workloads.declared.arrow import Arrow
from workloads.declared.fields import NAME, Field, Fields, Named, Nested, Time, leaves, read_field

# Names of the oracle's own relations.
TAKEN = ("events", "cells")
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,60}")  # the run's name is put before it, and Kafka allows 249 characters
_PLACE = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class InRedis:
    """A string for each row, or a field of a hash if `field` is given."""

    key: str
    value: str
    field: str = ""


@dataclass(frozen=True)
class InKafka:
    """A JSON object for each row, in the order of the rows. The record's key is the first column."""

    topic: str


@dataclass(frozen=True)
class Table:
    name: str
    each: str  # path of a field of the event
    columns: Fields  # without the first one
    place: InRedis | InKafka

    @property
    def first(self) -> str:
        """The name of the column with the values of `each`."""
        return self.each.rpartition(".")[2]

    def rows(self, fields: Fields, seed: int) -> pa.Table:
        """Return the rows, which are the same for every run of a seed."""
        field = dict(leaves(fields))[self.each]
        assert isinstance(field, Named)
        values = draws.names(field, seed, self.each)
        numbers = np.arange(len(values), dtype=np.uint64)
        within = f"tables.{self.name}."
        drawn = {path: draws.column(field, seed, within + path, numbers) for path, field in leaves(self.columns)}
        return Arrow(self.columns, seed, within).table(drawn).add_column(0, self.first, pa.array(values))


def in_redis(place: InRedis, rows: pa.Table) -> Iterator[tuple[str, str, str]]:
    """Yield key, field and value of each row; the field is "" for a plain string."""
    for row in rows.to_pylist():
        told = {name: str(value) for name, value in row.items()}
        yield place.key.format(**told), place.field.format(**told), place.value.format(**told)


def in_kafka(rows: pa.Table) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of each record."""
    for row in rows.to_pylist():
        yield str(next(iter(row.values()))).encode(), json.dumps(row, default=str).encode()


def read_tables(fields: Fields, where: str, value: Any) -> tuple[Table, ...]:
    return tuple(_read(fields, f"{where}.{name}", name, each) for name, each in table(where, value).items())


def _read(fields: Fields, where: str, name: str, value: Any) -> Table:
    if not NAME.fullmatch(name) or name.lower() in TAKEN:
        raise MistakeError(
            f"[{where}] is no name for a table; expected are a letter, and then letters, digits and underscores, and "
            f"not {', '.join(TAKEN)}, which the oracle has."
        )
    found = read(value, KEYS, where)
    known = dict(leaves(fields))
    each = found["each"]
    if not isinstance(known.get(each), Named):
        able = [path for path, field in known.items() if isinstance(field, Named)]
        raise expected(
            f"{where}.each", each, f"a uuid, choice, zipf or text of the event ({', '.join(able)})", nearest(each, able)
        )
    columns = {
        name: _column(f"{where}.columns.{name}", name, field) for name, field in found.get("columns", {}).items()
    }
    names = (each.rpartition(".")[2], *columns)
    if len(set(names)) < len(names):
        raise MistakeError(f"[{where}] has two columns {names[0]!r}: the first one has the name of `each`.")
    if ("redis" in found) == ("topic" in found):
        raise MistakeError(f"[{where}] needs one place, `redis` or `topic`, where the engine finds it.")
    place = _in_redis(f"{where}.redis", found["redis"], names) if "redis" in found else _topic(where, found["topic"])
    return Table(name, each, columns, place)


def _column(where: str, name: str, value: Any) -> Field:
    if not NAME.fullmatch(name):
        raise MistakeError(f"[{where}] is no name; a letter, and then letters, digits and underscores are expected.")
    field = read_field(where, value)
    if isinstance(field, Time | Nested):
        raise MistakeError(f"[{where}] is a time or an object, which a table can't hold; the other kinds it can.")
    return field


def _in_redis(where: str, value: Mapping[str, Any], names: tuple[str, ...]) -> InRedis:
    found = InRedis(**read(value, REDIS_KEYS, where))
    for key, pattern in (("key", found.key), ("value", found.value), ("field", found.field)):
        used = _PLACE.findall(pattern)
        for name in used:
            if name not in names:
                near = nearest(name, names)
                raise expected(f"{where}.{key}", pattern, f"no column in braces but {', '.join(names)}", near)
        if "{" in _PLACE.sub("", pattern) or "}" in _PLACE.sub("", pattern):
            raise expected(f"{where}.{key}", pattern, "no brace but those around the name of a column")
    if names[0] not in _PLACE.findall(found.key + found.field):
        raise MistakeError(f"[{where}] writes all rows to one key; `key` or `field` needs {{{names[0]}}}.")
    return found


def _topic(where: str, value: str) -> InKafka:
    if not TOPIC.fullmatch(value):
        raise expected(f"{where}.topic", value, "a name of at most 60 letters, digits, dots, dashes and underscores")
    return InKafka(value)


KEYS: Mapping[str, TomlKey] = {
    "each": TomlKey(
        text,
        "The field of the event whose values are the first column: a row for each value.",
        takes="the path of a field of the kind `uuid`, `choice`, `zipf` or `text`",
        required=True,
        example='each = "shop"',
    ),
    "columns": TomlKey(
        table,
        "Further columns, declared like fields. A time or an object is not allowed.",
        takes="a table of fields",
        example='columns = { region = { kind = "choice", values = ["north", "south"] } }',
    ),
    "redis": TomlKey(
        table,
        "The rows are in Redis. Either this or `topic` is needed.",
        takes="the table `redis`",
        example='redis = { key = "shop:{shop}", value = "{region}" }',
    ),
    "topic": TomlKey(
        text,
        "The rows are JSON objects in a topic with one partition. The first column is the key of the record. The name "
        "of the topic is that of the run config, a dot and this name.",
        takes="up to 60 letters, digits, dots, dashes and underscores",
        example='topic = "shops"',
    ),
}

REDIS_KEYS: Mapping[str, TomlKey] = {
    "key": TomlKey(
        text,
        "The key of a row.",
        takes="a text with columns in braces",
        required=True,
        example='key = "shop:{shop}"',
    ),
    "value": TomlKey(
        text, "The value of a row.", takes="a text with columns in braces", required=True, example='value = "{region}"'
    ),
    "field": TomlKey(
        text,
        "The field of the row in a hash. Without it the row is a string.",
        takes="a text with columns in braces",
        example='field = "{shop}"',
    ),
}
