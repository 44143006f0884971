"""From a path to all results below it: what is read, and what is passed over."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.audit import checks, csv_file, live_redis, names, yahoo_files
from harness.audit.checks import Audited
from harness.audit.left import Left, Offered, twins
from harness.model import Outcome, RedisAddress, UsageError
from harness.services.redis import connect

Read = tuple[Left, Offered]
EVERY = 100  # files between two words of progress


def audit(target: str, offered: Offered, given: frozenset[str], say: Callable[[str], None]) -> list[Audited]:
    """Everything at a path or in a Redis, the worst first."""
    read = list(_live(target, offered)) if "://" in target else list(_files(Path(target), offered, given, say))
    same = twins(left for left, _ in read)
    audited = [checks.audit(left, known, same.get(left.place, "")) for left, known in read]
    return sorted(audited, key=_badness)


def _badness(each: Audited) -> tuple[int, float, str]:
    order = (Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS).index(each.outcome)
    return order, -abs((each.share or 1.0) - 1), each.place


def _live(target: str, offered: Offered) -> Iterator[Read]:
    with connect(RedisAddress(target)) as client:
        place = f"redis at {target.rpartition('@')[2].removeprefix('redis://')}"
        yield live_redis.read(client, place, offered), offered


def _files(path: Path, offered: Offered, given: frozenset[str], say: Callable[[str], None]) -> Iterator[Read]:
    found = sorted(_below(path))
    if not found:
        raise UsageError(
            f"{path} holds no results: {yahoo_files.SEEN} of the original benchmark or a .csv with the columns "
            f"{', '.join(csv_file.NEEDED)} was looked for, in it and in all folders below."
        )
    for number, file in enumerate(found):
        if number % EVERY == EVERY - 1:
            say(f"{number + 1:,} of {len(found):,} results read")
        known = names.said(file.parent if file.name == yahoo_files.SEEN else file.with_suffix(""), offered, given)
        reader = yahoo_files.read if file.name == yahoo_files.SEEN else csv_file.read
        yield reader(file, known), known


def _below(path: Path) -> Iterator[Path]:
    """A file that is named is read whatever it is; in a folder only what looks like results."""
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from path.rglob(yahoo_files.SEEN)
        yield from (file for file in path.rglob("*.csv") if _is_ours(file))
    else:
        raise UsageError(f"There is no {path}: a file, a folder, or redis://HOST:PORT/0 is expected.")


def _is_ours(file: Path) -> bool:
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        return set(csv_file.NEEDED) <= set(next(csv.reader(lines), ()))
