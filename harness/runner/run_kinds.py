"""Runs that begin with older input, and the choice of the kind: a backlog in Kafka, or a history in files."""

from __future__ import annotations

from collections.abc import Callable

from harness.model import RunSpec
from harness.runner.run import SOON_MS, TICK_S, Run
from harness.runner.screen import sent_so_far
from harness.util.texts import clock, many

# Least send rate of a backlog on all tested machines; the load starts after its end.
SENT_PER_S = 100_000
MOVED_PER_S = 20_000  # least rate at which events are written to files


class Behind(Run):
    """A run whose engine starts behind: it has a backlog (`tape.waits`), some minutes of events before the load start.

    They are sent at full speed while nothing reads them. The engine starts together with the load.
    """

    def start_engine(self) -> None:
        """Send the backlog; the engine starts later. Opening events lie after it and in its newest window: an engine
        with one watermark for all partitions would find older ones late."""
        self._begin_load()
        seconds = f"{self.schedule.warm_up_ms / 1000:g} s"
        self.screen.phase("backlog", f"{many(self.schedule.warm_up_total, 'event')} of {seconds} in Kafka")
        self._wait_until(lambda: self.fleet.status().sent >= self.schedule.warm_up_total)
        where = self.put_away()
        self.opening = self.marking.open_at(self.epoch_ms - 1)
        self._await_load_start(where)

    def put_away(self) -> str:
        """Return where the events are now: a backlog stays in Kafka."""
        return "all of it is in Kafka"

    def _await_load_start(self, where: str) -> None:
        """It was decided before the first event, for a slow machine: times of events depend on it."""
        if self.epoch_ms - self.clock.now_ms() > SOON_MS:
            self.screen.phase("backlog", f"{clock(self.epoch_ms)}, when the load starts; {where}")
        self._wait_until(lambda: self.clock.now_ms() >= self.epoch_ms)

    def _wait_until(self, done: Callable[[], bool]) -> None:
        """Wait without supervision: there is no engine yet, and a fleet that breaks off raises by itself."""
        while not done():
            self.abort_causes.watch_room(self.schedule.total)
            sent, planned = self.fleet.status().sent, self.schedule.warm_up_total
            self.screen.update(sent_so_far(self.clock.now_ms(), sent, planned))
            self.clock.pause(TICK_S)

    def load(self) -> None:
        """Start the engine; from here on it is supervised and metered."""
        started_ms = self.clock.now_ms()
        waiting = sum(self.log.ends().values()) - len(self.opening)
        self._tell("backlog", waiting=waiting)
        behind = f"with {many(waiting, 'event')} waiting in Kafka"
        self.screen.phase("engine", f"the first counts by {self.spec.engine}, {behind}")
        self.engine.start()
        self._await_answers(self.opening, started_ms)
        self._send_load()

    @property
    def _ready_s(self) -> float:
        """Add the backlog's length: an engine that takes longer than that for it never catches up."""
        return super()._ready_s + self.schedule.warm_up_ms / 1000

    @property
    def _lead_ms(self) -> int:
        return self.schedule.warm_up_total * 1000 // SENT_PER_S


class FromHistory(Behind):
    """A run with a file history: `tape.history_ms` of the backlog go into files, which the engine reads first. They
    hold older events, which are deleted from Kafka.

    All events are sent to Kafka before the engine starts, like a backlog; so they are compared with the tape as in any
    run. Then the older part is written to files (harness/runner/world/history_files.py), cut by time, with the values
    in Kafka. Kafka deletes it except for its last quarter, which both have: a reader of Kafka from its beginning counts
    that twice. Deleted records are stored for the judge first, so that the log it reads is complete.

    The seam is where files end and Kafka begins. By offset, it is the first record of each partition that is in no
    file. By time, it is the moment from which on Kafka has all events; older ones count from the files. Disorder
    crosses both.

    An event keeps its partition and offset, wherever the engine reads it. So expectation, checks and evidence are those
    of any run. Only the batch of an event before the seam is determined by the files that the engine has read
    (harness/judging/lateness.py).
    """

    def put_away(self) -> str:
        """Wait until Kafka has all of it: sent records may still be in transit."""
        self._wait_until(lambda: sum(self.log.ends().values()) >= self.schedule.warm_up_total)
        seconds = self.spec.tape.history_ms / 1000
        self.screen.phase("history", f"{seconds:g} s of events in files")
        seam = self.log.move_to_files(self.epoch_ms - self.spec.tape.backlog_ms)
        self._tell("history", seam=seam)
        files, gone = (sum(offsets) for offsets in (seam.ends, seam.begins))
        return f"{many(files, 'event')} are in files, {gone:,} of them only there"

    @property
    def _lead_ms(self) -> int:
        return super()._lead_ms + self.schedule.warm_up_total * 1000 // MOVED_PER_S


def stages(spec: RunSpec) -> type[Run]:
    if spec.tape.history_ms:
        return FromHistory
    return Behind if spec.tape.waits else Run
