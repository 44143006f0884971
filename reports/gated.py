"""A gate as stored in its folder, and its results for a terminal, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.experiments.folder import Folder
from harness.experiments.gating.baseline import REFERENCE
from harness.experiments.gating.gate import AGAIN, ANY, BASE, HEAD, SIDES, Answer, Effect, Gated, Judged
from harness.experiments.gating.rounds import METRICS, ROUNDS, Metric, Round, Settings, by_side, idle_of, kept
from harness.judging.stored_run import StoredRun
from harness.model import Outcome, UsageError
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from harness.util.texts import many
from reports import outage

HEADER = ("metric", "head by base", "it lies within", "base by itself", "detectable", "answer")
ABOUT_STORED = (
    "The base did not run. The ratio of the head to the reference engine is compared with the ratio of "
    "the job of {at}. That is weaker than a base on the same machine, because a different machine "
    "cancels out only if it affects both engines equally. Each interval includes the errors of both jobs."
)
TIMES = " times"
BROKEN_OFF = "the gate was aborted before its end"


@dataclass(frozen=True)
class Record:
    """The content of a gate's page and exports."""

    folder: Folder
    asked: Mapping[str, Any]
    environment: Mapping[str, Any]
    rounds: tuple[Round, ...]
    found: Gated
    commits: Mapping[str, str]  # of each side that is a commit of a repository

    @property
    def named(self) -> Mapping[str, str]:
        """The text that the user typed for each side."""
        base = REFERENCE if self.found.stored else self.asked["base"]
        return {BASE: base, HEAD: self.asked["head"], AGAIN: base}

    @property
    def engine(self) -> str:
        """The engine without its version, so that it is equal over many commits; "" if the head never became a run."""
        try:
            return StoredRun(Store(self.folder.path / self.found.sides[HEAD].run)).spec.engine.partition("@")[0]
        except MissingEvidence:
            return ""

    @property
    def burst(self) -> str:
        """The size of a burst. It replaces a rate, because all events of a burst are due when it begins."""
        return f"bursts of {many(self.rounds[0].events, 'event')}" if self.rounds else "bursts"

    @property
    def rounds_a_side(self) -> int:
        return len(self.rounds) // len(SIDES)

    def typical(self, effect: Effect) -> Mapping[str, float]:
        """Return the median of each side's rounds. Empty for wrong counts, which have no effects."""
        metric = next((each for each in METRICS if each.name == effect.metric), None)
        values = self.values(metric) if metric else {}
        return {side: float(np.median(each)) for side, each in values.items() if each}

    def values(self, metric: Metric) -> Mapping[str, list[float]]:
        """Return the measured values of each side's rounds."""
        return by_side(self.rounds, SIDES, metric, idle_of(self.rounds, SIDES))


def read(folder: Folder) -> Record:
    """Read a gate's folder, finished or not."""
    asked: dict[str, Any] = folder.load("asked", dict[str, Any])
    machine: dict[str, Any] = folder.load("environment", dict[str, Any])
    settings: dict[str, Any] = folder.load("settings", dict[str, Any])
    folder.refuse_other_settings(settings, Settings)
    try:
        rounds = tuple(kept(folder.path / ROUNDS))
        found = _found(folder, len({each.start for each in rounds}))
        return Record(folder, asked, machine, rounds, found, _commits(folder))
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{folder.path} was made by another version of streamgauge: {error}. Use the version that made it."
        ) from None


def _found(folder: Folder, starts: int) -> Gated:
    """A gate that was interrupted has no answer."""
    try:
        found: Gated = folder.load("found", Gated)
    except KeyError:
        return Gated({side: Judged(Outcome.UNKNOWN, BROKEN_OFF, "") for side in SIDES}, (), starts, BROKEN_OFF)
    return found


def _commits(folder: Folder) -> Mapping[str, str]:
    """Folders of older versions have no commits."""
    try:
        commits: dict[str, str] = folder.load("commits", dict[str, str])
    except KeyError:
        return {}
    return commits


