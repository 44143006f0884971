"""Drives a `search`: a fresh run for each trial. What is asked and what is known lie in the experiment's directory, so
that a search goes on from there, were it begun just now or broken off yesterday."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness import console, plan
from harness.ending import short_path
from harness.engines import manifest as manifests
from harness.experiments import one_run, search
from harness.experiments.folder import Folder
from harness.install import environment
from harness.measuring.cost import engine_s_per_million
from harness.measuring.measurement import Measurement
from harness.measuring.objective import headline_p99_ms
from harness.measuring.timeline import Lines
from harness.model import Certificate, EngineManifest, HarnessError, Outcome, RunSpec, UsageError
from harness.stored import StoredRun
from reports.result import Result

if TYPE_CHECKING:
    from reports.page import Page

NO_CERTIFICATE = Certificate(False, ("there is no certificate",), 0, 0, 0, 0, {}, 0.0)


def begin(spec: RunSpec, settings: search.Settings, out: Path) -> Folder:
    """The objective of the run becomes that of the search: a rate that misses it has failed, the run itself has not."""
    plan.refuse_one_database_for(settings.most_trials, spec.redis, reset=spec.reset)
    settings = replace(settings, objective_p99_ms=spec.objective_p99_ms or settings.objective_p99_ms)
    # The ramp sends the most, and how far it gets is decided while it goes.
    ramp = search.Step(search.Stage.RAMP, settings.start_per_s)
    one_run.refuse_without_room(search.spec_of(spec, ramp, settings), manifests.load(spec.engine, spec.workload), out)
    place = Folder.create(out.absolute(), f"search-{spec.engine}")
    _keep(place, replace(spec, objective_p99_ms=None), settings, [])
    return place


def resume(path: Path) -> Folder:
    return Folder.open(path.absolute(), "search")


def spec_of(place: Folder) -> RunSpec:
    """Of a search to go on with."""
    spec: RunSpec = place.load("spec", RunSpec)
    place.refuse_hidden(spec.redis)
    return spec


def settings_of(place: Folder) -> search.Settings:
    settings: search.Settings = place.load("settings", search.Settings)
    return settings


def trials_so_far(place: Folder) -> list[search.Trial]:
    trials: list[search.Trial] = place.load("trials", list[search.Trial])
    return trials


def drive(place: Folder, spec: RunSpec, engine_manifest: EngineManifest) -> list[search.Trial]:
    """The spec comes from memory: what is kept of it holds no password."""
    with place.going_on(f"`streamgauge search --resume {short_path(place.path)}` goes on from there"):
        done = _drive(place, spec, engine_manifest)
        found = search.answer(done)
        place.finished(found.outcome, found.sentence)
    return done


def _drive(place: Folder, spec: RunSpec, engine_manifest: EngineManifest) -> list[search.Trial]:
    spec, settings = replace(spec, objective_p99_ms=None), settings_of(place)
    console.say(f"search on {spec.engine}/{spec.sink}: objective p99 <= {settings.objective_p99_ms:,.0f} ms")

    def keep(done: list[search.Trial]) -> None:
        _keep(place, spec, settings, done)

    def run_trial(step: search.Step) -> search.Trial:
        left_s = search.remaining_s(trials_so_far(place), settings)
        console.say(f"{step.stage} at {step.rate_per_s:,.0f}/s; about {left_s / 60:.0f} minutes left")
        began_s = time.monotonic()
        result = one_run.drive(search.spec_of(spec, step, settings), engine_manifest, place.runs)
        _refuse_a_full_disk(result)
        judged = _ramp if step.stage is search.Stage.RAMP else _trial
        trial = judged(step, result, settings, time.monotonic() - began_s)
        console.say(f"  {trial.held}: {trial.reason}")
        return trial

    done = search.search(trials_so_far(place), settings, run_trial, keep)
    write_page(place)
    return done


def write_page(place: Folder) -> Page:
    """Drawing is slow to import, and most commands draw nothing."""
    from reports import search_page

    return search_page.write(place)


def _keep(place: Folder, spec: RunSpec, settings: search.Settings, done: list[search.Trial]) -> None:
    place.save("search", spec=spec.public(), settings=settings, environment=environment.describe(), trials=done)


def _refuse_a_full_disk(result: Result) -> None:
    """What it ended says nothing of a rate."""
    if "no-room" in result.verdict.words:
        raise HarnessError(f"{result.verdict.sentence.rstrip('.')}. See {result.path}.")


def _ramp(step: search.Step, result: Result, settings: search.Settings, seconds: float) -> search.Trial:
    """Neither held nor failed: it only says where to look."""
    run = StoredRun.open(result.path)
    store = run.store
    gone, epoch = (next(store.history(kind), None) for kind in ("gone", "epoch"))
    if gone is not None and gone["state"] != "overrun":
        raise HarnessError(f"The ramp failed: {result.verdict.sentence}. See {result.path}.")
    if result.clock:
        raise HarnessError(
            f"The ramp has to say about how much the engine keeps up with, and can't: {result.clock}. See "
            f"{result.path}; `streamgauge search --resume` makes another one."
        )
    given_up_s = (gone["at_ms"] - epoch["epoch_ms"]) / 1000 if gone and epoch else None
    estimate_per_s = search.estimate_per_s(Lines(run).processed, given_up_s, settings)
    if estimate_per_s is None:
        raise UsageError(
            f"{result.spec.engine} reports no progress, or did nothing, so its rate can't be measured. "
            f"A search needs an engine that writes progress; what this one did is in {result.path}."
        )
    told = "it fell behind" if given_up_s else "it never fell behind"
    reason = f"{told}; about {estimate_per_s:,.0f}/s were processed"
    return search.Trial(step.stage, estimate_per_s, search.Held.ESTIMATE, reason, str(result.path), seconds=seconds)


def _trial(step: search.Step, result: Result, settings: search.Settings, seconds: float) -> search.Trial:
    certificate = result.certificate or NO_CERTIFICATE
    measured = result.measurement
    outcome = result.verdict.outcome
    held, reason = search.judge_trial(outcome, certificate, measured, settings.objective_p99_ms, result.clock)
    if outcome is not Outcome.PASS and held is search.Held.NO:
        reason = result.verdict.sentence
    steady = measured.steady if measured else None
    latency = (measured.latency_by("probes") or measured.latency_by("rank-matched")) if measured else None
    return search.Trial(
        stage=step.stage,
        rate_per_s=step.rate_per_s,
        held=held,
        reason=reason,
        run=str(result.path),
        p50_ms=latency.corrected.p50 if latency else None,
        p99_ms=headline_p99_ms(measured),
        processed_per_s=measured.processed_per_s if measured else None,
        cpu_s_per_million=engine_s_per_million(measured.cost) if measured else None,
        load_cpu_s_per_million=_load_s_per_million(measured) if measured else None,
        slopes=steady.slopes if steady else {},
        bounds=steady.bounds if steady else {},
        seconds=seconds,
        clock=result.clock,
    )


def _load_s_per_million(measured: Measurement) -> float | None:
    return next((each.cpu_s_per_million for each in measured.cost if each.part == "generator"), None)
