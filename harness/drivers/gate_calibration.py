"""Drives `gate --calibrate`: records rounds, and says what gates that are drawn from them would have said."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from harness.config import plan
from harness.drivers.gate import JUDGED_S, judged_within_s
from harness.drivers.gate_sides import Sides, broker
from harness.experiments.folder import Folder
from harness.experiments.gating import calibrate
from harness.experiments.gating.calibrate import ARMS, GATE_SHARE, Calibrated
from harness.experiments.gating.candidates import Candidate, look_up, made
from harness.experiments.gating.gate import FEWEST_ROUNDS
from harness.experiments.gating.rounds import Settings, kept
from harness.install import environment
from harness.model import HarnessError, Outcome
from harness.services import children
from harness.terminal import console
from harness.terminal.command_end import short_path

KIND = "calibration"
TELL_EVERY_S = 30.0


@dataclass(frozen=True)
class Asked:
    """What is recorded."""

    engine: str
    where: str  # of a commit: where in its repository the manifest lies
    flags: Mapping[str, Any]
    budget_s: float  # of each of the gates that are drawn
    settings: Settings
    sessions: int = 3  # starts of all engines
    rounds: int = 40  # of each arm in a session


@dataclass(frozen=True)
class Took:
    """How long one session took, and what was taken from the machine meanwhile."""

    until_warm_s: float
    rounds_s: float
    warm_events: int  # sent until then, to all sides
    rounds_events: int


def begin(asked: Asked, out: Path) -> Folder:
    _candidate(asked)
    place = Folder.create(out.absolute(), KIND)
    _keep(place, asked, [], environment.describe())
    return place


def _candidate(asked: Asked) -> Candidate:
    return look_up(asked.engine, asked.where, plan.workload_of(asked.flags))


def resume(path: Path) -> Folder:
    return Folder.open(path.absolute(), KIND)


def drive(place: Folder) -> Calibrated:
    """All sessions that are not there yet; then the answer."""
    asked: Asked = place.load("asked", Asked)
    with place.going_on(f"`streamgauge gate --calibrate --resume {short_path(place.path)}` goes on with it"):
        while len(took := _took(place)) < asked.sessions:
            number = len(took) + 1
            console.say(f"session {number} of {asked.sessions}: {len(ARMS)} engines, {asked.rounds} rounds of each")
            added = _record(place, number, asked)
            _keep(place, asked, [*took, added], place.load("environment", dict[str, Any]))
        console.say(f"{calibrate.GATES:,} gates are drawn for each line")
        found = _answer(place, asked, took)
        place.finished(Outcome.PASS, f"{found.rounds} rounds of each arm in {found.sessions} sessions")
    return found


def _took(place: Folder) -> list[Took]:
    took: list[Took] = place.load("took", list[Took])
    return took


def _keep(place: Folder, asked: Asked, took: Sequence[Took], machine: Mapping[str, Any]) -> None:
    place.save(KIND, asked=asked, took=took, environment=machine)


def _file(place: Folder, number: int) -> Path:
    return place.path / f"rounds-{number}.jsonl"


def _record(place: Folder, number: int, asked: Asked) -> Took:
    """One start of all engines. What a session left that was broken off is not mixed with what comes now."""
    settings = replace(asked.settings, most_rounds=asked.rounds)
    logs = place.path / "logs" / str(number)
    logs.mkdir(parents=True, exist_ok=True)
    _file(place, number).unlink(missing_ok=True)
    candidate, begun_s = _candidate(asked), time.monotonic()
    with children.guard(), made(candidate, logs, console.say) as engine, broker(logs) as kafka:
        sides = Sides(place, _file(place, number), kafka, asked.flags)
        for arm in ARMS:
            sides.add(arm.name, engine, candidate.sink, calibrate.settings_of(arm, settings))
        with sides.up(settings):
            warm_s, warm_events = time.monotonic(), sides.sent_events
            told_s = warm_s
            for done, _ in enumerate(sides.rounds(asked.rounds), 1):
                if time.monotonic() - told_s > TELL_EVERY_S:
                    told_s = time.monotonic()
                    console.say(f"  {done} of {asked.rounds} rounds")
            rounds_s = time.monotonic() - warm_s
    for name, judged in sides.judged().items():
        if judged.outcome is not Outcome.PASS:
            raise HarnessError(f"The side {name} of session {number} is {judged.outcome.value}: {judged.sentence}")
    return Took(warm_s - begun_s, rounds_s, warm_events, sides.sent_events - warm_events)


def _answer(place: Folder, asked: Asked, took: Sequence[Took]) -> Calibrated:
    """For a gate that has half as many sides, which start and run in half the time."""
    start_s = GATE_SHARE * mean(each.until_warm_s + judged_within_s(each.warm_events) for each in took)
    each_s = GATE_SHARE * mean(each.rounds_s + JUDGED_S * each.rounds_events for each in took) / asked.rounds
    affordable = int((asked.budget_s - start_s) / each_s)
    gate_rounds = max(FEWEST_ROUNDS, min(affordable, asked.settings.most_rounds))
    sessions = [list(kept(_file(place, number))) for number in range(1, len(took) + 1)]
    rates = tuple(calibrate.table(sessions, gate_rounds, asked.settings.seed))
    differ = calibrate.starts_differ(sessions, asked.settings.seed)
    return Calibrated(rates, differ, asked.rounds * len(took), len(took), gate_rounds)
