"""Drives `compare --pairs`: both engines of a pair start together on the same cores, again and again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.drivers import pages
from harness.drivers.gate import settings_of
from harness.drivers.gate_sides import Sides, broker, planned, write_archives
from harness.experiments import pairing
from harness.experiments.folder import Folder
from harness.experiments.gating import gate
from harness.experiments.pairing import KIND, Paired, PairsRequest, Progress, Which, rounds_file
from harness.host.pinning import Placement, placement
from harness.install import environment
from harness.load import judged_rows
from harness.model import HarnessError
from harness.services import children
from harness.services.kafka import EmbeddedKafka
from harness.terminal import console
from harness.terminal.command_end import short_path
from harness.util.texts import many
from reports import paired

# The same for all pairs: an engine with batches has a fixed cost per round, so its ratios depend on the round's size.
# Less if events belong to many windows.
BURST_EVENTS = 200_000


def begin(engines: Sequence[str], which: Which, budget_s: float, flags: Mapping[str, Any], out: Path) -> Folder:
    """Resolve every engine first, so that a mistake in the last one is reported at once."""
    pairing.refuse_count(engines)
    spec, _ = planned(engines[0], "", settings_of(BURST_EVENTS, budget_s), flags)
    burst_events = round(BURST_EVENTS * judged_rows.share(spec))
    asked = PairsRequest(tuple(engines), which, budget_s, flags, settings_of(burst_events, budget_s))
    for engine in engines:
        planned(engine, "", asked.settings, flags)
    experiment = Folder.create(out.absolute(), KIND)
    _save(experiment, asked, [], environment.describe())
    return experiment


def resume(path: Path) -> Folder:
    return Folder.open(path.absolute(), KIND)


def _save(experiment: Folder, asked: PairsRequest, done: Sequence[Progress], machine: Mapping[str, Any]) -> None:
    experiment.save(KIND, asked=asked, progress=done, environment=machine)


def drive(experiment: Folder) -> Paired:
    """Measure every pair that is not measured yet, then write the page."""
    asked: PairsRequest = experiment.load("asked", PairsRequest)
    pairs = _Pairs(experiment, asked, placement())
    with experiment.going_on(f"`streamgauge compare --resume {short_path(experiment.path)}` resumes it"):
        console.note(f"two engines at a time: {pairs.placed.words}")
        write_archives(((engine, "") for engine in asked.engines), asked.settings, asked.flags)
        for number, before in enumerate(pairs.begun(), 1):
            if not before.is_over(asked.budget_s):
                pairs.measure(number, before)
        found = paired.read(experiment).found
        experiment.finished(found.outcome, found.sentence)
    pages.write_page(experiment)
    return found


class _Pairs:
    """The measurement of pairs: each is started again and again until its budget is used up."""

    def __init__(self, experiment: Folder, asked: PairsRequest, placed: Placement) -> None:
        self.experiment, self.asked, self.placed = experiment, asked, placed

    def begun(self) -> list[Progress]:
        return pairing.all_of(self.asked, self.experiment.load("progress", list[Progress]))

    def measure(self, number: int, progress: Progress) -> None:
        first, second = progress.pair.sides
        console.note(f"pair {number}: {first} and {second}")
        logs = self.experiment.path / "logs" / str(number)
        logs.mkdir(parents=True, exist_ok=True)
        with children.guard(), broker(logs) as kafka:
            while not progress.is_over(self.asked.budget_s):
                progress = self._start(number, progress, kafka)
                self._keep(progress)
        if found := paired.read(self.experiment).found.between(first, second):
            for said in (found.sentence, *found.notes):
                console.note(f"  {said}")

    def _keep(self, now: Progress) -> None:
        done = {each.pair: each for each in self.begun()} | {now.pair: now}
        _save(self.experiment, self.asked, list(done.values()), self.experiment.load("environment", dict[str, Any]))

    def _start(self, number: int, before: Progress, kafka: EmbeddedKafka) -> Progress:
        """Start both, warm them up, do the rounds, and judge both. Only whole starts are kept."""
        begun_s, start = time.monotonic(), before.starts + 1
        settings = self.asked.settings
        path = self.experiment.path / rounds_file(number, start)
        path.unlink(missing_ok=True)
        sides = Sides(self.experiment, path, kafka, self.asked.flags, self.placed, start=start)
        engines = dict(zip(self.asked.labels, self.asked.engines, strict=True))
        for side in before.pair.sides:
            sides.add(side, engines[side], "", settings)
        broken = ""
        try:
            with sides.up(settings):
                for _ in sides.rounds(settings.rounds):
                    pass
        except HarnessError as error:
            broken = str(error)
        judged = {name: gate.worse(before.judged.get(name), each) for name, each in sides.judged().items()}
        oddities = tuple(sorted({*before.oddities, *sides.oddities}))
        took_s = (*before.took_s, time.monotonic() - begun_s)
        now = replace(before, took_s=took_s, judged=judged, oddities=oddities, broken=broken)
        return _planned(now, self.asked) if start == 1 and not broken else now


def _planned(now: Progress, asked: PairsRequest) -> Progress:
    (took_s,) = now.took_s
    starts = gate.planned(asked.budget_s - took_s, took_s, asked.settings.most_starts)
    console.note(f"  a start took {took_s:.0f} s: {many(starts, 'start is', 'starts are')} planned")
    return replace(now, planned=starts)
