"""Drives `scale`: in each round one catch-up run of the engine on each number of cores or executors, and one of the
reference.

The question and the results are stored in the experiment's directory, so that an interrupted one can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.config import plan
from harness.drivers import one_run, pages, reference_rate, timed_cases
from harness.engines import environments, shipped
from harness.engines import manifest as manifests
from harness.experiments import compare, scale
from harness.experiments.compare import REFERENCE, Settings
from harness.experiments.folder import Folder
from harness.experiments.scale import KIND, RATE, Numbers, Scaled, ScaleRan, ScaleRequest, ScaleRun
from harness.host import cgroup
from harness.install import environment
from harness.judging.stored_run import StoredRun
from harness.load import judged_rows
from harness.measuring.timeline import FILE as TIMELINE
from harness.measuring.timeline import Lines
from harness.model import EngineManifest, Outcome, RunSpec
from harness.terminal import console
from harness.terminal.command_end import short_path
from reports import scaled
from reports.result import Result

ABOUT_S = 100.0  # the estimate for one run until some were timed
# Flags of the engine that is measured, which the reference does not take.
OF_THE_ENGINE = ("sink", "conf", "master", "checkpoint")
INSTEAD = {
    "core": "Choose another --engine, or fewer --cores.",
    "executor": "Choose another --engine, or fewer --executors.",
}


def begin(numbers: Numbers, settings: Settings, flags: Mapping[str, Any], out: Path) -> tuple[Folder, ScaleRequest]:
    """Resolve every run, install the engines, and create the experiment, so that errors come before the first run."""
    scale.refuse_cores(numbers, int(cgroup.cores()))
    if "repeat" in flags:
        settings = replace(settings, rounds=plan.rounds_of(scale.SCENARIO, {}, flags))
    flags = {name: value for name, value in flags.items() if name != "repeat"}
    usual = {**plan.read_scenario(scale.SCENARIO)[1], "rate": settings.catch_up_per_s, "fault": "none"}
    steady, engine = plan.resolve(scale.SCENARIO, usual, flags, manifests.load)
    if numbers.unit == "executor":
        has_cluster = engine.on_spark or engine.on_task_managers
        scale.refuse_clusterless(engine.id, has_cluster=has_cluster, flags=flags.keys())
    scale.refuse_idle_cores(numbers, steady.tape.partitions)
    size = 1.0 if "rate" in flags else judged_rows.share(steady)
    asked = ScaleRequest(
        engine=flags.get("engine", steady.engine),
        cores=numbers.cores,
        wanted=numbers.wanted,
        baseline=steady.engine != REFERENCE and steady.workload in shipped.workloads_of(REFERENCE),
        seed=steady.tape.seed,
        settings=replace(settings, catch_up_per_s=steady.tape.profile[0].start_per_s * size),
        flags={name: value for name, value in flags.items() if name not in ("rate", "engine")},
        unit=numbers.unit,
    )
    runs = scale.runs_of(asked)
    plan.refuse_one_database_for(len(runs), flags.get("redis", ""), reset=flags.get("reset", False))
    needed = {}
    for case in {(each.engine, each.cores): each for each in runs}.values():
        spec, manifest = resolve(asked, case)
        one_run.refuse_the_impossible(spec, manifest, INSTEAD[numbers.unit])
        needed[case.engine] = manifest
    for manifest in needed.values():
        environments.prepare(manifest, console.note)
    experiment = Folder.create(out.absolute(), f"{KIND}-{steady.engine}")
    _keep(experiment, asked, [], environment.describe())
    return experiment, asked


def resume(path: Path) -> tuple[Folder, ScaleRequest]:
    experiment = Folder.open(path.absolute(), KIND)
    experiment.refuse_other_version("Rates of both do not belong on one curve.", "experiment")
    asked: ScaleRequest = experiment.part("asked", ScaleRequest)
    experiment.refuse_hidden(asked.flags)
    scale.refuse_cores(Numbers(asked.cores, asked.wanted, asked.unit), int(cgroup.cores()))
    return experiment, asked


def resolve(asked: ScaleRequest, case: ScaleRun) -> tuple[RunSpec, EngineManifest]:
    own = scale.keys_of(case, asked.settings, asked.flags.get("watermark", "0"), asked.unit)
    others = OF_THE_ENGINE if case.engine == REFERENCE != asked.engine else ()
    flags = {name: value for name, value in asked.flags.items() if name not in others}
    keys = {name: value for name, value in plan.read_scenario(scale.SCENARIO)[1].items() if name not in own}
    return plan.resolve(scale.SCENARIO, keys, {**flags, **own}, manifests.load)


def drive(experiment: Folder, asked: ScaleRequest) -> Scaled:
    """Make all pending runs, then write the page. The request comes from memory: the stored one has no password."""
    with experiment.going_on(f"`streamgauge scale --resume {short_path(experiment.path)}` resumes it"):
        machine: dict[str, Any] = experiment.load("environment", dict[str, Any])
        done: list[ScaleRan] = experiment.load("done", list[ScaleRan])

        def run(case: ScaleRun) -> ScaleRan:
            result = one_run.drive(*resolve(asked, case), experiment.runs)
            return ran(case, result, os.path.relpath(result.path, experiment.path))

        timed_cases.drive(
            scale.runs_of(asked),
            done,
            run,
            lambda: _keep(experiment, asked, done, machine),
            words=Scaled(asked, ()).case_in_words,
            about_s=ABOUT_S,
        )
        found = scaled.read(experiment).found
        experiment.finished(found.outcome, found.sentence)
        pages.write_page(experiment)
    return found


def ran(case: ScaleRun, result: Result, run: str) -> ScaleRan:
    """Return the result of a run. A PASS without a rate is UNKNOWN, because the question was speed."""
    verdict = result.verdict
    if verdict.outcome is not Outcome.PASS:
        return ScaleRan(case, verdict.outcome, verdict.sentence, run)
    if result.withheld:
        return ScaleRan(case, Outcome.UNKNOWN, result.withheld, run)
    figures = figures_of(result.path)
    if RATE not in figures:
        why = "it worked off its backlog within two seconds, too soon for a rate; give a higher --rate"
        return ScaleRan(case, Outcome.UNKNOWN, why, run)
    return ScaleRan(case, verdict.outcome, verdict.sentence, run, figures)


def figures_of(path: Path) -> dict[str, float]:
    """Return the rate and the cost of a run whose engine was frozen during the load and then thawed."""
    run = StoredRun.open(path)
    thawed_s = reference_rate.thawed_s(run.store)
    processed = Lines(run).processed
    found = {
        RATE: scale.backlog_rate(processed, thawed_s) if processed else None,
        compare.BUSY_CPU: compare.busy_cpu_s_per_million(run.store.read_table(TIMELINE), thawed_s),
    }
    return {name: value for name, value in found.items() if value is not None}


def _keep(experiment: Folder, asked: ScaleRequest, done: Sequence[ScaleRan], machine: Mapping[str, Any]) -> None:
    public = replace(asked, flags=plan.public(asked.flags))
    experiment.save(KIND, asked=public, environment=machine, done=done)
