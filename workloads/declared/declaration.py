"""A declared workload: the `workload.toml` of a folder, read completely before anything starts.

Its authors do not know this program, thus each mistake gets a message with the file, the table, the key, the allowed
values and the nearest right word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.model import UsageError
from harness.util.suggest import home, is_file
from harness.util.toml_key import TomlKey, quoted, read
from harness.util.toml_reader import (
    MistakeError,
    OneOf,
    Reader,
    WholeNumber,
    expected,
    flag,
    parsed,
    table,
    text,
    text_of,
)
from workloads.declared import domains, oracle
from workloads.declared.avro_records import AvroRecords
from workloads.declared.fields import NAME, Fields, distinct, read_fields
from workloads.declared.json_records import JsonRecords
from workloads.declared.oracle import CLOSES, EVENT, EVENT_ID, OPENS, Question
from workloads.declared.records import Format
from workloads.declared.tables import Table, read_tables
from workloads.shipped import WORKLOADS

FILE = "workload.toml"
NEW = Path(__file__).with_name("new.toml")
ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
FORMATS = ("json", "avro")
MOST_STEP_MS = 60_000  # a run waits until a multiple of it to begin
Texts = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Declaration:
    """The content of a `workload.toml`."""

    id: str
    asks: str
    text: str  # text of the file
    format: str
    schema: Any  # Avro schema as JSON; None: derived from the fields
    registry_id: int | None  # id of the schema, if records begin with it
    fields: Fields
    tables: tuple[Table, ...]
    question: Question
    domains: Texts  # texts of keys that are no fields

    @property
    def sealed(self) -> str:
        """The whole declaration as one text."""
        return json.dumps({"text": self.text, "schema": self.schema})

    def records(self, seed: int) -> Format:
        """Return the format of the events."""
        if self.format == "json":
            return JsonRecords(self.fields, seed)
        return AvroRecords(self.fields, seed, self.schema, self.registry_id)

    def groups(self, seed: int) -> list[tuple[str, ...]]:
        """List all combinations of the keys that are texts."""
        return domains.combinations(self.question, self.domains, self.fields, self.tables, seed)

    def relations(self, seed: int) -> dict[str, pa.Table]:
        """Return the tables that the oracle can read besides the events."""
        return {each.name: each.rows(self.fields, seed) for each in self.tables}


def load(place: Path, *, shipped: bool = False) -> Declaration:
    """Read the declaration of a folder, or from the path of its file."""
    path = file_in(place)
    if not is_file(path):
        raise UsageError(
            f"There is no {FILE} in {place}. A workload of your own is a folder with one: "
            "`streamgauge workload new DIR` writes it."
        )
    try:
        return _declaration(text_of(path), partial(_schema_in, path.resolve().parent), shipped=shipped)
    except MistakeError as mistake:
        raise UsageError(f"The workload {path}: {mistake}") from mistake


def file_in(place: Path) -> Path:
    """Return the path of the declaration in a folder, or the path itself if it is a file."""
    path = home(place)
    return path if is_file(path) else path / FILE


def write_new(place: Path) -> Path:
    """Write a commented declaration, named like its folder if that is a valid id."""
    path = home(place) / FILE
    name = path.resolve().parent.name.lower()
    is_own = ID.fullmatch(name) and name.replace("-", "_") not in WORKLOADS
    written = NEW.read_text(encoding="utf-8").replace('"NAME"', f'"{name if is_own else "orders"}"')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(written)
    except FileExistsError:
        if not path.exists():
            raise UsageError(f"{place} is a file; give a folder, which is made if it is not there.") from None
        raise UsageError(f"{path} is there already; give a folder without one, or edit it.") from None
    except OSError as error:
        raise UsageError(f"{path} can't be written ({error.strerror}); give a folder that you may write to.") from error
    return path


def unsealed(sealed: str) -> Declaration:
    """Restore a declaration from the `sealed` text that a run has stored. Its folder may no longer exist."""
    parts = json.loads(sealed)
    return _declaration(parts["text"], lambda _where, _name: parts["schema"], shipped=True)


def _declaration(content: str, schema: Reader, *, shipped: bool) -> Declaration:
    found = read(parsed(content, Decimal), KEYS, "")
    if not shipped:
        _check_own(found["id"])
    event = _event(found["event"], schema)
    fields = event["fields"]
    tables = read_tables(fields, "tables", found.get("tables", {}))
    question, stated = _question(found["oracle"], fields, tables)
    declaration = Declaration(
        id=found["id"],
        asks=found["asks"],
        text=content,
        format=event["format"],
        schema=event.get("schema"),
        registry_id=event.get("registry_id"),
        fields=fields,
        tables=tables,
        question=question,
        domains=stated,
    )
    declaration.records(seed=0)  # checks the schema
    return declaration


def _id(where: str, value: Any) -> str:
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise expected(
            where, value, "up to 60 small letters, digits, dashes and underscores: folders and topics are named by it"
        )
    return value


def _check_own(name: str) -> None:
    plain = {each.replace("_", "-"): each for each in WORKLOADS}
    if (shipped := plain.get(name.replace("_", "-"))) is not None:
        raise expected("id", name, f"an id of your own ({shipped} comes with this program, and asks something else)")


def _event(value: dict[str, Any], schema: Reader) -> dict[str, Any]:
    """Read the table [event]. `schema` reads the file that it names."""
    found = read(value, {**EVENT_KEYS, "schema": replace(EVENT_KEYS["schema"], read=schema)}, "event")
    found.setdefault("format", FORMATS[0])
    for key in ("schema", "registry_id"):
        if key in found and found["format"] != "avro":
            raise MistakeError(f'[event] has the key {key!r}, which format = "json" has no use for.')
    return found


def _schema_in(folder: Path, where: str, value: Any) -> Any:
    path = folder / text(where, value)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MistakeError(
            f"{where} = {value!r} can't be read ({error.strerror}); it is the path of an Avro schema from {folder}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise MistakeError(f"{where} = {value!r} is no Avro schema: it is not JSON ({error}).") from error


def _question(value: dict[str, Any], fields: Fields, tables: tuple[Table, ...]) -> tuple[Question, Texts]:
    found = read(value, ORACLE_KEYS, "oracle")
    stated = {name: distinct(f"oracle.domains.{name}", each) for name, each in found.pop("domains", {}).items()}
    question = Question(**found)
    _check_columns(question)
    domains.check(question, stated, fields, tables)
    return question, stated


def _check_columns(question: Question) -> None:
    for name in (*question.keys, *question.values):
        if not NAME.fullmatch(name):
            raise MistakeError(
                f"[oracle] calls a column {name!r}; a name is a letter, and then up to 62 letters, digits "
                "and underscores."
            )
    if both := sorted({*question.keys} & {*question.values}):
        raise MistakeError(f"[oracle] has {both[0]!r} among its keys and among its values; it can be one of them.")
    for name in (EVENT, CLOSES):
        if name in (*question.keys, *question.values):
            raise MistakeError(
                f"[oracle] has {name!r} among the columns of its answer, and it is one of the cells' own; a cell is "
                f"named by texts, and by {OPENS} or {EVENT_ID}."
            )
    if {OPENS, EVENT_ID} <= {*question.keys}:
        raise MistakeError(
            f"[oracle.keys] holds {OPENS!r} and {EVENT_ID!r}; one whole number is all that names a cell."
        )
    if question.merge and question.number != OPENS:
        raise MistakeError(f"[oracle.keys] lacks {OPENS!r}: cells that merge are told apart by when they open.")


def _values(where: str, value: Any) -> dict[str, str]:
    values = table(where, value)
    if not values:
        raise MistakeError(f"[{where}] is empty; name the value columns of the fold, each with its kind.")
    kinds = OneOf(tuple(oracle.KINDS))
    return {name: kinds(f"{where}.{name}", kind) for name, kind in values.items()}


KEYS: Mapping[str, TomlKey] = {
    "id": TomlKey(
        _id,
        "The name of the workload. Folders and topics are named by it.",
        takes="up to 60 small letters, digits, dashes and underscores",
        required=True,
        example='id = "orders"',
    ),
    "asks": TomlKey(
        text,
        "The question in a sentence, for pages and lists.",
        required=True,
        example='asks = "orders and revenue of each country in windows of ten seconds"',
    ),
    "event": TomlKey(
        table,
        "What is sent.",
        takes="the table `[event]`",
        required=True,
        example='event = { fields = { at = { kind = "time" } } }',
    ),
    "oracle": TomlKey(
        table,
        "The right answer.",
        takes="the table `[oracle]`",
        required=True,
        example='oracle = { keys = ["country", "opens"] }',
    ),
    "tables": TomlKey(
        table,
        "Tables in Redis or Kafka that exist before an engine starts.",
        takes="tables `[tables.NAME]`",
        example='tables = { shops = { each = "shop", topic = "shops" } }',
    ),
}

EVENT_KEYS: Mapping[str, TomlKey] = {
    "format": TomlKey(OneOf(FORMATS), "The format of the records.", f'`"{FORMATS[0]}"`', example='format = "avro"'),
    "schema": TomlKey(
        text,
        "The path of an Avro schema, from the folder of the file. It names each field with a type that holds it. Only "
        "for `avro`.",
        "derived from the fields",
        "a path",
        'schema = "event.avsc"',
    ),
    "registry_id": TomlKey(
        WholeNumber(0, (1 << 31) - 1),
        "The id of the schema in a schema registry. Each record then begins with a zero byte and this id in four "
        "bytes. Only for `avro`.",
        takes="0 to 2^31 - 1",
        example="registry_id = 7",
    ),
    "fields": TomlKey(
        read_fields,
        "The fields of an event, in the order of the record. One of them is of the kind `time`.",
        takes="tables `[event.fields]`, each with a `kind`",
        required=True,
        example='fields = { at = { kind = "time" } }',
    ),
}

ORACLE_KEYS: Mapping[str, TomlKey] = {
    "cells": TomlKey(
        text,
        f"One SELECT over `events` that gives a row for each event and cell: `{EVENT}`, the keys, `{CLOSES}` "
        "(milliseconds from which an event may be too late; NULL for never), and what the fold needs.",
        takes="SQL of DuckDB",
        required=True,
        example='cells = "SELECT event, country, at AS opens, at + 1000 AS closes FROM events"',
    ),
    "fold": TomlKey(
        text,
        "One SELECT over `cells` that gives a row for each cell: its keys and its values. A value is a whole number.",
        takes="SQL of DuckDB",
        required=True,
        example='fold = "SELECT country, opens, count(*) AS orders FROM cells GROUP BY country, opens"',
    ),
    "keys": TomlKey(
        distinct,
        f"The columns that name a cell: texts, and at most one whole number, `{OPENS}` (milliseconds) or "
        f"`{EVENT_ID}`. The texts are those of a field or of a column of a table.",
        takes="a list of names",
        required=True,
        example=f'keys = ["country", "{OPENS}"]',
    ),
    "values": TomlKey(
        _values,
        "The columns of the fold that are values, each with its kind.",
        takes=f"a table of {quoted(oracle.KINDS)}",
        required=True,
        example='values = { orders = "count" }',
    ),
    "merge": TomlKey(
        flag,
        f"Cells with equal keys that overlap or touch become one, with the first `{OPENS}`: sessions.",
        example="merge = true",
    ),
    "step_ms": TomlKey(
        WholeNumber(1, MOST_STEP_MS),
        "Windows begin at multiples of this many milliseconds. The run begins at such a multiple as well.",
        "1",
        example="step_ms = 10_000",
    ),
    "domains": TomlKey(
        table,
        "The texts of a key that the SQL makes up.",
        takes="a table of lists of texts",
        example='domains = { size = ["small", "large"] }',
    ),
}
