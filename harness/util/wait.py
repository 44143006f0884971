"""Wait on a predicate with a deadline. All code that waits for the outside world waits through this module.

An error of an expired deadline says what was awaited, for how long, and the last observed state.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from harness.model import HarnessError

T = TypeVar("T")
NAP_S = 0.05

_patience = 1.0


@contextmanager
def patience(factor: float) -> Iterator[None]:
    """Multiply all deadlines by a factor inside the block, for busy machines."""
    global _patience  # noqa: PLW0603  (one factor for the process)
    before, _patience = _patience, factor
    try:
        yield
    finally:
        _patience = before


class DeadlinePassed(HarnessError):  # noqa: N818  (it reads as an event)
    """A deadline that expired before the awaited condition held."""

    def __init__(self, missed: str, seen: str = "") -> None:
        super().__init__(f"{missed} {seen}".rstrip())
        self.missed, self.seen = missed, seen


def wait_until(
    predicate: Callable[[], T | None],
    *,
    deadline_s: float,
    what: str,
    state: Callable[[], str] | None = None,
    every_s: float = 0.05,
    now_s: Callable[[], float] = time.monotonic,
    sleep_s: Callable[[float], None] = time.sleep,
) -> T:
    """Return the first true value of `predicate`, which is called at least once, and once more at the deadline.

    `what` finishes the sentence "waited for ..."; `state` describes the last observed state. Clock and sleep are
    parameters for simulated time.
    """
    start, deadline_s = now_s(), deadline_s * _patience
    while True:
        left = deadline_s - (now_s() - start)
        value = predicate()
        if value:
            return value
        if left <= 0:
            seen = f"Last state: {state()}" if state else ""
            raise DeadlinePassed(f"Timed out after {deadline_s:g} s while waiting for {what}.", seen)
        sleep_s(min(every_s, left))


def ends_within(
    seconds: float,
    ending: threading.Event,
    now_s: Callable[[], float] = time.monotonic,
    sleep_s: Callable[[float], None] = time.sleep,
) -> bool:
    """Return whether `ending` is set within so many seconds; for the loop of a thread. `Event.wait` follows the
    machine's clock where Python was built for an old C library: set back by an hour, that clock would block the thread
    for an hour."""
    due_s = now_s() + seconds
    while not ending.is_set():
        left_s = due_s - now_s()
        if left_s <= 0:
            return False
        sleep_s(min(NAP_S, left_s))
    return True
