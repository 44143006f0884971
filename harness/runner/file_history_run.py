"""A run whose engine reads files first: older events lie in them, and are gone from Kafka.

How it goes. All of it is sent to Kafka before the engine starts, as a backlog is; so it is held against the tape like
all else. Then the older part goes into files (harness/runner/world/history_files.py), cut by time, with the values that
Kafka holds. Kafka deletes it but for its last quarter, which both have: who reads Kafka from its beginning counts that
twice. What is deleted is kept for the judge first, so that the log which it reads is whole.

The seam is where files end and Kafka begins. By offset, it is the first record of each partition that is in no file. By
time, it is the moment from which on Kafka has all events; older ones count from the files. Disorder goes across both.

An event keeps its place, partition and offset, wherever the engine reads it. So expectation, checks and witnesses are
those of any run. Only its batch is found by what the engine took from files, where it lies before the seam
(harness/judging/lateness.py).
"""

from __future__ import annotations

from harness.runner.backlog_run import Behind
from harness.util.texts import many

MOVED_PER_S = 20_000  # so fast events become files at the least


class FromHistory(Behind):
    """`tape.history_ms`: so much of what waits."""

    def put_away(self) -> None:
        """When Kafka has all of it: what is handed over may still be on its way."""
        self._wait_until(lambda: sum(self.world.end_offsets().values()) >= self.schedule.warm_up_total)
        seconds = self.spec.tape.history_ms / 1000
        self.screen.phase("history", f"{seconds:g} s of events become files")
        seam = self.world.move_to_files(self.epoch_ms - self.spec.tape.backlog_ms)
        self._tell("history", seam=seam)
        files, gone = (sum(offsets) for offsets in (seam.ends, seam.begins))
        self.screen.phase("history", f"{many(files, 'event')} lie in files, {gone:,} of them nowhere else")

    @property
    def _lead_ms(self) -> int:
        return super()._lead_ms + self.schedule.warm_up_total * 1000 // MOVED_PER_S