def row(effect: Effect) -> tuple[str, ...]:
    head, control = effect.head, effect.control
    written = times if effect.threshold == ANY else percent
    low, high = written(head.low), written(head.high)
    within = f"{low.removesuffix(TIMES)} to {high.removesuffix(TIMES)}"
    detectable = f"{effect.detectable:.1%}"
    return effect.metric, written(head.estimate), within, percent(control.estimate), detectable, effect.answer.value


def percent(ratio: float) -> str:
    return f"{ratio - 1:+z.1%}"


def times(ratio: float) -> str:
    """Write a ratio as a multiple, for two engines that are not expected to be equal."""
    return f"{ratio:.4g}{TIMES}"


REACH, HALF = 2, 10  # to each side of a line: thresholds, and characters


def line_of(effect: Effect) -> str:
    """Draw the interval as a line of characters for output without pictures: | marks no difference, : the threshold."""
    step = REACH * effect.threshold / HALF

    def column(ratio: float) -> int:
        return HALF + max(-HALF, min(HALF, round((ratio - 1) / step)))

    letters = ["."] * (2 * HALF + 1)
    for at in range(column(effect.head.low), column(effect.head.high) + 1):
        letters[at] = "-"
    letters[column(1)] = "|"
    for ratio in (1 - effect.threshold, 1 + effect.threshold):
        letters[column(ratio)] = ":"
    letters[column(effect.head.estimate)] = "o"
    return "".join(letters)


def in_words(effect: Effect) -> str:
    """Write the row of an effect without its name and answer."""
    _, seen, within, control, detectable, _ = row(effect)
    return f"{seen} ({within}), the base by itself {control}, detectable {detectable}"


def notes(found: Gated) -> Iterator[str]:
    """Yield the lines below the table of metrics."""
    for name, side in found.sides.items():
        for witness in side.witnesses:
            yield f"  {name}: {witness.cell}: expected {witness.expected}, seen {witness.seen} {witness.detail}"
    if found.effects:
        yield many(found.starts, "start")
        yield from outliers(found)
    if found.conditions:
        yield found.conditions.words
    if found.stored:
        yield ABOUT_STORED.format(at=found.stored.at)
    back = {name: outage.in_words(side.recovery) for name, side in found.sides.items()}
    if any(back.values()):
        yield ""
        yield "Each side was struck once. This is reported, not judged:"
        yield from (f"  {name}: {words}" for name, words in back.items())


def advice(found: Gated, budget_s: float) -> Iterator[str]:
    """Yield how to make the cost conclusive."""
    if found.answer is not Answer.INCONCLUSIVE or not found.right or found.broken or not found.effects:
        return
    more_s = found.more_budget_s(budget_s)
    starts = f"more starts (--budget {more_s / 60:g}), or " if more_s else ""
    yield f"To decide it, use {starts}a coarser threshold (--threshold {found.can_detect}%)."


def outliers(found: Gated) -> Iterator[str]:
    """Yield a line for each start that was excluded as an outlier."""
    for each in found.effects:
        if each.aside is not None:
            seen = percent(each.starts[each.aside])
            yield f"start {each.aside + 1} is left out of the {each.metric}: {seen}, unlike the other starts"


def as_object(found: Gated, path: Path, code: int) -> dict[str, Any]:
    return {
        "command": "gate",
        "verdict": found.outcome.value,
        "answer": found.answer.value,
        "sentence": found.sentence,
        "exit": code,
        "gate": str(path),
        "starts": found.starts,
        "sides": msgspec.to_builtins(found.sides),
        "effects": [_effect(each) for each in found.effects],
    }


def _effect(effect: Effect) -> dict[str, Any]:
    told = {"answer": effect.answer.value, "detectable": effect.detectable, "reason": effect.reason}
    return {**msgspec.to_builtins(effect), **told}
