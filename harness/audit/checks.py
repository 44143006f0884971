"""The checks of an audit: do these counts fit the offered load? Each check takes the shape of a run's results and has
its own words.

A finding with PASS is a remark: it makes no count wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harness.audit.left import Left, Offered
from harness.audit.scatter import SHARE, SIGMAS, by_chance
from harness.audit.shape import Shape
from harness.model import Outcome
from harness.util.texts import many

IMPOSSIBLE = 1e-9  # events with a smaller probability do not happen
FLUSH_MS = 1000  # the original writes its results at this interval
HOUR_MS = 3_600_000
EDGES = 2  # windows at each end that may be partial: producers start and stop one after the other
MOST = 0.6  # least share of cells that divide by k, if each event was counted k times
TIMES = {2: "doubled", 3: "tripled"}
UNTOLD = "can't be told"


@dataclass(frozen=True)
class Finding:
    word: str
    sentence: str
    outcome: Outcome = Outcome.FAIL


Check = Callable[[Shape], list[Finding]]


def readable(left: Left) -> list[Finding]:
    found = [Finding(UNTOLD, left.doubt, Outcome.UNKNOWN)] if left.doubt else []
    found += [Finding("torn", sentence) for sentence in left.faults]
    found += [Finding("ambiguous", left.ambiguous)] if left.ambiguous else []
    if not len(left.count):
        if not found:
            found.append(Finding("empty", "there are no counts"))
    elif (wrong := int((left.count < 0).sum())) > 0:
        found.append(Finding("torn", f"{many(wrong, 'count is', 'counts are')} below zero"))
    elif not left.count.any():
        found.append(Finding("empty", f"each of {len(left.count):,} counts is 0"))
    return found


def amount(shape: Shape) -> list[Finding]:
    """Compare the usual cell with the offered load, and find out if each event was counted several times."""
    times, part = _multiple(shape)
    share, limit = shape.share, shape.share_limit
    if times > 1:
        by_rate = "" if share is None else f"; the usual cell holds {share:.2f} times the offered views"
        told = (
            f"{part:.1%} of the cells are divisible by {times}, against {1 / times:.0%} by chance: each event "
            f"was counted"
        )
        return [Finding(TIMES.get(times, f"{times} times"), f"{told} {times} times{by_rate}")]
    if share is None:
        told = "the load is unknown: give --rate, --total-rate or --loads, or name folders by their load"
        if (expected := shape.offered.per_cell) is not None:
            told = f"{expected:.2g} views per cell are too few to detect missing ones"
        return [Finding(UNTOLD, told, Outcome.UNKNOWN)]
    if abs(share - 1) <= limit:
        return []
    told = f"the usual cell holds {share:.3f} times the offered views"
    if share > 1:
        near = round(share)
        more = near > 1 and abs(share / near - 1) <= limit
        return [Finding("too much", f"{told}{_sent_more(near) if more else ''}")]
    return [Finding("lost", f"{told}, equally in all windows{_missing_producers(shape)}")]


def _sent_more(times: int) -> str:
    return (
        f"; the cells are not divisible by {times}, so more was sent: {times} times the load, not {times} counts "
        f"per event"
    )


def _multiple(shape: Shape) -> tuple[int, float]:
    """Return the number that divides nearly all cells, and the share of cells. A window of two tasks has lost a part of
    its views, so it may not be divisible.
    """
    counts = shape.left.count[shape.left.count > 0]
    for times in range(9, 1, -1):
        part = float((counts % times == 0).mean())
        chance = 1 / times
        limit = chance + math.sqrt(-math.log(IMPOSSIBLE) / 2 / len(counts))  # Hoeffding's
        if part > max(MOST, limit) and len(np.unique(counts)) > 1:
            return times, part
    return 1, 0.0


def _missing_producers(shape: Shape) -> str:
    """Explain a lack by silent producers: if one of ten sends nothing, a share of 0.9 remains."""
    assert shape.share is not None
    for of in [shape.offered.producers] if shape.offered.producers else range(2, 11):
        running = round(shape.share * of)
        if 0 < running < of and abs(shape.share * of / running - 1) <= SHARE / 4 + shape.share_limit - SHARE:
            return f": as if {of - running} of {of} producers had sent nothing"
    return ""


def listed(shape: Shape) -> list[Finding]:
    """Find cells that the files list more than once, and the views that such cells lack."""
    times = shape.left.times_listed
    if times is None:
        return []
    again, cells = int(times.sum() - len(times)), int((times > 1).sum())
    told = (
        f"{again:,} of {many(int(times.sum()), 'line')} list a cell again "
        f"({many(cells, 'cell')}); without them there are "
        f"{len(times) / shape.offered.campaigns:.2f} lines per campaign"
    )
    rows = shape.full_windows & ~shape.low if shape.left.is_split else ~shape.low
    one, more = shape.left.count[rows & (times == 1)], shape.left.count[rows & (times > 1)]
    found = [Finding("listed twice", told)]
    if len(one) > 1 and len(more) > 1:
        lacking = float(one.mean() - more.mean())
        if lacking > SIGMAS * math.sqrt(float(one.var()) * (1 / len(one) + 1 / len(more))):
            found.append(
                Finding(
                    "lost",
                    f"cells that are listed more than once hold {lacking / one.mean():.1%} less than the others, "
                    f"about {lacking * len(more):,.0f} views: two tasks created the same window at once, and the "
                    f"counts of one of them are in a hash without a reference",
                )
            )
    return found


def windows(shape: Shape) -> list[Finding]:
    """Check the number of windows against the duration, the completeness of inner windows, and the delay of the
    engine.
    """
    if not shape.left.is_split:
        return []
    late = shape.percentile_ms(50)
    wanted = shape.offered.duration_s and shape.offered.duration_s * 1000 / shape.offered.window_ms
    lost, missing, enough = _lost(shape), *_missing(shape, wanted)
    found = []
    if late is not None and late > shape.offered.window_ms:
        told = f"half of the windows got their last update {late / 1000:,.0f} s or more after their end"
        if lost or not enough:
            reasons = [told, *missing, *(each.sentence for each in lost)]
            found.append(Finding("fell behind", "; ".join(reasons)))
        else:
            found.append(Finding("fell behind", f"{told}; no count is missing", Outcome.PASS))
    else:
        found += [Finding("cut off", "; ".join(missing))] if missing else []
        found += lost
    oldest = shape.partial[0]
    if oldest > EDGES:
        found.append(
            Finding("short at start", f"the oldest {oldest} windows hold less than whole ones: {_shares(shape)}")
        )
    if wanted and shape.windows > wanted + _tolerance(wanted) + 1:
        told = f"{shape.windows:,.0f} windows; {shape.offered.duration_s:,.0f} s should give {wanted:,.0f}"
        found.append(Finding("longer than said", told, Outcome.PASS))
    return found


def _tolerance(windows: float) -> float:
    return EDGES + SHARE * windows


def _missing(shape: Shape, wanted: float | None) -> tuple[list[str], bool]:
    """Return sentences about gaps at the end, and whether the whole windows are as many as expected."""
    told, newest = [], shape.partial[1]
    if wanted and shape.windows < wanted - _tolerance(wanted):
        told.append(f"{shape.windows:,.0f} windows; {shape.offered.duration_s:,.0f} s should give {wanted:,.0f}")
    if newest > EDGES:
        first = max(0, len(shape.totals) - newest)
        views = float((shape.usual_total - shape.totals[first:]).sum())
        told.append(f"the newest {newest} windows, from {_at(shape, first)} on, lack about {views:,.0f} views")
    whole = shape.windows - newest
    return told, not told or bool(wanted and whole > wanted - EDGES - 1)


def _shares(shape: Shape) -> str:
    shares = [total / shape.usual_total for total in shape.totals[: shape.edge[0]]]
    return ", ".join(f"{share:.2f}" for share in shares[:8]) + " of the usual one"


def _lost(shape: Shape) -> list[Finding]:
    """Find inner cells that are low or missing, the number of lost views, and their windows."""
    first, end = shape.edge
    once = shape.left.times_listed is None  # losses in the other cells have their own finding
    low = shape.low & shape.full_windows & (True if shape.left.times_listed is None else shape.left.times_listed == 1)
    short = [n for n in range(first, end) if once and shape.usual_total - shape.totals[n] > shape.total_limit]
    gaps = int((np.diff(shape.numbers) - 1).sum())
    absent = _absent(shape) if shape.usual > shape.limit else 0
    if not (low.any() or short or gaps or absent):
        return []
    views = max(
        float((shape.usual - shape.left.count[low]).sum()) + absent * shape.usual + gaps * shape.usual_total,
        float(sum(shape.usual_total - shape.totals[n] for n in short)),
    )
    told = [f"about {views:,.0f} views are missing"]
    if cells := int(low.sum()) + absent:
        told.append(f"{many(cells, 'cell between whole ones is', 'cells between whole ones are')} low or missing")
    if gaps:
        told.append(f"{many(gaps, 'whole window is', 'whole windows are')} missing")
    if columns := sorted({*short, *(int(n) for n in np.unique(shape.column[low]))}):
        worst = min(columns, key=lambda n: shape.totals[n])
        part = shape.totals[worst] / shape.usual_total
        told.append(
            f"{many(len(columns), 'window lacks', 'windows lack')} some, the worst {_at(shape, worst)} with "
            f"{part:.2f} of the usual views"
        )
    return [Finding("lost", ", ".join(told))]


def _absent(shape: Shape) -> int:
    """Count the missing cells between the first and the last one of their campaign."""
    index = np.unique(shape.left.campaign, return_inverse=True)[1]
    oldest, newest = np.full(index.max() + 1, len(shape.numbers)), np.full(index.max() + 1, -1)
    np.minimum.at(oldest, index, shape.column)
    np.maximum.at(newest, index, shape.column)
    return int((newest - oldest + 1).sum() - len(index))


def _at(shape: Shape, column: int) -> str:
    seconds = int(shape.numbers[column] - shape.numbers[0]) * shape.offered.window_ms // 1000
    return f"{seconds:,} s after the first"


def surplus(shape: Shape) -> list[Finding]:
    """Find cells that hold more than chance allows."""
    if not shape.high.any():
        return []
    cells = np.flatnonzero(shape.high)
    worst = int(cells[np.argmax(shape.left.count[cells])])
    views = float((shape.left.count[cells] - shape.usual).sum())
    told = (
        f"{many(len(cells), 'cell holds', 'cells hold')} about {views:,.0f} views more than the "
        f"usual one, {shape.usual:,.0f}"
    )
    when = f", in the window {_at(shape, int(shape.column[worst]))}" if shape.left.is_split else ""
    return [Finding("too much", f"{told}; the largest holds {shape.left.count[worst]:,}{when}")]


def campaigns(shape: Shape) -> list[Finding]:
    """Find campaigns that differ: each is offered as much as any other."""
    if not shape.left.is_split:
        return []
    there, wanted = len(np.unique(shape.left.campaign)), shape.offered.campaigns
    if there != wanted:
        return [
            Finding("campaigns", f"{many(there, 'campaign has', 'campaigns have')} counts, but {wanted:,} are expected")
        ]
    first, end = shape.edge
    inner = (shape.column >= first) & (shape.column < end)
    if not inner.any():
        return []
    index = np.unique(shape.left.campaign, return_inverse=True)[1]
    if shape.usual > shape.limit:  # else no single cell can be too low
        inner &= ~shape.low
    columns = np.maximum(np.bincount(index[inner], minlength=there), 1) if shape.usual > shape.limit else end - first
    totals = np.bincount(index[inner], weights=shape.left.count[inner], minlength=there) * (end - first) / columns
    usual = float(np.median(totals))
    off = np.flatnonzero(
        np.abs(totals - usual) > max(by_chance(usual, 3 * SHARE), shape.limit * math.sqrt(end - first))
    )
    if not len(off):
        return []
    worst = int(off[np.argmax(np.abs(totals[off] - usual))])
    told = f"{len(off):,} of {many(there, 'campaign')} are off: number {worst + 1} holds {totals[worst]:,.0f} views"
    return [Finding("uneven", f"{told}; the usual one holds {usual:,.0f}")]


def delays(shape: Shape) -> list[Finding]:
    """Check the last updates: none may be before the last events of its window, or long after the end of the run."""
    delay, width = shape.left.delay_ms, shape.offered.window_ms
    if delay is None:
        return []
    found = []
    if early := int((delay < 0).sum()):
        found.append(
            Finding("impossible latency", f"{many(early, 'window was', 'windows were')} updated before they began")
        )
    if shape.left.is_split and shape.usual > 0:
        gap_ms = -math.log(IMPOSSIBLE / len(delay)) * width / shape.usual
        soonest = width - gap_ms - FLUSH_MS
        hurried = delay[shape.full_windows & (shape.left.count > 0) & (delay < soonest)]
        if soonest > 0 and len(hurried):
            told = (
                f"{many(len(hurried), 'whole window', 'whole windows')} got the last update {hurried.min():,} ms "
                f"after the start"
            )
            found.append(Finding("impossible latency", f"{told}, but an event after {soonest:,.0f} ms was due in each"))
    run_ms = max((shape.offered.duration_s or 0) * 1000, len(delay) / shape.offered.campaigns * width)
    if late := int((delay > run_ms + HOUR_MS).sum()):
        found.append(
            Finding(
                "impossible latency", f"{many(late, 'window was', 'windows were')} updated an hour after the run's end"
            )
        )
    return found


def known(shape: Shape) -> list[Finding]:
    if shape.left.is_split or shape.left.faults:
        return []
    told = (
        f"the campaign of each line is unknown: {shape.left.unsplit}; so losses in single cells and windows stay hidden"
    )
    return [Finding(UNTOLD, told, Outcome.UNKNOWN)]


def orphans(left: Left) -> list[Finding]:
    if not left.orphans:
        return []
    told = (
        f"{left.orphans:,} views are in hashes without a reference from a campaign: two tasks created the same "
        f"window at once"
    )
    return [Finding("orphans", told)]


CHECKS: tuple[Check, ...] = (amount, windows, listed, surplus, campaigns, delays, known)


@dataclass(frozen=True)
class Audited:
    """The result for one folder, file or Redis. It is small, because there may be ten thousand."""

    place: str
    engine: str
    offered: Offered
    cells: int
    share: float | None  # the usual cell as a share of the offered load
    findings: tuple[Finding, ...] = ()
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    curve: tuple[tuple[int, float], ...] = ()
    digest: str = ""

    @property
    def outcome(self) -> Outcome:
        return Outcome.worst([Outcome.PASS, *(finding.outcome for finding in self.findings)])

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words of the outcome, and remarks."""
        told = [each.word for each in self.findings if each.outcome in (self.outcome, Outcome.PASS)]
        return tuple(dict.fromkeys([*(["right"] if self.outcome is Outcome.PASS else []), *told]))

    @property
    def sentence(self) -> str:
        return (
            self.findings[0].sentence
            if self.findings
            else f"{many(self.cells, 'count')} can result from the offered load"
        )


def audit(left: Left, offered: Offered, engine: str = "") -> Audited:
    found = [*readable(left), *orphans(left)]
    if not left.count.any() or (left.count < 0).any():
        return Audited(left.place, engine, offered, len(left.count), None, _sorted(found), digest=left.digest)
    shape = Shape(left, offered)
    found += [finding for check in CHECKS for finding in check(shape)]
    return Audited(
        left.place,
        engine,
        offered,
        len(left.count),
        shape.share,
        _sorted(found),
        shape.percentile_ms(50),
        shape.percentile_ms(99),
        shape.curve,
        left.digest,
    )


def _sorted(found: list[Finding]) -> tuple[Finding, ...]:
    """Sort the findings that decide the outcome first."""
    worst = [Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS]
    return tuple(sorted(found, key=lambda each: worst.index(each.outcome)))
