"""Checks that the moments of a plan come while events are still sent: a later fault would strike an idle engine.

The earliest moment of each step is known; a batch or a crash point may come at any time. A moment relative to the
beginning of the wait (`+`) counts from the earliest moment of the step before. The first step begins to wait before the
load starts, at no known time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from harness.model import FaultSpec, UsageError


@dataclass(frozen=True)
class _Earliest:
    """The earliest moment at which a step has struck."""

    seconds: float = -math.inf  # since the load start
    share: float = 0.0  # of all planned records


class _TooLateError(Exception):
    """A step that can't be reached."""

    def __init__(self, step: FaultSpec) -> None:
        super().__init__(step.text)
        self.step = step


def refuse_beyond(fault: FaultSpec, load_ms: int) -> None:
    try:
        _walk(fault, _Earliest(), load_ms / 1000)
    except _TooLateError as late:
        in_the_middle = f"{late.step.text.partition('@')[0]}@t>={load_ms // 2}ms"
        raise UsageError(
            f"{late.step.text} would begin after the load has ended, which lasts {load_ms / 1000:g} s. Give an earlier "
            f"moment, such as {in_the_middle}, or a longer --duration."
        ) from None


def _walk(fault: FaultSpec, since: _Earliest, load_s: float) -> _Earliest:
    if not fault.steps:
        return _strike(fault, since, load_s)
    if fault.action == "any":
        return _first(fault, since, load_s)
    for step in fault.steps * int(fault.options.get("times", 1)):
        since = _walk(step, since, load_s)
    return since


def _first(fault: FaultSpec, since: _Earliest, load_s: float) -> _Earliest:
    """Require one reachable step; it is enough."""
    reached = []
    for step in fault.steps:
        try:
            reached.append(_walk(step, since, load_s))
        except _TooLateError as late:
            too_late = late
    if not reached:
        raise too_late
    return _Earliest(min(each.seconds for each in reached), min(each.share for each in reached))


def _strike(fault: FaultSpec, since: _Earliest, load_s: float) -> _Earliest:
    when, struck = fault.when, since
    if fault.planned and (when.kind == "time" or when.seconds):
        struck = replace(since, seconds=since.seconds + when.seconds if when.relative else when.seconds)
    if fault.planned and when.kind == "offset":
        struck = replace(since, share=since.share + when.share if when.relative else when.share)
    if struck.seconds >= load_s or struck.share >= 1:
        raise _TooLateError(fault)
    return _Earliest(max(since.seconds, struck.seconds), max(since.share, struck.share))
