"""Digests of a run's evidence. They are written before its first verdict, so that later changes are named.

Evidence is what the run wrote: its JSON files and tables, and all below `evidence/`. What is made from these files
again and again (MADE) is none. The history may grow by the lines of LATER, and by no other ones.

The digests of the files stand in digests.json and in the history, and that of the history stands in digests.json: no
file can be edited alone. Digests do not find out somebody who recomputes all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.evidence.observed import Edits
from harness.judging import verdicts
from harness.rundir.store import HISTORY, MADE_LINE, OWNER, MissingEvidence, Store

FILE, CLOSED = "digests.json", "closed"
MADE = frozenset(
    {FILE, verdicts.FILE, "measurement.json", "recovery.json", "timeline.parquet", "latency.parquet", "plateaus.json"},
)
SUFFIXES = frozenset({".json", ".jsonl", ".parquet"})
FOLDER = "evidence"
LATER = frozenset({verdicts.KIND, "ended early"})  # what the history of a run may get when it is over
FIRST_SCHEMA = 3  # runs of older ones have no digests
IN_HISTORY = 4  # from this schema on the history holds the digests of the files, too


class Digests(msgspec.Struct, frozen=True):
    """As they are stored."""

    files: dict[str, str]  # by their path below the run
    history_bytes: int  # so much of the history there was
    history: str


def of_files(store: Store) -> dict[str, str]:
    return {str(path.relative_to(store.path)): _digest_of(path) for path in _evidence(store)}


def write(store: Store, files: dict[str, str]) -> None:
    """Once, when all else is written: a later verdict rests on the same files, or names those that were changed."""
    history = _history(store)
    store.write_json(FILE, Digests(files, len(history), _digest(history)))


def compare(store: Store) -> Edits:
    """What was changed since the first verdict."""
    try:
        stored: Digests = store.read_as(FILE, Digests)
    except MissingEvidence as error:
        return _without(store, str(error))
    found = (*_file_changes(store, stored), *_history_changes(store, stored), *_other_age(store))
    return Edits(len(stored.files) + 1, found)


def _without(store: Store, error: str) -> Edits:
    """Files that prove nothing may still be wrong, but they are never right."""
    if (other := [*_other_age(store)]) or store.has(FILE):
        return Edits(changed=(error, *other))
    schema = store.schema()
    if schema is not None and schema < FIRST_SCHEMA:
        return Edits(lack=f"a run of schema {schema} has no digests; the version that wrote it can judge it")
    if any(store.history(CLOSED)):
        return Edits(changed=(f"{error}, so nothing says what its files were when the run ended",))
    return Edits(lack="the run was broken off before it wrote digests of its files; run it again")


def _other_age(store: Store) -> Iterator[str]:
    """The schema stands in owner.json and in the first line of the history, which older versions wrote without."""
    schema, lines = store.schema(), [line.get("schema") for line in store.history(MADE_LINE)]
    in_history = lines[0] if lines else None
    if schema is not None and in_history != (schema if schema >= IN_HISTORY else None):
        says = "no schema" if in_history is None else f"schema {in_history}"
        yield f"{OWNER} names schema {schema}, and {HISTORY} {says}"


def _file_changes(store: Store, stored: Digests) -> Iterator[str]:
    before: Mapping[str, str] = stored.files
    if (store.schema() or IN_HISTORY) >= IN_HISTORY:
        try:
            before = store.last_value(CLOSED, "files", dict[str, str])
        except MissingEvidence as error:
            yield str(error)
    yield from _changes(before, of_files(store))
    if stored.files != before:
        yield f"{FILE} was edited: it has other digests than {HISTORY}"


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            yield f"{name} is missing"
        elif name not in before:
            yield f"{name} is new"
        elif now[name] != before[name]:
            yield f"{name} was edited"


def _history_changes(store: Store, stored: Digests) -> Iterator[str]:
    history = _history(store)
    if _digest(history[: stored.history_bytes]) != stored.history:
        yield f"{HISTORY} was edited" if history else f"{HISTORY} is missing"
    elif any(_kind(line) not in LATER for line in history[stored.history_bytes :].splitlines()):
        yield f"{HISTORY} has lines that were added"


def _kind(line: bytes) -> Any:
    try:
        value = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None
    return value.get("kind") if isinstance(value, dict) and isinstance(value.get("kind"), str) else None


def _evidence(store: Store) -> Iterator[Path]:
    for path in sorted(store.path.iterdir()):
        if path.suffix in SUFFIXES and path.name not in MADE | {HISTORY} and not path.name.startswith("."):
            yield path
    yield from (path for path in sorted((store.path / FOLDER).rglob("*")) if not path.is_dir())


def _digest_of(path: Path) -> str:
    """Something that can't be read has no digest that any file has."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _history(store: Store) -> bytes:
    try:
        return (store.path / HISTORY).read_bytes()
    except OSError:
        return b""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
