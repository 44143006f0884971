"""The ages of events when they were due, and of those that the engine dropped as late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray

from reports.figures.style import BLUE, DURATION, INK, ORANGE, SHORT, Sheet, note

BINS = 70


@dataclass(frozen=True)
class Tally:
    """The count of each whole number of milliseconds. There are some thousand numbers, however many events."""

    ms: NDArray[np.int64]  # in ascending order
    often: NDArray[np.int64]

    @classmethod
    def of(cls, parts: Iterable[NDArray[np.int64]]) -> Tally:
        ms, often = np.zeros((2, 0), dtype=np.int64)
        for counted in (pa.array(part).value_counts() for part in parts):
            several = np.concatenate((often, counted.field("counts").to_numpy()))
            ms, index = np.unique(np.concatenate((ms, counted.field("values").to_numpy())), return_inverse=True)
            often = np.zeros(len(ms), dtype=np.int64)
            np.add.at(often, index, several)
        return cls(ms, often)

    @property
    def events(self) -> int:
        return int(self.often.sum())

    def quantile(self, share: float) -> float:
        """Interpolate linearly between two events, as numpy does."""
        position = share * (self.events - 1)
        ranks = np.array([np.floor(position), np.ceil(position)])
        low, high = self.ms[np.searchsorted(np.cumsum(self.often), ranks, side="right")]
        return float(low + (position - ranks[0]) * (high - low))


@dataclass(frozen=True)
class Ages:
    """Due time minus event time. A negative age belongs to an event that is dated ahead."""

    sent: Tally
    dropped: Tally
    watermark_ms: int


def draw(ages: Ages, sheet: Sheet) -> None:
    (axes,) = sheet.rows([210.0], above_px=36.0)
    low, high = min(0, int(ages.sent.ms.min())), max(int(ages.sent.ms.max()), ages.watermark_ms)
    edges = np.linspace(low, high * 1.02 + 1, BINS + 1)
    for tally, colour, label in (
        (ages.sent, BLUE, "sent"),
        (ages.dropped, ORANGE, "of these dropped as late"),
    ):
        if events := tally.events:
            shown = f"{label} ({events:,})"
            axes.hist(tally.ms, list(edges), weights=tally.often, color=colour, label=shown, linewidth=0)
    axes.set_yscale("log", nonpositive="clip")
    axes.set_ylim(bottom=0.7)
    axes.yaxis.set_major_locator(LogLocator(numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(SHORT)
    axes.xaxis.set_major_formatter(DURATION)
    axes.locator_params(axis="x", nbins=5 if sheet.narrow else 9)
    axes.set_xlabel("age of an event when it is due")
    axes.set_title("events", fontweight="bold")
    axes.axvline(ages.watermark_ms, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
    right = ages.watermark_ms > 0.6 * high
    apart = (-4 if right else 4, -4)
    note(axes, "watermark", (ages.watermark_ms, 1), apart, xycoords=("data", "axes fraction"), va="top")
    axes.figure.legend(loc="outside upper left", ncols=2)
