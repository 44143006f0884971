"""Room on disks: what a run will need, whether it is there, and how it is said that a disk is full.

What a run needs is foretold from its events. The figures are rounded up from runs of all shipped engines: what the
broker keeps of an event until the run ends, what the run keeps of it for good, and what an engine unpacks and writes
for itself. Standard library only: a full disk has to be named also before anything is installed.
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
# With less than this a disk is as good as full: what was to be written is often larger, and gone when somebody looks.
AS_GOOD_AS_FULL = 16 * MB

LOG_PER_EVENT = 300  # of the broker: a record of 250 bytes, its share of batches and indexes, topics of the engine
LOG_PER_BROKER = 20 * MB  # what is there before the first event, and what an engine writes there for itself
KEPT_PER_EVENT = 18  # of the run's files: the log as a table, what was sent, latencies
KEPT_PER_RUN = 12 * MB  # logs, figures, the page
JVMS_OWN = 200 * MB  # checkpoint, state and the libraries that an engine on a JVM unpacks
CHECKPOINT_PER_EVENT = 100  # beside that, where nothing leaves the state: all its versions that the engine keeps
ENGINES_OWN = 10 * MB  # the same of any other engine


@dataclass(frozen=True)
class WantedRoom:
    """What a part of a run takes, and what to do where it can't be had."""

    what: str
    place: Path
    size: int  # bytes
    instead: str


@dataclass(frozen=True)
class Disk:
    """The file system below a place."""

    id: int
    free: int  # bytes that we may use


class NoRoomError(HarnessError):
    """A disk is full, or too small for what is asked."""


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
) -> tuple[WantedRoom, ...]:
    """Of so many runs, one after the other, at the most. `brokers`: so many of ours keep the log, none where Kafka is
    somebody else's or nothing is real. `in_files`: so many of the events lie in files as well; `in_state`: of so many
    the cells stay in the engine's state until the load has ended."""
    elsewhere = "name a folder on another disk with --out, or take a lower --rate or a shorter --duration"
    kept = WantedRoom("what is kept", out, runs * (KEPT_PER_RUN + KEPT_PER_EVENT * events), elsewhere)
    log = WantedRoom("Kafka's log", out, brokers * (LOG_PER_BROKER + LOG_PER_EVENT * events), elsewhere)
    jvms_own = JVMS_OWN + CHECKPOINT_PER_EVENT * in_state
    own = (jvms_own if manifest.on_jvm else ENGINES_OWN) + LOG_PER_EVENT * in_files
    state = WantedRoom("the engine's own files", temporary, own, "set TMPDIR to a folder on another disk")
    return tuple(need for need in (log, kept, state) if need.size)


def still_to_write(events: int) -> int:
    """What a run needs when its load has ended: the log is read into a table while the broker still has it."""
    return KEPT_PER_EVENT * events


def told_of_log(out: Path) -> str:
    """Of a load whose size nobody knows beforehand."""
    return (
        f"{size_in_words(LOG_PER_EVENT * 1_000_000)} for each million events while it goes on, "
        f"{size_in_words(KEPT_PER_EVENT * 1_000_000)} of it kept; {size_in_words(disk_of(out).free)} are free"
    )


def refuse(wanted: Sequence[WantedRoom], disk_of: Callable[[Path], Disk]) -> None:
    """Parts that lie on one disk need their room together."""
    shared: dict[int, list[WantedRoom]] = {}
    for need in wanted:
        shared.setdefault(disk_of(need.place).id, []).append(need)
    for parts in shared.values():
        total, free = sum(need.size for need in parts) + AS_GOOD_AS_FULL, disk_of(parts[0].place).free
        if total > free:
            of = ", ".join(f"{size_in_words(need.size)} for {need.what}" for need in parts)
            instead = "; ".join(dict.fromkeys(need.instead for need in parts))
            raise NoRoomError(
                f"There is no room for this run: it may need {size_in_words(total)} below {parts[0].place} ({of}, "
                f"{size_in_words(AS_GOOD_AS_FULL)} to spare), and {size_in_words(free)} are free there. Free some "
                f"(`streamgauge rm` removes runs); or {instead}."
            )


def disk_of(place: Path) -> Disk:
    """Of a place that may not have been made yet."""
    existing = next(path for path in (place.absolute(), *place.absolute().parents) if path.exists())
    seen = os.statvfs(existing)
    return Disk(existing.stat().st_dev, seen.f_bavail * seen.f_frsize if seen.f_favail or not seen.f_files else 0)


def free_below(places: Sequence[Path]) -> dict[str, int]:
    """Place -> free bytes, of those that can be looked at."""
    found = {}
    for place in places:
        with suppress(OSError):
            found[str(place)] = disk_of(place).free
    return found


def full_ones(free: Mapping[str, int], reserved: Mapping[str, int] | None = None) -> str:
    """Those disks that are as good as full, beside what is reserved there, in words; "" when none is."""
    wanted = {place: AS_GOOD_AS_FULL + (reserved or {}).get(place, 0) for place in free}
    short = [
        f"{size_in_words(size)} are free below {place}, and {size_in_words(wanted[place])} are needed"
        for place, size in free.items()
        if size < wanted[place]
    ]
    return " and ".join(short)


@contextmanager
def writing(path: Path, size: int) -> Iterator[None]:
    """The error of a write knows neither its file nor what it wanted."""
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


WHAT_TO_DO = "Free some room on that disk (`streamgauge rm` removes runs), and start the same command again."


def said_of_full(said: str) -> bool:
    return any(words in said for words in FULL_WORDS)


def ended_of_full(said: str, place: Path) -> bool:
    """Whether a full disk ended a program that wrote there: by its words, or by what is free, for not every program
    lives to say so."""
    return said_of_full(said) or disk_of(place).free < AS_GOOD_AS_FULL


def in_terms_of_room(error: BaseException, places: Sequence[Path]) -> NoRoomError | None:
    """An error behind which there is a full disk, by its number or by the words of another program. Which disk that is
    tells its file, and else those that are full among the places where we write."""
    for each in _chain(error):
        if isinstance(each, NoRoomError):
            return each
        if isinstance(each, OSError) and each.errno in FULL:
            if each.filename:
                return full_at(Path(os.fsdecode(each.filename)), 0, each)
            return _full_somewhere(os.strerror(each.errno or 0), places)
        if said_of_full(str(each)):
            return _full_somewhere(str(each).rstrip("."), places)
    return None


def _full_somewhere(said: str, places: Sequence[Path]) -> NoRoomError:
    free = free_below(places)
    seen = full_ones(free) or ", ".join(f"{size_in_words(size)} are free below {place}" for place, size in free.items())
    return NoRoomError(f"A disk is full: {said}; {seen}. {WHAT_TO_DO}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and what led to it."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or each.__context__


def size_in_words(size: int) -> str:
    """To the precision that a person needs: 0.3 MB, 165 MB, 6.2 GB."""
    if size >= 1000 * MB:
        return f"{size / 1e9:.1f} GB"
    return f"{size / MB:,.0f} MB" if size >= 10 * MB else f"{size / MB:.1f} MB"
