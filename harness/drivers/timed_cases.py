"""Makes the runs of an experiment one after the other, and estimates the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, TypeVar

from harness.experiments.cases import RanCase, pending
from harness.terminal import console

RanT = TypeVar("RanT", bound=RanCase)


def drive(
    wanted: Sequence[Any],
    done: list[RanT],
    made: Callable[[Any], RanT],
    keep: Callable[[], None],
    *,
    words: Callable[[Any], str],
    about_s: float,
) -> None:
    """Make all pending runs. `about_s` is the estimate for one run until some were timed; `keep` stores `done`."""
    took_s: list[float] = []
    for case in pending(wanted, done):
        left_s = (len(wanted) - len(done)) * (median(took_s) if took_s else about_s)
        console.note(
            f"run {len(done) + 1} of {len(wanted)}: {words(case)}, seed {case.seed}; "
            f"about {left_s / 60:.0f} minutes left"
        )
        began_s = time.monotonic()
        done.append(made(case))
        took_s.append(time.monotonic() - began_s)
        console.note(f"  {done[-1].outcome.value}: {done[-1].sentence}")
        keep()
