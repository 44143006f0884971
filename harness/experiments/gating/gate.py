"""A change against what it changes: is it wrong, slower, costlier? Pure.

Three sides stay up for the whole gate: the base, the head, and the base once more, which shows what differs where
nothing differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, log, sqrt
from statistics import NormalDist, median

from harness.experiments.gating.conditions import Conditions
from harness.experiments.gating.rounds import COST, METRICS, Metric, Round, by_side, levelled
from harness.measuring.measurement import Recovery
from harness.measuring.stats import Ratio, by, holm, quantile_ratio, widened
from harness.model import Outcome, Witness
from harness.util.texts import many

BASE, HEAD, AGAIN = "base", "head", "base again"
SIDES = (BASE, HEAD, AGAIN)
# Each look may be the last one, so that the first ones have to be surer; together they call
# a head that costs no more a regression in one gate of a hundred.
LEVELS = (0.995, 0.99, 0.98)
POWER = 0.8  # a difference that is called detectable is told from none so often
FEWEST_ROUNDS = 6
MOST_SPREAD = 0.05  # of the base by itself, of what goes by the clock
ANY = 1e9  # the threshold of what is only recorded: nothing is too slow
TINY = 1e-9


class Answer(StrEnum):
    """Of one metric."""

    REGRESSED = "REGRESSED"
    OK = "OK"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Stored:
    """A baseline from an earlier job: what the base took by the reference engine, which runs in its place."""

    at: str  # when it was measured
    ratios: Mapping[str, Ratio]  # of each metric
    changes: tuple[str, ...] = ()  # of machine and versions, since then


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
    declined: str = ""  # why nothing is said of it, whatever was seen
    # Parts of its error that no round takes away: from an earlier job, and since each side was started once.
    stored_error: float = 0.0
    starts_error: float = 0.0

    @property
    def detectable(self) -> float:
        """The smallest slowdown that this gate would have told from none."""
        return exp(self._sure * self.head.error) - 1

    @property
    def _sure(self) -> float:
        """So many standard errors tell a difference from none."""
        return NormalDist().inv_cdf((1 + self.level) / 2) + NormalDist().inv_cdf(POWER)

    @property
    def chance(self) -> float:
        """That so much more would be seen where there is none."""
        return 1 - NormalDist().cdf(log(self.head.estimate) / max(self.head.error, TINY))

    @property
    def rounds_needed(self) -> int | None:
        """So that the threshold could have been detected; an error shrinks with the root of their number. None: no
        number of them is enough."""
        stays = self.stored_error**2 + self.starts_error**2
        wanted = (log(1 + self.threshold) / self._sure) ** 2 - stays
        ours = self.head.error**2 - stays
        return max(self.rounds, round(self.rounds * ours / wanted + 0.5)) if wanted > 0 else None

    @property
    def answer(self) -> Answer:
        """A base that differs from itself by as much makes no difference of the head believable. Nothing is OK by
        rounds in which a slowdown as small as the threshold would have gone unseen."""
        if self.declined or self.differs_from_itself:
            return Answer.INCONCLUSIVE
        if _beyond(self.head, self.threshold):
            return Answer.REGRESSED
        is_ok = self.detectable <= self.threshold and self.head.high < 1 + 2 * self.threshold
        return Answer.OK if is_ok else Answer.INCONCLUSIVE

    @property
    def differs_from_itself(self) -> bool:
        """So much of the base, by the rule by which a head would be red."""
        return _beyond(self.control, self.threshold)

    @property
    def reason(self) -> str:
        """Why nothing could be said; "" where something was."""
        if self.answer is not Answer.INCONCLUSIVE:
            return ""
        if self.declined:
            return self.declined
        if self.differs_from_itself:
            return f"the base differs from itself by {self.control.estimate - 1:+.1%}"
        needed, rounds = self.rounds_needed, many(self.rounds, "round")
        return f"{rounds} can tell no less than {self.detectable:.1%}, and {self.threshold:.0%} is asked for: " + (
            f"about {needed} rounds are needed" if needed else self._no_number_is_enough
        )

    @property
    def _no_number_is_enough(self) -> str:
        if self.stored_error > self.starts_error:
            return "the baseline itself tells no less; record it anew"
        return "no number of rounds is enough, since two starts of one job differ by that much"


def _beyond(ratio: Ratio, threshold: float) -> bool:
    return ratio.low > 1 and ratio.estimate > 1 + threshold


def effect(metric: Metric, rounds: Sequence[Round], threshold: float, level: float, seed: int) -> Effect | None:
    """Of the rounds that all sides have; None where they tell nothing of this metric."""
    values = by_side(rounds, SIDES, metric)
    if not values[BASE]:
        return None
    base, head, again = (levelled(values)[side] for side in SIDES)
    control = quantile_ratio([again], [base], metric.share, level, seed + 1)
    compared = quantile_ratio([head], [base, again], metric.share, level, seed)
    of_starts = _of_starts(metric, control, median(base)) * sqrt(1 + 1 / 2)
    wider = widened(compared, of_starts, level)
    return Effect(metric.name, metric.unit, threshold, wider, control, len(base), level, starts_error=of_starts)


def since(effect: Effect, stored: Stored) -> Effect | None:
    """The same by what it was in an earlier job; None where that tells nothing of this metric."""
    then = stored.ratios.get(effect.metric)
    return replace(effect, head=by(effect.head, then, effect.level), stored_error=then.error) if then else None


def _of_starts(metric: Metric, control: Ratio, value: float) -> float:
    """How far two starts of the same differ, as a standard deviation: as far as is known of this metric, or as far as
    the two bases do, beyond what their rounds explain."""
    beyond = log(control.estimate) ** 2 - control.error**2
    return max(metric.starts_differ(value), sqrt(max(0.0, beyond) / 2))


def effects(
    rounds: Sequence[Round],
    threshold: float,
    look: int,
    seed: int,
    declined: str = "",
    *,
    stored: Stored | None = None,
) -> tuple[Effect, ...]:
    """The first one decides. The others are so many questions more: each is asked at a level at which all of them
    together err no more often than it does (Holm). `declined`: why nothing of the clock can be believed."""
    if min(sum(each.side == side for each in rounds) for side in SIDES) < FEWEST_ROUNDS:
        return ()

    def asked(metric: Metric, level: float) -> Effect | None:
        told = effect(metric, rounds, threshold, level, seed)
        return since(told, stored) if told and stored else told

    found = {metric: told for metric in METRICS if (told := asked(metric, LEVELS[look]))}
    others = [metric for metric in found if metric is not COST]
    alphas = holm([found[metric].chance for metric in others], 1 - LEVELS[0])
    for metric, alpha in zip(others, alphas, strict=True):
        told = asked(metric, 1 - alpha) or found[metric]
        found[metric] = replace(told, declined=(declined or _spread(told)) if metric.is_of_clock else "")
    return tuple(found.values())


def _spread(effect: Effect) -> str:
    """Why the clock can't be believed by what it says of the base."""
    itself = effect.control.estimate - 1
    return f"the base differs from itself by {itself:+.1%}" if abs(itself) > MOST_SPREAD else ""


