"""`seen.txt` and `updated.txt` as the original benchmark writes them: a number a line, campaign after campaign, each
from its newest window to its oldest, and no name of either.

Where one campaign ends is found in two ways. The newest window was still open when the files were written, so that its
last update came earlier after its start than that of any other: such a line begins a campaign. Where that can't be
told, and the lines can be dealt out evenly, each campaign has as many windows. Else nobody knows which line is what.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.audit.left import Ints, Left, Offered

SEEN, UPDATED = "seen.txt", "updated.txt"
EXAMPLES = 3
CLEARLY_MS = 300


def read(seen: Path, offered: Offered) -> Left:
    """The two files of one run; `updated.txt` may be missing."""
    faults: list[str] = []
    content = seen.read_bytes()
    count = _numbers(content, seen.name, faults)
    updated = seen.with_name(UPDATED)
    delay = _numbers(updated.read_bytes(), updated.name, faults) if updated.is_file() else None
    if delay is not None and len(delay) != len(count):
        faults.append(f"{SEEN} has {len(count):,} numbers and {UPDATED} {len(delay):,}")
        delay = None
    digest = hashlib.sha256(content).hexdigest() if content.strip() else ""
    campaign, window = _split(len(count), delay, offered)
    return Left(str(seen.parent), campaign, window, count, delay, tuple(faults), digest=digest)


def _numbers(content: bytes, name: str, faults: list[str]) -> Ints:
    words = content.split()
    try:
        return np.array([int(word) for word in words], dtype=np.int64)
    except (ValueError, OverflowError):
        wrong = [(line, word) for line, word in enumerate(words, 1) if not word.removeprefix(b"-").isdigit()]
        told = ", ".join(f"number {line} is {word[:20].decode(errors='replace')!r}" for line, word in wrong[:EXAMPLES])
        faults.append(f"{name} holds what is no whole number: {told or 'one that is too large'}")
        good = [word for word in words if word.removeprefix(b"-").isdigit() and len(word) < 19]
        return np.array(good, dtype=np.int64)


def _split(rows: int, delay: Ints | None, offered: Offered) -> tuple[Ints, Ints]:
    """Campaign and window of each line; -1 where nobody knows."""
    lengths = _by_open_windows(rows, delay, offered)
    if lengths is None and rows and rows % offered.campaigns == 0:
        lengths = np.full(offered.campaigns, rows // offered.campaigns, dtype=np.int64)
    if lengths is None:
        return np.full(rows, -1, dtype=np.int64), np.full(rows, -1, dtype=np.int64)
    campaign = np.repeat(np.arange(len(lengths)), lengths)
    back = np.arange(rows) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # 0: the newest
    return campaign, int(lengths.max()) - 1 - back


def _by_open_windows(rows: int, delay: Ints | None, offered: Offered) -> NDArray[np.int64] | None:
    """As many as there are campaigns were updated last clearly earlier after their start than all others."""
    if delay is None or rows <= offered.campaigns:
        return None
    order = np.argsort(delay, kind="stable")
    starts = np.sort(order[: offered.campaigns])
    open_until, closed_from = delay[order[offered.campaigns - 1]], delay[order[offered.campaigns]]
    if starts[0] != 0 or closed_from - open_until < CLEARLY_MS:
        return None
    return np.diff(np.append(starts, rows))
