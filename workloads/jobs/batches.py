"""A job in batches: each counts the topic from its beginning up to now, as soon as there are new records.

It keeps no state between two batches, so a crash can't corrupt anything: a result that is written twice is the same
both times. The cost is that each batch reads everything again.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

from workloads.jobs.progress_log import ProgressLog

POLL_EVERY_S = 0.05

Offsets = dict[str, int]  # partition -> first offset after the batch


def until_told() -> threading.Event:
    """Return an event that SIGTERM sets. A batch in progress is finished."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    return told


def run(
    told: threading.Event, ends_now: Callable[[], Offsets], count: Callable[[Offsets, int], None], path: str
) -> None:
    """Count batch after batch until SIGTERM. `count` gets a batch number and the offsets up to which it counts all
    records. `path` is the file for progress.
    """
    progress, done = ProgressLog(path), Offsets()
    batch = progress.next_batch()
    while not told.wait(POLL_EVERY_S):
        ends = ends_now()
        if ends == done:
            continue
        began_s = time.monotonic()
        count(ends, batch)
        took_ms = round((time.monotonic() - began_s) * 1000)
        progress.write(batch=batch, rows=sum(ends.values()), offsets=ends, took_ms=took_ms)
        done, batch = ends, batch + 1
