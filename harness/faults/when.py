"""Moments of faults, and whether they have come. Faults wait for progress, never for a sleep.

    kill@c3:batch=3   sink.c3   kill@c3:t>=40s   kill@batch>=7   kill@offset>=50%   kill@t>=60s

`+` counts from the beginning of the wait: batch>=+2
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.faults.run_at_poll import Moment, done
from harness.model import CRASH_POINTS, CrashPoint, When
from harness.util.durations import NotUnderstoodError, seconds
from harness.util.suggest import nearest

POINTS: Mapping[str, CrashPoint] = {point: point for point in CRASH_POINTS}
KINDS = (*POINTS, "batch", "offset", "t", "now")
SHARE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)%")
WHOLE = re.compile(r"[0-9]{1,9}")
MOST = 999_999_999


def parse(text: str) -> When:
    """Parse the text after the @."""
    if text == "now":
        return When()
    name, sign, value = re.fullmatch(r"(?:sink\.)?([^:=>]*)(:|>=|=)?(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if name in POINTS:
        return _point(name, value) if sign else When("point", point=POINTS[name])
    if name not in KINDS:
        raise NotUnderstoodError(
            f"there is no moment {name!r}; the moments are {', '.join(KINDS)}{nearest(name, KINDS)}"
        )
    relative = value.startswith("+")
    value = value.removeprefix("+")
    if name == "batch":
        return When("batch", batch=_batch(value), relative=relative)
    if name == "offset":
        return When("offset", share=_share(value), relative=relative)
    return When("time", seconds=seconds(value, "t"), relative=relative)


def words(when: When) -> str:
    """Format a moment as users write it."""
    plus = "+" if when.relative else ""
    return {
        "now": "now",
        "point": _words_of_point(when),
        "batch": f"batch>={plus}{when.batch}",
        "offset": f"offset>={plus}{when.share:.4g}",
        "time": f"t>={plus}{when.seconds:g}s",
    }[when.kind]


def _words_of_point(when: When) -> str:
    if when.seconds:
        return f"{when.point}:t>={'+' if when.relative else ''}{when.seconds:g}s"
    return f"{when.point}:batch={when.batch}" if when.batch else when.point


class Waiting:
    """One wait for one moment; it remembers where it began. Crash points are armed and detected by the faults
    themselves; for them `is_over` means that the point may be armed."""

    def __init__(self, when: When) -> None:
        self._when = when
        self._begin: Moment | None = None
        self._newest: Moment | None = None

    def how_far(self) -> str:
        """Return how far the job was at the last poll, for a moment that never came; "" if that explains nothing."""
        newest = self._newest
        if newest is None or self._when.kind not in ("batch", "offset"):
            return ""
        if newest.progress is None:
            return ": the job reported no progress"
        if self._when.kind == "batch":
            return f": the last batch was {newest.progress.batch:,}"
        return f": {done(newest):,} of {newest.total:,} records were done"

    def is_over(self, now: Moment) -> bool:
        self._newest = now
        if self._begin is None:
            self._begin = now
        when, begin = self._when, self._begin if self._when.relative else None
        if when.kind == "now" or (when.kind == "point" and not when.seconds):
            return True
        if when.kind in ("time", "point"):
            since_ms = begin.now_ms if begin else now.epoch_ms
            return since_ms > 0 and now.now_ms - since_ms >= when.seconds * 1000
        if now.progress is None:
            return False
        if when.kind == "batch":
            before = begin.progress.batch if begin and begin.progress else 0
            return now.progress.batch >= before + when.batch
        return done(now) >= (done(begin) if begin else now.before) + when.share * (now.total - now.before)


def _point(name: str, parameter: str) -> When:
    """Parse the text after `c3:`. The name alone means the first batch that has something to write."""
    point = POINTS[name]
    key, _, value = re.fullmatch(r"([^:=>]*)(>=|=)?(.*)", parameter, re.DOTALL).groups()  # type: ignore[union-attr]
    if key == "t":
        return When("point", point, seconds=seconds(value.removeprefix("+"), "t"), relative=value.startswith("+"))
    if key != "batch":
        known = f"{nearest(key, ('batch', 't'))}; use {name}:batch=3 or {name}:t>=40s"
        raise NotUnderstoodError(f"{name} can't be followed by {key!r}{known}")
    return When("point", point, _batch(value))


def is_count(text: str) -> bool:
    return bool(WHOLE.fullmatch(text)) and int(text) > 0


def _batch(value: str) -> int:
    if not WHOLE.fullmatch(value):
        raise NotUnderstoodError(f"batch = {value!r} is not a whole number from 0 to {MOST:,}")
    return int(value)


def _share(value: str) -> float:
    number = SHARE.fullmatch(value)
    share = float(number[1]) / 100 if number else 0.0
    if not 0 < share < 1:
        raise NotUnderstoodError(f"offset = {value!r} is not a share of all events between 0% and 100%, such as 50%")
    return share
