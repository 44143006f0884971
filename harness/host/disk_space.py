"""Disk space: estimates of what a run needs, checks that it is free, and messages for a full disk.

The estimate is computed from the run's events. The factors are rounded up from runs of all shipped engines: bytes per
event in the broker's log, in the stored run, and in the engine's own files. Standard library only: a full disk must be
reported even before anything is installed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness.model import EngineManifest, HarnessError

MB = 1_000_000
FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_WORDS = tuple(os.strerror(number) for number in FULL)
# A disk with less than this counts as full: the write that failed is often larger, and its file gone when we check.
AS_GOOD_AS_FULL = 16 * MB

LOG_PER_EVENT = 300  # in the broker: a record of 250 bytes, its share of batches and indexes, topics of the engine
LOG_PER_BROKER = 20 * MB  # files present before the first event, and an engine's own topics
KEPT_PER_EVENT = 18  # in the run's files: the log as a table, the send records, latencies
KEPT_PER_RUN = 12 * MB  # logs, figures, the page
JVMS_OWN = 200 * MB  # checkpoint, state and the libraries that an engine on a JVM unpacks
CHECKPOINT_PER_EVENT = 100  # in addition if the state never shrinks: all versions of it that the engine keeps
ENGINES_OWN = 10 * MB  # the same for any other engine


@dataclass(frozen=True)
class WantedRoom:
    """The space that one part of a run needs, and advice for the case that it is missing."""

    what: str
    path: Path
    size: int  # bytes
    instead: str


@dataclass(frozen=True)
class Disk:
    """The file system that holds a path."""

    id: int
    free: int  # bytes available to us


class NoRoomError(HarnessError):
    """A disk is full, or too small for the request."""


def needs(
    manifest: EngineManifest,
    events: int,
    *,
    brokers: int,
    runs: int,
    out: Path,
    temporary: Path,
    in_files: int = 0,
    in_state: int = 0,
    read_by_spark: int = 0,
) -> tuple[WantedRoom, ...]:
    """Return the most space that so many runs, one after the other, can need.

    `brokers` counts our own brokers, which store the log: 0 with an external Kafka or a simulated engine. `in_files`
    counts the events that are also written to files, `in_state` those whose cells stay in the engine's state until the
    load has ended. `read_by_spark` counts those that Spark reads back: their records lie in files until they are in the
    log of the run.
    """
    elsewhere = "name a folder on another disk with --out, or use a lower --rate or a shorter --duration"
    kept = WantedRoom("the stored runs", out, runs * (KEPT_PER_RUN + KEPT_PER_EVENT * events), elsewhere)
    log = WantedRoom("Kafka's log", out, brokers * (LOG_PER_BROKER + LOG_PER_EVENT * events), elsewhere)
    jvms_own = JVMS_OWN + CHECKPOINT_PER_EVENT * in_state
    own = (jvms_own if manifest.on_jvm else ENGINES_OWN) + LOG_PER_EVENT * in_files + KEPT_PER_EVENT * read_by_spark
    state = WantedRoom("the engine's own files", temporary, own, "set TMPDIR to a folder on another disk")
    return tuple(need for need in (log, kept, state) if need.size)


def still_to_write(events: int) -> int:
    """Return the bytes that a run writes after its load: the log becomes a table while the broker keeps it."""
    return KEPT_PER_EVENT * events


def told_of_log(out: Path) -> str:
    """Describe the space for a load of unknown size."""
    return (
        f"{size_in_words(LOG_PER_EVENT * 1_000_000)} for each million events during the run, "
        f"{size_in_words(KEPT_PER_EVENT * 1_000_000)} of it stored; {size_in_words(disk_of(out).free)} are free"
    )


def refuse(wanted: Sequence[WantedRoom], disk_of: Callable[[Path], Disk]) -> None:
    """Raise if a disk lacks space. Parts on the same disk need their space together."""
    shared: dict[int, list[WantedRoom]] = {}
    for need in wanted:
        shared.setdefault(disk_of(need.path).id, []).append(need)
    for parts in shared.values():
        total, free = sum(need.size for need in parts) + AS_GOOD_AS_FULL, disk_of(parts[0].path).free
        if total > free:
            of = ", ".join(f"{size_in_words(need.size)} for {need.what}" for need in parts)
            instead = "; ".join(dict.fromkeys(need.instead for need in parts))
            raise NoRoomError(
                f"There is not enough disk space for this run: it may need {size_in_words(total)} below "
                f"{parts[0].path} ({of}, "
                f"{size_in_words(AS_GOOD_AS_FULL)} to spare), but only {size_in_words(free)} are free there. Free "
                f"some (`streamgauge rm` removes runs); or {instead}."
            )


def disk_of(target: Path) -> Disk:
    """Return the disk of a path, which need not exist yet."""
    existing = next(path for path in (target.absolute(), *target.absolute().parents) if path.exists())
    seen = os.statvfs(existing)
    return Disk(existing.stat().st_dev, seen.f_bavail * seen.f_frsize if seen.f_favail or not seen.f_files else 0)


def free_below(paths: Sequence[Path]) -> dict[str, int]:
    """Map each path to its free bytes; paths that can't be read are left out."""
    found = {}
    for path in paths:
        with suppress(OSError):
            found[str(path)] = disk_of(path).free
    return found


