"""Drives `chaos`: a new run for each case, after its baseline run.

The wanted cases and the results are stored in the experiment's directory, so that an interrupted one can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.config import plan
from harness.drivers import one_run, pages
from harness.drivers.parallel_cases import Beside
from harness.engines import manifest as manifests
from harness.experiments import chaos, upgrade
from harness.experiments.chaos import NO_FAULT, ChaosCase, Ran, Seen, Tier
from harness.experiments.folder import Folder
from harness.faults import registry
from harness.host import cgroup, needs
from harness.install import environment
from harness.model import EngineManifest, EngineReport, FaultReport, RunSpec, UsageError
from harness.rundir.store import Store, runs
from harness.services.owners import owner_mark
from harness.terminal import console
from harness.terminal.command_end import known, short_path
from harness.util.suggest import nearest, wrong
from reports import card as reports_card
from reports.result import Result

Resolved = tuple[RunSpec, EngineManifest]
Settings = Mapping[str, Any]  # scenario, keys and flags; only in memory with the password of a Redis
DEFAULT_ENGINES = ("spark",)


@dataclass(frozen=True)
class ChaosSelection:
    """The selection from a tier. Faults replace its list, engines and sinks select from it; empty: all."""

    engines: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def flags(self) -> dict[str, list[str]]:
        """The selection by the names of its flags."""
        named = {"engine": self.engines, "sink": self.sinks, "fault": self.faults}
        return {name: list(values) for name, values in named.items() if values}

    def wants(self, case: ChaosCase) -> bool:
        return (not self.engines or case.engine in self.engines) and (not self.sinks or case.sink in self.sinks)


def begin(
    tier: Tier, asked: ChaosSelection, flags: Mapping[str, Any], out: Path, jobs: int | None = None
) -> tuple[Folder, Settings]:
    """Resolve every case and create the experiment, so that a mistake in any case is reported before the first run."""
    keys = {**plan.read_scenario(tier.scenario)[1], **tier.keys}
    rounds = plan.rounds_of(tier.scenario, keys, flags)
    flags = {name: value for name, value in flags.items() if name != "repeat"}
    _refuse_engines_beside(tier, asked)
    own = {"engine": asked.engines[0]} if asked.engines else {}
    calm, _ = plan.resolve(tier.scenario, {**keys, **own, "fault": NO_FAULT}, flags, manifests.load)
    seed = calm.tape.seed
    wanted = chaos.runs_of(_cases(tier, asked, seed, calm.workload), seed, rounds, twins=tier.twins)
    plan.refuse_one_database_for(len(wanted), calm.redis, reset=calm.reset)
    settings: Settings = {
        "scenario": tier.scenario,
        "keys": keys,
        "flags": flags,
        "asked": {
            "tier": tier.name,
            **asked.flags,
            **({"repeat": rounds} if rounds > 1 else {}),
            **({"jobs": jobs} if jobs else {}),
        },
    }
    jobs_of(settings, wanted)
    experiment = Folder.create(out.absolute(), "chaos")
    experiment.save("chaos", settings=_public(settings), environment=environment.describe(), wanted=wanted, done=[])
    return experiment, settings


def _refuse_engines_beside(tier: Tier, asked: ChaosSelection) -> None:
    engines = dict.fromkeys(row.engine for row in tier.cases)
    for engine in asked.engines:
        manifests.load(engine)  # reports a misspelled one
    if asked.engines and not asked.faults and not engines.keys() & {*asked.engines}:
        raise UsageError(
            f"No case is left: the tier has cases on {', '.join(engines)}, and none on {', '.join(asked.engines)}. "
            "Choose others, or name faults with --fault."
        )


def _cases(tier: Tier, asked: ChaosSelection, seed: int, workload: str) -> list[ChaosCase]:
    rows = tier.cases
    if asked.faults:
        written = tuple(registry.parse(fault).text for fault in asked.faults)  # with default moments filled in
        rows = tuple(chaos.Rows(engine, written) for engine in asked.engines or DEFAULT_ENGINES)
    engines = dict.fromkeys([*(row.engine for row in rows), *asked.engines])
    found = {engine: manifests.load(engine, workload) for engine in engines}
    sinks_of = {engine: [claim.name for claim in manifest.sinks] for engine, manifest in found.items()}
    _refuse_unknown_sinks(asked, sinks_of)
    cases = chaos.crossed(rows, sinks_of, registry.FAULTS)
    if not asked.faults:
        cases += chaos.drawn(cases, tier.pairs, seed, registry.FAULTS)
    left = [case for case in cases if asked.wants(case)]
    if not left:
        has = ", ".join(dict.fromkeys(f"{case.engine}/{case.sink}" for case in cases))
        raise UsageError(
            f"No case is left: the tier has cases on {has}, and none on the engines and sinks that were chosen. "
            "Choose others, or name faults with --fault."
        )
    return left


def _refuse_unknown_sinks(asked: ChaosSelection, sinks_of: Mapping[str, Sequence[str]]) -> None:
    engines = asked.engines or tuple(sinks_of)
    known = dict.fromkeys(sink for engine in engines for sink in sinks_of[engine])
    for sink in asked.sinks:
        if sink not in known:
            allowed = f"one of {', '.join(known)} (those of {', '.join(engines)})"
            raise UsageError(wrong("sink", sink, allowed, nearest(sink, known)))


def resume(path: Path, jobs: int | None = None) -> tuple[Folder, Settings]:
    experiment = Folder.open(path.absolute(), "chaos")
    settings: Settings = experiment.load("settings", dict[str, Any])
    experiment.refuse_hidden({**settings["keys"], **settings["flags"]})
    return experiment, {**settings, "asked": {**settings.get("asked", {}), "jobs": jobs}} if jobs else settings


def _public(settings: Settings) -> Settings:
    return {**settings, "keys": plan.public(settings["keys"]), "flags": plan.public(settings["flags"])}


def resolve(settings: Settings, case: ChaosCase) -> Resolved:
    """Resolve the run of a case."""
    own = {"engine": case.engine, "sink": case.sink, "fault": case.fault, "seed": case.seed}
    keys = {name: value for name, value in settings["keys"].items() if name not in own}
    return plan.resolve(settings["scenario"], keys, {**settings["flags"], **own}, manifests.load)


def drive(experiment: Folder, settings: Settings) -> chaos.Card:
    """Run all pending cases, then write the card in all its formats."""
    with experiment.going_on(f"`streamgauge chaos --resume {short_path(experiment.path)}` resumes it"):
        found = _drive(experiment, settings)
        experiment.finished(found.outcome, found.sentence)
    return found


def _drive(experiment: Folder, settings: Settings) -> chaos.Card:
    public = _public(settings)
    wanted: list[ChaosCase] = experiment.load("wanted", list[ChaosCase])
    before: list[Ran] = experiment.load("done", list[Ran])
    done = [each for each in before if not each.broken]
    machine: dict[str, Any] = experiment.load("environment", dict[str, Any])

    def keep(ran: Ran) -> None:
        done.append(ran)
        done.sort(key=lambda each: wanted.index(each.case))
        console.note(f"  case {wanted.index(ran.case) + 1} is {ran.seen}: {ran.sentence}")
        if ran.is_again:
            console.note("  It ran in parallel with another run, and is repeated alone.")
        experiment.save("chaos", settings=public, environment=machine, wanted=wanted, done=done)

    if (jobs := jobs_of(settings, wanted)) > 1:
        Beside(experiment, wanted, done, keep, lambda case: _twin(experiment, case, done)).drive(jobs)
    else:
        for case in chaos.pending(wanted, done):
            console.note(chaos.announced(case, wanted))
            keep(made(experiment, settings, case, _twin(experiment, case, done)))
    pages.write_page(experiment)
    return reports_card.of(experiment)


def jobs_of(settings: Settings, wanted: Sequence[ChaosCase]) -> int:
    """Return how many cases run at a time, after resolving each of them, which reports mistakes."""
    found, asked = [resolve(settings, case) for case in wanted], settings.get("asked", {}).get("jobs")
    need = max((needs.of_run(*each, registry.brokers(each[0])).memory_bytes for each in found), default=0)
    most = chaos.carried(cgroup.cores(), cgroup.memory_bytes(), need)
    if why := next(filter(None, (_one_at_a_time(*each) for each in found)), ""):
        if asked and asked > 1:
            raise UsageError(f"--jobs {asked} is not possible: {why}. Leave --jobs out.")
        return 1
    if asked is None:
        return 1 if all(manifest.simulated for _, manifest in found) else most
    if asked * need > cgroup.memory_bytes():
        raise UsageError(
            f"--jobs {asked} needs {asked * need / needs.MIB:,.0f} MiB of memory, and "
            f"{cgroup.memory_bytes() / needs.MIB:,.0f} MiB are granted here: at most {most} go at a time."
        )
    return int(asked)


def _one_at_a_time(spec: RunSpec, manifest: EngineManifest) -> str:
    """Return why no other run may run beside this one; "" if one may."""
    if spec.objective_p99_ms is not None:
        return "an objective needs a speed, and a parallel run would change it"
    if spec.redis:
        return "all runs share one existing Redis database, and each run empties it"
    if spec.bind:
        return "the load workers of all runs join at one address"
    if manifest.orders == "yahoo":
        return f"{spec.engine} connects to Redis at one fixed port"
    return ""


def made(
    experiment: Folder,
    settings: Settings,
    case: ChaosCase,
    twin: Path | None,
    *,
    screens: one_run.Screens = console.progress,
    every_option: tuple[str, ...] = (),
) -> Ran:
    """Run a case and return its result."""
    spec, manifest = resolve(settings, case)
    if lacks := registry.create(spec, manifest).needs:
        return Ran(case, Seen.NOT_POSSIBLE, "; ".join(lacks))
    before = {each.path for each in runs(experiment.runs)}
    try:
        result = one_run.drive(spec, manifest, experiment.runs, twin=twin, screens=screens, every_option=every_option)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - an error under this fault must not stop the other cases
        new = [each for each in runs(experiment.runs) if each.path not in before and each.owner.mark == owner_mark()]
        broken = next((_below(experiment, each.path) for each in new), "")
        return Ran(case, Seen.UNKNOWN, f"the harness broke: {known(error)}", broken, broken=True)
    return ran(case, result, _below(experiment, result.path))


def ran(case: ChaosCase, result: Result, run: str) -> Ran:
    """Classify a case by its finished run."""
    faults, engine = ended(Store(result.path))
    seen, wrong = chaos.classified(result.verdict, faults, engine.state, planned=case.fault != NO_FAULT)
    came = upgrade.came_of(result.verdict, faults)
    return Ran(case, seen, result.verdict.sentence, run, wrong, result.verdict.words, result.recovery, came=came)


def ended(store: Store) -> tuple[list[FaultReport], EngineReport]:
    """Read the reports on a run's faults and engine from its history."""
    faults = store.values("fault", "report", FaultReport)
    reports = store.values("engine", "report", EngineReport)
    return faults, reports[-1] if reports else EngineReport("gone", "the history does not record how the engine ended")


def _twin(experiment: Folder, case: ChaosCase, done: Sequence[Ran]) -> Path | None:
    found = next((each for each in done if each.case == case.twin and each.run), None)
    return experiment.path / found.run if found and case.fault != NO_FAULT else None


def _below(experiment: Folder, path: Path) -> str:
    return os.path.relpath(path, experiment.path)
