"""How much was done by when: cumulative curves of a stored run, and what can be read off them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.engines import progress
from harness.metering import clock_steps
from harness.model import Progress
from harness.rundir.store import Store

Floats = NDArray[np.float64]

CLOCKS_MS = 1000  # clocks of two processes differ by so much at most
# An engine that does not say how long a batch took is believed to have worked on it for so long at most.
LONGEST_BATCH_S = 2.0
# A rate has to be held for so long to be called sustained.
SUSTAINED_S = 2.0
# Results that change in more than so many stretches of this length per commit are not written by the commits.
SEEN_APART_S, OFTEN = 0.5, 3
# What is done is seen after so long at most, but for such a share of the load.
SHOWN_S, UNSEEN = 3.0, 0.05


@dataclass(frozen=True)
class Curve:
    """A count that only grows, told at some moments (seconds since the epoch); `took_s` lie behind each step. Nothing
    of it was there before `begin_s`."""

    at_s: Floats
    total: Floats
    took_s: Floats
    begin_s: float = 0.0

    def known(self, at_s: Floats) -> Floats:
        """What was surely done at each moment: the last that was told."""
        return last_known(self.at_s, self.total, at_s, before=0.0)

    def spread(self, at_s: Floats) -> Floats:
        """The same with each step spread over the time that it took, which is what makes a rate readable."""
        before_s, before = np.append(-np.inf, self.at_s)[:-1], np.append(0.0, self.total)[:-1]
        begin_s = np.maximum(self.at_s - self.took_s, before_s)
        begin_s = np.minimum(np.maximum(begin_s, self.begin_s), self.at_s)
        moments, totals = np.column_stack((begin_s, self.at_s)).ravel(), np.column_stack((before, self.total)).ravel()
        return np.asarray(np.interp(at_s, moments, totals))


def sent(sends: pa.Table) -> Curve:
    """Records by the moment at which the client had them."""
    order = np.argsort(sends.column("finished_us").to_numpy(), kind="stable")
    at_s = np.asarray(sends.column("finished_us").to_numpy(), dtype=np.float64)[order] / 1e6
    total = np.cumsum(np.asarray(sends.column("sent").to_numpy(), dtype=np.float64)[order])
    return Curve(at_s, total, np.zeros(len(at_s)))


def by_progress(lines: Sequence[Progress], epoch_ms: int, opening: int, begin_s: float = 0.0) -> Curve | None:
    """By the engine's own offsets, less the opening events; None for an engine that told none."""
    if not lines:
        return None
    at_s = (np.array([line.at_ms for line in lines], dtype=np.float64) - epoch_ms) / 1000
    done = np.array([float(sum(line.offsets.values())) - opening for line in lines], dtype=np.float64)
    took_s = np.array([_took_s(line) for line in lines], dtype=np.float64)
    order = np.argsort(at_s, kind="stable")
    return Curve(at_s[order], np.maximum.accumulate(np.maximum(done[order], 0.0)), took_s[order], begin_s)


def _took_s(line: Progress) -> float:
    return LONGEST_BATCH_S if line.took_ms is None else max(0, line.took_ms) / 1000


def by_results(samples: pa.Table, epoch_ms: int, records: float) -> Curve | None:
    """By what came to be seen in the results, as a share of what was seen in the end; that was all of the records."""
    cells = samples.sort_by([(name, "ascending") for name in ("campaign", "window_ms", "at_us")])
    campaign, window, count = (cells.column(name).to_numpy() for name in ("campaign", "window_ms", "count"))
    same = (campaign[1:] == campaign[:-1]) & (window[1:] == window[:-1])
    grown = np.diff(count, prepend=0)
    grown[1:][~same] = count[1:][~same]
    at_s = (np.asarray(cells.column("at_us").to_numpy(), dtype=np.float64) / 1000 - epoch_ms) / 1000
    order = np.argsort(at_s, kind="stable")
    seen = np.maximum.accumulate(np.cumsum(grown[order].astype(np.float64))) if len(order) else np.empty(0)
    if not len(seen) or seen[-1] <= 0:
        return None
    return Curve(at_s[order], seen / seen[-1] * records, np.zeros(len(order)))


def seen_before_told(told: Curve, seen: Curve) -> bool:
    """Whether a reader saw what was done long before the engine said so: one that writes at once and commits seldom.
    Then its commits say nothing of how far it was."""
    moments = np.flatnonzero(np.diff(np.floor(seen.at_s / SEEN_APART_S), prepend=-np.inf) > 0)
    if len(moments) <= OFTEN * len(told.at_s):
        return False
    return bool(np.mean(seen.total[moments] > told.known(seen.at_s[moments])) > 1 / 2)


def told_before_seen(told: Curve, seen: Curve) -> bool:
    """Whether an engine tells of much that no reader saw for long: then it is its word alone by which that is done."""
    nearly_all = int(np.argmax(told.total >= (1 - UNSEEN) * told.total[-1]))
    moments_s = np.arange(0.0, max(told.at_s[nearly_all], SEEN_APART_S), SEEN_APART_S)
    unseen = told.known(moments_s) - seen.known(moments_s + SHOWN_S)
    return bool(np.mean(unseen > UNSEEN * seen.total[-1]) > 1 / 2)


def catch_up_per_s(processed: Curve, offered: Curve) -> float | None:
    """The highest sustained rate over stretches of the load in which at least half of what was done had been waiting at
    the start; None when there was no such stretch, or none faster than the offer: then nothing shows how fast it is."""
    ends = np.searchsorted(processed.at_s, processed.at_s + SUSTAINED_S)
    begins = np.flatnonzero((ends < len(processed.at_s)) & (processed.at_s >= 0))
    ends = ends[begins]
    done = processed.total[ends] - processed.total[begins]
    waiting = offered.known(processed.at_s[begins]) - processed.total[begins]
    limited = (done > 0) & (waiting >= done / 2)
    rates = done[limited] / (processed.at_s[ends] - processed.at_s[begins])[limited]
    offered_per_s = (offered.total[-1] - offered.known(np.zeros(1))[0]) / offered.at_s[-1]
    return float(rates.max()) if len(rates) and rates.max() > offered_per_s else None


def read_progress(store: Store) -> tuple[Progress, ...]:
    """What the engine told of its progress, without what it did not manage to write whole."""
    return tuple(progress.stored(store.path / progress.FILE))


def progress_lines(store: Store) -> tuple[Progress, ...]:
    """What can be measured by: the lines whose moment lies within the run."""
    span = span_ms(store)
    return tuple(line for line in read_progress(store) if span is None or span[0] <= line.at_ms <= span[1])


def span_ms(store: Store) -> tuple[int, int] | None:
    """From when until when something of the run can have happened, by the clock of the machine, as an engine tells it;
    None where its history does not say."""
    begun = next(store.history("begin"), None)
    ended = [entry for kind in ("engine", "closed") for entry in store.history(kind)]
    if begun is None or not ended:
        return None
    low_ms, high_ms = clock_steps.ahead_ms(store)
    return begun["at_ms"] + low_ms - CLOCKS_MS, max(entry["at_ms"] for entry in ended) + high_ms + CLOCKS_MS


def last_known(at_s: Floats, values: Floats, moments_s: Floats, before: float = np.nan) -> Floats:
    """The newest value at each moment."""
    place = np.searchsorted(at_s, moments_s, side="right") - 1
    return np.where(place >= 0, np.append(values, before)[place], before)