def full_ones(free: Mapping[str, int], reserved: Mapping[str, int] | None = None) -> str:
    """Name the disks that count as full once `reserved` is subtracted; "" if there are none."""
    wanted = {path: AS_GOOD_AS_FULL + (reserved or {}).get(path, 0) for path in free}
    short = [
        f"{size_in_words(size)} are free below {path}, but {size_in_words(wanted[path])} are needed"
        for path, size in free.items()
        if size < wanted[path]
    ]
    return " and ".join(short)


@contextmanager
def writing(path: Path, size: int) -> Iterator[None]:
    """Raise NoRoomError with file and size if the disk is full: the OSError of a write has neither."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise full_at(path, size, error) from error


def write(path: Path, content: bytes) -> None:
    with writing(path, len(content)):
        path.write_bytes(content)


def full_at(path: Path, size: int, error: OSError) -> NoRoomError:
    wanted = f" with {size_in_words(size)}" if size else ""
    there = "".join(f"; {size_in_words(free)} are free there" for free in free_below([path.parent]).values())
    return NoRoomError(f"{path} could not be written{wanted}: {os.strerror(error.errno or 0)}{there}. {WHAT_TO_DO}")


WHAT_TO_DO = "Free some space on that disk (`streamgauge rm` removes runs), and start the same command again."


def said_of_full(said: str) -> bool:
    return any(words in said for words in FULL_WORDS)


def ended_of_full(said: str, path: Path) -> bool:
    """Return whether a full disk ended a program that wrote there, by its message or by the free space: a program may
    die before it can print one."""
    return said_of_full(said) or disk_of(path).free < AS_GOOD_AS_FULL


def in_terms_of_room(error: BaseException, paths: Sequence[Path]) -> NoRoomError | None:
    """Return NoRoomError if a full disk caused this error, by error number or by another program's message. The disk is
    that of the error's file, or else those of `paths` that are full."""
    for each in _chain(error):
        if isinstance(each, NoRoomError):
            return each
        if isinstance(each, OSError) and each.errno in FULL:
            if each.filename:
                return full_at(Path(os.fsdecode(each.filename)), 0, each)
            return _full_somewhere(os.strerror(each.errno or 0), paths)
        if said_of_full(str(each)):
            return _full_somewhere(str(each).rstrip("."), paths)
    return None


def _full_somewhere(said: str, paths: Sequence[Path]) -> NoRoomError:
    free = free_below(paths)
    seen = full_ones(free) or ", ".join(f"{size_in_words(size)} are free below {path}" for path, size in free.items())
    return NoRoomError(f"A disk is full: {said}; {seen}. {WHAT_TO_DO}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or each.__context__


def size_in_words(size: int) -> str:
    """Format a size for people: 0.3 MB, 165 MB, 6.2 GB."""
    if size >= 1000 * MB:
        return f"{size / 1e9:.1f} GB"
    return f"{size / MB:,.0f} MB" if size >= 10 * MB else f"{size / MB:.1f} MB"
