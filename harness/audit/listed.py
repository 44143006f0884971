"""Cells that a file lists more than once: adjacent lines that are equal in both files.

If two tasks make the same window at once, the campaign's list names it twice, and the original's `-g` then prints its
one hash twice. The counts of the other task are in a hash without a reference.
"""

from __future__ import annotations

import numpy as np

from harness.audit.left import Ints

SIGMAS = 6.0
MOST_COPIES, FEWEST = 9, 2
MICRO = 20  # above this number the control alone decides


def copies(count: Ints, delay: Ints | None, campaigns: int) -> tuple[Ints, int]:
    """Return the rows without repetitions of the whole file, or of each campaign, in the same order; and how often each
    occurs.
    """
    rows = np.column_stack([count] if delay is None else [count, delay])
    for parts in (1, campaigns):
        for often in range(2, MOST_COPIES + 1):
            length = len(rows) // (parts * often)
            if length < FEWEST or length * parts * often != len(rows):
                continue
            blocks = rows.reshape(parts, often, length, -1)
            if (blocks == blocks[:, :1]).all() and len(np.unique(count)) > 1:
                return np.arange(len(rows)).reshape(parts, often, length)[:, 0].ravel(), often
    return np.arange(len(rows)), 1


def times(count: Ints, delay: Ints, campaigns: int) -> Ints | None:
    """Return how often each cell is listed in a row; None if chance explains the equal neighbours.

    The control compares lines that are two and three lines apart in the same file, which are never the same cell. A few
    equal pairs are real if the lines can be divided evenly among the campaigns only without them.
    """
    if len(count) < 2:
        return None
    again = _equal(count, delay, 1)
    found = int(again.sum())
    # Lines i and i+2 are equal by chance, unless i+1 is equal as well: then a cell is listed three times.
    apart = int((_equal(count, delay, 2) & ~again[1:]).sum()) if len(count) > 2 else 0
    further = int((_equal(count, delay, 3) & ~again[2:]).sum()) if len(count) > 3 else 0
    chance = max(apart, further)
    clearly = found > MICRO and found > 3 * chance + SIGMAS * np.sqrt(chance + 1)
    evenly = found > 0 and (len(count) - found) % campaigns == 0 and len(count) % campaigns != 0
    if not clearly and not evenly:
        return None
    first = np.concatenate([[True], ~again])
    return np.bincount(np.cumsum(first) - 1).astype(np.int64)


def _equal(count: Ints, delay: Ints, apart: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray((count[apart:] == count[:-apart]) & (delay[apart:] == delay[:-apart]))
