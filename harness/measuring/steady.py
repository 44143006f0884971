"""Find if and when a run was steady. Pure: a timeline in, a Steady out.

If a run had a warm-up before its load, all of its load is judged. For any other run the warm-up is estimated by MSER,
which cuts off the start that adds more error to the mean of the rest than its length is worth. The rest is steady if
three slopes are shown to be small: not "no growth was seen", but "growth above the limit is excluded at 95 %". So a run
that is too short or too noisy is not steady, and the sentence gives the reason.

A shared machine is slower at times, and backlog and latency follow. The load, which always does the same work, shows
the machine's speed: its CPU per due event. Changes that follow this speed are distinguished from growth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.measuring.measurement import Steady
from harness.measuring.stats import Floats, slope

LIMIT = 0.01
START_AND_VERDICT_S = 50  # for Spark, on two cores
# A slope needs at least this many seconds, and this many windows.
SHORTEST_S = 20
SHORTEST_WINDOWS = 2
# An engine frees the state of closed windows from time to time, at the latest after this many windows.
CLEANED_WITHIN = 2
SEED = 20_000
# The load's cost is averaged over this many seconds: about as long as a batch, whose latency covers all of it.
SMOOTHED_S = 5
# The fixed cost of a slice matters more when few events are sent. So only seconds with nearly the usual rate are
# compared, and the gaps between them are interpolated.
AS_OFFERED = 0.8
_COLUMNS = {"backlog": "in_flight", "latency": "latency_p50_ms", "state": "state_bytes"}
_WORDS = {"backlog": "the backlog", "latency": "the median latency", "state": "the state"}


@dataclass(frozen=True)
class _Bound:
    """One slope, relative to its reference."""

    name: str
    estimate: float
    upper: float


@dataclass(frozen=True)
class _Series:
    """A value per second, and the speed figure that it may follow."""

    name: str
    seconds: Floats
    values: Floats
    beside: Floats | None

    def after(self, first: int) -> _Series:
        beside = None if self.beside is None else self.beside[first:]
        return _Series(self.name, self.seconds[first:], self.values[first:], beside)


def foretold(warm_up_s: float, load_s: float, window_s: float) -> str:
    """Describe the duration of a run with a warm-up, before it starts."""
    minutes = max(2, round((warm_up_s + load_s + START_AND_VERDICT_S) / 60))
    return (
        f"Warm-up {warm_up_s:.0f} s, so that code is compiled and windows are filled; then {load_s:.0f} s of load, "
        f"{load_s // window_s:.0f} windows, so that growth of {LIMIT:.0%} can be told from noise. With start and "
        f"verdict that takes about {minutes} minutes."
    )


def advice(found: Steady, warm_up_s: float) -> str:
    """Suggest how to reach or show a steady state, for a run that was not steady."""
    if found.steady:
        return ""
    if not warm_up_s:
        return "`streamgauge run steady` is long enough"
    over = [found.slopes[name] for name, bound in found.bounds.items() if not bound < LIMIT]
    if any(estimate >= LIMIT for estimate in over):
        return "if it grows on a quiet machine too, take a lower --rate"
    return "take a quieter machine, or a longer --warm-up or --duration"


def find(timeline: pa.Table, load_s: float, window_s: float, warm_up_s: float = 0) -> Steady:
    """Judge the whole seconds of the load only: before it nothing is offered, and after it everything falls."""
    seconds = _column(timeline, "second")
    within = (seconds >= 0) & (seconds < np.floor(load_s))
    series = {name: _column(timeline, column)[within] for name, column in _COLUMNS.items()}
    known = {name: _filled(values) for name, values in series.items() if np.isfinite(values).any()}
    if "state" in known:
        cleaned_s = round(CLEANED_WITHIN * window_s)
        if _seldom_seen(known["state"], cleaned_s):
            del known["state"]
        else:
            known["state"] = _least_of(known["state"], cleaned_s)
    if "backlog" not in known:
        return _no(None, None, "not steady: the backlog is not known, because the engine reported no progress")
    offered, slowness = _column(timeline, "offered_per_s")[within], _slowness(timeline, within)
    seconds = seconds[within]
    # The size of a state does not depend on the machine's speed.
    whole = [_Series(name, seconds, values, None if name == "state" else slowness) for name, values in known.items()]
    firsts = [0 if warm_up_s else warm_up(_without(each.values, each.beside)) for each in whole]
    first = max(firsts)
    needed_s = max(SHORTEST_S, SHORTEST_WINDOWS * window_s)
    if len(seconds) - first < needed_s:
        return _too_short(first or warm_up_s, len(seconds) - first, needed_s)
    if not offered[first:].any():
        return _no(None, None, "not steady: nothing was sent any more")
    rest = [each.after(own) for each, own in zip(whole, firsts, strict=True)]
    bounds = list(_bounds(rest, float(offered[first:].mean()), window_s))
    return _judged(seconds[first:], bounds, first or warm_up_s, told_apart=slowness is not None)


def warm_up(values: Floats) -> int:
    """Return how many seconds of a series are warm-up, at most half of it (MSER)."""
    count = len(values)
    if not count:
        return 0
    values = values - values.mean()  # large values would hide small differences
    left = np.arange(count, 0, -1)
    sums, squares = np.cumsum(values[::-1])[::-1], np.cumsum(values[::-1] ** 2)[::-1]
    errors = (squares - sums**2 / left) / left.astype(np.float64) ** 2
    return int(np.argmin(errors[: count // 2 + 1]))


def _slowness(timeline: pa.Table, within: NDArray[np.bool_]) -> Floats | None:
    """Return the load's CPU seconds per due event, by second, relative to their median; None if unknown."""
    if "cpu_generator" not in timeline.column_names:
        return None
    offered, cores = _column(timeline, "offered_per_s")[within], _column(timeline, "cpu_generator")[within]
    per_event = np.divide(
        cores, offered, out=np.full(len(cores), np.nan), where=offered > AS_OFFERED * np.median(offered)
    )
    if len(per_event) < SMOOTHED_S or np.isfinite(per_event).mean() < 1 / 2:
        return None
    wide = np.pad(_filled(per_event), SMOOTHED_S // 2, mode="edge")
    smooth = np.convolve(wide, np.full(SMOOTHED_S, 1 / SMOOTHED_S), mode="valid")
    return smooth / usual if (usual := float(np.median(smooth))) > 0 else None


def _without(values: Floats, beside: Floats | None) -> Floats:
    """Remove the influence of the machine's speed from a series.

    Its weight is estimated from the second half, which is never warm-up.
    """
    if beside is None:
        return values
    half = len(values) // 2
    design = np.column_stack([np.ones(len(values) - half), np.arange(half, len(values)), beside[half:]])
    weight = float((np.linalg.pinv(design) @ values[half:])[2])
    return values - weight * (beside - np.median(beside[half:]))


def _bounds(series: Sequence[_Series], offered_per_s: float, window_s: float) -> Iterator[_Bound]:
    """Compare the backlog's slope with the offered rate, and the others', per window, with their own median.

    Each starts at the end of its own warm-up: an engine's state takes longer to fill than its latency to settle.
    """
    for each in series:
        against = offered_per_s if each.name == "backlog" else float(np.median(each.values)) / window_s
        found = slope(each.seconds, each.values, SEED, period=round(window_s), beside=each.beside)
        yield _Bound(each.name, _share(found.estimate, against), _share(found.upper, against))


def _share(value: float, against: float) -> float:
    if against > 0:
        return value / against
    return 0.0 if value <= 0 else float("inf")


def _judged(seconds: Floats, bounds: list[_Bound], warm_up_s: float, *, told_apart: bool) -> Steady:
    start_s, end_s = float(seconds[0]), float(seconds[-1]) + 1
    over = [each for each in bounds if not each.upper < LIMIT]
    where = f"from {start_s:.0f} s to {end_s:.0f} s of the load"
    if over:
        sentence = f"not steady {where}: " + "; ".join(_complaint(each) for each in over)
    else:
        warm = f" after {warm_up_s:.0f} s of warm-up" if warm_up_s else ""
        sentence = f"steady {where}{warm}: growth of {LIMIT:.0%} or more is excluded at 95 % for " + " and ".join(
            _WORDS[each.name] for each in bounds
        )
    if told_apart:
        sentence += ", apart from what follows the machine's own speed"
    missing = [_WORDS[name] for name in _COLUMNS if name not in {each.name for each in bounds}]
    if missing:
        sentence += f"; too little was seen of {' and '.join(missing)}"
    values = {each.name: each.upper for each in bounds}
    slopes = {each.name: each.estimate for each in bounds}
    return Steady(not over, start_s, end_s, sentence, values, dict.fromkeys(values, LIMIT), slopes)


def _complaint(bound: _Bound) -> str:
    per = "of the offered rate" if bound.name == "backlog" else "of its median per window"
    seen = f"grew by {bound.estimate:.1%}" if bound.estimate >= 0 else f"fell by {-bound.estimate:.1%}"
    doubt = f"and {bound.upper:.1%}" if bound.estimate >= 0 else f"and growth of {bound.upper:.1%}"
    return f"{_WORDS[bound.name]} {seen} {per}, {doubt} can't be excluded"


def _too_short(warm_up_s: float, left: int, needed_s: float) -> Steady:
    warm = f"after {warm_up_s:.0f} s of warm-up " if warm_up_s else ""
    return _no(None, None, f"not steady: {warm}only {left} s of load are left, and {needed_s:.0f} s are needed to tell")


def _no(start_s: float | None, end_s: float | None, sentence: str) -> Steady:
    return Steady(False, start_s, end_s, sentence, {}, {})


def _column(timeline: pa.Table, name: str) -> Floats:
    return np.asarray(timeline.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)


def _least_of(values: Floats, length: int) -> Floats:
    """Return the minimum of the last `length` seconds: a state after its clean-up, which is the part that may grow."""
    padded = np.concatenate((np.full(length - 1, np.inf), values))
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, length).min(axis=1))


def _seldom_seen(values: Floats, longest: int) -> bool:
    """Return True if the state is reported less often than it is cleaned up.

    The few steps of its report show neither growth nor its absence. A state that never changes does not grow.
    """
    changes = np.flatnonzero(np.diff(values))
    return len(changes) > 0 and int(np.diff(changes, prepend=-1, append=len(values) - 1).max()) > longest


def _filled(values: Floats) -> Floats:
    """Interpolate unknown seconds."""
    known: NDArray[np.bool_] = np.isfinite(values)
    places = np.arange(len(values))
    return np.interp(places, places[known], values[known])
