"""Cumulative curves of the processed and sent records of a stored run, and figures from them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.engines import progress
from harness.evidence.send_index import SendLog, column
from harness.metering import clock_steps
from harness.model import Progress
from harness.rundir.store import Store

Floats = NDArray[np.float64]

CLOCKS_MS = 1000  # clocks of two processes differ by at most this
# The assumed duration of a batch, if the engine reports none.
LONGEST_BATCH_S = 2.0
# A rate must last this long to count as sustained.
SUSTAINED_S = 2.0
# If results change in more than OFTEN intervals of this length per commit, the commits did not write them.
SEEN_APART_S, OFTEN = 0.5, 3
# Processed records are seen within SHOWN_S, except for this share of the load.
SHOWN_S, UNSEEN = 3.0, 0.05


@dataclass(frozen=True)
class Curve:
    """A growing count, reported at some times (seconds since the load start).

    Each step took `took_s`. Nothing was counted before `begin_s`.
    """

    at_s: Floats
    total: Floats
    took_s: Floats
    begin_s: float = 0.0

    def known(self, at_s: Floats) -> Floats:
        """Return the count that was certain at each time: the last reported one."""
        return last_known(self.at_s, self.total, at_s, before=0.0)

    def spread(self, at_s: Floats) -> Floats:
        """Return the count with each step spread over the time that it took, so that a rate can be read off."""
        before_s, before = np.append(-np.inf, self.at_s)[:-1], np.append(0.0, self.total)[:-1]
        begin_s = np.maximum(self.at_s - self.took_s, before_s)
        begin_s = np.minimum(np.maximum(begin_s, self.begin_s), self.at_s)
        moments, totals = np.column_stack((begin_s, self.at_s)).ravel(), np.column_stack((before, self.total)).ravel()
        return np.asarray(np.interp(at_s, moments, totals))


def sent(sends: SendLog) -> Curve:
    """Return the records by the time at which the client had them."""
    finished_us = column(sends, "finished_us")
    order = np.argsort(finished_us, kind="stable")
    total = np.cumsum(column(sends, "sent")[order], dtype=np.float64)
    return Curve(finished_us[order] / 1e6, total, np.zeros(len(total)))


def by_progress(lines: Sequence[Progress], epoch_ms: int, opening: int, begin_s: float = 0.0) -> Curve | None:
    """Return the curve by the engine's own offsets, without the opening events; None if it reported none."""
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
    """Return the curve by counts seen in the results, as a share of the final counts, scaled to all records."""
    cells = samples.sort_by([(name, "ascending") for name in ("campaign", "window_ms", "at_us")])
    key, window, count = (cells.column(name).to_numpy() for name in ("campaign", "window_ms", "count"))
    same = (key[1:] == key[:-1]) & (window[1:] == window[:-1])
    grown = np.diff(count, prepend=0)
    grown[1:][~same] = count[1:][~same]
    at_s = (np.asarray(cells.column("at_us").to_numpy(), dtype=np.float64) / 1000 - epoch_ms) / 1000
    order = np.argsort(at_s, kind="stable")
    seen = np.maximum.accumulate(np.cumsum(grown[order].astype(np.float64))) if len(order) else np.empty(0)
    if not len(seen) or seen[-1] <= 0:
        return None
    return Curve(at_s[order], seen / seen[-1] * records, np.zeros(len(order)))


def seen_before_told(told: Curve, seen: Curve) -> bool:
    """Return True if results were seen long before the engine reported them: it writes at once and commits rarely.

    Then its commits do not show its progress.
    """
    moments = np.flatnonzero(np.diff(np.floor(seen.at_s / SEEN_APART_S), prepend=-np.inf) > 0)
    if len(moments) <= OFTEN * len(told.at_s):
        return False
    return bool(np.mean(seen.total[moments] > told.known(seen.at_s[moments])) > 1 / 2)


def told_before_seen(told: Curve, seen: Curve) -> bool:
    """Return True if an engine reports much progress that long stays unseen in the results, and so is unproven."""
    nearly_all = int(np.argmax(told.total >= (1 - UNSEEN) * told.total[-1]))
    moments_s = np.arange(0.0, max(told.at_s[nearly_all], SEEN_APART_S), SEEN_APART_S)
    unseen = told.known(moments_s) - seen.known(moments_s + SHOWN_S)
    return bool(np.mean(unseen > UNSEEN * seen.total[-1]) > 1 / 2)


def catch_up_per_s(processed: Curve, offered: Curve) -> float | None:
    """Return the highest sustained rate while the engine had a backlog; None if the load shows no such rate.

    An interval counts if at least half of the records processed in it had been waiting at its start. A rate below the
    offered one does not count, because it does not show the engine's limit.
    """
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
    """Read the engine's progress lines, without incomplete ones."""
    return tuple(progress.stored(store.path / progress.FILE))


def progress_lines(store: Store) -> tuple[Progress, ...]:
    """Return the progress lines that can be used for measurements: those with a time within the run."""
    span = span_ms(store)
    return tuple(line for line in read_progress(store) if span is None or span[0] <= line.at_ms <= span[1])


def span_ms(store: Store) -> tuple[int, int] | None:
    """Return the first and last possible time of an event in the run, by the machine's clock, which the engine uses.

    None if the history does not record it.
    """
    begun = next(store.history("begin"), None)
    ended = [entry for kind in ("engine", "closed") for entry in store.history(kind)]
    if begun is None or not ended:
        return None
    low_ms, high_ms = clock_steps.ahead_ms(store)
    return begun["at_ms"] + low_ms - CLOCKS_MS, max(entry["at_ms"] for entry in ended) + high_ms + CLOCKS_MS


def last_known(at_s: Floats, values: Floats, moments_s: Floats, before: float = np.nan) -> Floats:
    """Return the newest value at each time."""
    place = np.searchsorted(at_s, moments_s, side="right") - 1
    return np.where(place >= 0, np.append(values, before)[place], before)
