"""Measure the benefit of restarting an engine that is behind with another run config. Pure.

The old config is extrapolated at its own rate, measured from its first progress line to its last, so that no start is
included. The new config has paid off once more is processed than that, and stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.judging.progress_curve import Curve
from harness.measuring.measurement import Lack, Quantity, Reconfiguration
from harness.measuring.stats import Floats
from harness.model import FaultReport
from harness.util.texts import many

CHANGES = "change-"  # prefix of the names of these faults
FEWEST_WORDS = 3  # progress lines, needed to measure a rate


@dataclass(frozen=True)
class Behind:
    """An engine with a backlog. Times are in seconds since the load start."""

    done: Curve
    due: Floats  # at the start of each second of the load, and at its end
    started_s: float
    until_s: float
    end: str  # the event at `until_s`, as in "until it had caught up"

    @property
    def offered_per_s(self) -> float:
        return float(self.due[-1] - self.due[0]) / (len(self.due) - 1)

    def to_do(self, at_s: float, done: float) -> float:
        return float(np.interp(at_s, np.arange(len(self.due)), self.due)) - done


@dataclass(frozen=True)
class _Words:
    """The progress that an engine reported within some time."""

    at_s: Floats
    total: Floats

    def __len__(self) -> int:
        return len(self.at_s)

    def rate(self, when: str) -> Quantity:
        if len(self) < FEWEST_WORDS:
            told = many(len(self), "word")
            return _unknown(f"{told} of its progress came {when}, and {FEWEST_WORDS} are needed")
        return Quantity(float((self.total[-1] - self.total[0]) / (self.at_s[-1] - self.at_s[0])))


def of_changes(faults: Iterable[FaultReport], epoch_ms: int, behind: Behind) -> Iterator[Reconfiguration]:
    """Yield the effect of each change that landed, measured between the changes around it.

    A change after the catch-up is left out.
    """
    landed_s = {
        (each.landed_ms - epoch_ms) / 1000: each.spec.text
        for each in faults
        if each.landed and each.spec.action.startswith(CHANGES)
    }
    moments_s = sorted(moment_s for moment_s in landed_s if moment_s < behind.until_s)
    for old, new in pairwise(pairwise([behind.started_s, *moments_s, behind.until_s])):
        yield _worth(landed_s[new[0]], behind, _words(behind.done, *old), _words(behind.done, *new))


def _words(done: Curve, from_s: float, until_s: float) -> _Words:
    within = (done.at_s > from_s) & (done.at_s <= until_s)
    return _Words(done.at_s[within], done.total[within])


def _worth(fault: str, behind: Behind, old: _Words, new: _Words) -> Reconfiguration:
    last_s, done = (float(old.at_s[-1]), float(old.total[-1])) if len(old) else (behind.started_s, 0.0)
    to_do, before_per_s = behind.to_do(last_s, done), old.rate("before")
    return Reconfiguration(
        fault=fault,
        at_s=last_s - behind.started_s,
        to_do=to_do,
        away=Quantity(float(new.at_s[0]) - last_s) if len(new) else _unknown("it reported no progress afterwards"),
        before_per_s=before_per_s,
        after_per_s=new.rate("after"),
        paid=_paid(before_per_s, last_s, done, new, behind),
        without=_without(before_per_s, last_s - behind.started_s, to_do, behind.offered_per_s),
    )


def _paid(before_per_s: Quantity, last_s: float, done: float, new: _Words, behind: Behind) -> Quantity:
    """Return when the new config was ahead of the old one for good.

    The old one would not have processed more than all due events.
    """
    if before_per_s.value is None:
        return before_per_s
    without = np.minimum(done + before_per_s.value * (new.at_s - last_s), behind.due[-1])
    missing = np.flatnonzero(new.total < without)
    first = int(missing[-1]) + 1 if len(missing) else 0
    if first >= len(new):
        return Quantity(None, f"not in the {behind.until_s - last_s:.0f} s until {behind.end}", lack=Lack.NEVER)
    return Quantity(float(new.at_s[first]) - last_s)


def _without(before_per_s: Quantity, at_s: float, to_do: float, offered_per_s: float) -> Quantity:
    """Return when the old config would have caught up, if events had continued at the offered rate."""
    if before_per_s.value is None:
        return before_per_s
    if before_per_s.value <= offered_per_s:
        return Quantity(None, f"{offered_per_s:,.0f}/s came", lack=Lack.NEVER)
    return Quantity(at_s + to_do / (before_per_s.value - offered_per_s))


def _unknown(why: str) -> Quantity:
    return Quantity(None, why, lack=Lack.UNKNOWN)
