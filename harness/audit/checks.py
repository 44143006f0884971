"""Can these counts be what was offered? Each check takes what a run left and what is known of its load.

The original draws each event's ad and type at random, so that the count of a cell scatters like that of a Poisson
distribution. What is off by more than `SIGMAS` standard errors, and by more than `SHARE`, is no chance: of a
million windows that are right not one is called wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harness.audit.left import Left, Offered
from harness.model import Outcome

SIGMAS = 6.0
SHARE = 0.02  # a generator whose clock runs so much slower is no defect of the counts
IMPOSSIBLE = 1e-9  # a chance so small does not happen
FLUSH_MS = 1000  # the original writes its results so often


@dataclass(frozen=True)
class Finding:
    word: str
    sentence: str
    outcome: Outcome = Outcome.FAIL


Check = Callable[[Left, Offered], list[Finding]]


def readable(left: Left, _: Offered) -> list[Finding]:
    found = [Finding("torn", sentence) for sentence in left.faults]
    if not len(left.count):
        found.append(Finding("empty", "there is not one count"))
    elif (wrong := int((left.count < 0).sum())) > 0:
        found.append(Finding("torn", f"{wrong:,} counts are below zero"))
    return found


def multiples(left: Left, _: Offered) -> list[Finding]:
    """A job that was started k times adds every event k times, whatever else goes wrong."""
    counts = left.count[left.count > 0]
    times = int(np.gcd.reduce(counts)) if len(counts) else 1
    if times < 2 or len(np.unique(counts)) < 2 or len(counts) * math.log(times) < -math.log(IMPOSSIBLE):
        return []
    chance = f"one in {times}^{len(counts):,}"
    return [
        Finding(
            "duplicated",
            f"every one of {len(counts):,} counts is a multiple of {times} (by chance: {chance}), as when the job was "
            f"started {times} times",
        )
    ]


def amount(left: Left, offered: Offered) -> list[Finding]:
    """What whole windows hold, against what was offered."""
    expected = offered.per_cell
    if expected is None:
        why = "no rate is known (--rate, or a folder named rate=1000), so completeness can't be judged"
        return [Finding("no rate", why, Outcome.UNKNOWN)]
    share = _share(left, offered)
    if share is None:
        why = "no window is known to be whole" if left.is_split else f"{len(left.count):,} counts can't be dealt out"
        return [Finding("no windows", f"{why}: campaigns times windows is expected", Outcome.UNKNOWN)]
    views = _views_offered(left, expected, offered)
    limit = _chance(views) / views
    return [] if abs(share - 1) <= limit else [_amount(share, limit, offered)]


def _views_offered(left: Left, per_cell: float, offered: Offered) -> float:
    """In all whole windows."""
    return per_cell * offered.campaigns * len(np.unique(left.window[left.inner]))


def _chance(count: float, share: float = SHARE) -> float:
    """By so much a count may be off."""
    return max(share * count, SIGMAS * math.sqrt(max(count, 1.0)))


def _amount(share: float, limit: float, offered: Offered) -> Finding:
    told = f"whole windows hold {share:.2f} times the views that were offered"
    times, running = round(share), round(share * offered.producers)
    if times >= 2 and abs(share / times - 1) <= limit:
        return Finding("duplicated", f"{told}: each {times} times")
    near = abs(share * offered.producers / running - 1) <= limit if running else False
    if near and 0 < running < offered.producers:
        missing = offered.producers - running
        return Finding("producers", f"{told}, as if {missing} of {offered.producers} producers had sent nothing")
    return Finding("lost" if share < 1 else "phantom", told)


def windows(left: Left, offered: Offered) -> list[Finding]:
    """Windows between the first and the last that hold less than their neighbours, or are not there at all."""
    inner = left.inner
    if not inner.any():
        return []
    low = int(left.window.min()) + 1
    totals = np.bincount(left.window[inner] - low, weights=left.count[inner], minlength=int(left.window.max()) - low)
    usual = float(np.median(totals))
    short = np.flatnonzero(usual - totals > _chance(usual))
    found = []
    if len(short):
        worst = int(short[np.argmin(totals[short])])
        found.append(
            Finding(
                "short window",
                f"{len(short):,} of {len(totals):,} whole windows are short: number {worst + low + 1} from the oldest "
                f"holds {totals[worst]:,.0f} views, the usual one {usual:,.0f}",
            )
        )
    if offered.duration_s is not None:
        wanted, there = int(offered.duration_s * 1000 // offered.window_ms) - 1, len(totals)
        if there < wanted:
            found.append(
                Finding("short run", f"{there:,} whole windows where {offered.duration_s:,.0f} s make {wanted:,}")
            )
    return found


def campaigns(left: Left, offered: Offered) -> list[Finding]:
    """Each is offered as much as any other."""
    inner = left.inner
    if not inner.any():
        return []
    there = len(np.unique(left.campaign))
    if there != offered.campaigns:
        return [Finding("campaigns", f"{there:,} campaigns have counts, {offered.campaigns:,} are expected")]
    totals = np.bincount(left.campaign[inner], weights=left.count[inner], minlength=there)
    usual = float(np.median(totals))
    off = np.flatnonzero(np.abs(totals - usual) > _chance(usual, 3 * SHARE))
    if not len(off):
        return []
    worst = int(off[np.argmax(np.abs(totals[off] - usual))])
    return [
        Finding(
            "uneven",
            f"{len(off):,} of {there:,} campaigns are off: number {worst + 1} holds {totals[worst]:,.0f} views, the "
            f"usual one {usual:,.0f}",
        )
    ]


def delays(left: Left, offered: Offered) -> list[Finding]:
    """`time_updated` less the start of the window: before the window's end only as long as its last event may be."""
    if left.delay_ms is None:
        return []
    found = []
    if early := int((left.delay_ms < 0).sum()):
        found.append(Finding("impossible latency", f"{early:,} windows were updated before they began"))
    inner = left.inner
    usual = float(np.median(left.count[inner])) if inner.any() else 0.0
    if usual > 0:
        gap_ms = -math.log(IMPOSSIBLE / len(left.count)) * offered.window_ms / usual
        soonest = offered.window_ms - gap_ms - FLUSH_MS
        hurried = left.delay_ms[inner & (left.count > 0)]
        if soonest > 0 and (count := int((hurried < soonest).sum())):
            found.append(
                Finding(
                    "impossible latency",
                    f"{count:,} whole windows were updated last at {int(hurried.min()):,} ms after their start or "
                    f"later, and an event after {soonest:,.0f} ms was due in each",
                )
            )
    if offered.duration_s is not None:
        latest = offered.duration_s * 1000 + 3_600_000
        if count := int((left.delay_ms > latest).sum()):
            found.append(Finding("impossible latency", f"{count:,} windows were updated an hour after the run's end"))
    return found


