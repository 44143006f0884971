"""One run in nine steps, from a resolved spec to a verdict in a run directory.

A run talks to a few parts: clock, engine, results, fleet, log, fault, servers and host. A `World` makes, opens and
closes them: real Kafka, Redis, Locust and an engine process in harness/runner/world/real.py; simulated time and lists
in harness/runner/world/fake.py. So tests run every step in milliseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import repeat
from typing import Any

from generators.encode import Encoder
from generators.schedule import Schedule
from generators.tape import Tape
from harness.evidence.ledger import seal_of
from harness.faults.run_at_poll import Moment
from harness.host.disk_space import NoRoomError
from harness.judging import digests, verdict_file
from harness.judging.judge import judge
from harness.judging.lateness import watermarks_ms
from harness.judging.stored_run import StoredRun
from harness.load import start_time
from harness.metering import clock_steps
from harness.model import (
    EVENT_TIME,
    EngineManifest,
    EngineReport,
    EngineState,
    HarnessError,
    RunSpec,
    Sentinel,
    Stopped,
    UsageError,
    Verdict,
)
from harness.runner import first_minute_diagnosis
from harness.runner.abort_causes import AbortCauses, EngineGone
from harness.runner.backfill import Backfilling, Spent
from harness.runner.collect_evidence import EvidenceCollector
from harness.runner.engine_supervisor import EngineSupervisor
from harness.runner.first_minute_diagnosis import Diagnosis, Wanted
from harness.runner.foreign_results import Foreign
from harness.runner.idle_detector import IdleDetector
from harness.runner.idle_rule import STILL_MS, IdleRule
from harness.runner.live_view import LiveView, Seen
from harness.runner.manifest_mismatch import (
    WAIT_SHARE,
    Probe,
    first_progress_s,
    no_progress,
    unsaid_final,
    unsaid_progress,
)
from harness.runner.progress_time_unit import another_clock, progress_lines
from harness.runner.result_polling import POLL_EVERY_S, POLL_SHARE, ExpectedSentinels, ResultPoller, covers
from harness.runner.screen import Screen
from harness.runner.sentinels import Marking
from harness.runner.state_snapshots import States, drawn
from harness.runner.world.base import ServiceGone, World
from harness.services.addresses import reached_at
from harness.terminal.command_end import ONCE_MORE
from harness.util.texts import clock, many, readable, shown
from workloads.base import Columns
from workloads.registry import length_ms_of, oracle_of, results_of
from workloads.totals import InTotals

TICK_S = 0.05
JUDGE = "judge"  # the phase after the world is closed
# After the engine's progress shows the end, its last results may take this long.
SETTLED_MS = 1000
# Show the wait if the load starts later than this.
SOON_MS = 2000
# Shares of the time in which an engine has to answer: time to read events before others follow, with progress
# reports, or without.
READ_SHARE, BLIND_SHARE = 1 / 3, 1 / 12
STARTED_EARLY = "its manifest has waits_for_services = true, so it starts before Kafka and Redis and must wait for them"
PROGRESS_LINE = "if the job can't report all of its progress, add this line to its manifest: progress = false"


def run(
    spec: RunSpec,
    manifest: EngineManifest,
    *,
    environment: Mapping[str, Any],
    world: World,
    stored: StoredRun,
    screen: Screen,
    made_by: MakesRun | None = None,
) -> Verdict:
    """Run once. The world is always closed again, and its evidence stored, whatever happens after it is open."""
    return (made_by or Run)(spec, manifest, world, stored, screen).all(environment)


class BehindByProgress(EngineGone):
    """The engine's own offsets do not advance. `seen` describes them."""

    def __init__(self, report: EngineReport, seen: str) -> None:
        super().__init__(report)
        self.seen = seen


