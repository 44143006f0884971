"""Drives `search`: one run for each start of the engine.

The settings and the results are stored in the experiment's directory, so that an interrupted search can be resumed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.config import plan
from harness.drivers import one_run, pages, reference_rate
from harness.engines import manifest as manifests
from harness.experiments.curve import files, kept, steer
from harness.experiments.curve.plateau import Piece, Plateau, Standing, Why
from harness.experiments.folder import Folder
from harness.experiments.searching import search
from harness.experiments.searching.search import Lived, Settings, Unit
from harness.experiments.searching.searched import KIND, Searched, engine_of, read, refuse_an_older
from harness.host import disk_space, needs
from harness.install import environment
from harness.judging.stored_run import StoredRun
from harness.load import judged_rows
from harness.model import EngineManifest, HarnessError, Outcome, RunSpec, UsageError
from harness.runner.rate_search_run import RateSearchRun, beginning_with, segment
from harness.runner.screen import Screen
from harness.runner.world.base import World
from harness.terminal import console
from harness.terminal.command_end import short_path
from reports.result import Result
from workloads.base import FINAL, MAY_FALL, NEVER
from workloads.registry import oracle_of

BROKEN = ("crashed", "stuck")
# Each part of a run, and the line of its history with which it begins.
PARTS = (
    ("start", "begin"),
    ("load", "epoch"),
    ("drain", "loaded"),
    ("read", "engine"),
    ("judge", "closed"),
    ("measure", "verdict"),
)
UNITS_BESIDE = 2  # before the first engine run of a whole search, and after the last


def begin(spec: RunSpec, engine_manifest: EngineManifest, settings: Settings, out: Path) -> Folder:
    """Create a search. It takes over the run's objective: a rate that misses it fails, but not the run itself."""
    _refuse_without_latency(spec)
    plan.refuse_one_database_for(settings.lives, spec.redis, reset=spec.reset)
    if spec.workers:
        raise UsageError(
            f"workers = {spec.workers} is not possible: a search decides its load while it runs, and sends it from one "
            f"process. Leave it out of the scenario."
        )
    settings = search.of(spec, settings, spec.objective_p99_ms)
    spec = replace(spec, objective_p99_ms=None)
    most = _most(spec, settings)
    judged_rows.refuse_too_many(most, needs.granted().memory_bytes)
    one_run.refuse_without_room(most, engine_manifest, out)
    experiment = Folder.create(out.absolute(), f"search-{spec.engine}")
    _keep(experiment, _asked(spec, engine_manifest, settings))
    return experiment


def _refuse_without_latency(spec: RunSpec) -> None:
    values = oracle_of(spec).values
    if any(value.kind in FINAL for value in values) and (judged_rows.first_places(spec)[0].closes_ms != NEVER).any():
        raise UsageError(
            f"search looks for the rate at which latency rises, and an answer of {spec.tape.workload} leaves when the "
            f"watermark has passed its event: a search raises the watermark, so that a job that is behind drops "
            f"nothing, and the latency would be mostly that. Runs at rising rates show what an engine keeps up with; "
            f"`gate` and `compare` measure its cost."
        )
    if all(value.kind in MAY_FALL for value in values):
        kinds = " and ".join(sorted({value.kind.value for value in values}))
        raise UsageError(
            f"search asks for the latency of events, and {spec.tape.workload} has none: each of its values is {kinds}, "
            f"and may fall, so it does not show when an event became visible. Runs at rising rates show what "
            f"an engine keeps up with; `gate` and `compare` measure its cost."
        )


def _most(spec: RunSpec, settings: Settings) -> RunSpec:
    """Return a run with the largest expected load, to check disk space. The real load is decided during the run."""
    life = settings.life
    most = Piece(min(life.start_per_s, life.most_per_s), Why.LEVEL, 0)
    return replace(
        spec, tape=replace(spec.tape, profile=(segment(most, life.window_ms * life.most),), warm_up=(), waits=False)
    )


