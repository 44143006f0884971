"""`seen.txt` and `updated.txt` of the original benchmark: a number a line, campaign after campaign, each from its
newest window to its oldest, without any names.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.audit import listed
from harness.audit.left import UNTOLD, Ints, Left, Offered, unreadable
from harness.audit.split import split

SEEN, UPDATED = "seen.txt", "updated.txt"
EXAMPLES = 3
LONGEST = 18  # most digits of a number that fits
PLAIN = re.compile(rb"(?:[0-9]{1,18}\s+)+")
NEARLY_ALL = 0.8


def read(seen: Path, offered: Offered) -> Left:
    """Read the two files of one run. `updated.txt` may be missing."""
    faults: list[str] = []
    doubts: list[str] = []
    updated = seen.with_name(UPDATED)
    try:
        content = seen.read_bytes()
        delays = updated.read_bytes() if updated.is_file() else None
    except OSError as error:
        return unreadable(str(seen.parent), f"{Path(error.filename).name} can't be read: {error.strerror}")
    count = _numbers(content, SEEN, faults, doubts)
    delay = None if delays is None else _numbers(delays, UPDATED, faults, doubts)
    if delay is not None and len(delay) != len(count):
        faults.append(f"{SEEN} has {len(count):,} numbers and {UPDATED} {len(delay):,}")
        delay = None
    digest = hashlib.sha256(content).hexdigest() if content.strip() else ""
    left = _dealt(str(seen.parent), count, delay, offered)
    return replace(left, faults=(*faults, *left.faults), doubt="; ".join(doubts), digest=digest)


def _numbers(content: bytes, name: str, faults: list[str], doubts: list[str]) -> Ints:
    words = content.removeprefix(b"\xef\xbb\xbf").split()
    if words and not content[-1:].isspace():
        doubts.append(f"the last line of {name} has no line end, so digits may be missing")
    if PLAIN.fullmatch(content):
        return np.fromstring(content, dtype=np.int64, sep=" ")
    good = [(len(word) <= LONGEST and word.removeprefix(b"-").isdigit()) for word in words]
    if not all(good):
        wrong = [(line, word) for line, (word, fits) in enumerate(zip(words, good, strict=True), 1) if not fits]
        told = ", ".join(f"number {line} is {word[:20].decode(errors='replace')!r}" for line, word in wrong[:EXAMPLES])
        faults.append(f"{name} holds entries that are not whole numbers, or are too large: {told}")
    return np.array([int(word) for word, fits in zip(words, good, strict=True) if fits], dtype=np.int64)


def _dealt(place: str, count: Ints, delay: Ints | None, offered: Offered) -> Left:
    """Assign each line to its cell as far as possible."""
    if not len(count):
        return Left(place, count, count, count, delay)
    once, often = listed.copies(count, delay, offered.campaigns)
    count, delay = count[once], None if delay is None else delay[once]
    times = None if delay is None else listed.times(count, delay, offered.campaigns)
    if times is not None and delay is not None:
        first = np.cumsum(times) - times
        count, delay = count[first], delay[first]
    if often > 1:
        times = (np.ones(len(count), dtype=np.int64) if times is None else times) * often
    found = split(count, delay, offered.campaigns, offered.window_ms)
    if found.starts is None:
        untold = np.full(len(count), UNTOLD, dtype=np.int64)
        faults, unsplit = ((found.why,), "") if found.cut else ((), found.why)
        return Left(place, untold, untold, count, delay, times, faults, unsplit)
    lengths = np.diff(np.append(found.starts, len(count)))
    campaign = np.repeat(np.arange(len(lengths)), lengths)
    back = np.arange(len(count)) - np.repeat(found.starts, lengths)  # 0: the newest window
    is_open = found.opens[found.starts]
    if is_open.mean() >= NEARLY_ALL:  # a campaign without a view in the newest window begins with the window before
        back += np.repeat(~is_open, lengths)
    return Left(place, campaign, int(back.max()) - back, count, delay, times)
