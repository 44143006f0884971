"""Finds all results below a path. Each is read and judged, and only what the table needs is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from harness.audit import checks, csv_file, live_redis, loads, yahoo_files
from harness.audit.checks import Audited, Finding
from harness.audit.left import unreadable
from harness.model import Outcome, RedisAddress, UsageError
from harness.services.redis import connect
from harness.util.texts import many

EVERY = 500  # results between two lines of progress


@dataclass(frozen=True)
class Known:
    """The load as the user gave it: flags, and the lines of a file."""

    flags: Mapping[str, Any]
    source: str = ""
    lines: Sequence[loads.Line] = ()


def audit(target: str, known: Known, say: Callable[[str], None]) -> list[Audited]:
    """Audit everything at a path or in a Redis. The worst results come first."""
    audited = list(_live(target, known) if "://" in target else _files(Path(target), known, say))
    return sorted(_filed_twice(audited), key=_badness)


def _badness(each: Audited) -> tuple[int, float, str]:
    order = (Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS).index(each.outcome)
    return order, -abs((each.share or 1.0) - 1), each.place


def _filed_twice(audited: Sequence[Audited]) -> Iterator[Audited]:
    """Adds a remark to results whose file of counts is identical to another one."""
    places: dict[str, list[str]] = {}
    for each in audited:
        if each.digest:
            places.setdefault(each.digest, []).append(each.place)
    for each in audited:
        same = [place for place in places.get(each.digest, ()) if place != each.place]
        if not same:
            yield each
            continue
        told = f"the same file as {same[0]}" + (f" and {len(same) - 1:,} more" if len(same) > 1 else "")
        remark = Finding("filed twice", f"{told}: at most one of them has the right name", Outcome.PASS)
        yield replace(each, findings=(*each.findings, remark))


def _live(target: str, known: Known) -> Iterator[Audited]:
    try:
        address = RedisAddress(target)
        client = connect(address)
    except ValueError as error:
        raise UsageError(
            f"{target.rpartition('@')[2]} is not an address: {error}. Expected redis://HOST:PORT/0."
        ) from None
    with client:
        place = f"redis at {target.rpartition('@')[2].removeprefix('redis://')}"
        offered = loads.offered(PurePath(), known.flags, (), known.source)
        yield checks.audit(live_redis.read(client, place, offered), offered, "redis")


def _files(root: Path, known: Known, say: Callable[[str], None]) -> Iterator[Audited]:
    number = 0
    for number, (file, trouble) in enumerate(_below(root), 1):
        yield _file(root, file, trouble, known)
        if number % EVERY == 0:
            say(f"{many(number, 'result')} judged")
    if not number:
        raise UsageError(
            f"{root} holds no results: neither {yahoo_files.SEEN} of the original benchmark nor a .csv with the "
            f"columns {', '.join(csv_file.NEEDED)}, also not in any folder below."
        )


def _file(root: Path, file: Path, trouble: str, known: Known) -> Audited:
    is_yahoo = file.name == yahoo_files.SEEN
    place = file.parent if is_yahoo else file.with_suffix("")
    below = place.relative_to(root) if root.is_dir() else PurePath(*place.absolute().parts[1:])
    if is_yahoo and not loads.engine(below):
        below = PurePath(*place.absolute().parts[1:])
    offered = loads.offered(below, known.flags, known.lines, known.source)
    reader = yahoo_files.read if is_yahoo else csv_file.read
    left = unreadable(str(file), trouble) if trouble else reader(file, offered)
    return checks.audit(left, offered, loads.engine(below))


def _below(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files to read, each with the reason if it can't be read. A named file is read in any case, in a folder
    only files that look like results.
    """
    if root.is_file():
        yield root, ""
        return
    if not root.is_dir():
        raise UsageError(f"There is no {root}. Expected a file, a folder, or redis://HOST:PORT/0.")
    troubles: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=troubles.append):
        folders.sort()
        for trouble in troubles:
            yield Path(trouble.filename), f"this folder can't be read: {trouble.strerror}"
        troubles.clear()
        for name in sorted(names):
            file = Path(folder, name)
            if name == yahoo_files.SEEN or (name.endswith(".csv") and csv_file.is_one(file)):
                yield file, ""
    for trouble in troubles:
        yield Path(trouble.filename), f"this folder can't be read: {trouble.strerror}"