def resume(path: Path) -> Folder:
    experiment = Folder.open(path.absolute(), KIND)
    refuse_an_older(experiment)
    return experiment


def resolved(experiment: Folder) -> tuple[RunSpec, EngineManifest]:
    """Load the plan of a search to resume."""
    spec: RunSpec = experiment.load("spec", RunSpec)
    experiment.refuse_hidden(spec.public())
    return spec, manifests.load(engine_of(experiment), spec.workload)


def settings_of(experiment: Folder) -> Settings:
    return experiment.load("settings", Settings)


def drive(experiment: Folder, spec: RunSpec, engine_manifest: EngineManifest) -> Searched:
    """Complete a search. The spec comes from memory, since the stored one has no password."""
    with experiment.going_on(f"`streamgauge search --resume {short_path(experiment.path)}` resumes it"):
        _Search(experiment, replace(spec, objective_p99_ms=None), engine_manifest).all()
        found = read(experiment)
        experiment.finished(found.found.outcome, found.found.sentence)
    return found


class _Search:
    """A search in progress."""

    def __init__(self, experiment: Folder, spec: RunSpec, engine_manifest: EngineManifest) -> None:
        self._experiment, self._spec, self._manifest = experiment, spec, engine_manifest
        self._settings = settings_of(experiment)
        self._units: list[Unit] = experiment.load("units", list[Unit])
        self._lives: list[Lived] = experiment.load("lives", list[Lived])

    def all(self) -> None:
        settings = self._settings
        console.note("\n".join(_told(self._spec, settings, self._manifest, self._experiment.path)))
        if not self._units:
            self._measure_unit(reference_rate.of_this_start if settings.lives == 1 else reference_rate.measured)
        while not search.finished(settings, self._lives):
            self._live()
        if settings.lives > 1 and len(self._units) < UNITS_BESIDE:
            self._measure_unit(reference_rate.measured)
        pages.write_page(self._experiment)

    def _measure_unit(self, measured: Callable[[Path], Unit]) -> None:
        """Measure the reference, unless the engine is simulated or Kafka is external: then it would be meaningless.

        If it fails, the search goes on without it.
        """
        if self._manifest.simulated or self._spec.kafka:
            return
        try:
            self._units.append(measured(self._experiment.path / "units"))
        except HarnessError as error:
            console.note(f"  {error}")
        self._keep()

    def _live(self) -> None:
        settings, lives = self._settings, self._lives
        number, left_s = sum(life.whole for life in lives) + 1, search.left_s(settings, lives)
        console.note(f"engine run {number} of {settings.lives}; at most {left_s / 60:.0f} min left")
        offered = search.of_a_life(settings, next(iter(read(self._experiment).lived), ()))
        lived, life = _live(self._experiment, search.spec_of_a_life(self._spec, settings), offered, self._manifest)
        lives.append(lived)
        self._keep()
        if life.stopped:
            pages.write_page(self._experiment)
            raise life.stopped

    def _keep(self) -> None:
        asked = _asked(self._spec, self._manifest, self._settings)
        _keep(self._experiment, asked, self._units, self._lives)


def _told(spec: RunSpec, settings: Settings, engine_manifest: EngineManifest, out: Path) -> Iterator[str]:
    """Format the search's budget for the terminal, before it starts."""
    yield f"search on {spec.engine}/{spec.sink}: p99 within {settings.life.objective_p99_ms:,.0f} ms"
    parts = {name: _seconds(*span) for name, span in steer.budget_s(settings.life).items()}
    parts["other steps"] = "starting, draining, reading, judging, measuring; the time grows with the events"
    if not (spec.kafka or engine_manifest.simulated):
        parts["disk"] = disk_space.told_of_log(out)
    longest = max(len(name) for name in parts)
    yield from (f"  {name:<{longest}}  {part}" for name, part in parts.items())


