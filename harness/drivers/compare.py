"""Drives `compare`: a new run for each engine, leg and round.

The wanted runs and the results are stored in the experiment's directory, so that an interrupted one can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from harness.config import plan
from harness.drivers import one_run, pages, reference_rate, timed_cases
from harness.drivers import search as drive_search
from harness.engines import environments, shipped
from harness.engines import manifest as manifests
from harness.experiments import compare, repeat
from harness.experiments.compare import Leg, LegRun, Ran, Settings
from harness.experiments.folder import Folder
from harness.experiments.searching import search
from harness.faults import registry
from harness.install import environment
from harness.load import judged_rows
from harness.measuring.measure import not_right
from harness.model import EngineManifest, Outcome, RunSpec, UsageError
from harness.terminal import console
from harness.terminal.command_end import short_path
from reports import compared
from reports.result import Result

CompareRequest = Mapping[str, Any]  # only in memory with the password of a Redis
SEARCHED = "calm"
ABOUT_S = 75.0  # the estimate for one run until some were timed


def begin(
    engines: Sequence[str], settings: Settings, flags: Mapping[str, Any], out: Path, *, searched: bool = False
) -> tuple[Folder, CompareRequest]:
    """Resolve every run, install every engine, and create the experiment, so that errors come before the first run."""
    settings, flags = _with_rounds(settings, flags)
    keys = {**plan.read_scenario(compare.SCENARIO)[1], "duration": f"{settings.load_s}s"}
    steady, _ = plan.resolve(compare.SCENARIO, {**keys, "fault": "none", "engine": engines[0]}, flags, manifests.load)
    size = judged_rows.share(steady)
    settings = replace(settings, catch_up_per_s=settings.catch_up_per_s * size)
    if "rate" not in flags:
        keys = {**keys, "rate": round(keys["rate"] * size)}
    named, seed = engines, steady.tape.seed
    if steady.workload in shipped.workloads_of(compare.REFERENCE):  # it supports no user's own workload
        engines = compare.with_reference(engines)
    asked: CompareRequest = {
        "named": named,
        "engines": engines,
        "keys": keys,
        "flags": flags,
        "seed": seed,
        "settings": msgspec.to_builtins(settings),
        "search": searched,
    }
    wanted = compare.runs_of(engines, settings, seed)
    plan.refuse_one_database_for(len(wanted), flags.get("redis", ""), reset=flags.get("reset", False))
    needed = {}
    for case in wanted[: len(engines) * len(Leg)]:
        spec, manifest = resolve(asked, case)
        needed[case.engine] = manifest
        if needs := registry.create(spec, manifest).needs:
            raise UsageError(
                f"{case.engine} can't be compared: {spec.fault.text} does not apply to it ({'; '.join(needs)}). "
                f"Leave it out."
            )
    for manifest in needed.values():
        environments.prepare(manifest, console.note)
    experiment = Folder.create(out.absolute(), "compare")
    machine = environment.describe()
    experiment.save("compare", asked=_public(asked), environment=machine, wanted=wanted, done=[], searches={})
    return experiment, asked


def _with_rounds(settings: Settings, flags: Mapping[str, Any]) -> tuple[Settings, Mapping[str, Any]]:
    """Move the rounds from the flags to the settings, since a single run has none."""
    if "repeat" not in flags:
        return settings, flags
    rounds = plan.rounds_of(compare.SCENARIO, {}, flags)
    return replace(settings, rounds=rounds), {name: value for name, value in flags.items() if name != "repeat"}


def resume(path: Path) -> tuple[Folder, CompareRequest]:
    experiment = Folder.open(path.absolute(), "compare")
    experiment.refuse_other_version("Figures of both do not belong in one table.", "comparison")
    asked: CompareRequest = experiment.load("asked", dict[str, Any])
    experiment.refuse_other_settings(asked["settings"], Settings)
    experiment.refuse_hidden(asked["flags"])
    return experiment, asked


def _public(asked: CompareRequest) -> CompareRequest:
    return {**asked, "flags": plan.public(asked["flags"])}


def resolve(asked: CompareRequest, case: LegRun) -> tuple[RunSpec, EngineManifest]:
    watermark = asked["flags"].get("watermark", "0")
    own = compare.keys_of(case, msgspec.convert(asked["settings"], Settings), watermark)
    flags = {**asked["flags"], **own}
    if case.leg is not Leg.STEADY:  # a frozen or killed engine can't meet it
        flags.pop("objective_p99_ms", None)
    keys = {name: value for name, value in asked["keys"].items() if name not in own}
    return plan.resolve(compare.SCENARIO, keys, flags, manifests.load)


def drive(experiment: Folder, asked: CompareRequest) -> None:
    """Run all pending runs and searches, then write the page."""
    with experiment.going_on(f"`streamgauge compare --resume {short_path(experiment.path)}` resumes it"):
        _drive(experiment, asked)
        found = compared.read(experiment).found
        experiment.finished(found.outcome, found.sentence)


def _drive(experiment: Folder, asked: CompareRequest) -> None:
    machine: dict[str, Any] = experiment.load("environment", dict[str, Any])
    wanted: list[LegRun] = experiment.load("wanted", list[LegRun])
    done: list[Ran] = experiment.load("done", list[Ran])
    searches: dict[str, str] = experiment.load("searches", dict[str, str])

    def keep() -> None:
        experiment.save(
            "compare", asked=_public(asked), environment=machine, wanted=wanted, done=done, searches=searches
        )

    def run(case: LegRun) -> Ran:
        return _run(experiment, asked, case, done)

    timed_cases.drive(wanted, done, run, keep, words=lambda case: f"{case.leg} on {case.engine}", about_s=ABOUT_S)
    for engine in asked["engines"] if asked["search"] else ():
        own, spec, manifest = _search(experiment, asked, engine, searches.get(engine))
        searches[engine] = os.path.relpath(own.path, experiment.path)
        keep()
        drive_search.drive(own, spec, manifest)
    pages.write_page(experiment)


def _search(
    experiment: Folder, asked: CompareRequest, engine: str, begun: str | None
) -> tuple[Folder, RunSpec, EngineManifest]:
    """Begin a search, or resume it from its directory, which holds all of its state."""
    if begun:
        own = drive_search.resume(experiment.path / begun)
        return own, *drive_search.resolved(own)
    keys = {**plan.read_scenario(SEARCHED)[1], "fault": "none", "engine": engine}
    flags = {name: value for name, value in asked["flags"].items() if name not in ("rate", "duration")}
    spec, manifest = plan.resolve(SEARCHED, keys, flags, manifests.load)
    return drive_search.begin(spec, manifest, search.QUICK, experiment.path / "searches"), spec, manifest


def _run(experiment: Folder, asked: CompareRequest, case: LegRun, done: Sequence[Ran]) -> Ran:
    spec, manifest = resolve(asked, case)
    twin = next((each for each in done if each.case == case.twin), None) if case.leg is Leg.KILL else None
    result = one_run.drive(spec, manifest, experiment.runs, twin=experiment.path / twin.run if twin else None)
    return ran(case, result, os.path.relpath(result.path, experiment.path))


def ran(case: LegRun, result: Result, run: str) -> Ran:
    """Return the result of a run. A PASS with withheld figures is UNKNOWN, because the question was speed."""
    verdict = result.verdict
    if verdict.outcome is Outcome.PASS and result.withheld:
        return Ran(case, Outcome.UNKNOWN, result.withheld, run, {}, result.withheld, unmeasured=True)
    figures = _figures(case.leg, result) if result.measurement else {}
    slow = verdict.outcome is Outcome.FAIL and not not_right(verdict)
    return Ran(case, verdict.outcome, verdict.sentence, run, figures, result.withheld, slow)


def _figures(leg: Leg, result: Result) -> dict[str, float]:
    measured = repeat.figures(result.measurement)
    if leg is Leg.STEADY:
        return compare.of_steady(measured)
    if leg is Leg.KILL:
        return compare.of_kill(result.recovery)
    return reference_rate.caught_up(result)
