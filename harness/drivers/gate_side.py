"""One side of a gate: a run whose load comes in bursts, each billed to its engine.

It does the nine steps in a thread of its own. The gate sends a burst, waits until the engine has processed it, and
measures the cost. After the last burst the run drains, reads and judges like any other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import psutil

from generators.fleet import Slice
from generators.schedule import Schedule
from generators.tape import Tape
from harness.experiments.gating.rounds import (
    LEAST_S,
    STRETCH_MS,
    Round,
    Settings,
    tape,
    with_latency,
    with_state_updates,
)
from harness.faults.run_at_poll import Moment
from harness.host.pinning import pin
from harness.judging.progress_curve import progress_lines
from harness.judging.stored_run import StoredRun
from harness.load.burst_load import Bursts, Sent
from harness.measuring import latency
from harness.metering.counted_work import CountedWork, Totals
from harness.metering.cpu_books import Books
from harness.metering.jit_time import Compilers
from harness.metering.process_sampling import ENGINE, WORKERS, Processes
from harness.model import EngineManifest, HarnessError, RunSpec, Verdict
from harness.results.redis_scan import Row
from harness.rundir.store import Store
from harness.runner.result_polling import POLL_EVERY_S
from harness.runner.run import Run
from harness.runner.screen import NullScreen
from harness.runner.world.real import RealWorld
from harness.util.texts import many
from harness.util.wait import wait_until
from workloads.registry import oracle_of

READY_S = 600.0
BURST_S = 120.0
LONGEST_WAIT_MS = 60_000  # for the next window to begin
# Cores that an idle engine used or waited for. Polling for the next record uses 0.1 cores, and each of four Sparks that
# share a core with a hog waits for it for 0.4 to 0.9 more. One with work left wants 1.2 to 3.7 then.
IDLE_CORES, IDLE_LOOK_S = 0.9, 0.4
COMPILED_S, COMPILING_CORES = 10.0, 0.1
IDLE_LOOKS = 2  # in a row: an engine that waits for a busy broker or disk looks idle as well
# Spark runs a batch without data behind each batch that moved its watermark, which takes as long as many seconds if
# sides share a core. An engine that was not idle within that is not waited for again.
AFTERWARDS_S, NEVER_IDLE_S = 15.0, 4.0
NOTHING_COUNTED = Totals()


class NotStartedError(HarnessError):
    """An engine ended before any event of the load was sent. Libraries have races there, so a gate tries it again."""


@dataclass(frozen=True)
class Used:
    """The cumulative resource use of an engine at one time."""

    at_s: float
    cpu_s: float
    compiling_s: float
    memory_bytes: int
    work: Totals = NOTHING_COUNTED
    waited_s: float = 0.0  # for a core, by all threads that do not compile

    def cpu_s_since(self, before: Used) -> float:
        """Return the CPU time without the time that a JVM compiles: it goes on compiling for minutes."""
        return (self.cpu_s - before.cpu_s) - (self.compiling_s - before.compiling_s)

    def compilers_since(self, before: Used) -> float:
        """Return the cores that compilers used."""
        return (self.compiling_s - before.compiling_s) / (self.at_s - before.at_s)

    def cores_since(self, before: Used) -> float:
        return self.cpu_s_since(before) / (self.at_s - before.at_s)

    def cores_wanted_since(self, before: Used) -> float:
        """Return the cores that it used or waited for: an engine that waits for its share of a core is not idle."""
        return self.cores_since(before) + (self.waited_s - before.waited_s) / (self.at_s - before.at_s)


@dataclass(frozen=True)
class Done:
    """The progress of an engine and the time of that report: records by its own offsets, or views by its results."""

    at_ms: float
    amount: int


class SideRun(Run):
    """The nine steps of a run. The fifth waits while the gate sends bursts."""

    grows = True

    def __init__(
        self, spec: RunSpec, manifest: EngineManifest, world: RealWorld, store: Store, settings: Settings
    ) -> None:
        begin = replace(spec, tape=tape(spec.tape, 1, settings))
        # Sides that run at the same time share the gate's screen.
        super().__init__(begin, manifest, world, StoredRun(store), NullScreen())
        self.settings, self.stretches = settings, 0  # stretches: how many were sent
        self.done = Done(0.0, 0)
        self._polled_ms = 0
        self.begun, self.stopping = threading.Event(), threading.Event()

    def load(self) -> None:
        self._begin_load()
        self._await_epoch()
        self.begun.set()
        while not self.fleet.status().finished:
            self._tick()
        self.cut()
        self._end_load()

    @property
    def _epoch_step_ms(self) -> int:
        """Start all sides with a window, so that each burst touches as many windows on one side as on the others.

        One window more is one row of state more for each key.
        """
        window_ms, part_ms = self.spec.window_ms, super()._epoch_step_ms
        return part_ms if window_ms % part_ms or window_ms > LONGEST_WAIT_MS else window_ms

    def cut(self) -> None:
        """Cut the tape to the stretches that were sent, so that only those are judged."""
        self.spec = replace(self.spec, tape=tape(self.spec.tape, self.stretches, self.settings))
        self.schedule = Schedule(self.spec.tape)
        self.store.write_json("spec.json", self.spec.public())
        self.fold()
        self.seal()

    def _moment(self) -> Moment:
        """Relate a fault's share of the load to the bursts before the rounds, so that it strikes before those."""
        return replace(super()._moment(), total=self.settings.struck_events)

    def _tick(self) -> None:
        """Read the engine's progress in this thread only: if two threads read the file, each gets parts of it."""
        if self.stopping.is_set():
            raise HarnessError("The gate was stopped.")
        super()._tick()
        if not self.manifest.progress:
            self._count_views()
        elif progress := self.engine.progress():
            self.done = Done(progress.at_ms, sum(progress.offsets.values()))

    def _count_views(self) -> None:
        """Read the progress of an engine that reports none from its results; rarely, since reading all takes long."""
        now_ms = self.clock.now_ms()
        if now_ms - self._polled_ms >= POLL_EVERY_S * 1000:
            rows = self.poller.unless_away(self.results.rows, list[Row]())
            self.done = Done(now_ms, self.poller.interpreted(rows).counts.total)
            self._polled_ms = self.clock.now_ms()

    def views(self, stretches: int) -> int:
        """Count the views that the next stretches add to the results."""
        sent, all_of = self.stretches, self.stretches + stretches
        before, after = (Tape(tape(self.spec.tape, count, self.settings)) for count in (sent or 1, all_of))
        first = [before.server_total(server) if sent else 0 for server in range(self.spec.tape.senders)]
        blocks = (
            after.events(server, np.arange(low, after.server_total(server), dtype=np.int64))
            for server, low in enumerate(first)
        )
        *_, views = oracle_of(self.spec).plan(blocks).values()
        return int(views.sum())


