"""Engines that stay up beside each other on one broker, and the rounds that go between them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from harness.config import plan
from harness.drivers import one_run
from harness.drivers.gate_side import Side, SideRun
from harness.engines import manifest as manifests
from harness.experiments.folder import Folder
from harness.experiments.gating.gate import BASE, Judged
from harness.experiments.gating.rounds import (
    PACED_STRETCHES,
    STRETCH_MS,
    STRETCHES,
    Round,
    Settings,
    fitting,
    order,
    tape,
)
from harness.host import disk_space
from harness.install import jvm
from harness.load.burst_load import Bursts
from harness.model import EngineManifest, HarnessError, Outcome, RunSpec, UsageError, Verdict
from harness.rundir.store import Store
from harness.runner.screen import NullScreen
from harness.runner.world.real import RealWorld
from harness.services.kafka import EmbeddedKafka
from harness.terminal import console

SCENARIO = "calm"
LONGEST_S = 600.0  # a side may be so much slower than the first one
TELL_EVERY_S = 15.0
TURNS = 10  # by which all sides are warmed up: one that then waits for the others long would be another one again
# A heap that grows in the middle of the rounds costs half a CPU second or more for each GiB that is touched for the
# first time, and one that shrinks grows again: more than what is looked for. So all JVMs take and touch their memory at
# once, and keep it. It is an eighth of the machine's, or what a job says itself, if that is less.
STEADY_MEMORY = ("-XX:InitialRAMPercentage=12.5", "-XX:+AlwaysPreTouch", "-XX:MaxHeapFreeRatio=100")
CRASHED = "crashed"  # the word for an engine that ended by itself
QUEUED_MS = 5000.0  # a burst is due all at once, and it takes its time to hand it over


@contextmanager
def broker(logs: Path) -> Iterator[str]:
    """One for all sides: it is no part of what is compared."""
    kafka = EmbeddedKafka(logs, jvm.jars("services"), str(jvm.java()))
    try:
        yield kafka.start().bootstrap
    finally:
        kafka.stop()


def planned(engine: str, sink: str, settings: Settings, flags: Mapping[str, Any]) -> tuple[RunSpec, EngineManifest]:
    """What a side is to run. Nothing is started, so that a mistake is told before a gate begins."""
    _, keys = plan.read_scenario(SCENARIO)
    rate = settings.stretch_events / STRETCH_MS * 1000
    own = {"engine": engine, "sink": sink, "rate": rate, "fault": "none", "lag_budget_ms": QUEUED_MS}
    spec, manifest = plan.resolve("gate", {**keys, **own}, flags, manifests.load)
    if manifest.simulated:
        raise UsageError("The fake engine costs nothing and has no processes: there is nothing to gate of it.")
    return spec, manifest


class Sides:
    """A few of them. Each is a run in a thread of its own; only one at a time is sent something that is measured."""

    def __init__(self, place: Folder, rounds: Path, kafka: str, flags: Mapping[str, Any]) -> None:
        self._place, self._rounds, self._kafka, self._flags = place, rounds, kafka, flags
        self._sides: dict[str, Side] = {}
        self._stretches = 1  # in each round

    def add(self, name: str, engine: str, sink: str, settings: Settings) -> None:
        spec, manifest = planned(engine, sink, settings, {**self._flags, "kafka": self._kafka})
        spec = replace(spec, tape=tape(spec.tape, STRETCHES, settings))
        surroundings = one_run.prepare(spec, manifest)
        store = Store.create(self._place.runs, re.sub(r"\W+", "-", name))  # a part of the topic's name
        starts, seen = one_run.starts_and_machine(spec, manifest, surroundings, STEADY_MEMORY)
        world = RealWorld(spec, manifest, surroundings, store, starts, load_of=Bursts)
        self._sides[name] = Side(name, SideRun(spec, manifest, world, store, settings), world, seen)

    @contextmanager
    def up(self, settings: Settings, by: str = BASE) -> Iterator[None]:
        """From their start until all are judged; whatever ends the rounds too early is told by `judged`'s caller. `by`:
        the side that says how much is sent to all."""
        begun_s, sides = time.monotonic(), self._sides.values()
        try:
            for side in sides:
                side.start()
            for side in sides:
                side.await_ready()
            console.say(f"all have answered after {time.monotonic() - begun_s:.0f} s, and are warmed up")
            self._warm_up(settings, by)
            yield
        except HarnessError:
            raise
        except BaseException:
            for side in sides:
                side.stop()
            raise
        finally:
            console.say("all sides drain and are judged")
            for side in sides:
                side.end()
            for side in sides:
                side.join()

    def _warm_up(self, settings: Settings, by: str) -> None:
        """One says how much that is."""
        first, others = self._sides[by], [side for name, side in self._sides.items() if name != by]
        with ThreadPoolExecutor() as together:  # what a fault has killed takes as long to come back as it took to start
            list(together.map(Side.strike, self._sides.values()))
        told_s = time.monotonic()
        for turn in range(TURNS):
            if time.monotonic() - told_s > TELL_EVERY_S:
                told_s = time.monotonic()
                console.say(f"  warmed up in {turn} turns of {TURNS}")
            sent = first.warm_up(settings.warm_up_s / TURNS)
            for side in others:
                side.warm_up(LONGEST_S, sent)
        took_s = [side.wave(PACED_STRETCHES) for side in (first, *others)]
        self._stretches = fitting(PACED_STRETCHES, took_s[0], settings)
        console.say(f"a round is a burst of {self._stretches * settings.stretch_events:,} events")

    @property
    def sent_events(self) -> int:
        return sum(side.run.stretches * side.run.settings.stretch_events for side in self._sides.values())

    def rounds(self, most: int) -> Iterator[list[Round]]:
        """One round of each side at a time. Each is on disk before it is looked at."""
        with self._rounds.open("ab") as file:
            for names in order(tuple(self._sides), most):
                block = []
                for name in names:
                    block.append(self._sides[name].burst(self._stretches))
                    file.write(msgspec.json.encode(block[-1]) + b"\n")
                    file.flush()
                yield block

    def judged(self) -> Mapping[str, Judged]:
        """What is said of each, when all have ended; their reports are made."""
        return {name: self._judged(side) for name, side in self._sides.items()}

    def _judged(self, side: Side) -> Judged:
        run = str(side.run.store.path.relative_to(self._place.path))
        if not side.verdict:
            return Judged(Outcome.UNKNOWN, f"{type(side.error).__name__}: {side.error}", run)
        recovery = one_run.report(side.run.stored, side.verdict, NullScreen()).recovery
        wrong = [check for check in side.verdict.checks if check.outcome is not Outcome.PASS and check.witnesses]
        witnesses = tuple(check.witnesses[0] for check in wrong)
        return Judged(side.verdict.outcome, side.verdict.sentence, run, recovery, witnesses, _crashed(side.verdict))

    def with_latency(self, measured: Sequence[Round]) -> list[Round]:
        """The rounds, with what only the files of sides tell that were judged and are right."""
        made = [each for side in self._sides.values() for each in side.with_latency(measured)]
        made.sort(key=lambda each: each.at_ms)
        disk_space.write(self._rounds, b"".join(msgspec.json.encode(each) + b"\n" for each in made))
        return made


def _crashed(verdict: Verdict) -> str:
    """What an engine said that ended by itself; the loudest line comes first."""
    found = [check for check in verdict.checks if check.word == CRASHED]
    said = [each.detail for check in found for each in check.witnesses if each.seen == CRASHED]
    return said[0] if said else found[0].sentence if found else ""