def _seconds(least_s: int, most_s: int) -> str:
    return f"{least_s if least_s == most_s else f'{least_s} to {most_s}'} s of load"


def _live(
    experiment: Folder, spec: RunSpec, settings: steer.Settings, engine_manifest: EngineManifest
) -> tuple[Lived, RateSearchRun]:
    began_s, lives = time.monotonic(), list[RateSearchRun]()
    first = steer.next_piece(settings, [], [])
    assert first is not None

    most = judged_rows.most_events(spec, needs.granted().memory_bytes // 2)  # the machine has other things to hold

    def decide(pieces: Sequence[Piece], standings: Sequence[Standing]) -> Piece | None:
        piece = steer.next_piece(settings, pieces, standings)
        if piece and most is not None and settings.events_of((*pieces, piece)) > most:
            console.note(f"  The load ends here: the judge's rows of more than {most:,} events do not fit into memory.")
            return None
        return piece

    def life_of(
        spec: RunSpec, manifest: EngineManifest, world: World, stored: StoredRun, screen: Screen
    ) -> RateSearchRun:
        lives.append(RateSearchRun(spec, manifest, world, stored, screen, first=first, decide=decide))
        return lives[0]

    result = one_run.answer(beginning_with(spec, first), engine_manifest, experiment.runs, growing=life_of)
    _refuse_a_full_disk(result)
    right = result.verdict.outcome is Outcome.PASS
    if right:
        stored = lives[0].stored  # it has just been measured
        kept.save(stored.store, files.measured(stored))
    seconds = time.monotonic() - began_s
    lived = Lived(
        run=os.path.relpath(result.path, experiment.path),
        outcome=result.verdict.outcome,
        sentence=_sentence(result),
        seconds=seconds,
        whole=right and lives[0].stopped is None,
        parts_s=_parts_s(lives[0].stored, seconds),
    )
    return lived, lives[0]


def _parts_s(run: StoredRun, seconds: float) -> dict[str, float]:
    """Return the seconds between lines of the history; the time after the last one is measuring and drawing."""
    at_ms = {told["kind"]: told["at_ms"] for told in run.store.history(*dict(PARTS).values())}
    marks = [(part, at_ms[kind]) for part, kind in PARTS if kind in at_ms]
    parts = {part: (to_ms - from_ms) / 1000 for (part, from_ms), (_, to_ms) in pairwise(marks)}
    return parts | {"measure": max(0.0, seconds - sum(parts.values()))}


def _sentence(result: Result) -> str:
    """Return the verdict's sentence, with the rate at a failure if it is known."""
    verdict = result.verdict
    sentence = verdict.sentence.rstrip(".")
    if verdict.outcome is not Outcome.FAIL:
        return verdict.sentence
    run = StoredRun.open(result.path)
    if at := files.where_wrong(run, verdict):
        return f"{sentence}; one of them at {_named(at)}"
    if set(BROKEN) & set(verdict.words) and (at := files.where_last_told(run)):
        return f"{sentence}; its last progress was at {_named(at)}"
    return verdict.sentence


def _named(plateau: Plateau) -> str:
    return f"{plateau.rate_per_s:,.0f} events/s ({plateau.why.value})"


def _asked(spec: RunSpec, engine_manifest: EngineManifest, settings: Settings) -> dict[str, Any]:
    return {"spec": spec.public(), "engine": engine_manifest.named, "settings": settings}


def _keep(
    experiment: Folder, asked: Mapping[str, Any], units: Sequence[Unit] = (), lives: Sequence[Lived] = ()
) -> None:
    experiment.save(KIND, **asked, environment=environment.describe(), units=units, lives=lives)


def _refuse_a_full_disk(result: Result) -> None:
    """Raise an error for a run that was ended by a full disk: its result does not depend on the rate."""
    if "no-room" in result.verdict.words:
        raise HarnessError(f"{result.verdict.sentence.rstrip('.')}. See {result.path}.")
