"""Digests of a run's evidence, written before its first verdict, so that later changes are found.

Evidence is what the run wrote: its JSON files and tables, and all files in `evidence/`. Files that are derived from
these (MADE) are no evidence. The history may grow by lines of the kinds in LATER only.

The digests of the files are in digests.json and in the history, and the digest of the history is in digests.json, so
that no file can be edited alone. Digests do not detect an edit that recomputes all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.evidence.observed import Edits
from harness.judging import verdict_file
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import HISTORY, MADE_LINE, OWNER, Store
from harness.terminal.command_end import ENDED_EARLY, INTERRUPTED

FILE, CLOSED = "digests.json", "closed"
MADE = frozenset(
    {
        FILE,
        verdict_file.FILE,
        "measurement.json",
        "recovery.json",
        "timeline.parquet",
        "latency.parquet",
        "plateaus.json",
    },
)
SUFFIXES = frozenset({".json", ".jsonl", ".parquet"})
FOLDER = "evidence"
LATER = frozenset({verdict_file.KIND, ENDED_EARLY})  # kinds of lines that the history may get after the run
TOO_EARLY = "before it had written all of its files"
FIRST_SCHEMA = 3  # runs of older ones have no digests
IN_HISTORY = 4  # from this schema on the history also holds the digests of the files


class Digests(msgspec.Struct, frozen=True):
    """The content of digests.json."""

    files: dict[str, str]  # by path relative to the run
    history_bytes: int  # the length of the history by then
    history: str


def of_files(store: Store) -> dict[str, str]:
    return {str(path.relative_to(store.path)): _digest_of(path) for path in _evidence(store)}


def write(store: Store, files: dict[str, str]) -> None:
    """Write the digests once, after all other files.

    A later verdict rests on the same files, or names the changed ones.
    """
    history = _history(store)
    store.write_json(FILE, Digests(files, len(history), _digest(history)))


def aborted(store: Store) -> str:
    """Return how a run ended before all of its files were written; "" if it wrote them, or may have."""
    if any(store.history(CLOSED)) or store.has(FILE) or not store.has(HISTORY):
        return ""
    ended = [*store.history(ENDED_EARLY)]
    if not ended:
        return f"its process was killed {TOO_EARLY}"
    why = (str(ended[-1].get("why", "")).splitlines() or [""])[0]
    stopped = f"was stopped {why}" if ended[-1].get("how") == INTERRUPTED else f"ended by an error ({why})"
    return f"it {stopped} {TOO_EARLY}"


def compare(store: Store) -> Edits:
    """Find changes since the first verdict."""
    try:
        stored: Digests = store.read_as(FILE, Digests)
    except MissingEvidence as error:
        return _without(store, str(error))
    found = (*_file_changes(store, stored), *_history_changes(store, stored), *_other_age(store))
    return Edits(len(stored.files) + 1, found)


def _without(store: Store, error: str) -> Edits:
    """Report the lack of digests, which never allows a PASS.

    For a run that should have them, their absence is a change.
    """
    if (other := [*_other_age(store)]) or store.has(FILE):
        return Edits(changed=(error, *other))
    schema = store.schema()
    if schema is not None and schema < FIRST_SCHEMA:
        return Edits(lack=f"a run of schema {schema} has no digests. Judge it with the version that wrote it")
    if any(store.history(CLOSED)):
        return Edits(changed=(f"{error}, so the files can't be compared with those at the end of the run",))
    return Edits(lack="the run was aborted before it wrote digests of its files; run it again")


def _other_age(store: Store) -> Iterator[str]:
    """Compare the schema in owner.json with the first line of the history, where older versions wrote none."""
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
    """For an unreadable file return a text that equals no digest."""
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
