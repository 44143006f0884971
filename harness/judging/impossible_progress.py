"""Find impossible progress: an engine that reports records before they were sent, or more than the log holds. Pure.

If an engine's report contradicts the fleet or the log, no figure that rests on it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model import Progress
from harness.util.texts import many
from workloads.base import Ints

Whole = NDArray[np.integer[Any]]

CLOCKS_MS = 1000  # clocks of two processes differ by at most this


def beyond_the_log(told: Iterable[Progress], ends: Mapping[int, int]) -> str:
    """Return the first line that reports more records than a partition holds; "" if there is none.

    `ends` holds for each partition the offset after its last record.
    """
    for line in told:
        for partition, done in sorted(line.offsets.items()):
            if done > ends.get(partition, 0):
                return (
                    f"progress.jsonl says that {many(done, 'record')} of partition {partition} were done, and the log "
                    f"holds {ends.get(partition, 0):,}: the engine reports records that do not exist"
                )
    return ""


def of_the_load(told: Sequence[Progress], partition: Whole, offset: Whole, sent_us: Ints, behind_ms: int) -> str:
    """Return the line that is furthest ahead of the sent records; "" if there is none.

    Rows are ordered by partition and offset. `sent_us` is the earliest time at which each was sent, 0 if unknown. The
    engine's clock may be behind by `behind_ms`.
    """
    worst_ms, words = 0, ""
    parts, begins = np.unique(partition, return_index=True)
    for part, (begin, end) in zip(parts.tolist(), pairwise([*begins, len(partition)]), strict=True):
        newest_us = np.maximum.accumulate(sent_us[begin:end])
        for line in told:
            rows = int(np.searchsorted(offset[begin:end], line.offsets.get(part, 0)))
            told_ms = line.at_ms + behind_ms + CLOCKS_MS
            ahead_ms = int(newest_us[rows - 1]) // 1000 - told_ms if rows else 0
            if ahead_ms > worst_ms:
                worst_ms = ahead_ms
                words = (
                    f"progress.jsonl says in batch {line.batch} that {line.offsets[part]:,} records of partition "
                    f"{part} were done {(ahead_ms + CLOCKS_MS) / 1000:.1f} s before the last of them was sent: the "
                    f"engine reports records that it can't have read, or its clock is behind by as much"
                )
    return words
