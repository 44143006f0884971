"""Simulates a user who edits a run and then recomputes whatever would reveal it. No digest can prevent that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from harness.judging import digests, verdict_file
from harness.judging.stored_run import StoredRun
from harness.rundir.missing_evidence import unless_missing
from harness.rundir.store import HISTORY, Store


def recompute_digests(store: Store) -> None:
    """Recompute digests.json alone, whose format is public."""
    digests.write(store, digests.of_files(store))


def recompute_all(store: Store) -> None:
    """Also rewrite the history's records about the files, and remove earlier verdicts, as if nothing had changed."""
    if store.has(verdict_file.FILE):
        (store.path / verdict_file.FILE).unlink()
    run = StoredRun(store)
    say(store, "observer", rows=unless_missing(lambda: run.samples.num_rows))
    say(store, "stopped", changed=unless_missing(lambda: run.changed_by_stop))
    say(store, digests.CLOSED, files=digests.of_files(store))
    rewrite(store, lambda line: line if line.get("kind") != verdict_file.KIND else None)
    recompute_digests(store)


def say(store: Store, kind: str, **facts: object) -> None:
    """Change facts in all lines of a kind."""
    rewrite(store, lambda line: {**line, **facts} if line.get("kind") == kind else line)


def rewrite(store: Store, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change each line of the history; None removes it. An unreadable line stays as it is."""
    path = store.path / HISTORY
    if not path.is_file():
        return
    lines = (_changed(line, change) for line in path.read_bytes().splitlines())
    path.write_bytes(b"".join(line + b"\n" for line in lines if line is not None))


def _changed(line: bytes, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> bytes | None:
    try:
        fact = msgspec.json.decode(line, type=dict[str, Any])
    except (ValueError, RecursionError):
        return line
    changed = change(fact)
    return None if changed is None else msgspec.json.encode(changed)
