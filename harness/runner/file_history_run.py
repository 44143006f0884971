"""A run whose engine first reads files: they hold older events, which are deleted from Kafka.

All events are sent to Kafka before the engine starts, like a backlog; so they are compared with the tape as in any run.
Then the older part is written to files (harness/runner/world/history_files.py), cut by time, with the values in Kafka.
Kafka deletes it except for its last quarter, which both have: a reader of Kafka from its beginning counts that twice.
Deleted records are stored for the judge first, so that the log it reads is complete.

The seam is where files end and Kafka begins. By offset, it is the first record of each partition that is in no file. By
time, it is the moment from which on Kafka has all events; older ones count from the files. Disorder crosses both.

An event keeps its partition and offset, wherever the engine reads it. So expectation, checks and evidence are those of
any run. Only the batch of an event before the seam is determined by the files that the engine has read
(harness/judging/lateness.py).
"""

from __future__ import annotations

from harness.runner.backlog_run import Behind
from harness.util.texts import many

MOVED_PER_S = 20_000  # least rate at which events are written to files


class FromHistory(Behind):
    """A run with a file history: `tape.history_ms` of the backlog go into files."""

    def put_away(self) -> None:
        """Wait until Kafka has all of it: sent records may still be in transit."""
        self._wait_until(lambda: sum(self.log.ends().values()) >= self.schedule.warm_up_total)
        seconds = self.spec.tape.history_ms / 1000
        self.screen.phase("history", f"{seconds:g} s of events in files")
        seam = self.log.move_to_files(self.epoch_ms - self.spec.tape.backlog_ms)
        self._tell("history", seam=seam)
        files, gone = (sum(offsets) for offsets in (seam.ends, seam.begins))
        written = f"{many(files, 'event')} are in files, {gone:,} of them only there"
        self.screen.phase("history", f"the load start; {written}")

    @property
    def _lead_ms(self) -> int:
        return super()._lead_ms + self.schedule.warm_up_total * 1000 // MOVED_PER_S
