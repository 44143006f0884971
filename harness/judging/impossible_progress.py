"""Find impossible progress: an engine that reports records before they were sent, or more than the log holds. Pure.

If an engine's report contradicts the fleet or the log, no figure that rests on it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from harness.judging.judged import Judged
from harness.judging.lateness import rows_by_partition
from harness.model import Progress
from harness.util.texts import many
from workloads.base import Ints

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


def of_the_load(told: Sequence[Progress], judged: Iterable[Judged], behind_ms: int) -> str:
    """Return the line that is furthest ahead of the sent records; "" if there is none.

    The engine's clock may be behind by `behind_ms`.
    """
    worst_ms, words = 0, ""
    for part, newest_us in sorted(_newest_us(told, judged).items()):
        for line, sent_us in zip(told, newest_us.tolist(), strict=True):
            ahead_ms = sent_us // 1000 - (line.at_ms + behind_ms + CLOCKS_MS)
            if ahead_ms > worst_ms:
                worst_ms = ahead_ms
                words = (
                    f"progress.jsonl says in batch {line.batch} that {line.offsets[part]:,} records of partition "
                    f"{part} were done {(ahead_ms + CLOCKS_MS) / 1000:.1f} s before the last of them was sent: the "
                    f"engine reports records that it can't have read, or its clock is behind by as much"
                )
    return words


def _newest_us(told: Sequence[Progress], judged: Iterable[Judged]) -> Mapping[int, Ints]:
    """Return by partition, for each line, when the last of the records that it reports was sent; 0: it reports none."""
    ends: dict[int, Ints] = {}
    newest_us: dict[int, Ints] = {}
    for each in judged if told else ():
        for part, rows in rows_by_partition(each.events.partition).items():
            if part not in ends:
                ends[part] = np.unique([line.offsets.get(part, 0) for line in told])
                newest_us[part] = np.zeros(len(ends[part]) + 1, dtype=np.int64)
            first = np.searchsorted(ends[part], each.events.offset[rows], side="right")
            np.maximum.at(newest_us[part], first, each.sent_us[rows])
    of_lines = {part: np.searchsorted(own, [line.offsets.get(part, 0) for line in told]) for part, own in ends.items()}
    return {part: np.maximum.accumulate(newest_us[part])[lines] for part, lines in of_lines.items()}
