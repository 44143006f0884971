"""Finds out why an engine does not go on, and what excuses it: a machine without CPU, memory or disk space for it, a
service that is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from harness.engines import complaint
from harness.host import cpu_starvation, disk_space, oom_kills
from harness.host.disk_space import NoRoomError
from harness.model import EngineReport, EngineState, HarnessError, UsageError
from harness.rundir.store import Store
from harness.runner.world.base import World
from harness.terminal.command_end import summary
from harness.util.texts import many, shown

ROOM_EVERY_MS = 250
# The CPU accounts of its threads distinguish an engine that gets no CPU from one that wants none.
BOOKS_EVERY_MS = 5000
LAST_MS = 30_000
LONGEST_WORDS = 80
UNSERVED_ADVICE = "no planned fault was active. Check whether the job or another user caused this, and run it again"
BUSY_ADVICE = (
    "no planned fault was active, but the machine is busy: {}. Use a quieter machine, or --patience 3 of `run`"
)
ROOM_ADVICE = "free some there (`streamgauge rm` removes runs), or name another folder with --out or TMPDIR"
MEMORY_ADVICE = "use a machine or a container with more memory: docs/start/machine.md lists how much a run needs"


class EngineGone(Exception):  # noqa: N818  (it reads as an event)
    """The engine will not finish by itself; carries the report."""

    def __init__(self, report: EngineReport) -> None:
        super().__init__(report.detail)
        self.report = report


class AbortCauses:
    """The state of the machine since the run began."""

    def __init__(self, world: World, store: Store) -> None:
        self._engine, self._fault, self._servers = world.engine, world.fault, world.servers
        self._host, self._clock, self._store = world.host, world.clock, store
        self.memory_before = world.host.memory()
        self.sent = 0  # records, which need disk space at the end
        self._full = ""  # the disk that was found full
        self._room_seen_ms = 0
        self._books = cpu_starvation.Books()
        self._booked_ms = 0

    def ended(self, state: EngineState, detail: str) -> EngineReport:
        engine = self._engine
        words = engine.last_words()
        if own := complaint.used_up(words.lines):
            detail = f"{detail}; it had used all memory of its limit: {shown(own, LONGEST_WORDS)}"
        return EngineReport(state, detail, engine.starts - 1, words.lines, words.log)

    def unless_starved(self, state: EngineState, detail: str, since_ms: int) -> EngineReport:
        """Report "starved" instead of `state` if the machine kept the engine from running: then it is not to blame. The
        last seconds before decide: an engine that had the CPU then, and did nothing with it, would not have finished
        either."""
        self.book(force=True)
        last_ms = self._clock.now_ms() - LAST_MS
        wanted, machine = self._books.since(max(since_ms, last_ms)), self._host.machine()
        cpu = cpu_starvation.in_words(wanted, machine)
        if not wanted.starved(machine.cores):
            return self.ended(state, f"{detail}; {cpu}" if wanted.seconds >= 1 and wanted.ran_s else detail)
        advice = "use a quieter machine, --patience 3 or a lower --rate"
        return self.ended("starved", f"the machine did not let the engine run: {cpu} ({detail}); {advice}")

    def excused(self, report: EngineReport) -> EngineReport:
        """Excuse an engine that stopped because its machine, Kafka or Redis was gone, whatever the cause."""
        if (by_machine := self.unless_machine(report)) is not report:
            return by_machine
        settled = self._fault.settled()
        seen = (self._servers.gone() or self._servers.refused()) if settled else ""
        if not seen:
            return report
        detail = f"{seen} ({report.detail}); {self.advice_for(seen)}"
        return replace(report, state="unserved", detail=detail, advice=())

    def advice_for(self, gone: str) -> str:
        """Return what to do about a service: one that runs and does not answer may lack CPU like everything else."""
        busy = cpu_starvation.busy(self._host.machine())
        silent = "no longer answers" in gone or "does not answer" in gone
        return BUSY_ADVICE.format(busy) if busy and silent else UNSERVED_ADVICE

    def unless_machine(self, report: EngineReport) -> EngineReport:
        """Excuse an engine that met a full disk, was killed for lack of memory, or waited for a killed process."""
        if full := self.full():
            detail = f"a disk is full: {full} ({report.detail}); {ROOM_ADVICE}"
            return replace(report, state="no-room", detail=detail, advice=())
        if not (killed := self.killed_for_memory()):
            return report
        return replace(report, state="no-memory", detail=f"{killed} ({report.detail}); {MEMORY_ADVICE}", advice=())

    def killed_for_memory(self) -> str:
        return oom_kills.in_words(self.memory_before, self._host.memory())

    def full(self) -> str:
        """Return the full disk. The result is kept: freeing space afterwards repairs nothing."""
        reserved = {str(self._store.path): disk_space.still_to_write(self.sent)}
        self._full = self._full or disk_space.full_ones(self._host.free(), reserved)
        return self._full

    def watch_room(self, planned: int) -> None:
        """End the load while there is space to store its results so far."""
        now_ms = self._clock.now_ms()
        if now_ms - self._room_seen_ms < ROOM_EVERY_MS:
            return
        self._room_seen_ms = now_ms
        if self.full():
            raise EngineGone(self.ended("no-room", f"{self.sent:,} of {many(planned, 'event')} were sent"))

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name a full disk or a lack of memory as the cause of an error that no verdict can report."""
        try:
            yield
        except (NoRoomError, UsageError):
            raise
        except Exception as error:
            if full := self.full():
                said = str(error).rstrip(".") if isinstance(error, HarnessError) else summary(error)
                words = f"A disk is full: {full}. {said}. To go on, {ROOM_ADVICE}."
                raise NoRoomError(words) from error
            if not isinstance(error, HarnessError):
                raise
            if not (killed := self.killed_for_memory()):
                raise
            raise HarnessError(f"{killed[0].upper()}{killed[1:]}. {error} To go on, {MEMORY_ADVICE}.") from error

    def book(self, *, force: bool = False) -> None:
        """Record the CPU time that the engine's threads used, and waited for."""
        now_ms = self._clock.now_ms()
        if force or now_ms - self._booked_ms >= BOOKS_EVERY_MS:
            self._books.take(now_ms, self._host.threads())
            self._booked_ms = now_ms

    def cpu_since(self, since_ms: int) -> dict[str, object]:
        """Return whether the machine let the engine run: the machine may be the cause of a missed objective."""
        self.book(force=True)
        wanted, machine = self._books.since(since_ms), self._host.machine()
        words = cpu_starvation.in_words(wanted, machine)
        return {"wanted": wanted, "machine": machine, "starved": wanted.starved(machine.cores), "words": words}
