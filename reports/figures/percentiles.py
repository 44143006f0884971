"""Latency by percentile on an axis of 1/(1-p), where each further nine has the same width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator
from numpy.typing import NDArray

from harness.measuring.stats import Ascending
from harness.util.nearest_rank import ranks
from reports.figures.style import DURATION, INK, PAPER, Sheet, duration, log_ticks, note

# A percentile with fewer samples beyond it depends on the luck of a few events.
SAMPLES_BEYOND = 10
TICKS = (0.0, 0.9, 0.99, 0.999, 0.9999)
LABELLED = (0.5, 0.9, 0.99, 0.999, 0.9999)
POINTS = 240
LOG_RATIO = 100.0


@dataclass(frozen=True)
class Curve:
    """Sorted samples in ms of one way of measuring. Censored samples lie beyond all of them."""

    label: str
    samples_ms: Ascending | NDArray[np.float64]
    censored: int
    colour: str
    dashed: bool = False
    labelled: bool = False  # write its values beside it

    @property
    def count(self) -> int:
        return len(self.samples_ms) + self.censored

    def at(self, share: float) -> float:
        """Return the smallest sample that is not below this share of all samples, including censored ones."""
        return float(self.samples_ms[int(ranks(share, self.count)) - 1])

    @property
    def last_share(self) -> float:
        """The highest percentile with enough samples beyond it; 0 if there is none."""
        return max(0.0, 1.0 - max(SAMPLES_BEYOND, self.censored + 1) / self.count) if self.count else 0.0


def points(curve: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return shares that are evenly spaced on the axis, and the latency at each."""
    end = -np.log10(1.0 - curve.last_share)
    shares = 1.0 - 10.0 ** -np.linspace(0.0, end, POINTS)
    return shares, np.array([curve.at(float(share)) for share in shares])


def draw(curves: Sequence[Curve], sheet: Sheet) -> None:
    (axes,) = sheet.rows([280.0])
    for curve in curves:
        shares, latency_ms = points(curve)
        style = (0, (4, 2)) if curve.dashed else "-"
        axes.plot(_position(shares), latency_ms, color=curve.colour, linestyle=style, label=curve.label)
        if curve.labelled:
            _name(axes, curve)
    lowest = min(float(curve.samples_ms[0]) for curve in curves)
    highest = max(curve.at(curve.last_share) for curve in curves)
    if lowest > 0 and highest > LOG_RATIO * lowest:
        log_ticks(axes)
    else:
        axes.set_ylim(bottom=min(0.0, lowest))
    axes.yaxis.set_major_formatter(DURATION)
    shown = [tick for tick in TICKS if tick <= max(curve.last_share for curve in curves)]
    axes.xaxis.set_major_locator(FixedLocator([float(_position(np.array(tick))) for tick in shown]))
    axes.set_xticklabels([f"{tick * 100:g} %" for tick in shown])
    axes.grid(axis="x")
    axes.set_xlabel("share of events that were visible within")
    axes.figure.legend(loc="outside upper left", ncols=1 if sheet.narrow else 2)


def _position(share: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-np.log10(1.0 - share))


def _name(axes: Axes, curve: Curve) -> None:
    for share in (each for each in LABELLED if each <= curve.last_share):
        x, latency_ms = float(_position(np.array(share))), curve.at(share)
        axes.plot(x, latency_ms, "o", color=curve.colour, markersize=5, markeredgecolor=PAPER)
        low = share < 0.9  # left of it is the axis
        note(axes, duration(latency_ms), (x, latency_ms), (5, -11) if low else (-4, 5), color=INK)
