"""The judge's arithmetic: how many views each campaign has in each window, said independently of every job.

Works on columns of whole blocks, and keeps one row of counters per window, so memory does not grow with the number of
events. Nothing here is shared with a job but the event schema.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from workloads.ad_impressions.schema import VIEW, Population

Cells = dict[tuple[int, int], int]


class Planned(Protocol):
    """What the fold needs of a block of a tape's events."""

    @property
    def event_time_rel_ms(self) -> NDArray[np.int64]: ...
    @property
    def ad(self) -> NDArray[np.int32]: ...
    @property
    def event_type(self) -> NDArray[np.int8]: ...
    @property
    def poison(self) -> NDArray[np.int8]: ...


def fold(blocks: Iterable[Planned], population: Population, window_ms: int) -> Cells:
    """Views per (campaign, start of the window relative to the epoch). Copies count: they are in the log as well."""
    rows: defaultdict[int, NDArray[np.int64]] = defaultdict(lambda: np.zeros(population.campaigns, dtype=np.int64))
    for block in blocks:
        views = np.flatnonzero((block.event_type == VIEW) & (block.poison == 0))
        campaigns = block.ad[views] // np.int32(population.ads_per_campaign)
        _count(rows, campaigns, block.event_time_rel_ms[views] // window_ms)
    return _cells(rows, window_ms)


def _count(rows: defaultdict[int, NDArray[np.int64]], campaigns: NDArray[Any], windows: NDArray[np.int64]) -> None:
    if not len(windows):
        return
    first, width = int(windows.min()), rows[int(windows.min())].size
    counts = np.bincount((windows - first) * width + campaigns)
    for offset in range(-(-len(counts) // width)):
        part = counts[offset * width : (offset + 1) * width]
        if part.any():
            rows[first + offset][: len(part)] += part


def _cells(rows: dict[int, NDArray[np.int64]], window_ms: int) -> Cells:
    return {
        (int(campaign), window * window_ms): int(counts[campaign])
        for window, counts in rows.items()
        for campaign in np.flatnonzero(counts)
    }
