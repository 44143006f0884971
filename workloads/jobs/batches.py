"""A job as a batch: the topic from its beginning up to now, counted anew whenever something new is in it.

It keeps nothing between two batches, so that there is nothing that a crash could spoil: what is counted twice is
written twice, and it is the same. The price is that each batch reads all that the ones before it have read.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

from workloads.jobs.progress_log import ProgressLog

LOOK_EVERY_S = 0.05

Offsets = dict[str, int]  # partition -> first offset that is not in it any more


def until_told() -> threading.Event:
    """To end, by SIGTERM. A batch that has begun is finished."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    return told


def run(
    told: threading.Event, ends_now: Callable[[], Offsets], count: Callable[[Offsets, int], None], path: str
) -> None:
    """`count`: all below these offsets, as the batch of this number. `path`: of the progress."""
    progress, done = ProgressLog(path), Offsets()
    batch = progress.next_batch()
    while not told.wait(LOOK_EVERY_S):
        ends = ends_now()
        if ends == done:
            continue
        began_s = time.monotonic()
        count(ends, batch)
        took_ms = round((time.monotonic() - began_s) * 1000)
        progress.write(batch=batch, rows=sum(ends.values()), offsets=ends, took_ms=took_ms)
        done, batch = ends, batch + 1
