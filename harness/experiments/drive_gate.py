"""Drives `gate`: three sides on one broker, rounds between them, one answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from harness import console, environment, jvm, plan
from harness.bursts import Bursts
from harness.ending import short_path
from harness.engines import environments
from harness.engines.manifest import FAKE
from harness.experiments import gate, one_run
from harness.experiments.candidates import look_up, made
from harness.experiments.folder import Folder
from harness.experiments.gate import AGAIN, BASE, HEAD, SIDES, Answer, Effect, Gated, Judged, Round, Settings
from harness.experiments.side import Side, SideRun
from harness.model import HarnessError, Outcome, UsageError
from harness.services import children
from harness.services.kafka import EmbeddedKafka
from harness.store import Store
from harness.worlds.real import RealWorld
from reports.gated import ROUNDS

SCENARIO = "calm"
TELL_EVERY_S = 15.0
JUDGED_WITHIN_S = 60.0  # of the budget: draining, reading and judging three sides
QUEUED_MS = 5000.0  # a burst is due all at once, and it takes its time to hand it over


@dataclass(frozen=True)
class Asked:
    """What is compared, and how long that may take."""

    base: str
    head: str
    threshold: float
    budget_s: float
    flags: Mapping[str, Any]
    engine: str  # of commits: where in their repository the manifest lies
    burst_events: int


def drive(asked: Asked, out: Path) -> tuple[Gated, Path]:
    candidates = [look_up(text, asked.engine) for text in (asked.base, asked.head)]
    place, settings = Folder.create(out.absolute(), "gate"), Settings(asked.burst_events)
    known = {"asked": asked, "settings": settings, "environment": environment.describe()}
    place.save("gate", **known)
    logs = place.path / "logs"
    logs.mkdir()
    with (
        place.going_on(f"`streamgauge ls {short_path(place.path)}` lists its sides, each a whole run"),
        children.guard(),
        made(candidates[0], logs, console.say) as base,
        made(candidates[1], logs, console.say) as head,
        _broker(logs) as kafka,
    ):
        engines = {BASE: base, HEAD: head, AGAIN: base}
        found = _Gate(place, asked, settings).drive(engines, kafka)
        place.save("gate", **known, found=found)
        place.finished(found.outcome, found.sentence)
    return found, place.path


@contextmanager
def _broker(logs: Path) -> Iterator[str]:
    """One for all sides: it is no part of what is compared."""
    broker = EmbeddedKafka(logs, jvm.jars("services"), str(jvm.java()))
    try:
        yield broker.start().bootstrap
    finally:
        broker.stop()


class _Gate:
    """Three sides, and rounds between them until it is known or the budget is used up."""

    def __init__(self, place: Folder, asked: Asked, settings: Settings) -> None:
        self.place, self.asked, self.settings = place, asked, settings
        self.begun_s = time.monotonic()
        self.rounds: list[Round] = []
        self.look = 0
        self.told_s = self.begun_s

    def drive(self, engines: Mapping[str, str], kafka: str) -> Gated:
        sides = {name: self._side(name, engines[name], kafka) for name in SIDES}
        console.say(f"{self.asked.base} and {self.asked.head} start, the base twice")
        broken = ""
        try:
            for side in sides.values():
                side.start()
            for side in sides.values():
                side.await_ready()
            console.say(f"all have answered after {time.monotonic() - self.begun_s:.0f} s, and are warmed up in turn")
            self._warm_up(sides)
            self._measure(sides)
        except HarnessError as error:
            broken = str(error)
        except BaseException:
            for side in sides.values():
                side.stop()
            raise
        finally:
            console.say("all sides drain and are judged")
            for side in sides.values():
                side.end()
            for side in sides.values():
                side.join()
        return self._answer({name: _judged(self.place, side) for name, side in sides.items()}, broken)

    def _answer(self, judged: Mapping[str, Judged], broken: str) -> Gated:
        right = all(each.outcome is Outcome.PASS for each in judged.values())
        compared = self._effects() if right else ()
        return Gated(judged, compared, len(self.rounds) // len(SIDES), broken)

    def _effects(self) -> tuple[Effect, ...]:
        return gate.effects(self.rounds, self.asked.threshold, self.look, self.settings.seed)

    def _side(self, name: str, engine: str, kafka: str) -> Side:
        settings = self.settings
        _, keys = plan.read_scenario(SCENARIO)
        rate = settings.burst_events / settings.burst_ms * 1000
        own = {"engine": engine, "kafka": kafka, "rate": rate, "fault": "none", "lag_budget_ms": QUEUED_MS}
        spec, manifest = plan.resolve("gate", {**keys, **own}, self.asked.flags, one_run.find_manifest)
        if manifest.id == FAKE or not manifest.progress:
            raise UsageError(
                f"{engine} can't be gated: its manifest says progress = false, and without progress nobody knows when "
                "a burst is done. docs/engines.md tells how an engine writes its progress."
            )
        spec = replace(spec, tape=gate.tape(spec.tape, settings.warm_up_bursts + settings.most_rounds, settings))
        surroundings = environments.prepare(manifest, console.say)
        store = Store.create(self.place.runs, name.replace(" ", "-"))
        starts, seen = one_run.starts_and_machine(spec, manifest, surroundings)
        world = RealWorld(spec, manifest, surroundings, store, starts, load_of=Bursts)
        return Side(name, SideRun(spec, manifest, world, store, settings), world, seen)

    def _warm_up(self, sides: Mapping[str, Side]) -> None:
        for side in sides.values():
            side.warm_up(self.settings.warm_up_bursts)

    def _measure(self, sides: Mapping[str, Side]) -> None:
        """All rounds that there is time for, or as many as it takes."""
        planned, warm_s = gate.looks(self.settings.most_rounds), time.monotonic()
        with (self.place.path / ROUNDS).open("ab") as file:
            for number, name in gate.order(self.settings.most_rounds):
                self.rounds.append(sides[name].burst())
                file.write(msgspec.json.encode(self.rounds[-1]) + b"\n")
                file.flush()
                if len(self.rounds) % len(SIDES):
                    continue
                done, now_s = number + 1, time.monotonic()
                each_s = (now_s - warm_s) / done
                left_s = self.asked.budget_s - JUDGED_WITHIN_S - (now_s - self.begun_s)
                is_last = done == self.settings.most_rounds or left_s < each_s
                self._tell(done, min(left_s, each_s * (self.settings.most_rounds - done)))
                if is_last or done in planned:
                    self.look = len(planned) - 1 if is_last else planned.index(done)
                    if self._is_known(done) or is_last:
                        return

    def _tell(self, done: int, left_s: float) -> None:
        if time.monotonic() - self.told_s >= TELL_EVERY_S:
            self.told_s = time.monotonic()
            console.say(f"  {done} rounds, at most {max(0.0, left_s) / 60:.0f} minutes more of them")

    def _is_known(self, done: int) -> bool:
        found = self._effects()
        console.say(f"  {done} rounds: {'; '.join(map(gate.in_words, found)) or 'too few to say anything'}")
        return bool(found) and found[0].answer is not Answer.INCONCLUSIVE


def _judged(place: Folder, side: Side) -> Judged:
    run = str(side.run.store.path.relative_to(place.path))
    if side.verdict:
        return Judged(side.verdict.outcome, side.verdict.sentence, run)
    return Judged(Outcome.UNKNOWN, f"{type(side.error).__name__}: {side.error}", run)
