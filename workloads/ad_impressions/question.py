"""Another question about ad impressions, to which a job may be changed during a run.

    counts     view, click or purchase, or several with a + between them
    by         campaign or ad
    window_ms  the length of a window

Other parts stay as they were. Results of an ad are in the hash `ad:ID`, because its plain id is the key of the string
with its campaign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model import RunSpec, UsageError
from harness.util.suggest import nearest
from workloads.ad_impressions.oracle import AdOracle
from workloads.ad_impressions.schema import EVENT_TYPES
from workloads.base import Columns, Places, Planned
from workloads.cells import Codes

KEYS = ("campaign", "ad")
WORDS = {"counts": EVENT_TYPES[0], "by": KEYS[0], "window_ms": ""}


class AdQuestion(AdOracle):
    """A question whose keys are campaigns, followed by ads. See `workloads.base.Question`."""

    def __init__(self, spec: RunSpec, asked: Mapping[str, str], codes: Codes) -> None:
        super().__init__(spec)
        words = {**WORDS, **asked}
        self.codes = codes
        self.window_ms = int(words["window_ms"] or spec.window_ms)
        if self.window_ms <= 0 or self.window_ms % self.part_ms:
            raise UsageError(
                f"A window of {self.window_ms} ms is no multiple of {self.part_ms} ms, as is expected here."
            )
        self._types = [EVENT_TYPES.index(_one_of(EVENT_TYPES, "counts", word)) for word in words["counts"].split("+")]
        self._by_ad = _one_of(KEYS, "by", words["by"]) == "ad"
        self.groups = self.probed_from = len(self.keys)

    @property
    def keys(self) -> Sequence[str]:
        campaigns = self._population.campaign_ids
        return (*campaigns, *(f"ad:{ad}" for ad in self._population.ad_ids)) if self._by_ad else campaigns

    def plan(self, blocks: Iterable[Planned]) -> Columns:
        """Count event by event, because speed does not matter here."""
        cells: Counter[tuple[int, int]] = Counter()
        for block in blocks:
            rows = np.flatnonzero(self._lies(block.content) & (block.poison == 0))
            times_ms = block.event_time_rel_ms[rows] // self.part_ms * self.part_ms
            cells.update(zip(self._keys_of(block.content["ad"][rows]).tolist(), times_ms.tolist(), strict=True))
        rows_of_cells = np.array([(*cell, count) for cell, count in sorted(cells.items())], dtype=np.int64)
        return dict(zip(("campaign", "window_rel_ms", "views"), rows_of_cells.reshape(-1, 3).T, strict=True))

    def places(self, events: Columns) -> Places:
        row = np.flatnonzero(self._lies(events))
        keys, times_ms = self._keys_of(events["ad"][row]), events["event_time_ms"][row]
        begins_ms = np.floor_divide(times_ms, self.window_ms) * self.window_ms
        return Places(row, self.codes.of(keys, begins_ms), begins_ms + self.window_ms)

    def name(self, cell: int, epoch_ms: int) -> str:
        ad = self.codes.key(cell) - self._population.campaigns
        if not self._by_ad or not 0 <= ad < len(self._population.ad_ids):
            return super().name(cell, epoch_ms)
        window = super().name(self.codes.one(0, self.codes.field(cell)), epoch_ms).partition(", ")[2]
        return f"ad {ad} ({self._population.ad_ids[ad][:8]}), {window}"

    def _lies(self, events: Columns) -> NDArray[np.bool_]:
        return np.isin(events["event_type"], self._types)

    def _keys_of(self, ads: NDArray[Any]) -> NDArray[np.integer[Any]]:
        population = self._population
        return ads + population.campaigns if self._by_ad else ads // np.int32(population.ads_per_campaign)


def _one_of(known: Sequence[str], name: str, word: str) -> str:
    if word not in known:
        raise UsageError(f"{name} = {word!r} is none of {', '.join(known)}{nearest(word, known)}.")
    return word
