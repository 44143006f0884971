"""Waiting on a predicate with a deadline: the one way in which anything here waits for the world.

A wait that gives up says what it waited for, for how long, and what it saw last; a bare time-out helps nobody.
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
    """All deadlines are so many times as long meanwhile: for machines that have much else to do."""
    global _patience  # noqa: PLW0603  (one machine, one patience)
    before, _patience = _patience, factor
    try:
        yield
    finally:
        _patience = before


class DeadlinePassed(HarnessError):  # noqa: N818  (it is what happened)
    """What was waited for did not come in time."""


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
    """The first true value of `predicate`; it is asked at least once, and once more when the deadline has come.

    `what` finishes the sentence "waited for ..."; `state` tells what was seen. Clock and sleep are for hand-cranked
    clocks.
    """
    start, deadline_s = now_s(), deadline_s * _patience
    while True:
        left = deadline_s - (now_s() - start)
        value = predicate()
        if value:
            return value
        if left <= 0:
            seen = f" Seen last: {state()}" if state else ""
            raise DeadlinePassed(f"Waited {deadline_s:g} s for {what}, in vain.{seen}")
        sleep_s(min(every_s, left))


def ends_within(
    seconds: float,
    ending: threading.Event,
    now_s: Callable[[], float] = time.monotonic,
    sleep_s: Callable[[float], None] = time.sleep,
) -> bool:
    """Whether the end comes within so long; for the loop of a thread. The wait of an Event goes by the machine's clock
    where Python was built for an old C library: set back by an hour, that clock would stop the thread for an hour."""
    due_s = now_s() + seconds
    while not ending.is_set():
        left_s = due_s - now_s()
        if left_s <= 0:
            return False
        sleep_s(min(NAP_S, left_s))
    return True
