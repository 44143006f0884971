"""Digests of a run's evidence. They are written when its verdict is first reached, so that later changes are named.

Evidence is what the run wrote: its JSON files and tables, and all below `evidence/`. What is made from these files
again and again (MADE) is none. The history may grow by the lines of LATER, and by no other ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.judging.readings import Edits
from harness.store import HISTORY, MissingEvidence, Store

FILE, VERDICT = "digests.json", "verdict.json"
MADE = frozenset(
    {FILE, VERDICT, "measurement.json", "recovery.json", "timeline.parquet", "latency.parquet", "plateaus.json"},
)
SUFFIXES = frozenset({".json", ".jsonl", ".parquet"})
FOLDER = "evidence"
LATER = frozenset({"verdict", "ended early"})  # what may be told of a run when it is over
FIRST_SCHEMA = 3  # runs of older ones have no digests


class Digests(msgspec.Struct, frozen=True):
    """As they are stored."""

    files: dict[str, str]  # by their path below the run
    history_bytes: int  # so much of the history there was
    history: str


def write(store: Store) -> None:
    """Once: a later verdict rests on the same files, or says which were changed."""
    if not store.has(FILE):
        history = _history(store)
        store.write_json(FILE, Digests(_of_files(store), len(history), _digest(history)))


def write_at_first_verdict(store: Store) -> None:
    """Of a run that was broken off before it was judged."""
    if _never_judged(store):
        write(store)


def _never_judged(store: Store) -> bool:
    return not (store.has(FILE) or store.has(VERDICT) or any(store.history("verdict")))


def compare(store: Store) -> Edits:
    """What was changed since the first verdict."""
    try:
        stored: Digests = store.read_as(FILE, Digests)
    except MissingEvidence as error:
        return _without(store, str(error))
    now = _of_files(store)
    return Edits(len(stored.files) + 1, (*_changes(stored.files, now), *_history_changes(store, stored)))


def _without(store: Store, error: str) -> Edits:
    schema = store.schema()
    if schema is not None and schema < FIRST_SCHEMA and not store.has(FILE):
        return Edits(note=f"a run of schema {schema} has no digests of its files, so a change of them can't be seen")
    if _never_judged(store):
        return Edits(note="this run was broken off before its verdict, so its files have no digests")
    return Edits(changed=(f"{error}, so nothing says what its files were when the run ended",))


def _changes(before: dict[str, str], now: dict[str, str]) -> Iterator[str]:
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


def _of_files(store: Store) -> dict[str, str]:
    return {str(path.relative_to(store.path)): _digest_of(path) for path in _evidence(store)}


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
