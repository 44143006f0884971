"""A change against what it changes: is it wrong, slower, costlier? Pure.

Three sides stay up for the whole gate: the base, the head, and the base once more, which shows what differs where
nothing differs. A round is a burst into one side, billed to its engine; rounds go forth and back over the sides, so
that a machine that slows down slows all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from math import exp, log
from statistics import NormalDist, median

from harness.model import Outcome, Segment, TapeSpec
from harness.stats import Ratio, quartile_ratio

BASE, HEAD, AGAIN = "base", "head", "base again"
SIDES = (BASE, HEAD, AGAIN)


@dataclass(frozen=True)
class Settings:
    """What all sides meet alike."""

    burst_events: int = 100_000
    burst_ms: int = 2_000  # of event time
    warm_up_bursts: int = 12  # into each side, before the first round
    most_rounds: int = 40
    seed: int = 1  # of the bootstrap


@dataclass(frozen=True)
class Round:
    """One burst into one side."""

    side: str
    number: int
    events: int
    cpu_s: float  # of the engine, from the burst until it was done
    idle_s: float  # for so long nothing had been sent to it before ...
    idle_cpu_s: float  # ... and this it used meanwhile
    took_ms: float  # from the burst's begin until the engine's own word that it was done
    billed_ms: float  # for how long its CPU was counted
    at_ms: float


def tape(spec: TapeSpec, bursts: int, settings: Settings) -> TapeSpec:
    """What so many bursts send. A tape of fewer is its beginning."""
    rate = settings.burst_events / settings.burst_ms * 1000
    return replace(spec, profile=(Segment(bursts * settings.burst_ms, rate, rate),), probes=0, warm_up=())


def order(rounds: int) -> Iterator[tuple[int, str]]:
    """Round and side, forth and back."""
    for number in range(rounds):
        for side in SIDES if number % 2 == 0 else reversed(SIDES):
            yield number, side


class Answer(StrEnum):
    """Of one metric."""

    REGRESSED = "REGRESSED"
    OK = "OK"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Metric:
    """What is compared; less of it is better."""

    name: str
    unit: str
    of: Callable[[Round, float], float]  # with the cores that its engine takes when it is idle


def _cost(each: Round, idle_cores: float) -> float:
    billed_s = each.cpu_s - idle_cores * each.billed_ms / 1000
    return max(LEAST_S, billed_s) / each.events * 1e6


def _catch_up(each: Round, _: float) -> float:
    return each.took_ms / each.events * 1e6


METRICS = (
    Metric("cost", "CPU-s per million events", _cost),
    Metric("catch-up", "ms per million events", _catch_up),
)
PRIMARY = METRICS[0]
# Each look may be the last one, so that the first ones have to be surer; together they err as often as one at 95 %.
LEVELS = (0.99, 0.98, 0.95)
POWER = 0.95  # a difference that is called detectable is found so often
FEWEST_ROUNDS = 6
LONG_S = 2.0
LEAST_S = 0.01  # no round is cheaper: the kernel counts in hundredths of a second


@dataclass(frozen=True)
class Effect:
    """One metric of the head by that of the base, and the base by itself."""

    metric: str
    unit: str
    threshold: float
    head: Ratio
    control: Ratio  # the base once more by the base
    rounds: int
    level: float

    @property
    def detectable(self) -> float:
        """The smallest slowdown that this gate would have told from none."""
        sure = NormalDist().inv_cdf((1 + self.level) / 2) + NormalDist().inv_cdf(POWER)
        return exp(sure * self.head.error) - 1

    @property
    def rounds_needed(self) -> int:
        """So that the threshold could have been detected; an error shrinks with the root of their number."""
        return max(self.rounds, round(self.rounds * (log(1 + self.detectable) / log(1 + self.threshold)) ** 2 + 0.5))

    @property
    def answer(self) -> Answer:
        """A base that differs from itself by as much makes no difference of the head believable."""
        if self.differs_from_itself:
            return Answer.INCONCLUSIVE
        if _beyond(self.head, self.threshold):
            return Answer.REGRESSED
        return Answer.OK if self.head.high < 1 + 2 * self.threshold else Answer.INCONCLUSIVE

    @property
    def differs_from_itself(self) -> bool:
        """So much of the base, by the rule by which a head would be red."""
        return _beyond(self.control, self.threshold)

    @property
    def reason(self) -> str:
        """Why nothing could be said; "" where something was."""
        if self.answer is not Answer.INCONCLUSIVE:
            return ""
        if self.differs_from_itself:
            return f"the base differs from itself by {self.control.estimate - 1:+.1%}"
        return (
            f"{self.rounds} rounds tell no less than {self.detectable:.1%}, and {self.threshold:.0%} is asked for: "
            f"about {self.rounds_needed} rounds are needed"
        )


def _beyond(ratio: Ratio, threshold: float) -> bool:
    return ratio.low > 1 and ratio.estimate > 1 + threshold


def effect(metric: Metric, rounds: Sequence[Round], threshold: float, look: int, seed: int) -> Effect:
    """Of the rounds that all sides have."""
    values = levelled(by_side(rounds, metric))
    base, head, again = (values[side] for side in SIDES)
    level = LEVELS[look]
    compared = quartile_ratio([head], [base, again], level, seed)
    control = quartile_ratio([again], [base], level, seed + 1)
    return Effect(metric.name, metric.unit, threshold, compared, control, len(base), level)


def by_side(rounds: Sequence[Round], metric: Metric) -> Mapping[str, list[float]]:
    """Equally many of each side, in the order in which they were."""
    own = {side: [each for each in rounds if each.side == side] for side in SIDES}
    count = min(map(len, own.values()))
    return {side: [metric.of(each, idle_cores(mine)) for each in mine[:count]] for side, mine in own.items()}


def levelled(values: Mapping[str, list[float]]) -> Mapping[str, list[float]]:
    """Without what all sides have in common as time goes by: a JVM that still compiles gets cheaper, a machine that
    gets warm gets dearer. The slope is the median over all pairs of rounds of one side: no side bends it alone."""
    slopes = [
        (log(later) - log(sooner)) / (at - before)
        for each in values.values()
        for (before, sooner), (at, later) in combinations(enumerate(each), 2)
    ]
    slope = median(slopes)
    return {side: [value * exp(-slope * number) for number, value in enumerate(each)] for side, each in values.items()}


def idle_cores(rounds: Sequence[Round]) -> float:
    """What one engine takes when nothing is sent to it. Of short pauses nothing is believed: in them it still does what
    the round before has left."""
    waits = [each for each in rounds if each.idle_s >= LONG_S] or rounds
    return median(each.idle_cpu_s / each.idle_s for each in waits)


@dataclass(frozen=True)
class Judged:
    """The verdict on all that one side counted."""

    outcome: Outcome
    sentence: str
    run: str  # its directory, below that of the gate


@dataclass(frozen=True)
class Gated:
    """The answer of a gate."""

    sides: Mapping[str, Judged]
    effects: tuple[Effect, ...]
    rounds: int
    broken: str = ""  # why it ended early

    @property
    def right(self) -> bool:
        return all(each.outcome is Outcome.PASS for each in self.sides.values())

    @property
    def outcome(self) -> Outcome:
        """A head that counts wrong is red, whatever its base does; no speed is compared of wrong counts."""
        if self.sides[HEAD].outcome is Outcome.FAIL:
            return Outcome.FAIL
        if not self.right or self.broken or not self.effects:
            return Outcome.UNKNOWN
        answers = [each.answer for each in self.effects]
        if Answer.REGRESSED in answers:
            return Outcome.FAIL
        return Outcome.UNKNOWN if self.effects[0].answer is Answer.INCONCLUSIVE else Outcome.PASS

    @property
    def is_too_fine(self) -> bool:
        """Whether all went well, and the threshold is below what could be told."""
        if self.outcome is not Outcome.UNKNOWN or not self.right or self.broken or not self.effects:
            return False
        return not self.effects[0].differs_from_itself

    @property
    def answer(self) -> Answer:
        return {Outcome.FAIL: Answer.REGRESSED, Outcome.PASS: Answer.OK, Outcome.UNKNOWN: Answer.INCONCLUSIVE}[
            self.outcome
        ]

    @property
    def sentence(self) -> str:
        head = self.sides[HEAD]
        if head.outcome is Outcome.FAIL:
            base = self.sides[BASE]
            also = "" if base.outcome is Outcome.PASS else f"; the base is {base.outcome.value} too"
            return f"the head counts wrong: {head.sentence}{also}"
        if self.broken:
            return self.broken
        if not self.right:
            name, worst = next((n, each) for n, each in self.sides.items() if each.outcome is not Outcome.PASS)
            return f"the {name} is {worst.outcome.value}, so no speed is compared: {worst.sentence}"
        if not self.effects:
            return f"{self.rounds} rounds are too few to compare anything"
        told = [each for each in self.effects if each.answer is self.answer] or [self.effects[0]]
        return "; ".join(in_words(each) for each in told)


def in_words(effect: Effect) -> str:
    seen = f"{effect.head.estimate - 1:+.1%} [{effect.head.low - 1:+.1%}, {effect.head.high - 1:+.1%}]"
    return f"{effect.metric} {seen}" + (f": {effect.reason}" if effect.reason else "")


def effects(rounds: Sequence[Round], threshold: float, look: int, seed: int) -> tuple[Effect, ...]:
    if min(sum(each.side == side for each in rounds) for side in SIDES) < FEWEST_ROUNDS:
        return ()
    return tuple(effect(metric, rounds, threshold, look, seed) for metric in METRICS)


def looks(rounds: int) -> tuple[int, ...]:
    """After so many rounds it is asked whether that is enough."""
    return tuple(sorted({max(FEWEST_ROUNDS, rounds * part // len(LEVELS)) for part in range(1, len(LEVELS) + 1)}))