def orphans(left: Left, _: Offered) -> list[Finding]:
    if not left.orphans:
        return []
    told = f"{left.orphans:,} views are in hashes to which no campaign refers: two tasks made the same window at once"
    return [Finding("orphans", told)]


CHECKS: tuple[Check, ...] = (readable, multiples, amount, windows, campaigns, delays, orphans)


@dataclass(frozen=True)
class Audited:
    """What is to be said of the results in one place."""

    place: str
    cells: int
    share: float | None  # of what was offered
    outcome: Outcome
    findings: tuple[Finding, ...]

    @property
    def sentence(self) -> str:
        return self.findings[0].sentence if self.findings else f"{self.cells:,} counts can be what was offered"


def audit(left: Left, offered: Offered, twin: str = "") -> Audited:
    found = [finding for check in CHECKS for finding in check(left, offered)]
    if twin:
        found.insert(0, Finding("copy", f"the very same file as {twin}: one of them is not what it says"))
    outcome = Outcome.worst([Outcome.PASS, *(finding.outcome for finding in found)])
    found.sort(key=lambda finding: finding.outcome is not outcome)
    return Audited(left.place, len(left.count), _share(left, offered), outcome, tuple(found))


def _share(left: Left, offered: Offered) -> float | None:
    inner, expected = left.inner, offered.per_cell
    if expected is None or not inner.any():
        return None
    return float(left.count[inner].sum()) / _views_offered(left, expected, offered)
