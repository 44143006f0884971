"""The share of events that another time than their own puts into another window, by their delay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from harness.model import Time
from reports.figures.style import BLUE, DURATION, GREEN, ORANGE, Sheet

COLOURS: Mapping[Time, str] = {"ingestion": GREEN, "append": BLUE, "processing": ORANGE}
# The order of drawing: the dashes of "ingestion" lie on the line of "append", whose times are a moment later.
DASHES: Mapping[Time, tuple[int, tuple[int, ...]]] = {
    "append": (0, ()),
    "ingestion": (0, (5, 2)),
    "processing": (0, (1, 1)),
}
FEWEST = 20  # fewest events for a meaningful share
EDGES_MS = np.array([0, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 6000, 8000, 10_000, 20_000, 60_000])


@dataclass(frozen=True)
class Shares:
    """The share of misplaced events among those with a similar delay, by time."""

    delay_ms: NDArray[np.float64]  # the median of each step
    of: Mapping[Time, NDArray[np.float64]]


def shares(delay_ms: NDArray[np.int64], by: Mapping[Time, NDArray[np.bool_]]) -> Shares:
    step = np.digitize(delay_ms, EDGES_MS)
    told = [each for each in np.unique(step) if (step == each).sum() >= FEWEST]
    median_ms = np.array([np.median(delay_ms[step == each]) for each in told])
    return Shares(
        median_ms, {time: np.array([mask[step == each].mean() for each in told]) for time, mask in by.items()}
    )


def draw(found: Shares, sheet: Sheet) -> None:
    (axes,) = sheet.rows([210.0], above_px=36.0)
    for time in [each for each in DASHES if each in found.of]:
        axes.plot(
            found.delay_ms,
            found.of[time],
            color=COLOURS[time],
            linestyle=DASHES[time],
            marker="o",
            markersize=3,
            label=time,
        )
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.xaxis.set_major_formatter(DURATION)
    axes.locator_params(axis="x", nbins=5 if sheet.narrow else 9)
    axes.set_xlim(left=0)
    axes.set_xlabel("how long after its own time an event was in Kafka")
    axes.set_title("in another window", fontweight="bold")
    axes.figure.legend(loc="outside upper left", ncols=3)
