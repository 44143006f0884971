"""What is shown of a gate: on a terminal, as JSON, and to a CI job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.gate import Answer, Effect, Gated
from harness.model import Outcome
from reports.exports import experiment, suite
from reports.exports.markdown import versions

HEADER = ("metric", "head by base", "it lies within", "base by itself", "detectable", "answer")
OUTCOMES = {Answer.REGRESSED: Outcome.FAIL, Answer.OK: Outcome.PASS, Answer.INCONCLUSIVE: None}


def row(effect: Effect) -> tuple[str, ...]:
    head, control = effect.head, effect.control
    within = f"{_percent(head.low)} to {_percent(head.high)}"
    detectable = f"{effect.detectable:.1%}"
    return effect.metric, _percent(head.estimate), within, _percent(control.estimate), detectable, effect.answer.value


def _percent(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"


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


def save(found: Gated, place: Path, command: str, machine: Mapping[str, Any]) -> None:
    """A regression is a failure, what can't be told is skipped with its reason, a side without a verdict an error."""
    facts = dict(versions(machine))
    cases = (*_sides(found), *_effects(found.effects))
    experiment.save(experiment.Answer("gate", found.outcome, found.sentence, command, facts, cases), place)


def _sides(found: Gated) -> Iterator[experiment.Case]:
    group = suite.classname(("gate", "counts"))
    for name, side in found.sides.items():
        yield experiment.Case(group, name, side.outcome, side.sentence, side.run)


def _effects(effects: Sequence[Effect]) -> Iterator[experiment.Case]:
    group = suite.classname(("gate", "speed"))
    for each in effects:
        _, seen, within, control, detectable, _ = row(each)
        sentence = f"{seen} ({within}), the base by itself {control}, detectable {detectable}"
        yield experiment.Case(
            group, each.metric, OUTCOMES[each.answer], "; ".join(filter(None, (sentence, each.reason)))
        )