class Side:
    """A side's run in its own thread, with the gate's operations on it."""

    def __init__(
        self,
        name: str,
        run: SideRun,
        world: RealWorld,
        work: CountedWork,
        environment: Mapping[str, Any],
        *,
        start: int,
    ) -> None:
        self.name, self.start_number, self.run, self.world, self._work = name, start, run, world, work
        self.verdict: Verdict | None = None
        self.error: BaseException | None = None
        self._environment = environment
        self._thread = threading.Thread(target=self._all, name=f"side {name}", daemon=True)
        self._owed = run.spec.tape.partitions  # the progress it has to report, opening events included
        self._meter = Processes(lambda: {ENGINE: self.world.engine.pids()})
        self._books, self._compilers = Books(), Compilers()
        self._most_memory_bytes = 0
        self._settled = Used(0.0, 0.0, 0.0, 0)  # at the last time it became idle
        self._ends: list[int] = []  # the progress it had to report at the end of each round
        self._fell_idle = True
        self._quiet_s = 0.0  # how much of the last wait for it to become idle it was quiet
        self._paused = self._begun = self._settled
        self._woken_ms = 0
        self._froze_s = self._frozen_s = 0.0
        self._pinned: set[int] = set()  # threads

    def start(self) -> None:
        self._thread.start()

    def _all(self) -> None:
        try:
            self.verdict = self.run.all(self._environment)
        except BaseException as error:  # noqa: BLE001 - reported by the waiting thread
            self.error = error

    def await_ready(self) -> None:
        wait_until(
            lambda: self.run.begun.is_set() or not self._thread.is_alive(), deadline_s=READY_S, what=f"the {self.name}"
        )
        if not self.run.begun.is_set():
            raise NotStartedError(f"The {self.name} ended before the load started: {self._ended_with}")

    @property
    def going(self) -> bool:
        return self._thread.is_alive()

    def engine_pids(self) -> list[int]:
        return [each.pid for each in self._meter.sample() if each.part in (ENGINE, WORKERS)]

    def service_pids(self) -> list[int]:
        """Return the processes of this side's services."""
        return [pid for part, pids in self.world.host.roots().items() if part != ENGINE for pid in pids]

    def pin(self, cores: frozenset[int]) -> str:
        """Pin the engine's threads, and report those that had left their cores.

        Repeat it before each round, since the engine may have been restarted after a fault.
        """
        moved = pin(self.engine_pids(), cores)
        away, self._pinned = self._pinned & moved, self._pinned | moved
        return (
            f"{many(len(away), 'thread')} of the {self.name} moved to other cores, and was moved back" if away else ""
        )

    def warm_up(self, stretches: int) -> None:
        """Send stretches one by one, with at most two in progress, since an engine with batches compiles most of its
        code only after it has run many of them.
        """
        for _ in range(stretches):
            owed = self._owed
            self._send(self.written(1))
            self._await_done(owed)
        self._await_done(self._owed)

    def is_settled(self) -> None:
        self._settled = self._with_work(self._await_idle())

    def is_restless(self) -> bool:
        """Return True if the engine stays busy without input; then a long pause measures that."""
        return not self._fell_idle

    def wave(self, stretches: int) -> float:
        """Send stretches at once, wait until they are done, and return the CPU seconds."""
        before = self._used()
        self._send(self.written(stretches))
        self._await_done(self._owed)
        self._settled = self._with_work(self._await_idle())
        return max(self._settled.cpu_s_since(before), LEAST_S)

    def strike(self) -> None:
        """Send bursts until a planned fault has struck and is settled. The judge checks whether it landed.

        This precedes the warm-up, because a killed engine restarts cold.
        """
        fault, settings = self.world.fault, self.run.settings
        for _ in range(settings.struck_bursts if self.run.spec.fault.planned else 0):
            self.wave(settings.struck_stretches)
            if all(each.at_ms for each in fault.reports()) and fault.settled():
                return

    def written(self, stretches: int) -> list[Slice]:
        """Make the records of the next burst in advance, so that this is not part of the measurement."""
        if not self.run.manifest.progress:
            self._owed += self.run.views(stretches)
        self.run.stretches += stretches
        return self._load.write(self.run.stretches * STRETCH_MS)

    def await_compiled(self) -> None:
        """Wait until the compilers of its JVMs rest. While a slower side is busy they have more time, so without this
        the cost of a side depends on its neighbour.
        """
        end_s = time.monotonic() + COMPILED_S
        self._look_until(
            lambda before, now: now.compilers_since(before) < COMPILING_CORES or now.at_s > end_s,
            deadline_s=2 * COMPILED_S,
            what=f"the compilers of the {self.name}",
        )

    def collect_garbage(self) -> None:
        """Let each round begin with the same heap: a collector's cycle over a full heap costs a fifth of a round, and
        would be in one round of three by chance.
        """
        self._paused = self._used()
        self._work.collect_garbage()

    def send(self, written: list[Slice]) -> Sent:
        """Send a burst while the engine is frozen, so that an engine with batches takes all of it as one.

        Otherwise the batch boundaries are random, and one more batch costs a tenth of a round.
        """
        self._most_memory_bytes, self._begun = 0, self._with_work(self._used())
        self.world.engine.freeze()
        self._froze_s = time.monotonic()
        return self._send(written)

    def wake(self) -> None:
        self.world.engine.thaw()
        self._frozen_s = time.monotonic() - self._froze_s
        self._woken_ms = self.run.clock.now_ms()

    def round(self, sent: Sent) -> Round:
        """Measure a round, from the engine's wake-up until it is idle again.

        Checkpoint bytes of the pause before count too: on a busy machine an engine that waits for a core looks idle,
        and goes on writing.
        """
        begun, done_ms = self._begun, self._await_done(self._owed)
        before, self._settled = self._settled, self._with_work(self._await_idle())
        self._ends.append(self._owed)
        return Round(
            side=self.name,
            number=len(self._ends),
            events=sent.events,
            cpu_s=self._settled.cpu_s - begun.cpu_s,
            compiling_s=self._settled.compiling_s - begun.compiling_s,
            idle_s=self._paused.at_s - before.at_s,
            idle_cpu_s=self._paused.cpu_s_since(before),
            took_ms=done_ms - self._woken_ms,
            billed_ms=(self._settled.at_s - begun.at_s - self._frozen_s) * 1000,
            quiet_ms=self._quiet_s * 1000 if self._fell_idle else None,
            memory_bytes=self._most_memory_bytes,
            at_ms=sent.begun_ms,
            start=self.start_number,
            allocated_bytes=more(begun.work.allocated_bytes, self._settled.work.allocated_bytes),
            kafka_bytes=more(begun.work.kafka_bytes, self._settled.work.kafka_bytes),
            redis_commands=more(begun.work.redis_commands, self._settled.work.redis_commands),
            checkpoint_bytes=more(before.work.checkpoint_bytes, self._settled.work.checkpoint_bytes),
        )

    def _send(self, written: list[Slice]) -> Sent:
        sent = self._load.send(written)
        if self.run.manifest.progress:
            self._owed += sent.events
        return sent

    def _await_idle(self) -> Used:
        """Wait until the engine is idle: after its last batch it still commits, cleans up and compiles.

        One that is never idle, because it polls all the time, is billed for a limited time; its idle use is subtracted.
        """
        end_s = time.monotonic() + (AFTERWARDS_S if self._fell_idle else NEVER_IDLE_S)
        self._quiet_s, idle_looks = 0.0, 0

        def is_settled(before: Used, now: Used) -> bool:
            nonlocal idle_looks
            idle_looks = idle_looks + 1 if now.cores_wanted_since(before) < IDLE_CORES else 0
            self._quiet_s += (now.at_s - before.at_s) if idle_looks else 0.0
            self._fell_idle = idle_looks >= IDLE_LOOKS
            return self._fell_idle or now.at_s > end_s

        return self._look_until(is_settled, deadline_s=2 * AFTERWARDS_S, what=f"the {self.name} to become idle")

    def _look_until(self, enough: Callable[[Used, Used], bool], *, deadline_s: float, what: str) -> Used:
        """Compare its use with the one before, again and again, until that is enough."""
        last = self._used()

        def seen() -> Used | None:
            nonlocal last
            now = self._used()
            if now.at_s - last.at_s < IDLE_LOOK_S:
                return None
            before, last = last, now
            return now if enough(before, now) else None

        return wait_until(seen, deadline_s=deadline_s, what=what, every_s=IDLE_LOOK_S / 2)

    def _await_done(self, owed: int) -> float:
        """Wait until the engine has reported so much progress, and return the time of that report."""

        def done() -> Done | None:
            if not self.going:
                raise HarnessError(f"The {self.name} ended in the middle of a burst: {self._ended_with}")
            return self.run.done if self.run.done.amount >= owed else None

        how, what = ("offsets", "records") if self.run.manifest.progress else ("results", "views")
        what = f"the {self.name} to finish {owed:,} {what}"
        seen = lambda: f"{self.run.done.amount:,} by its {how}"  # noqa: E731
        return wait_until(done, deadline_s=BURST_S, what=what, state=seen, every_s=0.02).at_ms

    def with_evidence(self, rounds: Sequence[Round]) -> list[Round]:
        """Return this side's rounds with what only its files hold. The side has to be judged and right."""
        own, raw = [each for each in rounds if each.side == self.name], latency.ways_of(self.run.stored).of_events.whole
        seen = with_latency(own, raw.due_us, raw.corrected_ms)
        ends = [self._ends[each.number - 1] for each in seen]
        return with_state_updates(seen, ends, progress_lines(self.run.store))

    @property
    def _ended_with(self) -> str:
        return str(self.error) if self.error else self.verdict.sentence if self.verdict else "judging its run"

    def end(self) -> None:
        if self.going and self.run.begun.is_set():
            self._load.end()

    def stop(self) -> None:
        self.run.stopping.set()

    def join(self) -> None:
        self._thread.join()
        self._work.close()

    @property
    def _load(self) -> Bursts:
        load = self.world.fleet.load
        if not isinstance(load, Bursts):
            raise HarnessError("A side of a gate has no bursts.")
        return load

    def _used(self) -> Used:
        seen = list(self._meter.sample())
        used = [usage for part, usage in self._books.take(seen).items() if part in (ENGINE, WORKERS)]
        compiling_s = self._compilers.take_s(each.pid for each in seen if each.part in (ENGINE, WORKERS))
        memory_bytes = sum(each.rss_bytes for each in used)
        self._most_memory_bytes = max(self._most_memory_bytes, memory_bytes)
        cpu_s, waited_s = sum(each.cpu.total_s for each in used), self._compilers.others_waited_s
        return Used(time.monotonic(), cpu_s, compiling_s, memory_bytes, waited_s=waited_s)

    def _with_work(self, used: Used) -> Used:
        pids = self.engine_pids()
        return replace(used, work=self._work.read([pid for pid in pids if is_jvm(pid)], pids))


def more(before: int | None, now: int | None) -> int | None:
    """Return the difference, or None if one of the two is missing."""
    return None if before is None or now is None else now - before


def is_jvm(pid: int) -> bool:
    try:
        return psutil.Process(pid).name() == "java"
    except psutil.Error:  # it has just ended
        return False
