"""The heart: one run, in nine steps, from a resolved spec to a verdict in a run directory.

Everything that touches the outside goes through a `World`: real Kafka, Redis, Locust and an engine process in
harness/worlds/real.py, a hand-cranked clock and lists in harness/worlds/fake.py. So every step is tried in
milliseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from generators.encode import Encoder
from generators.reel import Reel
from generators.tape import Tape
from harness import diagnosis, epoch
from harness.diagnosis import Diagnosis, Wanted
from harness.ending import ONCE_MORE
from harness.faults.moment import Moment
from harness.judging import digests
from harness.judging.judge import judge
from harness.judging.ledger import seal_of
from harness.model import (
    EVENT_TIME,
    EngineManifest,
    EngineReport,
    EngineState,
    HarnessError,
    Mark,
    Progress,
    RunSpec,
    Stopped,
    UsageError,
    Verdict,
)
from harness.room import NoRoomError
from harness.running.answers import LOOK_EVERY_S, Answers, Awaited, covers
from harness.running.backfill import Backfilling, Spent
from harness.running.excuses import UNSERVED_ADVICE, EngineGone, Excuses
from harness.running.keeping import Keeping
from harness.running.life import Life
from harness.running.marking import Marking
from harness.running.screen import Screen
from harness.running.standstill import Standstill
from harness.running.states import States, drawn
from harness.stored import StoredRun
from harness.texts import clock, many, readable, shown
from harness.watching import clock_watch
from harness.watching.progress_clock import another_clock, progress_lines
from harness.watching.stillness import Stillness
from harness.worlds.base import ServiceGone, World
from workloads.base import Columns
from workloads.registry import oracle_of, results_of
from workloads.totals import InTotals

TICK_S = 0.05
LOOK_SHARE = 1 / 4  # of the time: a look at millions of cells takes seconds, in which the engine needs the CPU
JUDGE = "judge"  # the phase of a run whose world is closed
# By an engine's own progress it is done; what it wrote last may be a moment behind.
SETTLED_MS = 1000
# Who waits longer for the load than this is told what for.
SOON_MS = 2000
# So long the first line of progress may come after the results.
FIRST_PROGRESS_S = 5.0


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
    """One run, and where it is read back from. Whatever happens after the world is open, it is closed again, and what
    was seen is on disk."""
    return (made_by or Run)(spec, manifest, world, stored, screen).all(environment)


class Run:
    """The state that the nine steps hand on to each other."""

    def __init__(
        self, spec: RunSpec, manifest: EngineManifest, world: World, stored: StoredRun, screen: Screen
    ) -> None:
        self.spec, self.manifest, self.world, self.screen = spec, manifest, world, screen
        self.stored, self.store = stored, stored.store
        self.reel = Reel(spec.tape)
        self.oracle, self.results = oracle_of(spec), results_of(spec.tape)
        self.expected: Columns = {}
        self.epoch_ms = 0
        self.opened_ms = 0
        self.excuses = Excuses(world, self.store)
        self.life = Life(world, self.store, self._tell, self.excuses, resumes=manifest.resumes, patience=spec.patience)
        due = drawn(spec.tape.seed, spec.states, self.reel.total)
        self.states = States(world, self.store, self._tell, due)
        # Into which window an event of ours falls is not known beforehand, unless it is by its own time.
        marked = self.oracle if spec.time == EVENT_TIME else InTotals(self.oracle)
        self.answers = Answers(world, marked, self.reel.load.codec, self.results.keys)
        self.claim = manifest.sink(spec.sink)
        self.marking = Marking(world, self._tell, self.answers, spec, final=self.claim.final)
        self.standstill: Standstill | None = None  # of an engine without progress, from the load on

    def all(self, environment: Mapping[str, Any]) -> Verdict:
        self.resolve(environment)  # 1
        self.fold()  # 2
        self.seal()  # 3
        try:
            with self.excuses.named():
                self.open()
                with self._healing():
                    report = self.drive()  # 4, 5, 6
                spent = Spent(self.world.now_ms() - self.life.started_ms, self.world.cpu_s(self.world.engine))
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

    # 1. Resolve: what is asked, and of which machine, is on disk before anything starts.
    def resolve(self, environment: Mapping[str, Any]) -> None:
        self.store.write_json("spec.json", self.spec.public())
        self.store.write_json("environment.json", environment)
        spec, memory = self.spec, self.excuses.memory_before
        self._tell("begin", scenario=spec.scenario, engine=spec.engine, seed=spec.tape.seed, memory=memory)

    # 2. Fold the tape to the ideal ledger before any engine exists.
    def fold(self) -> None:
        self.screen.phase("seal", f"{many(self.reel.total, 'event')} from seed {self.spec.tape.seed}")
        self.expected = self.oracle.plan(self.reel.sealed_blocks())

    # 3. Seal the tape and the plan: all randomness is spent here, and what is expected is settled.
    def seal(self) -> None:
        plan = {
            "tape": _sealed(self.reel.load),
            "warm_up": _sealed(self.reel.warm_up) if self.reel.warm_up else None,
            "expected": {"digest": seal_of(self.expected)},
            "fault": self.spec.fault,
            "manifest": self.manifest,
        }
        self.store.write_json("plan.json", plan)

    # What is expected comes to lie beside the results when the engine is gone: it could read it there.
    def reveal(self) -> None:
        self.store.write_table("expected.parquet", self.expected)

    def close(self) -> None:
        self.screen.phase("stop", ONCE_MORE if isinstance(sys.exception(), Stopped) else "all that the run started")
        self.world.close()

    # What the engine needs. There is nothing to heal before it is open.
    def open(self) -> None:
        self.screen.phase("services", "Kafka and Redis")
        self.opened_ms = self.world.now_ms()
        self.world.open()

    # 4 to 6, with an engine that may fail us at any point.
    def drive(self) -> EngineReport:
        try:
            self.start_engine()
            with self._accounting():
                self.load()
                return self.drain()
        except EngineGone as gone:
            report = self.excuses.excused(gone.report)
        except ServiceGone as gone:
            report = self.excuses.unless_machine(self.excuses.ended("unserved", f"{gone}; {UNSERVED_ADVICE}"))
        except (HarnessError, OSError) as error:  # whatever the kernel killed, and whoever met a full disk
            if not self.excuses.full() and (isinstance(error, OSError) or not self.excuses.killed_for_memory()):
                raise
            report = self.excuses.unless_machine(self.excuses.ended("crashed", str(error)))
        self._tell("gone", state=report.state, detail=report.detail)
        self._abandon()
        return report

    # 4. Start the engine, and let it prove that it answers: opening events have to come out as counts.
    def start_engine(self) -> None:
        self.screen.phase(
            "engine", f"{self.spec.engine} has to answer {many(self.spec.tape.partitions, 'opening event')}"
        )
        started_ms = self.opened_ms
        if not self.world.engine.starts:
            started_ms = self.world.now_ms()
            self.world.engine.start()
        self._await_answers(self.marking.open(), started_ms)

    def _await_answers(self, opening: Sequence[Mark], started_ms: int) -> None:
        awaited = self.answers.awaited(opening)
        with self._diagnosed(awaited, opening[0]):
            self._until(
                lambda: self.answers.answered(awaited) >= awaited.marks,  # too many is for the checks to name
                self._ready_s,
                lambda: self.answers.counted(awaited, "opening"),
            )
        self._tell("ready", after_ms=self.world.now_ms() - started_ms)
        self._refuse_another_clock(started_ms)

    # 5. Load, at intended times. Faults fire on predicates of progress.
    def load(self) -> None:
        page = self._begin_load()
        watch = f", page {page}" if page else ""
        self._await_epoch()
        if self.reel.warm_up:
            self._send_until_warm(watch)
        self._send_load(watch)

    def _begin_load(self) -> str:
        """From the epoch on it is sent, and looked at: the address of the fleet's page."""
        self.screen.phase("fleet", f"{many(self.spec.tape.senders, 'ad server')}")
        page = self.world.await_fleet()
        self.epoch_ms = epoch.next_ms(self.world.now_ms() + self._lead_ms, self.oracle.part_ms)
        self._tell("epoch", epoch_ms=self.epoch_ms)
        self.world.start_observing()
        self.world.start_load(self.epoch_ms)
        self._watch_results()
        return page

    def _watch_results(self) -> None:
        """Only they tell when an engine without progress is done."""
        if self.manifest.progress:
            return
        rule = Stillness(
            self.epoch_ms,
            ready_ms=self._ready_s * 1000,
            drain_ms=self._drain_s * 1000,
            drops_late=self.claim.late == "drop",
        )
        self.standstill = Standstill(self.world, self.answers, rule)

    def _send_load(self, watch: str) -> None:
        load = self.reel.load
        self.screen.phase("load", f"{many(load.total, 'event')} in {load.duration_ms / 1000:.0f} s{watch}")
        while not self.world.load_status().finished:
            self._tick()
        self._end_load()

    def _end_load(self) -> None:
        """All of it was sent, or as much as was asked for."""
        self._tell("cpu", **self.excuses.cpu_since(self.epoch_ms))
        self._tell("loaded", certificate=(certificate := self.world.certify()))
        self._tell("certificate", certificate=certificate)

    def _await_epoch(self) -> None:
        """Some questions begin with a window, which may be a minute away."""
        begin_ms = self.epoch_ms - self.reel.warm_up_ms
        if begin_ms - self.world.now_ms() > SOON_MS:
            self.screen.phase("wait", f"until {clock(begin_ms)}: the load begins with a window")
        while self.world.now_ms() < begin_ms:
            self._tick()

    def _send_until_warm(self, watch: str) -> None:
        """What comes before the epoch is judged like all else, and nothing of it is measured."""
        seconds = f"{self.reel.warm_up_ms / 1000:.0f} s before the load"
        self.screen.phase("warm-up", f"{many(self.reel.warm_up_total, 'event')} in the {seconds}{watch}")
        while self.world.now_ms() < self.epoch_ms:
            self._tick()

    # 6. Heal (see _healing), close every window, and drain.
    def drain(self) -> EngineReport:
        if self.standstill:
            return self._drain_by_results(self.standstill)
        self.screen.phase("drain", "until all of the log is done and the results stand still")
        self._done_by_progress(still_for_ms=0)  # the closing events must not make anything late
        self._finish_fault()
        closing = self._close()
        if self.claim.final:  # by its offsets it is done before it answers
            self._until(
                lambda: self.answers.answered(closing) >= closing.marks,
                self._drain_s,
                lambda: self.answers.counted(closing, "closing"),
            )
        self._done_by_progress(still_for_ms=SETTLED_MS)
        return self._finished("drained", "by its own offsets")

    def _finished(self, state: EngineState, how: str) -> EngineReport:
        ends = sum(self._ends().values())
        return EngineReport(state, f"all {ends:,} records of the log are done, {how}", self.world.engine.starts - 1)

    def _drain_by_results(self, standstill: Standstill) -> EngineReport:
        """The same of an engine that tells nothing: see harness/watching/stillness.py."""
        self.screen.phase("drain", "until the closing events are counted and the results stand still")
        self._finish_fault()
        rule = standstill.rule
        if why := standstill.never_comes(self._close, self._tick_for):
            raise self._stuck(why, rule.moved_ms)
        self._tell("still", since_ms=rule.moved_ms)
        how = f"by results that stood still for {rule.needed_ms / 1000:.0f} s with the closing events counted"
        if not rule.unsettled:
            return self._finished("drained", how)
        why = f"nothing had changed within {self._ready_s:.0f} s of its last start: what is missing may only be unseen"
        return self._finished("unsettled", f"{how}; {why}")

    # 7. Read all results, orphans included, and the whole log. Save before judging.
    def read(self, report: EngineReport) -> None:
        Keeping(self.world, self.store, self.screen, self._tell, self.life).all(report)
        if kept := self.states.kept:
            self.screen.phase("state", f"of {many(kept, 'batch', 'batches')}, by a reader of the engine's own kind")
            self.states.read()

    # Where it was asked for: a batch over the same input. It needs the services, and comes when all else is on disk.
    def count_again(self, spent: Spent) -> None:
        engine, deadline_s = self.world.count_again(), self._ready_s + self._drain_s
        batch = Backfilling(self.world, self.store, self.screen, engine, deadline_s=deadline_s)
        self._tell("backfill", told=batch.all(spent, kill=self.spec.backfill_kill))

    # 8 and 9. Judge from the files alone; the caller reports from the same files.
    def conclude(self) -> Verdict:
        self.screen.phase(JUDGE)
        self._tell("closed", notes=self._notes())
        digests.write(self.store)
        verdict = judge(self.stored)
        self.store.write_json("verdict.json", verdict)
        self._tell("verdict", outcome=verdict.outcome.value)
        return verdict

    def _notes(self) -> tuple[str, ...]:
        """What was odd and survived. Where it was not, the memory is in the engine's report already."""
        killed = "" if list(self.store.history("gone")) else self.excuses.killed_for_memory()
        return (*self.world.engine.notes(), *filter(None, [killed]))

    # Helpers of the steps.

    def _tell(self, kind: str, **facts: object) -> None:
        """By the clock of the world, so that all times of a run can be compared."""
        self.store.tell(kind, at_ms=self.world.now_ms(), **facts)

    @contextmanager
    def _accounting(self) -> Iterator[None]:
        """What the load and the drain cost, however they end."""
        self.world.start_accounting()
        with _lastly(self.world.stop_accounting):
            yield

    @contextmanager
    def _healing(self) -> Iterator[None]:
        """Whatever way the driving ends, the fault is healed and what became of it is told."""
        try:
            yield
        finally:
            self.world.fault.heal(self._moment())
            for report in self.world.fault.reports():
                self._tell("fault", report=report)

    def _abandon(self) -> None:
        """The engine is gone for good: stop loading and keep what there is to judge."""
        if not list(self.store.history("epoch")):
            window = self.spec.window_ms
            self._tell("epoch", epoch_ms=self.world.now_ms() // window * window)
        if not list(self.store.history("certificate")):
            self._tell("certificate", certificate=self.world.certify())

    @contextmanager
    def _diagnosed(self, awaited: Awaited, first: Mark) -> Iterator[None]:
        """An engine that gave no answer may have written one in a place or a way that is not looked at. Of one that
        ended, its own last words are the reason."""
        try:
            yield
        except EngineGone as gone:
            if gone.report.state != "stuck":
                raise
            found = self._diagnosis(awaited, first)
            detail = "; ".join(filter(None, (gone.report.detail, found.sentence)))
            raise EngineGone(replace(gone.report, detail=detail, advice=found.lines)) from None

    def _diagnosis(self, awaited: Awaited, first: Mark) -> Diagnosis:
        if self.answers.unreadable or not self.world.reachable():
            return Diagnosis()
        wanted = Wanted(
            self.manifest,
            self.claim.bookkeeping,
            frozenset(self.results.keys),
            self.results.tables.kinds,
            self.answers.fields_of(awaited),
            self.spec.window_ms,
            awaited.marks // len(awaited.cells),
            self.world.other_databases(),
            self._done(),
            shown(readable(Encoder(self.reel.load.codec, 0).mark(first)["value"] or b"")),
        )
        return diagnosis.explain(self.world.results(), wanted)

    def _progress(self) -> Progress | None:
        return self.world.engine.progress()

    def _done(self) -> int:
        progress = self._progress()
        return sum(progress.offsets.values()) if progress else 0

    def _ends(self) -> Mapping[int, int]:
        ends: Mapping[int, int] = {}

        def are_known() -> bool:
            nonlocal ends
            ends = self.answers.unless_away(self.world.end_offsets, {})
            return bool(ends)

        self._until(are_known, self._drain_s, lambda: "a fault keeps Kafka or Redis away")
        return ends

    def _close(self) -> Awaited:
        """Send the events that close every window."""
        newest_ms = self.reel.load.event_time_bounds_rel_ms()[1] + self.epoch_ms
        return self.answers.awaited(self.marking.close(newest_ms))

    def _done_by_progress(self, *, still_for_ms: float) -> None:
        """All of the log is done by the engine's own offsets, and the results have not changed since for so long."""
        ends = self._ends()
        last, done = self.answers.snapshot(), self._done()
        begun_ms = still_ms = self.world.now_ms()
        moved_ms = 0
        look_s = 0.0
        while not (covers(self._progress(), ends) and self.world.now_ms() - still_ms >= still_for_ms):
            self._tick_for(max(LOOK_EVERY_S, look_s / LOOK_SHARE))
            looked_ms, snapshot = self.world.now_ms(), self.answers.snapshot()
            now_ms = self.world.now_ms()
            look_s = (now_ms - looked_ms) / 1000
            if snapshot != last or self._done() != done:
                moved_ms = now_ms
            if snapshot != last or not covers(self._progress(), ends):
                still_ms = now_ms
            last, done = snapshot, self._done()
            is_starting = self.life.starts > 1 and moved_ms <= self.life.started_ms  # again, and it may take its time
            waits_s = max(self._ready_s, self._drain_s) if is_starting else self._drain_s
            since_ms = max(begun_ms, moved_ms, self.life.started_ms)
            # Of one that is done, the results only have to be looked at once more: it was the harness that stood still.
            if now_ms - since_ms > waits_s * 1000 and not covers(self._progress(), ends):
                seen = f"{done:,} of {many(sum(ends.values()), 'record')} are done"
                raise self._stuck(f"nothing has moved for {waits_s:.0f} s; {seen}", since_ms)

    def _until(self, predicate: Callable[[], bool], deadline_s: float, seen: Callable[[], str]) -> None:
        """An engine that was started meanwhile has all of the time again."""
        begun_ms = looked_ms = self.world.now_ms()
        while not predicate():
            look_s = (self.world.now_ms() - looked_ms) / 1000
            self._tick()
            self._tick_for(look_s / LOOK_SHARE - TICK_S)
            looked_ms = self.world.now_ms()
            # A harness that was stopped for a while comes back behind the deadline, and the engine may be done.
            if self.world.now_ms() - max(begun_ms, self.life.started_ms) > deadline_s * 1000 and not predicate():
                raise self._stuck(f"no answer within {deadline_s:.0f} s; {seen()}", begun_ms)

    @property
    def _lead_ms(self) -> int:
        """So long before the epoch the first event is sent."""
        return self.reel.warm_up_ms

    @property
    def _ready_s(self) -> float:
        return self.manifest.ready_s * self.spec.patience

    @property
    def _drain_s(self) -> float:
        return self.manifest.drain_s * self.spec.patience

    def _refuse_another_clock(self, started_ms: int) -> None:
        """Progress whose time is in another unit would void the run at its end: say so before the load starts."""
        if not self.manifest.progress:
            return
        end_ms = self.world.now_ms() + FIRST_PROGRESS_S * 1000 * self.spec.patience
        # Of some engines a checkpoint tells the progress, and they write no lines.
        while not (progress_lines(self.store.path) or self._progress()) and self.world.now_ms() < end_ms:
            self._tick()
        low_ms, high_ms = clock_watch.ahead_ms(self.store)  # the engine's clock is the machine's
        if odd := another_clock(progress_lines(self.store.path), started_ms + low_ms, self.world.now_ms() + high_ms):
            raise UsageError(odd)

    def _finish_fault(self) -> None:
        """A fault that is in the middle of its work (killed, not yet seen back) may end it within the drain's time."""
        self._until(
            self.world.fault.settled,
            max(self._ready_s, self._drain_s),
            lambda: "; ".join(f"{each.spec.text}: {each.proof}" for each in self.world.fault.reports()),
        )

    def _stuck(self, detail: str, since_ms: int) -> EngineGone:
        return EngineGone(self.excuses.unless_starved("stuck", detail, since_ms))

    def _moment(self) -> Moment:
        return Moment(
            self.world.now_ms(),
            self.epoch_ms,
            self.world.engine,
            self._progress(),
            self.reel.total,
            self.world.field,
            self.reel.warm_up_total,
            self.world.changed_ms(),
        )

    def _tick(self) -> None:
        """One beat: evidence, fault, life of the engine, screen, and a little time."""
        self.excuses.watch_room(self.reel.total)
        self.life.collect()
        self.states.poll()
        self.excuses.book()
        self._poll_fault()
        if not self.world.engine.alive() and not self.world.fault.busy():
            self.life.supervise()
        self._note_start()
        if self.standstill:
            self.standstill.note_change()
        self.screen.update(self._facts())
        self.world.pause(TICK_S)

    def _poll_fault(self) -> None:
        """What it would strike may have gone before its moment came. No fault begins to wait in a warm-up."""
        if self.reel.warm_up and not 0 < self.epoch_ms <= self.world.now_ms():
            return
        had_begun = not self.world.fault.settled()
        try:
            self.world.fault.poll(self._moment())
        except Exception as error:
            if had_begun or not (seen := self.world.gone()):
                raise
            raise ServiceGone(seen) from error

    def _tick_for(self, seconds: float) -> None:
        end_ms = self.world.now_ms() + seconds * 1000
        while self.world.now_ms() < end_ms:
            self._tick()

    def _note_start(self) -> None:
        if self.life.note_start() and self.standstill:
            self.standstill.started(self.life.started_ms)

    def _facts(self) -> dict[str, str | float | int]:
        load, done = self.world.load_status(), self._done() if self.manifest.progress else -1
        self.excuses.sent = load.sent
        reports = self.world.fault.reports()
        return {
            "now_ms": self.world.now_ms(),
            "sent": load.sent,
            "planned": self.reel.total,
            "done": done,
            "fault": "; ".join(f"{r.spec.text}: {'landed' if r.landed else 'waiting'}" for r in reports),
        }


def _sealed(tape: Tape) -> dict[str, object]:
    return {"digest": tape.digest(), "total": tape.total, "duration_ms": tape.duration_ms}


@contextmanager
def _lastly(last: Callable[[], None]) -> Iterator[None]:
    """It is done however the rest ends. A full disk that it meets must not hide what ended the rest."""
    try:
        yield
    except BaseException:
        with suppress(NoRoomError):
            last()
        raise
    last()


MakesRun = Callable[[RunSpec, EngineManifest, World, StoredRun, Screen], Run]
