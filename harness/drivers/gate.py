"""Drives `gate`: start three sides on one broker, again and again, until there is an answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.config import plan
from harness.drivers import one_run, pages
from harness.drivers.gate_side import NotStartedError
from harness.drivers.gate_sides import Sides, broker, planned, write_archives
from harness.experiments.folder import Folder
from harness.experiments.gating import baseline, gate, history
from harness.experiments.gating.baseline import REFERENCE, Baseline
from harness.experiments.gating.candidates import commit_of, look_up, made
from harness.experiments.gating.conditions import Watch
from harness.experiments.gating.gate import AGAIN, BASE, HEAD, LEVELS, SIDES, Effect, Gated, Judged, Stored
from harness.experiments.gating.rounds import ROUNDS, Round, Settings, encoded, of_burst
from harness.host import disk_space
from harness.host.pinning import placement
from harness.install import environment
from harness.model import HarnessError, Outcome
from harness.rundir.store import Store
from harness.services import children
from harness.services.kafka import EmbeddedKafka
from harness.terminal import console
from harness.terminal.command_end import UnderWay, known, short_path, under_way
from harness.util.texts import many

WARM_UP_SHARE = 0.01  # of the budget, in each start


@dataclass(frozen=True)
class GateRequest:
    """The arguments of a gate: the sides to compare, and the time it may take."""

    base: str
    head: str
    threshold: float
    budget_s: float
    flags: Mapping[str, Any]
    engine: str  # for commits: the path of the manifest in their repository
    burst_events: int  # 0: as many as fit
    saves: str = ""  # the baseline file to measure; then nothing is compared


def settings_of(burst_events: int, budget_s: float) -> Settings:
    return replace(of_burst(burst_events), warm_up_s=WARM_UP_SHARE * budget_s)


def drive(asked: GateRequest, out: Path) -> tuple[Gated, Path]:
    then = baseline.read(asked.base, asked.flags, asked.burst_events) if baseline.is_baseline(asked.base) else None
    workload, texts = plan.workload_of(asked.flags), (REFERENCE if then else asked.base, asked.head)
    candidates = [look_up(text, asked.engine, workload) for text in texts]
    settings = settings_of(then.burst_events if then else asked.burst_events, asked.budget_s)
    for candidate in candidates:
        if not candidate.commit:  # a commit's engine is only known after the checkout
            planned(candidate.engine, candidate.sink, settings, asked.flags)
    experiment = Folder.create(out.absolute(), "gate")
    commits = dict(zip((BASE, HEAD), map(commit_of, candidates), strict=True))
    if then:
        commits[BASE] = then.entry.head.commit
    known = {"asked": asked, "settings": settings, "environment": environment.describe(), "commits": commits}
    experiment.save("gate", **known)
    logs = experiment.path / "logs"
    logs.mkdir()
    comparison = _Gate(experiment, asked, settings, then)
    with (
        experiment.going_on(
            f"`streamgauge ls {short_path(experiment.path)}` lists its sides; each is a run", experiment.without_runs
        ),
        children.guard(),
        made(candidates[0], logs, console.note) as base,
        made(candidates[1], logs, console.note) as head,
    ):
        sinks = [candidate.sink for candidate in candidates]
        engines = {BASE: (base, sinks[0]), HEAD: (head, sinks[1]), AGAIN: (base, sinks[0])}
        if then:
            spec, manifest = planned(head, sinks[1], settings, asked.flags)
            then.refuse_other(manifest, spec.sink)
        write_archives(engines.values(), settings, asked.flags)
        with broker(logs) as kafka:
            found = comparison.drive(engines, kafka)
        experiment.save("gate", **known, found=found)
        save_exports(experiment)
        experiment.finished(found.outcome, found.sentence)
    return found, experiment.path


def save_exports(experiment: Folder) -> None:
    """Write the files that CI jobs read."""
    from reports.exports import gate as exports
    from reports.gated import read

    exports.save(read(experiment))


def draw(experiment: Folder) -> None:
    """Write the page of the gate and those of the runs that it links to.

    This comes after the answer, because drawing takes seconds. `streamgauge report RUN` makes the page of other starts.
    """
    from reports import gated

    for judged in gated.read(experiment).found.sides.values():
        if judged.run and (side := Store(experiment.path / judged.run)).has("verdict.json"):
            one_run.draw(side.path)
    next_step = f"`streamgauge report {short_path(experiment.path)}` writes its page"
    with under_way(UnderWay(experiment.path, experiment.path, next_step), experiment.history.tell):
        pages.write_page(experiment)


class _Gate:
    """A gate in progress: it starts all sides again and again until the answer is known or the budget is used up."""

    def __init__(self, experiment: Folder, asked: GateRequest, settings: Settings, then: Baseline | None) -> None:
        self.experiment, self.asked, self.settings, self.then = experiment, asked, settings, then
        self.stored: Stored | None = then.stored() if then else None
        self.begun_s = time.monotonic()
        self.rounds: list[Round] = []
        self.judged: dict[str, Judged] = {}
        self.starts = self.look = 0
        self.longest_s = 0.0  # the duration of the longest start
        self.planned = self.settings.most_starts
        self.placed = placement()
        self.oddities: set[str] = set()
        self.has_repeated = False  # one start was made twice
        self.watch = Watch()

    def drive(self, engines: Mapping[str, tuple[str, str]], kafka: EmbeddedKafka) -> Gated:
        named = REFERENCE if self.then else self.asked.base
        console.note(f"{named} and {self.asked.head} start together, the first of them twice: {self.placed.words}")
        self.watch.rounds_begin()
        broken = ""
        try:
            while not self._is_over():
                self._start(engines, kafka)
        except HarnessError as error:
            broken = str(known(error))
        conditions = replace(self.watch.seen(), placed=self.placed.words, oddities=tuple(sorted(self.oddities)))
        judged = {name: self.judged.get(name, Judged(Outcome.UNKNOWN, broken, "")) for name in SIDES}
        right = all(each.outcome is Outcome.PASS for each in judged.values())
        if right:
            disk_space.write(self.experiment.path / ROUNDS, encoded(self.rounds))  # now with what the files hold
        if self.then:
            versions = history.versions_of(Store(self.experiment.path / judged[HEAD].run))
            machine = history.environment_of(self.experiment.load("environment", dict[str, Any]))
            self.stored = self.then.stored(machine, versions)
        found = self._effects(conditions.declined) if right else ()
        return Gated(judged, found, self.starts, broken, conditions, self.stored, self.longest_s)

    def _start(self, engines: Mapping[str, tuple[str, str]], kafka: EmbeddedKafka) -> None:
        """Start all sides, run their rounds, and judge them.

        If one of them ends before its load, all are started once more, once in a gate: an unchanged job may do that.
        """
        begun_s, number = time.monotonic(), self.starts + 1
        sides = Sides(
            self.experiment, self.experiment.path / ROUNDS, kafka, self.asked.flags, self.placed, start=number
        )
        for name in SIDES:
            sides.add(name, *engines[name], self.settings)
        own: list[Round] = []
        again = ""
        try:
            with sides.up(self.settings):
                for block in sides.rounds(self.settings.rounds):
                    own += block
        except NotStartedError as error:
            if self.has_repeated:
                raise
            again = f"start {number} was made twice: {error}"
        finally:
            if not again:
                self.judged = {name: gate.worse(self.judged.get(name), each) for name, each in sides.judged().items()}
            self.oddities |= sides.oddities
        if again:
            self.has_repeated = True
            self.oddities.add(again)
            console.note(again)
            self._start(engines, kafka)
            return
        if self._is_right():
            self.rounds += sides.with_evidence(own)
        self.starts, took_s = number, time.monotonic() - begun_s
        if number == 1:
            self.settings = replace(self.settings, round_stretches=sides.round_stretches)
            self._plan(took_s, len(own) // len(SIDES))
        self.longest_s = max(took_s, self.longest_s)

    def _plan(self, took_s: float, rounds: int) -> None:
        left_s = self.asked.budget_s - (time.monotonic() - self.begun_s)
        self.planned = gate.planned(left_s, took_s, self.settings.most_starts)
        events = self.settings.round_stretches * self.settings.stretch_events
        console.note(
            f"a start took {took_s:.0f} s, with {many(rounds, 'round')} of {events:,} events: "
            f"{many(self.planned, 'start is', 'starts are')} planned"
        )

    def _is_right(self) -> bool:
        return all(each.outcome is Outcome.PASS for each in self.judged.values())

    def _is_over(self) -> bool:
        """Return True as soon as the answer is known, or can't become known."""
        if not self.starts:
            return False
        left_s = self.asked.budget_s - (time.monotonic() - self.begun_s)
        is_last = not self._is_right() or self.starts >= self.planned or left_s < self.longest_s
        planned = (self.planned,) if self.asked.saves else gate.looks(self.planned)
        if is_last or self.starts in planned:
            self.look = len(LEVELS) - 1 if is_last else planned.index(self.starts)
            return self._is_known() or is_last
        return False

    def _is_known(self) -> bool:
        found = self._effects() if self._is_right() else ()
        said = gate.in_words(found[0]) if found else "too few starts to compare yet"
        console.note(f"  {many(self.starts, 'start')}: {said}")
        return gate.is_known(found)

    def _effects(self, declined: str = "") -> tuple[Effect, ...]:
        return gate.effects(self.rounds, self.asked.threshold, self.look, declined, stored=self.stored)
