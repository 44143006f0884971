"""Drives `gate --calibrate`: record rounds, and compute the answers of gates that are drawn from them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.config import plan
from harness.drivers.gate_sides import Sides, broker, write_archives
from harness.experiments.folder import Folder
from harness.experiments.gating import calibrate
from harness.experiments.gating.calibrate import ARMS, GATE_SHARE, Calibrated
from harness.experiments.gating.candidates import Candidate, look_up, made
from harness.experiments.gating.gate import FEWEST_STARTS
from harness.experiments.gating.rounds import Settings, kept
from harness.host.pinning import placement
from harness.install import environment
from harness.model import HarnessError, Outcome
from harness.services import children
from harness.terminal import console
from harness.terminal.command_end import short_path

KIND = "calibration"


@dataclass(frozen=True)
class CalibrationRequest:
    """The arguments of a recording."""

    engine: str
    where: str  # for a commit: the path of the manifest in its repository
    flags: Mapping[str, Any]
    budget_s: float  # the budget of each drawn gate
    settings: Settings
    starts: int = 8


@dataclass(frozen=True)
class Took:
    """The cost of one start of all arms."""

    seconds: float
    round_stretches: int


def begin(asked: CalibrationRequest, out: Path) -> Folder:
    _candidate(asked)
    experiment = Folder.create(out.absolute(), KIND)
    _keep(experiment, asked, [], environment.describe())
    return experiment


def _candidate(asked: CalibrationRequest) -> Candidate:
    return look_up(asked.engine, asked.where, plan.workload_of(asked.flags))


def resume(path: Path) -> Folder:
    return Folder.open(path.absolute(), KIND)


def drive(experiment: Folder) -> Calibrated:
    """Record all missing starts, then compute the answer."""
    asked: CalibrationRequest = experiment.load("asked", CalibrationRequest)
    with experiment.going_on(f"`streamgauge gate --calibrate --resume {short_path(experiment.path)}` resumes it"):
        while len(took := _took(experiment)) < asked.starts:
            number = len(took) + 1
            console.note(
                f"start {number} of {asked.starts}: {len(ARMS)} engines, up to {asked.settings.rounds} rounds of each"
            )
            added = _record(experiment, number, asked, took)
            _keep(experiment, asked, [*took, added], experiment.load("environment", dict[str, Any]))
        console.note(f"{calibrate.GATES:,} gates are drawn for each line")
        found = _answer(experiment, asked, took)
        experiment.finished(Outcome.PASS, f"{found.rounds} rounds of each arm in {found.starts} starts")
    return found


def _took(experiment: Folder) -> list[Took]:
    return experiment.load("took", list[Took])


def _keep(experiment: Folder, asked: CalibrationRequest, took: Sequence[Took], machine: Mapping[str, Any]) -> None:
    experiment.save(KIND, asked=asked, took=took, environment=machine)


def _file(experiment: Folder, number: int) -> Path:
    return experiment.path / f"rounds-{number}.jsonl"


def _record(experiment: Folder, number: int, asked: CalibrationRequest, before: Sequence[Took]) -> Took:
    """Record one start of all arms. Rounds of an interrupted attempt are deleted first, so that they do not mix."""
    settings = replace(asked.settings, round_stretches=before[0].round_stretches) if before else asked.settings
    logs = experiment.path / "logs" / str(number)
    logs.mkdir(parents=True, exist_ok=True)
    _file(experiment, number).unlink(missing_ok=True)
    candidate, begun_s = _candidate(asked), time.monotonic()
    with children.guard(), made(candidate, logs, console.note) as engine:
        write_archives([(engine, candidate.sink)], settings, asked.flags)
        with broker(logs) as kafka:
            sides = Sides(experiment, _file(experiment, number), kafka, asked.flags, placement(), start=number)
            for arm in ARMS:
                sides.add(arm.name, engine, candidate.sink, calibrate.settings_of(arm, settings))
            with sides.up(settings):
                for _ in sides.rounds(settings.rounds):
                    pass
    for name, judged in sides.judged().items():
        if judged.outcome is not Outcome.PASS:
            raise HarnessError(f"The side {name} of start {number} is {judged.outcome.value}: {judged.sentence}")
    return Took(time.monotonic() - begun_s, sides.round_stretches)


def _answer(experiment: Folder, asked: CalibrationRequest, took: Sequence[Took]) -> Calibrated:
    """Compute the answer for a gate, whose starts take less time because it has fewer sides."""
    each_s = GATE_SHARE * fmean(each.seconds for each in took)
    fit = max(FEWEST_STARTS, min(int(asked.budget_s / each_s), asked.settings.most_starts))
    starts = [list(kept(_file(experiment, number))) for number in range(1, len(took) + 1)]
    rates = tuple(calibrate.table(starts, fit, asked.settings.seed))
    differ = calibrate.differ(starts)
    rounds = min(len(each) // len(ARMS) for each in starts)
    return Calibrated(rates, *differ, rounds, len(took), fit)