@dataclass(frozen=True)
class Judged:
    """The verdict on all that one side counted."""

    outcome: Outcome
    sentence: str
    run: str  # its directory, below that of the gate
    recovery: tuple[Recovery, ...] = ()  # from each fault
    witnesses: tuple[Witness, ...] = ()  # the first of each check that is wrong
    crashed: str = ""  # what the engine said last, if it ended by itself


@dataclass(frozen=True)
class Gated:
    """The answer of a gate."""

    sides: Mapping[str, Judged]
    effects: tuple[Effect, ...]
    rounds: int
    broken: str = ""  # why it ended early
    conditions: Conditions | None = None
    stored: Stored | None = None  # with what the head is compared, where no base ran

    @property
    def right(self) -> bool:
        return all(each.outcome is Outcome.PASS for each in self.sides.values())

    @property
    def clash(self) -> str:
        """What the base said when it could not run beside the others. Then a head that crashes tells nothing either:
        who comes first gets what all of them want."""
        said = [self.sides[name].crashed for name in SIDES]
        return "" if all(said) else self.sides[BASE].crashed or self.sides[AGAIN].crashed

    @property
    def outcome(self) -> Outcome:
        """A head that counts wrong is red, whatever its base does; no speed is compared of wrong counts."""
        if self.clash:
            return Outcome.UNKNOWN
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
        if self.clash:
            return (
                f"the base crashed: {self.clash}. Can't it run beside itself? A gate runs three engines at the same "
                "time: let the job take any port that is free, and folders of its own"
            )
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
            few = f"{many(self.rounds, 'round is', 'rounds are')} too few a side to compare anything"
            return f"{few}: it takes {FEWEST_ROUNDS} at the least, so raise --budget"
        told = [each for each in self.effects if each.answer is self.answer]
        if self.answer is Answer.INCONCLUSIVE:
            told = [self.effects[0]]
        since = ", ".join(self.stored.changes) if self.stored else ""
        return "; ".join(map(in_words, told)) + (f"; and since the baseline was measured: {since}" if since else "")


def in_words(effect: Effect) -> str:
    if effect.threshold == ANY:
        return f"{effect.metric} {effect.head.estimate:.4g} times [{effect.head.low:.4g}, {effect.head.high:.4g}]"
    seen = f"{effect.head.estimate - 1:+.1%} [{effect.head.low - 1:+.1%}, {effect.head.high - 1:+.1%}]"
    return f"{effect.metric} {seen}" + (f": {effect.reason}" if effect.reason else "")


def looks(rounds: int) -> tuple[int, ...]:
    """After so many rounds it is asked whether that is enough."""
    return tuple(sorted({max(FEWEST_ROUNDS, rounds * part // len(LEVELS)) for part in range(1, len(LEVELS) + 1)}))
