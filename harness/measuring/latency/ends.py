"""The ends of batches, by the engine's own times, and the latency of events due outside of them.

An engine whose results appear while a batch runs takes no events between two batches: it commits, and plans the next
one. Events due then wait, so the tail of all events shows the length of these ends and hides the speed at other times.
An engine could report any slow moment as an end. So only a small share may be left out, the total is shown too, and the
share is always reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.measuring.latency.visibility import Ints, Mask
from harness.model import Progress

MOST_LEFT_OUT = 0.10  # of the events of any way of measuring
TOO_MANY = f"more than {MOST_LEFT_OUT:.0%} of the events were due in them"
ONLY_THEN = "its results appear only when a batch is over"


@dataclass(frozen=True)
class Ends:
    """Ends of batches, ordered by their begin."""

    begin_us: Ints
    end_us: Ints

    def hold(self, due_us: Ints) -> Mask:
        """Select times within an end."""
        latest_us = np.append(np.maximum.accumulate(self.end_us), np.iinfo(np.int64).min)  # ends may overlap
        return due_us < latest_us[np.searchsorted(self.begin_us, due_us, side="right") - 1]

    def among(self, due_us: Ints) -> Ends:
        """Return the ends that overlap the range of these times."""
        touch = (self.end_us > due_us.min()) & (self.begin_us < due_us.max())
        return Ends(self.begin_us[touch], self.end_us[touch])

    @property
    def longest_ms(self) -> float:
        return float((self.end_us - self.begin_us).max(initial=0)) / 1000


def told(lines: Iterable[Progress]) -> Ends | None:
    """Read the ends from progress lines; None: the engine reports none."""
    spans_us = np.array([line.end_ms for line in lines if line.end_ms], dtype=np.int64).reshape(-1, 2) * 1000
    if not len(spans_us):
        return None
    begin_us, end_us = spans_us[np.argsort(spans_us[:, 0], kind="stable")].T
    return Ends(begin_us, end_us)
