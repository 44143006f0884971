"""Removal of runs and experiments.

Other folders are never removed, and those still in use only by force. `chosen` selects candidates; `clear` deletes
them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.experiments.folder import FILE
from harness.host.disk_space import size_in_words
from harness.metering.process_sampling import folder_bytes
from harness.model import HarnessError, UsageError
from harness.rundir import markers
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store, made_ms, oldest_first
from harness.terminal.command_end import short_path
from reports import listing

UNIT_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class Candidate:
    """A run or an experiment that may be removed."""

    path: Path
    made_ms: int | None  # None: unknown
    needed: str = ""  # why it has to stay, unless forced


@dataclass(frozen=True)
class Removed:
    path: Path
    size: int  # bytes


@dataclass(frozen=True)
class Choice:
    """The candidates to remove, oldest first, and those that matched but are kept because they are needed."""

    gone: tuple[Candidate, ...]
    kept: tuple[Candidate, ...]


def age_ms(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([mhd])", text.strip())
    if not match:
        raise UsageError(f"--older-than is {text!r}. A number with m, h or d is expected, such as 7d.")
    return round(float(match[1]) * UNIT_MS[match[2]])


def candidates(paths: Sequence[Path]) -> list[Candidate]:
    """Return the candidates at these paths, oldest first. If any path is no run or experiment, refuse them all.

    A path inside another one is left out: it is removed with that.
    """
    named = {_checked(path) for path in paths}
    return [_candidate(path) for path in oldest_first(named) if named.isdisjoint(path.parents)]


def below(*bases: Path) -> list[Candidate]:
    """Return the candidates directly below these folders. Files of others with the same names are skipped."""
    found = {path.parent for base in bases for marker in markers.CALLED for path in base.glob(f"*/{marker}")}
    return candidates([path for path in found if not path.is_symlink() and _is_ours(path)])


def chosen(
    found: Sequence[Candidate], *, older_than_ms: int | None, but_last: int | None, now_ms: int, force: bool
) -> Choice:
    """Select from candidates, oldest first: all but the newest `but_last`, if they are old enough.

    A needed one is skipped if a condition selected it, and refused if it was named.
    """
    old = [each for each in found[: max(0, len(found) - (but_last or 0))] if _is_older(each, older_than_ms, now_ms)]
    kept = () if force else tuple(each for each in old if each.needed)
    if kept and older_than_ms is None and but_last is None:
        words = f"{short_path(kept[0].path)} stays: {kept[0].needed}"
        raise UsageError(f"{words}. Nothing was removed; --force removes it anyway.")
    return Choice(tuple(each for each in old if each not in kept), kept)


def clear(choice: Choice, *, dry_run: bool) -> Iterator[Removed]:
    for each in choice.gone:
        size = folder_bytes(each.path) or 0
        if not dry_run:
            _delete(each.path)
        yield Removed(each.path, size)


def _is_older(each: Candidate, than_ms: int | None, now_ms: int) -> bool:
    """Return True if it is older. One of unknown age is never old."""
    return than_ms is None or (each.made_ms is not None and now_ms - each.made_ms > than_ms)


def _checked(path: Path) -> Path:
    if path.is_symlink():
        raise UsageError(f"{path} is a symbolic link. Name the run itself. Nothing was removed.")
    if not _is_ours(path):
        raise UsageError(f"{markers.refusal(path, *markers.CALLED)} Nothing was removed.")
    return path.resolve()


def _is_ours(path: Path) -> bool:
    return any(markers.is_one(path, marker) for marker in markers.CALLED)


def _candidate(path: Path) -> Candidate:
    return Candidate(path, made_ms(path), _needed(path))


def _needed(path: Path) -> str:
    if experiment := next((above for above in path.parents if markers.is_one(above, FILE)), None):
        return f"it is part of {short_path(experiment)} and is removed with that"
    if markers.is_one(path, FILE):
        return "it is still running" if listing.is_going_on(path) else ""
    try:
        return "its process is still running" if Store(path).alive() else ""
    except MissingEvidence:  # the owner of a torn one is unknown
        return ""


def _delete(path: Path) -> None:
    """Delete the marker files last, so that an interrupted removal can be repeated."""
    try:
        for inner in path.iterdir():
            if inner.name in markers.CALLED:
                continue
            if inner.is_dir() and not inner.is_symlink():
                shutil.rmtree(inner)
            else:
                inner.unlink()
        shutil.rmtree(path)
    except OSError as error:
        raise HarnessError(
            f"{short_path(path)} could not be removed: {error.strerror} ({error.filename}). The remaining files are "
            f"incomplete. Fix the cause, and start the same command again."
        ) from error


def lines(removed: Sequence[Removed], kept: Sequence[Candidate], *, dry_run: bool) -> list[str]:
    """Format what was removed and what was kept, for the terminal."""
    would, freed = ("would remove", "would free") if dry_run else ("removed", "freed")
    told = [f"{would} {short_path(each.path)} ({size_in_words(each.size)})" for each in removed]
    told += [f"kept {short_path(each.path)}: {each.needed}" for each in kept]
    return [*told, f"{freed} {size_in_words(sum(each.size for each in removed))}" if removed else "nothing to remove"]


def as_object(removed: Sequence[Removed], kept: Sequence[Candidate], *, dry_run: bool) -> dict[str, Any]:
    """Return what was removed and what was kept, for `--json`."""
    return {
        "command": "rm",
        "dry_run": dry_run,
        "removed": [{"path": str(each.path), "bytes": each.size} for each in removed],
        "kept": [{"path": str(each.path), "why": each.needed} for each in kept],
        "bytes": sum(each.size for each in removed),
    }
