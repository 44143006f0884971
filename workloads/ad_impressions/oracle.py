"""The expected counts of ad impressions: views of each campaign in each window, computed independently of every job.

The plan is folded by columns of whole blocks into one row of counters per window, thus memory does not grow with the
number of events. It shares no arithmetic with `places` and `fold`, which count the log, and nothing here is shared with
a job but the event schema.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model import RunSpec
from harness.util.texts import clock
from workloads.ad_impressions.schema import VIEW, Population, population_of
from workloads.base import Columns, Ints, Kind, Places, Planned, Totals, Value
from workloads.cells import Codes

Cells = dict[tuple[int, int], int]

PART_MS = 500
MOST_PARTS = 2_000_000  # with more of them each window is one part


class AdOracle:
    """An oracle whose keys are campaigns and whose fields are starts of windows. See `workloads.base.Oracle`."""

    values = (Value("views", Kind.COUNT),)
    merges = keeps_rows = False

    def __init__(self, spec: RunSpec) -> None:
        self.codes = Codes()
        self.groups, self.probed_from = spec.tape.all_campaigns, spec.tape.campaigns
        self.window_ms = spec.window_ms
        self.part_ms = part_ms(spec)
        self._population = population_of(spec.tape)

    def plan(self, blocks: Iterable[Planned]) -> Columns:
        """Count in parts of windows that never cross the edge of a window, wherever the load will start."""
        rows = [(*cell, views) for cell, views in sorted(fold(blocks, self._population, self.part_ms).items())]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return dict(zip(("campaign", "window_rel_ms", "views"), columns, strict=True))

    def settle(self, planned: Columns, epoch_ms: int) -> Totals:
        begins_ms = (planned["window_rel_ms"] + epoch_ms) // self.window_ms * self.window_ms
        cells, of_row = np.unique(self.codes.of(planned["campaign"], begins_ms), return_inverse=True)
        views = np.zeros(len(cells), dtype=np.int64)
        np.add.at(views, of_row, planned["views"])
        return Totals(cells, views)

    def places(self, events: Columns) -> Places:
        campaign = events["ad"] // np.int32(self._population.ads_per_campaign)
        begins_ms = np.floor_divide(events["event_time_ms"], self.window_ms) * self.window_ms
        return Places(np.arange(len(campaign)), self.codes.of(campaign, begins_ms), begins_ms + self.window_ms)

    def fold(self, cells: Ints, columns: Columns) -> Totals:  # noqa: ARG002  (there are none)
        import pyarrow as pa  # takes long, and many commands count nothing

        found = pa.array(cells).value_counts()  # without a copy of so many cells
        known, views = (np.asarray(found.field(name).to_numpy()) for name in ("values", "counts"))
        order = np.argsort(known)
        return Totals(known[order], views[order])

    def begins_ms(self, cells: Ints) -> Ints:
        return self.codes.fields(cells)

    def name(self, cell: int, epoch_ms: int) -> str:
        campaign, window_ms = self.codes.key(cell), self.codes.field(cell)
        name = self._population.campaign_ids[campaign] if 0 <= campaign < self.groups else "?"
        since = (window_ms - epoch_ms) / 1000
        return f"campaign {campaign} ({name[:8]}), window {clock(window_ms)} ({round(since):+d} s)"


def part_ms(spec: RunSpec) -> int:
    """Return the length of a part of a window."""
    part = gcd(spec.window_ms, PART_MS)
    span_ms = spec.tape.reach_ms + spec.tape.warm_up_ms + spec.tape.load_ms
    return part if spec.tape.all_campaigns * span_ms // part <= MOST_PARTS else spec.window_ms


def fold(blocks: Iterable[Planned], population: Population, window_ms: int) -> Cells:
    """Count views per (campaign, start of the window relative to the load start). Copies count, because they are in the
    log as well.
    """
    rows: defaultdict[int, NDArray[np.int64]] = defaultdict(lambda: np.zeros(population.campaigns, dtype=np.int64))
    for block in blocks:
        views = np.flatnonzero((block.content["event_type"] == VIEW) & (block.poison == 0))
        campaigns = block.content["ad"][views] // np.int32(population.ads_per_campaign)
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
