"""Runs as arrays: when events were due, sent and visible, and what somebody who looks now and then sees of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

import numpy as np

from harness.evidence.long_rows import Rows
from harness.measuring.latency.evidence import BY_CELL, Cells, EventsByCell, Evidence, Looked
from harness.measuring.latency.visibility import Samples

PERIOD_MS = 50
EPOCH_MS = 1_750_000_000_000
WINDOW_US = 10_000_000


@dataclass(frozen=True)
class World:
    """The truth, in microseconds since the epoch. The last campaign numbers are those of probes."""

    campaign: np.ndarray
    due_us: np.ndarray
    sent_us: np.ndarray
    visible_us: np.ndarray
    probes_from: int

    @property
    def latency_ms(self) -> np.ndarray:
        return np.asarray((self.visible_us - self.due_us) / 1000)

    @property
    def cell(self) -> np.ndarray:
        code = self.campaign * 1_000_000 + self.due_us // WINDOW_US
        return np.unique(code, return_inverse=True)[1]


def offered(rate_per_s: int, seconds: int, campaigns: int, probes: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Campaign and due time: a steady load, and one event of each probe campaign a window."""
    random = np.random.default_rng(seed)
    due_us = np.arange(rate_per_s * seconds) * (1_000_000 // rate_per_s)
    probe_us = (np.arange(probes * seconds // 10) + random.random(probes * seconds // 10)) * WINDOW_US / max(1, probes)
    campaign = [random.integers(0, campaigns, len(due_us)), campaigns + np.arange(len(probe_us)) % max(1, probes)]
    return np.concatenate(campaign), np.concatenate([due_us, probe_us.astype(np.int64)])


def world(campaign, due_us, visible_us, probes_from, sent_us=None) -> World:
    return World(campaign, due_us, due_us if sent_us is None else sent_us, visible_us.astype(np.int64), probes_from)


def looked_at(truth: World, turn=None, period_ms: int = PERIOD_MS) -> Evidence:
    """What one look each period gives."""
    cell, period_us = truth.cell, period_ms * 1000
    look = -(-truth.visible_us // period_us)
    order = np.lexsort((look, cell))
    cell_of, look_of = cell[order], look[order]
    count = np.arange(len(cell_of)) - np.searchsorted(cell_of, cell_of) + 1
    last = np.ones(len(cell_of), dtype=np.bool_)
    last[:-1] = (np.diff(cell_of) != 0) | (np.diff(look_of) != 0)
    begin_us = EPOCH_MS * 1000
    size = np.bincount(cell)
    campaign = np.zeros(len(size), dtype=np.int64)
    campaign[cell] = truth.campaign
    none, every = np.zeros(len(cell), dtype=np.bool_), np.ones(len(size), dtype=np.bool_)
    return Evidence(
        probes_from=truth.probes_from,
        epoch_ms=EPOCH_MS,
        events=by_cell(cell, truth.due_us + begin_us, truth.sent_us + begin_us, turn, none),
        cells=Cells(campaign, size, size, ~every, every, np.arange(len(size))),
        samples=Samples(cell_of[last], look_of[last] * period_us + begin_us, count[last]),
        looked=Looked(period_ms, period_ms, period_ms),
        yahoo_ms=np.zeros(0, dtype=np.int64),
    )


def by_cell(cell, due_us, sent_us, turn, mark) -> EventsByCell:
    order = np.argsort(cell, kind="stable")
    columns = {"cell": cell, "due_us": due_us, "sent_us": sent_us, "turn": due_us if turn is None else turn}
    rows = np.empty(len(cell), dtype=BY_CELL)
    for name, column in (columns | {"mark": mark}).items():
        rows[name] = column[order]
    kept = Rows(BY_CELL, Path(gettempdir()))
    kept.add(rows)
    return EventsByCell(kept, np.bincount(cell), turns=turn is not None)
