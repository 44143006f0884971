"""The heart: one run, in nine steps, from a resolved spec to a verdict in a run directory.

Everything that touches the outside goes through a `World`: real Kafka, Redis, Locust and an engine process in
harness/world.py, a hand-cranked clock and lists in harness/engines/fake.py. So every step is tried in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, Protocol

import numpy as np

from generators.tape import Tape, population_of
from harness import diagnosis
from harness.diagnosis import Diagnosis, Wanted
from harness.faults.moment import Moment
from harness.judge import judge
from harness.lateness import watermarks_ms
from harness.ledger import Cell
from harness.model import (
    INDEX_BITS,
    MARK_SERVER,
    EngineManifest,
    EngineReport,
    Mark,
    Progress,
    RunSpec,
    Verdict,
)
from harness.observe import Row, UnreadableError, interpret
from harness.store import Store
from harness.worlds.base import World
from workloads.ad_impressions import oracle

TICK_S = 0.05
COLLECT_EVERY_S = 0.5
# A look at all results costs more than all else that the harness does while it waits for the end.
LOOK_EVERY_S = 0.25
# How far ahead of now the epoch lies at least: the fleet has to read it before its first slice is due.
EPOCH_LEAD_MS = 700
# Without progress the only sign of the end is that nothing changes any more (design: max(30 s, 3 x longest silence)).
STILL_S = 30.0
SILENCE_FACTOR = 3.0
# An engine that a fault has made stop is started again so often; one that still stops will not come back by itself.
# The pauses grow, so that a service which is away for seconds does not use up all tries.
RESTART_PAUSES_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
# What an engine says when it noticed something; so many such lines of a run are kept in its history.
ERROR = re.compile(r"(^| )(ERROR|FATAL|CRITICAL)[ :]|^Traceback |^[\w.]*(Error|Exception)(:|$)")
MOST_ERRORS = 20


class Screen(Protocol):
    """Where a run says how far it is."""

    def phase(self, name: str, detail: str = "") -> None: ...
    def update(self, facts: Mapping[str, str | float | int]) -> None: ...


class EngineGone(Exception):  # noqa: N818  (it is what happened)
    """The engine will not come to an end by itself; carries what is to be reported."""

    def __init__(self, report: EngineReport) -> None:
        super().__init__(report.detail)
        self.report = report


def run(
    spec: RunSpec,
    manifest: EngineManifest,
    *,
    environment: Mapping[str, Any],
    world: World,
    store: Store,
    screen: Screen,
) -> Verdict:
    """One run. Whatever happens after the world is open, it is closed again, and what was seen is on disk."""
    return _Run(spec, manifest, world, store, screen).all(environment)


class _Run:
    """The state that the nine steps hand on to each other."""

    def __init__(self, spec: RunSpec, manifest: EngineManifest, world: World, store: Store, screen: Screen) -> None:
        self.spec, self.manifest, self.world, self.store, self.screen = spec, manifest, world, store, screen
        self.tape = Tape(spec.tape)
        self.population = population_of(spec.tape)
        self.epoch_ms = 0
        self.collected_ms = 0
        self.starts = 0
        self.ended_ms: int | None = None
        self.errors: set[str] = set()
        self.unreadable = ""  # why the results could not be read when the engine had not answered yet

    def all(self, environment: Mapping[str, Any]) -> Verdict:
        self.resolve(environment)  # 1
        self.seal()  # 2
        self.fold()  # 3
        try:
            self.open()
            with self._healing():
                report = self.drive()  # 4, 5, 6
            self.read(report)  # 7
        finally:
            self.screen.phase("stop")
            self.world.close()
        return self.conclude()  # 8, 9

    # 1. Resolve: what is asked, and of which machine, is on disk before anything starts.
    def resolve(self, environment: Mapping[str, Any]) -> None:
        self.store.write_json("spec.json", self.spec.public())
        self.store.write_json("environment.json", environment)
        self._tell("begin", scenario=self.spec.scenario, engine=self.spec.engine, seed=self.spec.tape.seed)

    # 2. Seal the tape and the plan: all randomness is spent here.
    def seal(self) -> None:
        self.screen.phase("seal", f"{self.tape.total:,} events from seed {self.spec.tape.seed}")
        plan = {
            "tape": {"digest": self.tape.digest(), "total": self.tape.total, "duration_ms": self.tape.duration_ms},
            "fault": self.spec.fault,
            "manifest": self.manifest,
        }
        self.store.write_json("plan.json", plan)

    # 3. Fold the tape to the ideal ledger before any engine exists.
    def fold(self) -> None:
        cells = oracle.fold(self.tape.blocks(), self.population, self.spec.window_ms)
        rows = sorted(cells.items())
        columns = {
            "campaign": [cell[0] for cell, _ in rows],
            "window_rel_ms": [cell[1] for cell, _ in rows],
            "views": [count for _, count in rows],
        }
        self.store.write_table("expected.parquet", columns)

    # What the engine needs. There is nothing to heal before it is open.
    def open(self) -> None:
        self.screen.phase("services", "Kafka and Redis")
        self.world.open()

    # 4 to 6, with an engine that may fail us at any point.
    def drive(self) -> EngineReport:
        try:
            self.start_engine()
            with self._accounting():
                self.load()
                return self.drain()
        except EngineGone as gone:
            self._tell("gone", state=gone.report.state, detail=gone.report.detail)
            self._abandon()
            return gone.report

    # 4. Start the engine, and let it prove that it answers: opening events have to come out as counts.
    def start_engine(self) -> None:
        self.screen.phase("engine", f"{self.spec.engine} has to answer {self.spec.tape.partitions} opening events")
        started_ms = self.world.now_ms()
        self.world.engine.start()
        window = self.spec.window_ms
        opening = self._marks("opening", self.world.now_ms() // window * window - window, 0)
        self._send(opening)
        cell = Cell(opening[0].campaign, opening[0].event_time_ms)
        with self._diagnosed(cell, len(opening)):
            self._until(
                lambda: self._count_of(cell) >= len(opening),  # too many is for the checks to name
                self.manifest.ready_s,
                lambda: (
                    f"{self._count_of(cell)} of {len(opening)} opening events are counted in window {cell.window_ms}"
                    f"{self.unreadable}"
                ),
            )
        self._tell("ready", after_ms=self.world.now_ms() - started_ms)

    # 5. Load, at intended times. Faults fire on predicates of progress.
    def load(self) -> None:
        self.screen.phase("fleet", f"{self.spec.tape.senders} ad servers")
        page = self.world.await_fleet()
        window = self.spec.window_ms
        self.epoch_ms = -(-(self.world.now_ms() + EPOCH_LEAD_MS) // window) * window
        self._tell("epoch", epoch_ms=self.epoch_ms)
        self.world.start_observing()
        self.world.start_load(self.epoch_ms)
        watch = f", page {page}" if page else ""
        self.screen.phase("load", f"{self.tape.total:,} events in {self.tape.duration_ms / 1000:.0f} s{watch}")
        while not self.world.load_status().finished:
            self._tick()
            self._lose_patience()
        self._tell("loaded", certificate=(certificate := self.world.certify()))
        self._tell("certificate", certificate=certificate)

    # 6. Heal (see _healing), close every window, and drain.
    def drain(self) -> EngineReport:
        self.screen.phase("drain", "until all of the log is done and the results stand still")
        if self.manifest.progress or self.manifest.sink(self.spec.sink).late == "drop":
            self._drained()  # the closing events must not make anything late
        self._finish_fault()
        newest = self.tape.event_time_bounds_rel_ms()[1] + self.epoch_ms
        window = self.spec.window_ms
        closing_ms = (newest + max(watermarks_ms(self.spec))) // window * window + 2 * window
        self._send(self._marks("closing", closing_ms, self.spec.tape.partitions))
        self._drained()
        ends = sum(self._ends().values())
        how = "by its own offsets" if self._progress() else f"by results that stood still for {STILL_S:.0f} s"
        return EngineReport("drained", f"all {ends:,} records of the log are done, {how}", self._restarts())

    # 7. Read all results, orphans included, and the whole log. Save before judging.
    def read(self, report: EngineReport) -> None:
        self.screen.phase("read", "all results and the whole log")
        if (sampled := self.world.stop_observing()) is not None:
            self.store.write_table("samples.parquet", sampled.columns)
            self.store.tell("observer", **asdict(sampled.looks))
        self._collect(force=True)
        self._tell("engine", report=report, notes=self.world.engine.notes())
        rows = self._last_rows(report)
        names = ("key", "field", "value", "kind")
        self.store.write_table("observed.parquet", {n: [r[i] for r in rows] for i, n in enumerate(names)})
        self.store.write_table("log.parquet", self.world.read_log())
        if (log := self.world.engine.batch_log()) is not None:
            self.store.write_json("batches.json", log)

    # 8 and 9. Judge from the files alone; the caller reports from the same files.
    def conclude(self) -> Verdict:
        self.screen.phase("judge")
        self._tell("closed", notes=self.world.engine.notes())
        verdict = judge(self.store)
        self.store.write_json("verdict.json", verdict)
        self._tell("verdict", outcome=verdict.outcome.value)
        return verdict

    # Helpers of the steps.

    def _tell(self, kind: str, **facts: object) -> None:
        """By the clock of the world, so that all times of a run can be compared."""
        self.store.tell(kind, at_ms=self.world.now_ms(), **facts)

    @contextmanager
    def _accounting(self) -> Iterator[None]:
        """What the load and the drain cost, however they end."""
        self.world.start_accounting()
        try:
            yield
        finally:
            self.world.stop_accounting()

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

    def _marks(self, kind: str, time_ms: int, first: int) -> tuple[Mark, ...]:
        """One event of ours per partition, all into the same cell."""
        server = MARK_SERVER << INDEX_BITS
        return tuple(Mark(server | (first + p), 0, p, time_ms, kind) for p in range(self.spec.tape.partitions))

    def _send(self, marks: Sequence[Mark]) -> None:
        self._tell("marks", marks=marks)
        self.world.send_marks(marks)

    def _snapshot(self) -> object:
        """What can't be seen does not stand still: such a look equals no other."""
        return self.world.snapshot() if self.world.reachable() else object()

    def _count_of(self, cell: Cell) -> int:
        """A table that the engine has not made yet can't be read, and holds nothing."""
        if not self.world.reachable():
            return 0
        index = {name: number for number, name in enumerate(self.population.campaign_ids)}
        try:
            rows = self.world.results()
        except UnreadableError as error:
            self.unreadable = f"; {error}"
            return 0
        self.unreadable = ""
        return interpret(rows, index, ()).counts.count(cell)

    @contextmanager
    def _diagnosed(self, cell: Cell, count: int) -> Iterator[None]:
        """An engine that gave no answer may have written one in a place or a way that is not looked at. Of one that
        ended, its own last words are the reason."""
        try:
            yield
        except EngineGone as gone:
            if gone.report.state != "stuck":
                raise
            found = self._diagnosis(cell, count)
            detail = "; ".join(filter(None, (gone.report.detail, found.sentence)))
            raise EngineGone(replace(gone.report, detail=detail, advice=found.lines)) from None

    def _diagnosis(self, cell: Cell, count: int) -> Diagnosis:
        if self.unreadable or not self.world.reachable():
            return Diagnosis()
        wanted = Wanted(
            self.manifest,
            self.manifest.sink(self.spec.sink).bookkeeping,
            frozenset(self.population.campaign_ids),
            self.population.ad_to_campaign.keys(),
            {cell.window_ms},
            self.spec.window_ms,
            count,
            self.world.other_databases(),
        )
        return diagnosis.explain(self.world.results(), wanted)

    def _last_rows(self, report: EngineReport) -> Sequence[Row]:
        """Of an engine that never came so far as to leave any, there need not be results to read."""
        try:
            return self.world.results()
        except UnreadableError:
            if report.state == "drained":
                raise
            return ()

    def _progress(self) -> Progress | None:
        return self.world.engine.progress()

    def _done(self) -> int:
        progress = self._progress()
        return sum(progress.offsets.values()) if progress else 0

    def _ends(self) -> Mapping[int, int]:
        self._until(self.world.reachable, self.manifest.drain_s, lambda: "a fault keeps Kafka or Redis away")
        return self.world.end_offsets()

    def _drained(self) -> None:
        """All of the log is done by the engine's own offsets, or, without such, nothing changes any more."""
        if self.manifest.progress:
            ends = self._ends()
            self._until_still(
                1.0,
                lambda: _covers(self._progress(), ends),
                lambda: f"{self._done():,} of {sum(ends.values()):,} records are done",
            )
        else:
            self._until_still(STILL_S, lambda: True, lambda: "the results still change")

    def _until_still(self, still_s: float, ready: Callable[[], bool], seen: Callable[[], str]) -> None:
        """Wait until `ready`, and two looks at the results `still_s` apart are equal. Moving on renews the deadline."""
        last, since_ms, moved_ms, silence_ms = self._snapshot(), self.world.now_ms(), self.world.now_ms(), 0
        done = self._done()
        while True:
            self._tick_for(LOOK_EVERY_S)
            now_ms, snapshot = self.world.now_ms(), self._snapshot()
            if snapshot != last or not ready():
                if snapshot != last or self._done() != done:
                    silence_ms, moved_ms = max(silence_ms, now_ms - moved_ms), now_ms
                last, since_ms, done = snapshot, now_ms, self._done()
            needed_ms = max(still_s * 1000, SILENCE_FACTOR * silence_ms if still_s > 1 else 0)
            if ready() and now_ms - since_ms >= needed_ms:
                return
            if now_ms - moved_ms > max(self.manifest.drain_s * 1000, 2 * needed_ms):
                raise EngineGone(self._stuck(f"nothing has moved for {self.manifest.drain_s:.0f} s; {seen()}"))

    def _until(self, predicate: Callable[[], bool], deadline_s: float, seen: Callable[[], str]) -> None:
        end_ms = self.world.now_ms() + deadline_s * 1000
        while not predicate():
            self._tick()
            if self.world.now_ms() > end_ms:
                raise EngineGone(self._stuck(f"no answer within {deadline_s:.0f} s; {seen()}"))

    def _finish_fault(self) -> None:
        """A fault that is in the middle of its work (killed, not yet seen back) may end it within the drain's time."""
        self._until(
            self.world.fault.settled,
            self.manifest.drain_s,
            lambda: "; ".join(f"{each.spec.text}: {each.proof}" for each in self.world.fault.reports()),
        )

    def _stuck(self, detail: str) -> EngineReport:
        return self._ended("stuck", detail)

    def _ended(self, state: str, detail: str) -> EngineReport:
        words = self.world.engine.last_words()
        return EngineReport(state, detail, self._restarts(), words.lines, words.log)

    def _lose_patience(self) -> None:
        """A rate that can't be kept up need not be offered to its end."""
        if self.spec.patience_ms is None or not self.manifest.progress:
            return
        profile, done = self.tape.profile, self._done()
        if done >= profile.total or (since_ms := self.world.now_ms() - self.epoch_ms) < self.spec.patience_ms:
            return
        waits_ms = since_ms - int(profile.inverse(np.array([done]))[0]) / 1000
        if waits_ms >= self.spec.patience_ms:
            status = self.world.load_status()
            raise EngineGone(
                EngineReport(
                    "overrun",
                    f"{since_ms / 1000:.0f} s into the load the oldest event had waited for {waits_ms / 1000:.1f} s: "
                    f"{status.intended:,} were due, {status.sent:,} sent, {done:,} done",
                    self._restarts(),
                )
            )

    def _restarts(self) -> int:
        return self.world.engine.starts - 1

    def _moment(self) -> Moment:
        return Moment(
            self.world.now_ms(),
            self.epoch_ms,
            self.world.engine,
            self._progress(),
            self.tape.total,
            self.world.field,
        )

    def _tick(self) -> None:
        """One beat: evidence, fault, life of the engine, screen, and a little time."""
        self._collect()
        self.world.fault.poll(self._moment())
        if not self.world.engine.alive() and not self.world.fault.busy():
            self._supervise()
        self._note_start()
        self.screen.update(self._facts())
        self.world.pause(TICK_S)

    def _supervise(self) -> None:
        """The engine ended by itself. While a fault is about it is started again, as whatever keeps services alive
        would do: to stop loudly is an outage, and no wrong count. Without a fault it has crashed."""
        engine, code = self.world.engine, self.world.engine.exit_code()
        struck = any(each.at_ms for each in self.world.fault.reports())
        times = len(list(self.store.history("restart")))
        if not struck or not self.manifest.resumes or times >= len(RESTART_PAUSES_S):
            after = f" for the {times + 1}th time" if times else " and nobody had killed it"
            detail = f"the engine ended by itself with exit code {code}{after}"
            raise EngineGone(self._ended("crashed", detail))
        if self.ended_ms is None:
            self.ended_ms = self.world.now_ms()
        if self.world.now_ms() - self.ended_ms < RESTART_PAUSES_S[times] * 1000:
            return
        self._tell("restart", exit_code=code, last_lines=engine.tail(5))
        engine.restart()

    def _tick_for(self, seconds: float) -> None:
        end_ms = self.world.now_ms() + seconds * 1000
        while self.world.now_ms() < end_ms:
            self._tick()

    def _collect(self, force: bool = False) -> None:
        now_ms = self.world.now_ms()
        if force or now_ms - self.collected_ms >= COLLECT_EVERY_S * 1000:
            self.world.engine.collect()
            self._note_errors()
            self.collected_ms = now_ms

    def _note_start(self) -> None:
        """When the engine was up again is a figure of its recovery, whoever started it."""
        if (starts := self.world.engine.starts) != self.starts:
            self.starts, self.ended_ms = starts, None
            self._tell("started", times=starts)

    def _note_errors(self) -> None:
        """The first words of an engine about what was done to it, and when they came."""
        if not any(each.at_ms for each in self.world.fault.reports()):
            return
        for line in self.world.engine.tail(20):
            if ERROR.search(line) and line not in self.errors and len(self.errors) < MOST_ERRORS:
                self.errors.add(line)
                self._tell("error", line=line[:300])

    def _facts(self) -> dict[str, str | float | int]:
        load, done = self.world.load_status(), self._done() if self.manifest.progress else -1
        reports = self.world.fault.reports()
        return {
            "now_ms": self.world.now_ms(),
            "sent": load.sent,
            "planned": self.tape.total,
            "done": done,
            "fault": "; ".join(f"{r.spec.text}: {'landed' if r.landed else 'waiting'}" for r in reports),
        }


def _covers(progress: Progress | None, ends: Mapping[int, int]) -> bool:
    return progress is not None and all(progress.offsets.get(p, 0) >= end for p, end in ends.items())
