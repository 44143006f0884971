"""Drives `gate`: three sides on one broker, rounds between them, one answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import console, environment
from harness.ending import short_path
from harness.experiments import gate
from harness.experiments.candidates import commit_of, look_up, made
from harness.experiments.conditions import Conditions, Watch
from harness.experiments.folder import Folder
from harness.experiments.gate import AGAIN, BASE, HEAD, SIDES, Answer, Effect, Gated
from harness.experiments.rounds import ROUNDS, Round, Settings
from harness.experiments.sides import Sides, broker
from harness.model import HarnessError, Outcome
from harness.services import children

TELL_EVERY_S = 15.0
JUDGED_WITHIN_S = 60.0  # of the budget: draining, reading and judging three sides


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
    commits = dict(zip((BASE, HEAD), map(commit_of, candidates), strict=True))
    known = {"asked": asked, "settings": settings, "environment": environment.describe(), "commits": commits}
    place.save("gate", **known)
    logs = place.path / "logs"
    logs.mkdir()
    comparison = _Gate(place, asked, settings)
    with (
        place.going_on(f"`streamgauge ls {short_path(place.path)}` lists its sides, each a whole run"),
        children.guard(),
        made(candidates[0], logs, console.say) as base,
        made(candidates[1], logs, console.say) as head,
        broker(logs) as kafka,
    ):
        sinks = [candidate.sink for candidate in candidates]
        engines = {BASE: (base, sinks[0]), HEAD: (head, sinks[1]), AGAIN: (base, sinks[0])}
        found = comparison.drive(engines, kafka)
        place.save("gate", **known, found=found)
        place.finished(found.outcome, found.sentence)
    return found, place.path


class _Gate:
    """Three sides, and rounds between them until it is known or the budget is used up."""

    def __init__(self, place: Folder, asked: Asked, settings: Settings) -> None:
        self.place, self.asked, self.settings = place, asked, settings
        self.begun_s = time.monotonic()
        self.rounds: list[Round] = []
        self.look = 0
        self.told_s = self.begun_s
        self.watch = Watch()
        self.conditions: Conditions | None = None

    def drive(self, engines: Mapping[str, tuple[str, str]], kafka: str) -> Gated:
        sides = Sides(self.place, self.place.path / ROUNDS, kafka, self.asked.flags)
        for name in SIDES:
            sides.add(name, *engines[name], self.settings)
        console.say(f"{self.asked.base} and {self.asked.head} start, the base twice")
        broken = ""
        try:
            with sides.up():
                self.watch.rounds_begin()
                self._measure(sides)
                self.conditions = self.watch.seen()
        except HarnessError as error:
            broken = str(error)
        judged, compared = sides.judged(), tuple[Effect, ...]()
        if all(each.outcome is Outcome.PASS for each in judged.values()):
            self.rounds = sides.with_latency(self.rounds)
            compared = self._effects()
        return Gated(judged, compared, len(self.rounds) // len(SIDES), broken, self.conditions)

    def _effects(self) -> tuple[Effect, ...]:
        declined = self.conditions.declined if self.conditions else ""
        return gate.effects(self.rounds, self.asked.threshold, self.look, self.settings.seed, declined)

    def _measure(self, sides: Sides) -> None:
        """All rounds that there is time for, or as many as it takes."""
        most, warm_s = self.settings.most_rounds, time.monotonic()
        planned = gate.looks(most)
        for done, block in enumerate(sides.rounds(most), 1):
            self.rounds += block
            now_s = time.monotonic()
            each_s = (now_s - warm_s) / done
            left_s = self.asked.budget_s - JUDGED_WITHIN_S - (now_s - self.begun_s)
            is_last = done == most or left_s < each_s
            self._tell(done, min(left_s, each_s * (most - done)))
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
        console.say(f"  {done} rounds: {gate.in_words(found[0]) if found else 'too few to say anything'}")
        return bool(found) and found[0].answer is not Answer.INCONCLUSIVE
