"""What a fault is, and how one is written: `kill@c3:batch=3`, `kill@batch=7`, `kill@offset=50%`, `none`.

A fault waits for its predicate, injects itself, proves that it landed, and heals. A fault without proof did not
happen, and a run whose fault did not happen has not passed anything.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Protocol

from harness.engines.base import Engine
from harness.explain import nearest
from harness.model import FaultReport, FaultSpec, Progress, SinkClaim, UsageError

ACTIONS = ("kill",)
POINTS = ("c1", "c2", "c3", "c4")
TRIGGERS = (*POINTS, "batch", "offset")
EXAMPLES = "kill@c3:batch=3, kill@batch=7, kill@offset=50%, none"

NONE = FaultSpec("none")

Clock = Callable[[], int]  # ms since 1970, as the run's world has it


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Fault(Protocol):
    """One planned fault of one run. Everything happens in `poll`; it may block for as long as a kill takes."""

    @property
    def colour(self) -> str:
        """Of its band in figures."""

    @property
    def needs(self) -> tuple[str, ...]:
        """What this machine or engine must have for it, in words; empty when nothing is missing."""

    def poll(self, engine: Engine, progress: Progress | None, total: int) -> None:
        """Look and act, about every 50 ms. `total` is how many events are planned in all."""

    def busy(self) -> bool:
        """The engine is down because of this fault, and will be started again by it."""

    def settled(self) -> bool:
        """Not in the middle of anything: not begun, or over."""

    def heal(self) -> None:
        """Undo whatever is still done, whatever happened; the engine runs again afterwards if it was ours to start."""

    def report(self) -> FaultReport: ...


def default_fault(claim: SinkClaim) -> FaultSpec:
    """The kill that tells most about a sink: between its last write and the commit, if that can be aimed at."""
    return parse("kill@c3:batch=3" if "c3" in claim.crash_points else "kill@offset=50%")


def parse(text: str) -> FaultSpec:
    """`ACTION@TRIGGER`, or `none`."""
    words = text.strip()
    if words == NONE.text:
        return NONE
    action, at, trigger = words.partition("@")
    if action not in ACTIONS:
        raise _wrong(text, f"{action!r} is no fault{nearest(action, (*ACTIONS, NONE.text))}")
    if not at or not trigger:
        raise _wrong(text, f"it does not say when: {action}@WHEN")
    name, parameter = re.split(r"[:=]|$", trigger, maxsplit=1)
    if name not in TRIGGERS:
        raise _wrong(text, f"{name!r} is no moment, which are {', '.join(TRIGGERS)}{nearest(name, TRIGGERS)}")
    if name in POINTS:
        return FaultSpec(words, action, point=name, batch=_point_batch(text, name, parameter))
    if name == "batch":
        return FaultSpec(words, action, batch=_batch(text, parameter))
    return FaultSpec(words, action, offset_share=_share(text, parameter))


def _point_batch(text: str, point: str, parameter: str) -> int:
    """`c3` alone means the first batch that has something to write."""
    if not parameter:
        return 0
    key, _, value = parameter.partition("=")
    if key != "batch":
        raise _wrong(text, f"{key!r} after {point} is not known{nearest(key, ('batch',))}; write {point}:batch=3")
    return _batch(text, value)


def _batch(text: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal()):
        raise _wrong(text, f"batch = {value!r} is not a whole number from 0 on")
    return int(value)


def _share(text: str, value: str) -> float:
    number = re.fullmatch(r"(\d+(?:\.\d+)?)%", value)
    share = float(number[1]) / 100 if number else 0.0
    if not 0 < share < 1:
        raise _wrong(text, f"offset = {value!r} is not a share of all events between 0% and 100%, such as 50%")
    return share


def _wrong(text: str, why: str) -> UsageError:
    return UsageError(f"The fault {text!r} can't be understood: {why}. Faults read like {EXAMPLES}.")
