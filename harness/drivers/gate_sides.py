"""Engines that run beside each other on one broker, and rounds that all of them process at the same time."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import redis

from generators.fleet import Slice
from harness.config import plan
from harness.drivers import class_archives, one_run
from harness.drivers.gate_side import Side, SideRun
from harness.engines import manifest as manifests
from harness.experiments.folder import Folder
from harness.experiments.gating.gate import Judged
from harness.experiments.gating.rounds import (
    FEW,
    LONG_S,
    MORE,
    STRETCH_MS,
    STRETCHES,
    Round,
    Settings,
    are_enough,
    encoded,
    fitting,
    order,
    tape,
)
from harness.host.pinning import Placement, pin
from harness.install import jvm
from harness.load.burst_load import Bursts
from harness.metering.counted_work import CountedWork
from harness.model import EngineManifest, HarnessError, Outcome, RunSpec, UsageError, Verdict
from harness.rundir.store import Store
from harness.runner.screen import NullScreen, Screen
from harness.runner.world.real import RealWorld
from harness.services.kafka import EmbeddedKafka
from harness.terminal import console
from harness.util.texts import many
from harness.util.wait import ends_within

SCENARIO = "calm"
WARM_UP_STRETCHES = 4  # at a time, to each side
# A heap that grows during the rounds costs half a CPU second or more for each GiB that is touched for the first time,
# and one that shrinks grows again. That exceeds the differences to detect, so all JVMs allocate and touch their memory
# at once, and keep it: a sixteenth of the machine's, or the job's own setting if that is less. Garbage is collected
# between rounds, so that G1 need not mark it in some of them, which costs a fifth of a round.
STEADY_MEMORY = (
    "-XX:InitialRAMPercentage=6.25",
    "-XX:+AlwaysPreTouch",
    "-XX:MaxHeapFreeRatio=100",
    "-XX:-G1UseAdaptiveIHOP",
    "-XX:InitiatingHeapOccupancyPercent=90",
    # Spark aggregates in pages of 32 MiB, which a task reuses or not. By chance that is 2 % of what a round allocates.
    "-Dspark.buffer.pageSize=1m",
)
CRASHED = "crashed"  # the word for an engine that ended by itself
PATIENCE = 3.0  # three sides start at the same time, so each may take three times as long
NAME_LENGTH, FEWEST_DIGITS = 16, 2  # of a side's run and its number
QUEUED_MS = 5000.0  # all of a burst is due at once, and handing it over takes time

T = TypeVar("T")


@contextmanager
def broker(logs: Path) -> Iterator[EmbeddedKafka]:
    """Start the broker that all sides share, because it is not compared."""
    kafka = EmbeddedKafka(logs, jvm.jars("services"), str(jvm.java()))
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.stop()


def planned(engine: str, sink: str, settings: Settings, flags: Mapping[str, Any]) -> tuple[RunSpec, EngineManifest]:
    """Resolve the run of a side. Nothing is started, so that a mistake is reported before a gate begins."""
    _, keys = plan.read_scenario(SCENARIO)
    rate = settings.stretch_events / STRETCH_MS * 1000
    own = {
        "engine": engine,
        "sink": sink,
        "rate": rate,
        "fault": "none",
        "lag_budget_ms": QUEUED_MS,
        "patience": PATIENCE,
    }
    spec, manifest = plan.resolve("gate", {**keys, **own}, flags, manifests.load)
    if manifest.simulated:
        raise UsageError(
            "The fake engine has no processes and no CPU cost, so a gate can't measure it. Choose another engine."
        )
    return spec, manifest


def write_archives(engines: Iterable[tuple[str, str]], settings: Settings, flags: Mapping[str, Any]) -> None:
    """Write the archives of classes that these engines lack: with them three Sparks start in 24 to 37 s, and in 77 to
    105 s without.
    """
    for engine, sink in dict.fromkeys(engines):
        class_archives.before(*planned(engine, sink, settings, flags))


class Sides:
    """One start of all sides, each a run in a thread of its own.

    They get their rounds at the same time, if there are cores that they can share and nothing else uses.
    """

    def __init__(
        self,
        experiment: Folder,
        rounds: Path,
        kafka: EmbeddedKafka,
        flags: Mapping[str, Any],
        placed: Placement,
        *,
        start: int,
    ) -> None:
        self._experiment, self._rounds, self._kafka, self._flags = experiment, rounds, kafka, flags
        self._placed, self._start = placed, start
        self._sides: dict[str, Side] = {}
        self.round_stretches = 1
        self.oddities: set[str] = set()  # sentences on engines that left their cores
        self._screen: Screen = NullScreen()

    def add(self, name: str, engine: str, sink: str, settings: Settings) -> None:
        at = self._kafka.address.bootstrap
        spec, manifest = planned(engine, sink, settings, {**self._flags, "kafka": at})
        spec = replace(spec, tape=tape(spec.tape, STRETCHES, settings))
        surroundings = one_run.prepare(spec, manifest)
        store = Store.create(self._experiment.runs, run_name(name, self._start))
        port = int(at.rpartition(":")[2])
        work = CountedWork(lambda: redis_of(world), port, lambda: world.engine.checkpoint)
        options = (*self._options, *work.java_options)
        starts, seen = one_run.starts_and_machine(spec, manifest, surroundings, options)
        world = RealWorld(spec, manifest, surroundings, store, starts, load_of=Bursts)
        run = SideRun(spec, manifest, world, store, settings)
        self._sides[name] = Side(name, run, world, work, seen, start=self._start)

    @property
    def _options(self) -> tuple[str, ...]:
        """The options for each JVM. A fixed core count keeps it from changing collectors and pools when pinned."""
        cores = len(self._placed.all)
        return (*STEADY_MEMORY, f"-XX:ActiveProcessorCount={cores}") if cores else STEADY_MEMORY

    @contextmanager
    def up(self, settings: Settings) -> Iterator[None]:
        """Start and warm up all sides; at the end, wait until all are judged. The caller reports early ends."""
        with console.progress() as self._screen, self._up(settings):
            yield

    @contextmanager
    def _up(self, settings: Settings) -> Iterator[None]:
        begun_s, sides = time.monotonic(), self._sides.values()
        self._screen.phase("start", f"the first counts by {many(len(sides), 'engine')}")
        try:
            for side in sides:
                side.start()
            for side in sides:
                side.await_ready()
            console.note(f"start {self._start}: all engines have answered after {time.monotonic() - begun_s:.0f} s")
            with self._pinned():
                self._warm_up(settings)
                yield
        except HarnessError:
            raise
        except BaseException:
            for side in sides:
                side.stop()
            raise
        finally:
            self._screen.phase("judge", "the last counts of all engines, and the verdicts")
            for side in sides:
                side.end()
            for side in sides:
                side.join()

    @contextmanager
    def _pinned(self) -> Iterator[None]:
        """Pin the services during the rounds. For start and judgement, all processes may use all cores."""
        if self._placed.reason:
            yield
            return
        of_sides = (pid for side in self._sides.values() for pid in side.service_pids())
        services = {os.getpid(), self._kafka.child.pid, *of_sides}
        pin(services, self._placed.others)
        try:
            yield
        finally:
            pin(services, self._placed.all)

    def _pin(self) -> None:
        if not self._placed.reason:
            self.oddities |= {said for side in self._sides.values() if (said := side.pin(self._placed.shared))}

    def _warm_up(self, settings: Settings) -> None:
        """Warm up all sides at the same time with the same load: a side that waits for the others gets cold again."""
        self._screen.phase("warm-up", f"{settings.warm_up_s:.0f} s of load, and idle engines")
        self._together(Side.strike)  # a killed engine takes as long to return as it took to start
        self._pin()
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < settings.warm_up_s:
            self._together(partial(Side.warm_up, stretches=WARM_UP_STRETCHES))
        self._together(Side.is_settled)
        self.round_stretches = settings.round_stretches or self._fitting()
        self._together(partial(Side.wave, stretches=self.round_stretches))  # the first one costs a third more

    def _fitting(self) -> int:
        few_s, more_s = (max(self._together(partial(Side.wave, stretches=count))) for count in (FEW, MORE))
        return fitting(few_s, more_s)

    def _together(self, do: Callable[[Side], T]) -> list[T]:
        with ThreadPoolExecutor(len(self._sides)) as pool:
            return list(pool.map(do, self._sides.values()))

    def rounds(self, most: int) -> Iterator[list[Round]]:
        """Yield one round of each side at a time, after writing it to disk, until the time for rounds is used up."""
        begun_s = time.monotonic()
        self._screen.phase("rounds", f"at most {many(most, 'round')}")
        with self._rounds.open("ab") as file:
            for number, names in enumerate(order(tuple(self._sides), most)):
                if are_enough(number, time.monotonic() - begun_s):
                    return
                self._pin()
                if not number or any(side.is_restless() for side in self._sides.values()):
                    ends_within(LONG_S, threading.Event())
                block = self._round([self._sides[name] for name in names])
                file.write(encoded(block))
                file.flush()
                yield block

    def _round(self, sides: Sequence[Side]) -> list[Round]:
        """Run all sides at the same time, or one after the other if they could not get cores of their own."""
        written = [side.written(self.round_stretches) for side in sides]
        pairs = list(zip(sides, written, strict=True))
        groups = [[each] for each in pairs] if self._placed.reason else [pairs]
        self._together(Side.await_compiled)
        self._together(Side.collect_garbage)
        with ThreadPoolExecutor(len(sides)) as pool:
            return [each for group in groups for each in _at_once(pool, group)]

    def judged(self) -> Mapping[str, Judged]:
        """Return the verdict on each side after all have ended, and write their reports."""
        return {name: self._judged(side) for name, side in self._sides.items()}

    def _judged(self, side: Side) -> Judged:
        run = str(side.run.store.path.relative_to(self._experiment.path))
        if not side.verdict:
            return Judged(Outcome.UNKNOWN, f"{type(side.error).__name__}: {side.error}", run)
        recovery = one_run.report(side.run.stored, side.verdict, NullScreen()).recovery
        wrong = [check for check in side.verdict.checks if check.outcome is not Outcome.PASS and check.witnesses]
        witnesses = tuple(check.witnesses[0] for check in wrong)
        return Judged(side.verdict.outcome, side.verdict.sentence, run, recovery, witnesses, _crashed(side.verdict))

    def with_evidence(self, measured: Sequence[Round]) -> list[Round]:
        """Return the rounds with what only the files of the sides hold. The sides have to be judged and right."""
        made = [each for side in self._sides.values() for each in side.with_evidence(measured)]
        return sorted(made, key=lambda each: each.at_ms)


def run_name(side: str, start: int) -> str:
    """Return names of equal length, because a side's topic has its name, and Spark copies that with each record."""
    called = re.sub(r"\W+", "-", side)
    return f"{called}-{start:0{max(FEWEST_DIGITS, NAME_LENGTH - len(called))}}"


def _at_once(pool: Executor, group: Sequence[tuple[Side, list[Slice]]]) -> list[Round]:
    """Send all bursts, wake all engines, and wait for all."""
    try:
        sent = list(pool.map(lambda pair: pair[0].send(pair[1]), group))
    finally:
        for side, _ in group:
            side.wake()
    return list(pool.map(lambda side, one: side.round(one), [side for side, _ in group], sent))


def redis_of(world: RealWorld) -> redis.Redis:
    """Connect to a side's own Redis, so that no other writes are counted."""
    field = world.servers.field
    if not field or not field.redis:
        raise OSError("this side has no Redis of its own")
    return field.redis.client()


def _crashed(verdict: Verdict) -> str:
    """Return the most telling output of an engine that ended by itself, which comes first; "" for any other."""
    found = [check for check in verdict.checks if check.word == CRASHED]
    said = [each.detail for check in found for each in check.witnesses if each.seen == CRASHED]
    return said[0] if said else found[0].sentence if found else ""