class Run:
    """The state that the nine steps share."""

    grows = False  # whether the load is decided while it runs

    def __init__(
        self, spec: RunSpec, manifest: EngineManifest, world: World, stored: StoredRun, screen: Screen
    ) -> None:
        self.spec, self.manifest, self.world = spec, manifest, world
        self.stored, self.store = stored, stored.store
        self.live = LiveView(self.store, world.clock.now_ms, spec, grows=self.grows)
        self.screen = self.live.beside(screen)
        self.schedule = Schedule(spec.tape)
        self.clock, self.engine, self.results, self.fleet = world.clock, world.engine, world.results, world.fleet
        self.log, self.fault, self.servers, self.host = world.log, world.fault, world.servers, world.host
        self.oracle, self.asked = oracle_of(spec), results_of(spec.tape)
        self.expected: Columns = {}
        self.epoch_ms = 0
        self.opened_ms = 0
        self.abort_causes = AbortCauses(world, self.store)
        self.life = EngineSupervisor(
            world, self.store, self._tell, self.abort_causes, resumes=manifest.resumes, patience=spec.patience
        )
        due = drawn(spec.tape.seed, spec.states, self.schedule.total)
        self.states = States(world, self.store, self._tell, due)
        # Except in event time, the window of a sentinel record is not known beforehand.
        marked = self.oracle if spec.time == EVENT_TIME else InTotals(self.oracle)
        self.poller = ResultPoller(world, marked, self.schedule.load.codec, self.asked.keys)
        self.claim = manifest.sink(spec.sink)
        self.marking = Marking(
            world,
            self._tell,
            self.poller,
            spec,
            final=self.claim.final,
            earliest_ms=self.schedule.earliest_rel_ms + self._lead_ms,
            await_read=self._await_read,
        )
        self.idle_detector: IdleDetector | None = None  # of an engine without progress, from the load start on
        self.probe: Probe | None = None  # if by its manifest results do not wait for a window's end
        self._closing: ExpectedSentinels | None = None  # the closing events, once they were sent

    def all(self, environment: Mapping[str, Any]) -> Verdict:
        self.resolve(environment)  # 1
        self.fold()  # 2
        self.seal()  # 3
        try:
            with self.abort_causes.named():
                self.open()
                with self._healing():
                    report = self.drive()  # 4, 5, 6
                with suppress(HarnessError):  # nothing of the load may be left
                    self._look_live()
                spent = Spent(self.clock.now_ms() - self.life.started_ms, self.host.cpu_s(self.engine))
                self.read(report)  # 7
                if self.spec.backfill and report.state == "drained":
                    self.count_again(spent)
        except BaseException:
            self.close()
            with suppress(NoRoomError):  # it must not hide why the run ended
                self.reveal()
            raise
        self.close()
        self.reveal()
        return self.conclude()  # 8, 9

    # 1. Resolve: spec and environment are on disk before anything starts.
    def resolve(self, environment: Mapping[str, Any]) -> None:
        self.store.write_json("spec.json", self.spec.public())
        self.store.write_json("environment.json", environment)
        spec, memory = self.spec, self.abort_causes.memory_before
        self._tell("begin", scenario=spec.scenario, engine=spec.engine, seed=spec.tape.seed, memory=memory)

    # 2. Compute the expected counts from the tape before any engine exists.
    def fold(self) -> None:
        total, seed = many(self.schedule.total, "event"), self.spec.tape.seed
        self.screen.phase("seal", f"the expected counts of {total}, seed {seed}")
        self.expected = self.oracle.plan(self.schedule.sealed_blocks())

    # 3. Seal the tape and the plan: all randomness is used up, and the expectation is fixed.
    def seal(self) -> None:
        plan = {
            "tape": _sealed(self.schedule.load),
            "warm_up": _sealed(self.schedule.warm_up) if self.schedule.warm_up else None,
            "expected": {"digest": seal_of(self.expected)},
            "manifest": self.manifest,
            "spec": self.spec.public(),
        }
        self.store.write_json("plan.json", plan)

    # The expected counts are written to disk after the engine has ended: before, it could read them.
    def reveal(self) -> None:
        self.store.write_table("expected.parquet", self.expected)

    def close(self) -> None:
        hurry = f"; {ONCE_MORE}" if isinstance(sys.exception(), Stopped) else ""
        self.screen.phase("stop", f"the end of all that the run started{hurry}")
        self.world.close()

    # Open the services. No fault needs undoing before that.
    def open(self) -> None:
        if self.spec.bind:
            how = f"start each with `streamgauge worker --master {reached_at(self.spec.bind)}`"
            self.screen.phase("workers", f"{many(self.spec.workers, 'load worker')}; {how}")
            self.fleet.gather()
        self.screen.phase("services", "Kafka and Redis")
        self.opened_ms = self.clock.now_ms()
        self.world.open()

    # 4 to 6, with an engine that may fail at any point.
    def drive(self) -> EngineReport:
        try:
            self.start_engine()
            with self._accounting():
                self.load()
                return self.drain()
        except EngineGone as gone:
            report = self.abort_causes.excused(gone.report)
        except ServiceGone as gone:
            report = self.abort_causes.unless_machine(
                self.abort_causes.ended("unserved", f"{gone}; {self.abort_causes.advice_for(str(gone))}")
            )
        except (HarnessError, OSError) as error:  # a process killed by the kernel, or a full disk
            if not self.abort_causes.full() and (
                isinstance(error, OSError) or not self.abort_causes.killed_for_memory()
            ):
                raise
            report = self.abort_causes.unless_machine(self.abort_causes.ended("crashed", str(error)))
        self._tell("gone", state=report.state, detail=report.detail)
        self._abandon()
        return report

    # 4. Start the engine, and let it prove that it answers: opening events have to come out as counts.
    def start_engine(self) -> None:
        opening_events = many(self.spec.tape.partitions, "opening event")
        within = f"within {self._ready_s:.0f} s"
        self.screen.phase("engine", f"the count of {opening_events} by {self.spec.engine} {within}")
        started_ms = self.opened_ms
        if not self.engine.starts:
            started_ms = self.clock.now_ms()
            self.engine.start()
        opening = self.marking.open()
        if not self.claim.final:
            self.probe = Probe(self.poller, self.marking, opening)
        self._await_answers(opening, started_ms)

    def _await_answers(self, opening: Sequence[Sentinel], started_ms: int) -> None:
        awaited, begun_ms = self.poller.awaited(opening), self.clock.now_ms()
        foreign = Foreign(self.clock.now_ms, lambda: self._diagnosis(awaited, opening[0]), self.spec.patience)
        with self._diagnosed(awaited, opening[0]):
            self._until(
                lambda: self._answered_or_probed(awaited, begun_ms, foreign),
                self._ready_s,
                lambda: self.poller.counted(awaited, "opening"),
                "ready_s",
            )
        self._tell("ready", after_ms=self.clock.now_ms() - started_ms)
        self._refuse_unsaid_final(awaited)
        self._refuse_other_progress(started_ms)

    def _answered_or_probed(self, opening: ExpectedSentinels, begun_ms: int, foreign: Foreign) -> bool:
        answered = self.poller.answered(opening)
        if answered >= opening.marks:  # checks report surplus counts
            return True
        if not answered and not self.manifest.blind and foreign.are_all():  # running a command is slow
            seen = self.poller.counted(opening, "opening")
            raise EngineGone(
                self.abort_causes.ended("stuck", f"its results are not where its manifest declares them; {seen}")
            )
        if self.probe:
            gone_by = (self.clock.now_ms() - begun_ms) / (self._ready_s * 1000)
            self.probe.poll(gone_by, has_read=self._done() >= opening.marks)
        return False

    # 5. Load, at intended times. Faults fire on predicates of progress.
    def load(self) -> None:
        self._begin_load()
        self._await_epoch()
        if self.schedule.warm_up:
            self._send_until_warm()
        self._send_load()

    def _begin_load(self) -> None:
        """Start the load and the observer."""
        self.screen.phase("fleet", f"{many(self.spec.tape.senders, 'ad server')}")
        self.fleet.await_ready()
        self.epoch_ms = start_time.next_ms(self.clock.now_ms() + self._lead_ms, self._epoch_step_ms)
        self._tell("epoch", epoch_ms=self.epoch_ms)
        self.results.start_observing()
        self.fleet.go(self.epoch_ms)
        self.live.begin(self.epoch_ms, self.schedule, self.expected)  # takes seconds for a million cells
        self._watch_results()

    def _watch_results(self) -> None:
        """Detect the end by results if the engine reports no progress."""
        if self.manifest.progress:
            return
        rule = IdleRule(
            self.epoch_ms,
            ready_ms=self._ready_s * 1000,
            drain_ms=self._drain_s * 1000,
            drops_late=self.claim.late == "drop",
            held_ms=max(watermarks_ms(self.spec)) + self.spec.window_ms if self.claim.final else 0,
        )
        self.idle_detector = IdleDetector(self.world, self.poller, rule, blind=bool(self.manifest.blind))
        self.idle_detector.look_first()

    def _send_load(self) -> None:
        load = self.schedule.load
        self.screen.phase("load", f"{many(load.total, 'event')} in {load.duration_ms / 1000:.0f} s")
        while not self.fleet.status().finished:
            self._tick()
        self._end_load()

    def _end_load(self) -> None:
        """Check the finished load."""
        self._tell("cpu", **self.abort_causes.cpu_since(self.epoch_ms))
        self._tell("loaded", certificate=(certificate := self.fleet.certify()))
        self._tell("certificate", certificate=certificate)

    def _await_epoch(self) -> None:
        """Wait for the load start: some questions begin with a window, which may be a minute away."""
        begin_ms = self.epoch_ms - self.schedule.warm_up_ms
        if begin_ms - self.clock.now_ms() > SOON_MS:
            self.screen.phase("wait", f"{clock(begin_ms)}, when the load starts with a new window")
        while self.clock.now_ms() < begin_ms:
            self._tick()

    def _send_until_warm(self) -> None:
        """Send the warm-up, which is judged like all else, but not measured."""
        seconds = f"{self.schedule.warm_up_ms / 1000:.0f} s before the load"
        self.screen.phase("warm-up", f"{many(self.schedule.warm_up_total, 'event')} in the {seconds}")
        while self.clock.now_ms() < self.epoch_ms:
            self._tick()

    # 6. Undo the fault (see _healing), close every window, and drain.
    def drain(self) -> EngineReport:
        if self.idle_detector:
            return self._drain_by_results(self.idle_detector)
        self.screen.phase("drain", "the end of the log, and stable results")
        try:
            self._drain_by_progress()
        except BehindByProgress as gone:
            return self._drain_in_spite_of(gone)
        return self._finished("drained", "by the engine's offsets")

    def _drain_by_progress(self) -> None:
        self._done_by_progress()  # so that the closing events make nothing late
        self._finish_fault()
        closing = self._close()
        if self.claim.final:  # its offsets show the end before it answers
            self._until(
                lambda: self.poller.answered(closing) >= closing.marks,
                self._drain_s,
                lambda: self.poller.counted(closing, "closing"),
                "drain_s",
            )
        self._done_by_progress(closing)

    def _drain_in_spite_of(self, gone: BehindByProgress) -> EngineReport:
        """Drain by results although its own offsets stay behind. If it counts the closing events, the last ones in each
        partition, then its progress is wrong but not its work, and its results are judged. An engine whose offsets
        catch up only now was too slow."""
        still_ms = STILL_MS * self.spec.patience
        rule = IdleRule(self.clock.now_ms(), ready_ms=still_ms, drain_ms=still_ms, drops_late=False)
        self.idle_detector = IdleDetector(self.world, self.poller, rule)
        behind = self._behind()
        if not self.fault.settled() or self.idle_detector.never_comes(self._close, self._tick_for):
            raise gone
        if self._behind() < behind:
            raise gone
        self._tell("still", since_ms=rule.moved_ms)
        how = f"by results that were stable for {rule.needed_ms / 1000:.0f} s with the closing events counted"
        return self._finished("drained", f"{how}; its progress is wrong ({gone.seen}): {PROGRESS_LINE}")

    def _finished(self, state: EngineState, how: str) -> EngineReport:
        ends = sum(self._ends().values())
        return EngineReport(state, f"all {ends:,} records of the log are done, {how}", self.engine.starts - 1)

    def _drain_by_results(self, idle_detector: IdleDetector) -> EngineReport:
        """Drain an engine without progress: see harness/runner/idle_rule.py."""
        self.screen.phase("drain", "the count of the closing events, and stable results")
        self._finish_fault()
        rule = idle_detector.rule
        if why := idle_detector.never_comes(self._close, self._tick_for):
            raise self._stuck(why, rule.moved_ms)
        self._tell("still", since_ms=rule.moved_ms)
        how = f"by results that were stable for {rule.needed_ms / 1000:.0f} s with the closing events counted"
        if not rule.unsettled:
            return self._finished("drained", how)
        why = (
            f"nothing changed within {self._ready_s:.0f} s of its last start, so missing results may still be on "
            f"their way"
        )
        return self._finished("unsettled", f"{how}; {why}")

    # 7. Read all results, orphans included, and the whole log. Save before judging.
    def read(self, report: EngineReport) -> None:
        EvidenceCollector(self.world, self.store, self.screen, self._tell, self.life).all(report)
        if kept := self.states.kept:
            self.screen.phase("state", f"the state after {many(kept, 'batch', 'batches')}, read by the same engine")
            self.states.read()

    # On request: a batch over the same input. It needs the services, and runs after all else is on disk.
    def count_again(self, spent: Spent) -> None:
        engine, deadline_s = self.world.count_again(), self._ready_s + self._drain_s
        batch = Backfilling(self.world, self.store, self.screen, engine, deadline_s=deadline_s)
        self._tell("backfill", told=batch.all(spent, kill=self.spec.backfill_kill))

    # 8 and 9. Judge from the files alone; the caller reports from the same files.
    def conclude(self) -> Verdict:
        self.screen.phase(JUDGE, "the verdict")
        files = digests.of_files(self.store)
        self._tell(digests.CLOSED, notes=self._notes(), files=files)
        digests.write(self.store, files)
        verdict = judge(self.stored)
        verdict_file.keep(self.store, verdict, at_ms=self.clock.now_ms())
        return verdict

    def _notes(self) -> tuple[str, ...]:
        """Return survivable problems. A fatal lack of memory is in the engine's report already."""
        killed = "" if list(self.store.history("gone")) else self.abort_causes.killed_for_memory()
        return (*self._restarts(), *self.engine.notes(), *filter(None, [killed]), *self.world.stays())

    def _restarts(self) -> Iterator[str]:
        """Tell of the engine's own ends after which it was started again, as a service manager does."""
        codes = [str(each["exit_code"]) for each in self.store.history("restart")]
        if codes:
            times = many(len(codes), "time")
            yield f"it ended by itself {times} and was started again (exit code {', '.join(codes)})"

    # Helpers of the steps.

    def _tell(self, kind: str, **facts: object) -> None:
        """Write to the history with the run's clock, so that all times of a run are comparable."""
        self.store.tell(kind, at_ms=self.clock.now_ms(), **facts)

    @contextmanager
    def _accounting(self) -> Iterator[None]:
        """Meter the cost of load and drain, however they end."""
        self.host.start_accounting()
        with _lastly(self.host.stop_accounting):
            yield

    @contextmanager
    def _healing(self) -> Iterator[None]:
        """Undo and report the fault, however the driving ends."""
        try:
            yield
        finally:
            self.fault.heal(self._moment())
            for report in self.fault.reports():
                self._tell("fault", report=report)

    def _abandon(self) -> None:
        """Stop the load and keep the evidence: the engine is gone for good."""
        if not list(self.store.history("epoch")):
            window = self.spec.window_ms
            self._tell("epoch", epoch_ms=self.clock.now_ms() // window * window)
        if not list(self.store.history("certificate")):
            self._tell("certificate", certificate=self.fleet.certify())

    @contextmanager
    def _diagnosed(self, awaited: ExpectedSentinels, first: Sentinel) -> Iterator[None]:
        """Add a diagnosis to an engine without an answer: it may have written one elsewhere or in another format. For
        an ended engine, its last log lines are the reason."""
        try:
            yield
        except EngineGone as gone:
            if gone.report.state == "crashed" and self.manifest.waits_for_services:
                raise EngineGone(replace(gone.report, detail=f"{gone.report.detail}; {STARTED_EARLY}")) from None
            if gone.report.state not in ("stuck", "starved"):
                raise
            found = self._diagnosis(awaited, first)
            # On a busy machine both may be true: it lacked CPU, and would not have answered with more.
            other = "or else " if found.sentence and gone.report.state == "starved" else ""
            detail = "; ".join(filter(None, (gone.report.detail, f"{other}{found.sentence}")))
            raise EngineGone(replace(gone.report, detail=detail, advice=found.lines)) from None

    def _diagnosis(self, awaited: ExpectedSentinels, first: Sentinel) -> Diagnosis:
        if self.poller.unreadable or not self.servers.reachable():
            return Diagnosis()
        wanted = Wanted(
            self.manifest,
            self.claim.bookkeeping,
            dict(zip(self.asked.keys, self.asked.parts or repeat({}), strict=False)),
            self.asked.tables.kinds,
            self.poller.fields_of(awaited),
            length_ms_of(self.spec) or 0,
            awaited.marks // len(awaited.cells),
            self.results.other_databases(),
            self._done(),
            shown(readable(Encoder(self.schedule.load.codec, 0).mark(first)["value"] or b"")),
            closed=self.claim.final or bool(self.probe and self.probe.sent),
            partitions=self.spec.tape.partitions,
            number=self.asked.number,
            prefix=self.spec.redis_prefix,
        )
        return first_minute_diagnosis.explain(self.results.rows(), wanted)

    def _done(self) -> int:
        progress = self.engine.progress()
        return sum(progress.offsets.values()) if progress else 0

    def _behind(self) -> int:
        """Return its lag in records, by the engine's offsets."""
        return sum(self._ends().values()) - self._done()

    def _ends(self) -> Mapping[int, int]:
        ends: Mapping[int, int] = {}

        def are_known() -> bool:
            nonlocal ends
            ends = self.poller.unless_away(self.log.ends, {})
            return bool(ends)

        self._until(are_known, self._drain_s, lambda: "a fault blocks Kafka or Redis")
        return ends

    def _await_read(self) -> None:
        """Wait until the engine has read the whole log, by its progress. Without progress it gets a fixed time."""
        share = READ_SHARE if self.manifest.progress else BLIND_SHARE
        ends, begun_ms = self._ends(), self.clock.now_ms()
        while (
            not covers(self.engine.progress(), ends) and self.clock.now_ms() - begun_ms < share * self._ready_s * 1000
        ):
            self._tick()

    def _close(self) -> ExpectedSentinels:
        """Send the events that close every window, once."""
        if self._closing is None:
            newest_ms = self.schedule.load.event_time_bounds_rel_ms()[1] + self.epoch_ms
            self._closing = self.poller.awaited(self.marking.close(newest_ms))
        return self._closing

    def _has_settled(self, closing: ExpectedSentinels | None, still_for_ms: int) -> bool:
        """Return whether the last results must be there: an engine may write them shortly after its offsets, or long
        after if a timer commits the offsets."""
        if closing is None:
            return True
        if still_for_ms < SETTLED_MS:
            return False
        return self.poller.answered(closing) >= closing.marks or still_for_ms >= STILL_MS

    def _done_by_progress(self, closing: ExpectedSentinels | None = None) -> None:
        """Wait until the engine's offsets cover the log, and finally until its results stop changing."""
        ends = self._ends()
        last, done = self.poller.snapshot(), self._done()
        begun_ms = still_ms = self.clock.now_ms()
        moved_ms = 0
        look_s = 0.0
        while not (
            covers(self.engine.progress(), ends) and self._has_settled(closing, round(self.clock.now_ms() - still_ms))
        ):
            self._tick_for(max(POLL_EVERY_S, look_s / POLL_SHARE))
            looked_ms, snapshot = self.clock.now_ms(), self.poller.snapshot()
            now_ms = self.clock.now_ms()
            look_s = (now_ms - looked_ms) / 1000
            if snapshot != last or self._done() != done:
                moved_ms = now_ms
            if snapshot != last or not covers(self.engine.progress(), ends):
                still_ms = now_ms
            last, done = snapshot, self._done()
            is_starting = self.life.starts > 1 and moved_ms <= self.life.started_ms  # a restart may take longer
            waits_s, key = self._drain_s, "drain_s"
            if is_starting and self._ready_s > waits_s:
                waits_s, key = self._ready_s, "ready_s"
            since_ms = max(begun_ms, moved_ms, self.life.started_ms)
            # If it is done, only one more poll of the results is missing: the harness itself was stopped.
            if now_ms - since_ms > waits_s * 1000 and not covers(self.engine.progress(), ends):
                seen = f"{done:,} of {many(sum(ends.values()), 'record')} are done"
                stuck = self._stuck(f"no progress for {waits_s:.0f} s ({key}); {seen}", since_ms)
                raise BehindByProgress(stuck.report, seen)

    def _until(self, predicate: Callable[[], bool], deadline_s: float, seen: Callable[[], str], key: str = "") -> None:
        """Wait for the predicate. A restart of the engine restarts the deadline. `key` is the manifest's key for it."""
        begun_ms = looked_ms = self.clock.now_ms()
        while not predicate():
            look_s = (self.clock.now_ms() - looked_ms) / 1000
            self._tick()
            self._tick_for(look_s / POLL_SHARE - TICK_S)
            looked_ms = self.clock.now_ms()
            # If the harness itself was stopped past the deadline, the engine may be done by now.
            if self.clock.now_ms() - max(begun_ms, self.life.started_ms) > deadline_s * 1000 and not predicate():
                named = f" ({key})" if key else ""
                raise self._stuck(f"no answer within {deadline_s:.0f} s{named}; {seen()}", begun_ms)

    @property
    def _lead_ms(self) -> int:
        """Return the time from the first event to the load start."""
        return self.schedule.warm_up_ms

    @property
    def _epoch_step_ms(self) -> int:
        """The epoch is a multiple of this."""
        return self.oracle.part_ms

    @property
    def _ready_s(self) -> float:
        return self.manifest.ready_s * self.spec.patience

    @property
    def _drain_s(self) -> float:
        return self.manifest.drain_s * self.spec.patience

    def _refuse_unsaid_final(self, opening: ExpectedSentinels) -> None:
        """Wait for the later events: a job that was only slow counts them as well."""
        if self.probe is None:
            return
        end_ms = self.clock.now_ms() + self._ready_s * 1000 * WAIT_SHARE
        while not self.probe.answered():
            if self.clock.now_ms() >= end_ms:
                raise unsaid_final(self.manifest, opening)
            self._tick()

    def _refuse_other_progress(self, started_ms: int) -> None:
        """Refuse a run before the load if progress never comes or has another time unit: that would void the run at its
        end. Some engines report progress through a checkpoint and write no lines."""
        if not self.manifest.progress:
            if progress_lines(self.store.path):
                raise unsaid_progress(self.manifest)
            return
        begun_ms, wait_s = self.clock.now_ms(), first_progress_s(self.manifest) * self.spec.patience
        while not self.engine.progress() and self.clock.now_ms() < begun_ms + wait_s * 1000:
            self._tick()
        low_ms, high_ms = clock_steps.ahead_ms(self.store)  # the engine uses the machine's clock
        if odd := another_clock(progress_lines(self.store.path), started_ms + low_ms, self.clock.now_ms() + high_ms):
            raise UsageError(odd)
        if self.engine.progress() or self.manifest.plans_afterwards or self.abort_causes.cpu_since(begun_ms)["starved"]:
            return
        raise no_progress(self.manifest, wait_s, self.engine.notes())

    def _finish_fault(self) -> None:
        """Give an active fault (killed, not yet seen back) until the drain timeout to finish."""
        self._until(
            self.fault.settled,
            max(self._ready_s, self._drain_s),
            lambda: "; ".join(f"{each.spec.text}: {each.proof}" for each in self.fault.reports()),
        )

    def _stuck(self, detail: str, since_ms: int) -> EngineGone:
        """Report a stuck engine. If its offsets cover the whole log it does not lack CPU: it waits for something else.
        A killed engine that is not back reported them before, and may lack the CPU to start."""
        nobody_knows: Mapping[int, int] = {}
        ends = self.poller.unless_away(self.log.ends, nobody_knows)
        is_back = self.fault.settled()
        has_read_all = is_back and bool(ends) and covers(self.engine.progress(), ends)
        return EngineGone(
            self.abort_causes.ended("stuck", detail)
            if has_read_all
            else self.abort_causes.unless_starved("stuck", detail, since_ms)
        )

    def _moment(self) -> Moment:
        return Moment(
            self.clock.now_ms(),
            self.epoch_ms,
            self.engine,
            self.engine.progress(),
            self.schedule.total,
            self.servers.field,
            self.schedule.warm_up_total,
            self.results.changed(),
        )

    def _tick(self) -> None:
        """Do one round: evidence, fault, supervisor, screen, and a short pause."""
        self.abort_causes.watch_room(self.schedule.total)
        self.life.collect()
        self.states.poll()
        self.abort_causes.book()
        self._poll_fault()
        if not self.engine.alive() and not self.fault.busy():
            self.life.supervise()
        self._note_start()
        if self.idle_detector:
            self.idle_detector.note_change()
        self.screen.update(self._facts())
        if self.live.is_due():
            self._look_live()
        self.clock.pause(TICK_S)

    def _look_live(self) -> None:
        seen = Seen(
            self.fleet.status(),
            self.schedule.total,
            self._done() if self.manifest.progress else None,
            self.fault.reports(),
            self.marking.sent,
            self.results.changes,
        )
        self.live.look(seen, self.schedule)

    def _poll_fault(self) -> None:
        """Poll the fault; its target may already be gone. No fault begins to wait in a warm-up."""
        if self.schedule.warm_up and not 0 < self.epoch_ms <= self.clock.now_ms():
            return
        had_begun = not self.fault.settled()
        try:
            self.fault.poll(self._moment())
        except Exception as error:
            if had_begun or not (seen := self.servers.gone()):
                raise
            raise ServiceGone(seen) from error

    def _tick_for(self, seconds: float) -> None:
        end_ms = self.clock.now_ms() + seconds * 1000
        while self.clock.now_ms() < end_ms:
            self._tick()

    def _note_start(self) -> None:
        if self.life.note_start() and self.idle_detector:
            self.idle_detector.started(self.life.started_ms)

    def _facts(self) -> dict[str, str | float | int]:
        load, done = self.fleet.status(), self._done() if self.manifest.progress else -1
        self.abort_causes.sent = load.sent
        reports = self.fault.reports()
        return {
            "now_ms": self.clock.now_ms(),
            "sent": load.sent,
            "planned": self.schedule.total,
            "done": done,
            "fault": "; ".join(f"{r.spec.text}: {'landed' if r.landed else 'waiting'}" for r in reports),
        }


def _sealed(tape: Tape) -> dict[str, object]:
    return {"digest": tape.digest(), "total": tape.total, "duration_ms": tape.duration_ms}


@contextmanager
def _lastly(last: Callable[[], None]) -> Iterator[None]:
    """Always call `last`. Its own full disk must not hide the error that ended the block."""
    try:
        yield
    except BaseException:
        with suppress(NoRoomError):
            last()
        raise
    last()


MakesRun = Callable[[RunSpec, EngineManifest, World, StoredRun, Screen], Run]
