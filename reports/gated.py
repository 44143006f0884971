"""A gate as its folder keeps it, and what is shown of it: on a terminal, as JSON, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.experiments import gate
from harness.experiments.folder import Folder
from harness.experiments.gate import AGAIN, BASE, HEAD, SIDES, Effect, Gated, Judged, Metric, Round, Settings
from harness.model import Outcome, UsageError
from harness.store import MissingEvidence, Store
from harness.stored import spec_of

ROUNDS = "rounds.jsonl"
HEADER = ("metric", "head by base", "it lies within", "base by itself", "detectable", "answer")
BROKEN_OFF = "the gate was broken off before its end"


@dataclass(frozen=True)
class Record:
    """All that a page or an export of a gate is made of."""

    folder: Folder
    asked: Mapping[str, Any]
    environment: Mapping[str, Any]
    rounds: tuple[Round, ...]
    found: Gated

    @property
    def named(self) -> Mapping[str, str]:
        """What each side is, as it was typed."""
        return {BASE: self.asked["base"], HEAD: self.asked["head"], AGAIN: self.asked["base"]}

    @property
    def engine(self) -> str:
        """The same over many commits and versions of it; "" where the head never became a run."""
        try:
            return spec_of(Store(self.folder.path / self.found.sides[HEAD].run)).engine.partition("@")[0]
        except MissingEvidence:
            return ""

    def typical(self, effect: Effect) -> Mapping[str, float]:
        """The lower quartile of each side's rounds. There is no effect of wrong counts, and so no figure."""
        metric = next((each for each in gate.METRICS if each.name == effect.metric), None)
        return {} if metric is None else {side: _quartile(values) for side, values in self.values(metric).items()}

    def values(self, metric: Metric) -> Mapping[str, list[float]]:
        """Of each side's rounds, as they were measured."""
        return gate.by_side(self.rounds, metric)


def _quartile(values: list[float]) -> float:
    return float(np.quantile(values, 0.25))


def read(folder: Folder) -> Record:
    """Whatever is left of it."""
    asked: dict[str, Any] = folder.load("asked", dict[str, Any])
    machine: dict[str, Any] = folder.load("environment", dict[str, Any])
    settings: dict[str, Any] = folder.load("settings", dict[str, Any])
    folder.refuse_other_settings(settings, Settings)
    try:
        rounds = tuple(_rounds(folder.path / ROUNDS))
        return Record(folder, asked, machine, rounds, _found(folder, len(rounds) // len(SIDES)))
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{folder.path} was made by another version of streamgauge: {error}. Use the version that made it."
        ) from None


def _rounds(path: Path) -> Iterator[Round]:
    """All whole lines: a gate that was killed may have left half a line."""
    text = path.read_bytes() if path.exists() else b""
    for line in text.split(b"\n")[:-1]:
        yield msgspec.json.decode(line, type=Round)


def _found(folder: Folder, rounds: int) -> Gated:
    """Of a gate that was broken off: no answer."""
    try:
        found: Gated = folder.load("found", Gated)
    except KeyError:
        return Gated({side: Judged(Outcome.UNKNOWN, BROKEN_OFF, "") for side in SIDES}, (), rounds, BROKEN_OFF)
    return found


def row(effect: Effect) -> tuple[str, ...]:
    head, control = effect.head, effect.control
    within = f"{percent(head.low)} to {percent(head.high)}"
    detectable = f"{effect.detectable:.1%}"
    return effect.metric, percent(head.estimate), within, percent(control.estimate), detectable, effect.answer.value


def percent(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"


def in_words(effect: Effect) -> str:
    """All of its row but its name and its answer."""
    _, seen, within, control, detectable, _ = row(effect)
    return f"{seen} ({within}), the base by itself {control}, detectable {detectable}"


def as_object(found: Gated, place: Path, code: int) -> dict[str, Any]:
    return {
        "command": "gate",
        "verdict": found.outcome.value,
        "answer": found.answer.value,
        "sentence": found.sentence,
        "exit": code,
        "gate": str(place),
        "rounds": found.rounds,
        "sides": msgspec.to_builtins(found.sides),
        "effects": [_effect(each) for each in found.effects],
    }


def _effect(effect: Effect) -> dict[str, Any]:
    told = {"answer": effect.answer.value, "detectable": effect.detectable, "reason": effect.reason}
    return {**msgspec.to_builtins(effect), **told}
