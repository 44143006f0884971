"""Drives `gate`: three sides on one broker, rounds between them, one answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config import plan
from harness.drivers import one_run
from harness.drivers.gate_sides import Sides, broker, planned
from harness.experiments.folder import Folder
from harness.experiments.gating import baseline, gate, history
from harness.experiments.gating.baseline import REFERENCE, Baseline
from harness.experiments.gating.candidates import commit_of, look_up, made
from harness.experiments.gating.conditions import Conditions, Watch
from harness.experiments.gating.gate import AGAIN, BASE, HEAD, LEVELS, SIDES, Answer, Effect, Gated, Stored, looks
from harness.experiments.gating.rounds import ROUNDS, Round, Settings, of_burst
from harness.install import environment
from harness.model import HarnessError, Outcome
from harness.rundir import store
from harness.rundir.store import Store
from harness.services import children
from harness.terminal import console
from harness.terminal.command_end import UnderWay, short_path, under_way
from harness.util.texts import many

if TYPE_CHECKING:
    from reports.page import Page

TELL_EVERY_S = 15.0
WARM_UP_SHARE = 0.07  # of the budget, for each side
END_S, JUDGED_S = 15.0, 9e-6  # for all sides to drain and stop; for each event to be read and judged


def judged_within_s(events: int) -> float:
    """All that was sent is read and judged at the end, on two cores within so long."""
    return END_S + events * JUDGED_S


@dataclass(frozen=True)
class Asked:
    """What is compared, and how long that may take."""

    base: str
    head: str
    threshold: float
    budget_s: float
    flags: Mapping[str, Any]
    engine: str  # of commits: where in their repository the manifest lies
    burst_events: int  # 0: as many as fit
    saves: str = ""  # the baseline that is measured, and nothing compared


def settings_of(burst_events: int, budget_s: float) -> Settings:
    return replace(of_burst(burst_events), warm_up_s=WARM_UP_SHARE * budget_s)


def drive(asked: Asked, out: Path) -> tuple[Gated, Path]:
    then = baseline.read(asked.base, asked.flags, asked.burst_events) if baseline.is_baseline(asked.base) else None
    workload, texts = plan.workload_of(asked.flags), (REFERENCE if then else asked.base, asked.head)
    candidates = [look_up(text, asked.engine, workload) for text in texts]
    settings = settings_of(then.burst_events if then else asked.burst_events, asked.budget_s)
    for candidate in candidates:
        if not candidate.commit:  # what lies in a commit is known when it is checked out
            planned(candidate.engine, candidate.sink, settings, asked.flags)
    place = Folder.create(out.absolute(), "gate")
    commits = dict(zip((BASE, HEAD), map(commit_of, candidates), strict=True))
    if then:
        commits[BASE] = then.entry.head.commit
    known = {"asked": asked, "settings": settings, "environment": environment.describe(), "commits": commits}
    place.save("gate", **known)
    logs = place.path / "logs"
    logs.mkdir()
    comparison = _Gate(place, asked, settings, then)
    with (
        place.going_on(f"`streamgauge ls {short_path(place.path)}` lists its sides, each a whole run"),
        children.guard(),
        made(candidates[0], logs, console.say) as base,
        made(candidates[1], logs, console.say) as head,
    ):
        sinks = [candidate.sink for candidate in candidates]
        engines = {BASE: (base, sinks[0]), HEAD: (head, sinks[1]), AGAIN: (base, sinks[0])}
        if then:
            spec, manifest = planned(head, sinks[1], settings, asked.flags)
            then.refuse_other(manifest, spec.sink)
        with broker(logs) as kafka:
            found = comparison.drive(engines, kafka)
        place.save("gate", **known, found=found)
        save_exports(place)
        place.finished(found.outcome, found.sentence)
    return found, place.path


def save_exports(place: Folder) -> None:
    """What a CI job reads."""
    from reports.exports import gate as exports
    from reports.gated import read

    exports.save(read(place))


def draw(place: Folder) -> None:
    """The pages of its sides and its own, after whatever waits for the answer has it: drawing takes seconds."""
    for side in store.runs(place.runs):
        if side.has("verdict.json"):
            one_run.draw(side.path)
    next_step = f"`streamgauge report {short_path(place.path)}` makes its page"
    with under_way(UnderWay(place.path, place.path, next_step), place.history.tell):
        write_page(place)


def write_page(place: Folder) -> Page:
    """Drawing is slow to import, and most commands draw nothing."""
    from reports import gate_page

    return gate_page.write(place)


class _Gate:
    """Three sides, and rounds between them until it is known or the budget is used up."""

    def __init__(self, place: Folder, asked: Asked, settings: Settings, then: Baseline | None) -> None:
        self.place, self.asked, self.settings, self.then = place, asked, settings, then
        self.stored: Stored | None = then.stored() if then else None
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
        console.say(f"{REFERENCE if self.then else self.asked.base} and {self.asked.head} start, the first one twice")
        broken = ""
        try:
            # The reference engine may be many times as fast as the head.
            with sides.up(self.settings, by=HEAD if self.then or self.asked.saves else BASE):
                self.watch.rounds_begin()
                self._measure(sides)
                self.conditions = self.watch.seen()
        except HarnessError as error:
            broken = str(error)
        judged, compared = sides.judged(), tuple[Effect, ...]()
        if all(each.outcome is Outcome.PASS for each in judged.values()):
            self.rounds = sides.with_latency(self.rounds)
            compared = self._effects()
        if self.then:
            versions = history.versions_of(Store(self.place.path / judged[HEAD].run))
            machine = history.environment_of(self.place.load("environment", dict[str, Any]))
            self.stored = self.then.stored(machine, versions)
        return Gated(judged, compared, len(self.rounds) // len(SIDES), broken, self.conditions, self.stored)

    def _effects(self) -> tuple[Effect, ...]:
        declined = self.conditions.declined if self.conditions else ""
        asked, seed = self.asked, self.settings.seed
        return gate.effects(self.rounds, asked.threshold, self.look, seed, declined, stored=self.stored)

    def _measure(self, sides: Sides) -> None:
        """All rounds that there is time for, or as many as it takes."""
        most, warm_s, warm_events = self.settings.most_rounds, time.monotonic(), sides.sent_events
        planned = (most,) if self.asked.saves else looks(most)
        for done, block in enumerate(sides.rounds(most), 1):
            self.rounds += block
            now_s, sent = time.monotonic(), sides.sent_events
            each_s = (now_s - warm_s + judged_within_s(sent) - judged_within_s(warm_events)) / done
            left_s = self.asked.budget_s - (now_s - self.begun_s) - judged_within_s(sent)
            is_last = done == most or left_s < each_s
            self._tell(done, min(left_s, each_s * (most - done)))
            if is_last or done in planned:
                self.look = len(LEVELS) - 1 if is_last else planned.index(done)
                if self._is_known(done) or is_last:
                    return

    def _tell(self, done: int, left_s: float) -> None:
        if time.monotonic() - self.told_s >= TELL_EVERY_S:
            self.told_s = time.monotonic()
            console.say(f"  {many(done, 'round')} a side, at most {max(0.0, left_s) / 60:.0f} minutes more of them")

    def _is_known(self, done: int) -> bool:
        found = self._effects()
        console.say(
            f"  {many(done, 'round')} a side: {gate.in_words(found[0]) if found else 'too few to say anything'}"
        )
        return bool(found) and found[0].answer is not Answer.INCONCLUSIVE
