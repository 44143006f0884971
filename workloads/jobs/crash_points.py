"""Points in a batch where a test may kill this job, and the wait for the kill.

    c1  before any write       c2  half of the keys written       c3  all written, batch not committed
    c4  (only announced)       the sink of the batch is done: Spark commits next

A test requests a crash by writing {"point": "c3", "batch": 3} into a file. Without that file a point costs one look-up
in the file system. A kill at a random moment would hardly ever hit the few milliseconds in which a sink can be wrong.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.02


@dataclass(frozen=True)
class CrashPoints:
    order: Path

    def at(self, point: str, batch: int) -> None:
        """If a crash is requested here, announce it and wait until the kill, or until the request is withdrawn."""
        if not self.wanted(point, batch):
            return
        self.announce(point, batch)
        while point != "c4" and self.wanted(point, batch):
            time.sleep(POLL_S)

    def wanted(self, point: str, batch: int) -> bool:
        try:
            wanted = json.loads(self.order.read_bytes())
        except FileNotFoundError:
            return False
        return bool(point == wanted["point"] and batch >= wanted["batch"])

    def announce(self, point: str, batch: int) -> None:
        """Write the announcement to disk completely before the crash."""
        announcement = self.order.with_name(self.order.name + ".reached")
        half_done = announcement.with_suffix(".tmp")
        with half_done.open("w", encoding="utf-8") as file:
            json.dump({"point": point, "batch": batch, "at_ms": time.time_ns() // 1_000_000}, file)
            file.flush()
            os.fsync(file.fileno())
        half_done.replace(announcement)
