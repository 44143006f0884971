"""How old events were when they were due to be sent, and which of them the engine dropped as late."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray

from reports.figures.style import BLUE, DURATION, INK, ORANGE, SHORT, Sheet

BINS = 70


@dataclass(frozen=True)
class Ages:
    """Due time minus event time, in ms; below zero is dated ahead."""

    sent_ms: NDArray[np.int64]
    dropped_ms: NDArray[np.int64]
    watermark_ms: int


def draw(ages: Ages, sheet: Sheet) -> None:
    (axes,) = sheet.rows([210.0], above_px=36.0)
    low, high = min(0, int(ages.sent_ms.min())), max(int(ages.sent_ms.max()), ages.watermark_ms)
    edges = np.linspace(low, high * 1.02 + 1, BINS + 1)
    for values, colour, label in (
        (ages.sent_ms, BLUE, "sent"),
        (ages.dropped_ms, ORANGE, "of these dropped as late"),
    ):
        if len(values):
            axes.hist(values, list(edges), color=colour, label=f"{label} ({len(values):,})", linewidth=0)
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
    axes.annotate(
        "watermark",
        (ages.watermark_ms, 1),
        (-4 if right else 4, -4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
    )
    axes.figure.legend(loc="outside upper left", ncols=2)
