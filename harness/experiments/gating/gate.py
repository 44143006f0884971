"""Decide whether a change is wrong, slower or costlier than its base. Pure.

Three sides start together, again and again: the base, the head, and the base once more, which shows how much equal
sides differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, exp, hypot, log, sqrt
from statistics import NormalDist

import numpy as np

from harness.experiments.gating.conditions import Conditions
from harness.experiments.gating.rounds import (
    ALLOCATED,
    COST,
    METRICS,
    Metric,
    Round,
    Settings,
    by_side,
    by_start,
    idle_of,
)
from harness.measuring.measurement import Recovery
from harness.measuring.ratio_by_start import FAR, ByStart, Floats, compare, within
from harness.measuring.stats import Ratio, holm, student, student_chance
from harness.model import Outcome, Witness
from harness.util.texts import many

BASE, HEAD, AGAIN = "base", "head", "base again"
SIDES = (BASE, HEAD, AGAIN)
HEAD_BY_BASE, BASE_BY_ITSELF = (-0.5, 1.0, -0.5), (-1.0, 0.0, 1.0)  # weights of the logarithms of SIDES
# Each look may be the last one, so the first ones use a higher level. Together they report a regression for one in a
# hundred heads that cost no more.
LEVELS = (0.995, 0.99, 0.98)
POWER = 0.8  # the probability of detecting a difference that is called detectable
FEWEST_STARTS = 3
SPARE = 1.25  # a budget for so many starts has this much room, because starts differ
MOST_NEEDED = 400  # starts; more would take too long
MOST_SPREAD = 0.05  # wall-clock metrics are withheld if the base differs more from itself
ANY = 1e9  # the threshold of a recording: nothing is too slow
TINY = 1e-9
NO_COST = (
    "no cost can be compared: an engine takes as much CPU with nothing to do as with a burst, or nothing was recorded "
    "of a side. Send more events per burst with --burst, or let the job block on records instead of polling all the "
    "time"
)


class Answer(StrEnum):
    """The answer on one metric, or on a gate."""

    REGRESSED = "REGRESSED"
    OK = "OK"
    IMPROVED = "IMPROVED"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Stored:
    """A baseline from an earlier job: the base's cost relative to the reference engine, which runs in its place."""

    at: str  # when it was measured
    ratios: Mapping[str, Ratio]  # by metric
    changes: tuple[str, ...] = ()  # in machine and versions, since then


@dataclass(frozen=True)
class Spread:
    """The natural variation of a comparison: standard deviations of the logarithm of a ratio."""

    starts: float
    rounds: float  # within a start
    correlation: float  # between rounds of base and head in a start; what they have in common cancels in a ratio


@dataclass(frozen=True)
class Effect:
    """One metric of the head relative to the base, and of the base relative to itself."""

    metric: str
    unit: str
    threshold: float
    head: Ratio
    control: Ratio  # the second base relative to the first
    starts: tuple[float, ...]  # the head relative to the base in each start
    aside: int | None  # the index of the outlier that is left out; None: none is
    spread: Spread
    level: float
    declined: str = ""  # why it is withheld, whatever was measured
    stored_error: float = 0.0  # the part of the error from an earlier job, which more starts do not reduce
    control_counted: int = 0  # the starts that count for the control
    freedom: int = 0  # the degrees of freedom of the errors; 0: in folders of older versions

    def at(self, level: float) -> Effect:
        """Return the effect with intervals of another level."""
        head, control = (within(each.estimate, each.error, self._freedom, level) for each in (self.head, self.control))
        return replace(self, head=head, control=control, level=level)

    @property
    def detectable(self) -> float:
        """The smallest slowdown that this gate would have detected."""
        return exp(self._sure(self._counted) * self.head.error) - 1

    @property
    def _counted(self) -> int:
        """The number of starts that count."""
        return len(self.starts) - (self.aside is not None)

    @property
    def _freedom(self) -> int:
        return self.freedom or self._counted - 1

    def _sure(self, starts: int) -> float:
        """Return how many standard errors a difference has to have to be detected by so many starts."""
        each = self._freedom // (self._counted - 1)
        return student(self.level, each * (starts - 1)) + NormalDist().inv_cdf(POWER)

    @property
    def chance(self) -> float:
        """The probability of measuring such an increase if there is none (the p-value)."""
        return student_chance(log(self.head.estimate) / max(self.head.error, TINY), self._freedom)

    @property
    def starts_needed(self) -> int | None:
        """The number of starts that would detect the threshold; None if it is MOST_NEEDED or more."""
        wanted, ours = log(1 + self.threshold), self.head.error**2 - self.stored_error**2
        for starts in range(self._counted, MOST_NEEDED):
            if self._sure(starts) * hypot(sqrt(ours * self._counted / starts), self.stored_error) <= wanted:
                return starts
        return None

    @property
    def answer(self) -> Answer:
        """The answer on this metric. If the base differs from itself by as much, the head's difference is no proof."""
        if self.declined or self.differs_from_itself:
            return Answer.INCONCLUSIVE
        if _beyond(self.head, self.threshold):
            return Answer.REGRESSED
        if _beyond(_turned(self.head), self.threshold):
            return Answer.IMPROVED
        return Answer.OK if self.head.high < 1 + self.threshold else Answer.INCONCLUSIVE

    @property
    def differs_from_itself(self) -> bool:
        """True if the base differs from itself so much that a head would be REGRESSED or IMPROVED."""
        return any(_beyond(each, self.threshold) for each in (self.control, _turned(self.control)))

    @property
    def reason(self) -> str:
        """The reason for INCONCLUSIVE; "" for any other answer."""
        if self.answer is not Answer.INCONCLUSIVE:
            return ""
        if self.declined:
            return self.declined
        if self.differs_from_itself:
            return f"the base differs from itself by {self.control.estimate - 1:+.1%}"
        starts = many(len(self.starts), "start")
        if self.detectable <= self.threshold:
            return f"{starts} can't show whether that is less or more than {self.threshold:.0%}"
        needed = self.starts_needed
        return (
            f"{starts} can detect no less than {self.detectable:.1%}, but the threshold is {self.threshold:.0%}: "
            + (
                f"about {needed} starts are needed"
                if needed
                else "the baseline itself can detect no less; record it again"
            )
        )


def _beyond(ratio: Ratio, threshold: float) -> bool:
    return ratio.low > 1 and ratio.estimate > 1 + threshold


def _turned(ratio: Ratio) -> Ratio:
    """Return the ratio with both sides exchanged."""
    return Ratio(1 / ratio.estimate, 1 / ratio.high, 1 / ratio.low, ratio.error)


def effect(metric: Metric, rounds: Sequence[Round], threshold: float, level: float) -> Effect | None:
    """Compare the rounds that all sides have; None if too few starts have this metric."""
    idle = idle_of(rounds, SIDES)
    told = [values for each in by_start(rounds) if (values := by_side(each, SIDES, metric, idle))[BASE]]
    if len(told) < FEWEST_STARTS:
        return None
    logs = [{side: np.log(each) for side, each in values.items()} for values in told]
    sides = [np.array([each[side] for side in SIDES]) for each in logs]
    head, control = compare(sides, (HEAD_BY_BASE, BASE_BY_ITSELF), FAR * metric.finer)
    return Effect(
        metric.name,
        metric.unit,
        threshold if threshold == ANY else threshold * metric.finer,
        head.within(level),
        control.within(level),
        head.starts,
        head.aside,
        _spread(head, [(each[BASE], each[HEAD]) for each in logs]),
        level,
        control_counted=control.counted,
        freedom=head.freedom,
    )


def since(effect: Effect, stored: Stored) -> Effect | None:
    """Return the effect relative to an earlier job, with that job's error included; None if it lacks this metric."""
    then = stored.ratios.get(effect.metric)
    if then is None:
        return None
    both = replace(
        effect.head, estimate=effect.head.estimate / then.estimate, error=hypot(effect.head.error, then.error)
    )
    return replace(effect, head=both, stored_error=then.error).at(effect.level)


def _spread(head: ByStart, pairs: Sequence[tuple[Floats, Floats]]) -> Spread:
    base, other = (np.concatenate([each[side] - np.mean(each[side]) for each in pairs]) for side in (0, 1))
    varies = float(np.std(base) * np.std(other))
    common = float(np.mean(base * other)) / varies if varies > TINY else 0.0
    return Spread(head.starts_differ, head.rounds_differ, common)


def effects(
    rounds: Sequence[Round],
    threshold: float,
    look: int,
    declined: str = "",
    *,
    stored: Stored | None = None,
) -> tuple[Effect, ...]:
    """Compare all metrics. The cost comes first and decides.

    Allocated bytes have the level of the cost, because they hardly vary: they show a change of one per cent. The others
    are tested at levels at which all of them together err rarely (Holm).
    `declined` is the reason to withhold wall-clock metrics.
    """

    level = LEVELS[look]
    seen = {metric: effect(metric, rounds, threshold, level) for metric in METRICS}
    found = {
        metric: told for metric, each in seen.items() if each and (told := since(each, stored) if stored else each)
    }
    if COST not in found:
        return ()
    others = [metric for metric in found if metric not in (COST, ALLOCATED)]
    alphas = holm([found[metric].chance for metric in others], 1 - LEVELS[0])
    for metric, alpha in zip(others, alphas, strict=True):
        told = found[metric].at(1 - alpha)
        found[metric] = replace(told, declined=(declined or _of_clock(told)) if metric.is_of_clock else "")
    return tuple(found.values())


def is_known(found: Sequence[Effect]) -> bool:
    """Return True if cost and allocated bytes are conclusive, or one of them is REGRESSED."""
    primary = [each.answer for each in found if each.metric in (COST.name, ALLOCATED.name)]
    return bool(primary) and (Answer.REGRESSED in primary or Answer.INCONCLUSIVE not in primary)


def _of_clock(effect: Effect) -> str:
    """Return why a wall-clock metric is withheld, if the base differs too much from itself."""
    itself = effect.control.estimate - 1
    return f"the base differs from itself by {itself:+.1%}" if abs(itself) > MOST_SPREAD else ""


@dataclass(frozen=True)
class Judged:
    """The verdict on all counts of one side."""

    outcome: Outcome
    sentence: str
    run: str  # its directory, relative to the gate's
    recovery: tuple[Recovery, ...] = ()  # from each fault
    witnesses: tuple[Witness, ...] = ()  # the first of each check that did not pass
    crashed: str = ""  # the engine's last output, if it ended by itself


@dataclass(frozen=True)
class Gated:
    """The answer of a gate."""

    sides: Mapping[str, Judged]
    effects: tuple[Effect, ...]
    starts: int
    broken: str = ""  # why it ended early
    conditions: Conditions | None = None
    stored: Stored | None = None  # the baseline that the head is compared with, if no base ran
    longest_s: float = 0.0  # the duration of the longest start; 0: not known, in folders of older versions

    def budget_for(self, starts: int) -> int:
        """Return a budget in minutes in which so many starts fit; 0 if the duration of a start is not known."""
        return ceil(SPARE * starts * self.longest_s / 60)

    def more_budget_s(self, budget_s: float) -> float:
        """Return a budget for the starts that the cost needs, at most those of any gate; 0 if it has had as many."""
        wanted = min(self.effects[0].starts_needed or Settings.most_starts, Settings.most_starts)
        return max(60.0 * self.budget_for(wanted), 2 * budget_s) if self.starts < wanted else 0.0

    @property
    def can_detect(self) -> int:
        """The lowest threshold, in per cent, with which the gate would have been conclusive."""
        return min(100, ceil(self.effects[0].detectable * 100))

    @property
    def right(self) -> bool:
        return all(each.outcome is Outcome.PASS for each in self.sides.values())

    @property
    def clash(self) -> str:
        """The last output of the base if it crashed beside the others; "" if it did not, or if all crashed.

        The sides may then compete for one resource, which the first one gets, so that a crash of the head proves
        nothing either.
        """
        said = [self.sides[name].crashed for name in SIDES]
        return "" if all(said) else self.sides[BASE].crashed or self.sides[AGAIN].crashed

    @property
    def outcome(self) -> Outcome:
        """The outcome. A head that counts wrong fails, whatever its base does. No speed is compared of wrong counts."""
        if self.clash:
            return Outcome.UNKNOWN
        if self.sides[HEAD].outcome is Outcome.FAIL:
            return Outcome.FAIL
        if not self.right or self.broken or not self.effects:
            return Outcome.UNKNOWN
        answers = [each.answer for each in self.effects]
        if Answer.REGRESSED in answers:
            return Outcome.FAIL
        return Outcome.UNKNOWN if answers[0] is Answer.INCONCLUSIVE else Outcome.PASS

    @property
    def is_too_fine(self) -> bool:
        """True if nothing went wrong, but the threshold is below what this gate can detect."""
        if self.outcome is not Outcome.UNKNOWN or not self.right or self.broken or not self.effects:
            return False
        return self.effects[0].detectable > self.effects[0].threshold and not self.effects[0].differs_from_itself

    @property
    def answer(self) -> Answer:
        if self.outcome is Outcome.PASS:
            return self.effects[0].answer
        return Answer.REGRESSED if self.outcome is Outcome.FAIL else Answer.INCONCLUSIVE

    @property
    def sentence(self) -> str:
        head = self.sides[HEAD]
        if self.clash:
            return (
                f"the base crashed: {self.clash}. A gate runs three engines at the same time. Let the job use "
                f"any free port, and folders of its own"
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
            return NO_COST if self.starts >= FEWEST_STARTS else self._too_few
        told = [self.effects[0]]
        if self.answer is Answer.REGRESSED:
            told = [each for each in self.effects if each.answer is Answer.REGRESSED]
        since = ", ".join(self.stored.changes) if self.stored else ""
        return "; ".join(map(in_words, told)) + (f"; and since the baseline was measured: {since}" if since else "")

    @property
    def _too_few(self) -> str:
        few = f"{many(self.starts, 'start is', 'starts are')} too few to compare the cost"
        budget = self.budget_for(FEWEST_STARTS)
        needed = f"{FEWEST_STARTS} are needed" + (f", and one took {self.longest_s:.0f} s here" if budget else "")
        more = f"use --budget {budget}" if budget else "raise --budget"
        return f"every side counts right, but {few}: {needed}, so {more}"


def in_words(effect: Effect) -> str:
    if effect.threshold == ANY:
        return f"{effect.metric} {effect.head.estimate:.4g} times [{effect.head.low:.4g}, {effect.head.high:.4g}]"
    seen = f"{effect.head.estimate - 1:+.1%} [{effect.head.low - 1:+.1%}, {effect.head.high - 1:+.1%}]"
    return f"{effect.metric} {seen}" + (f": {effect.reason}" if effect.reason else "")


def looks(starts: int) -> tuple[int, ...]:
    """Return the numbers of starts after which the gate checks whether they are enough."""
    return tuple(sorted({max(FEWEST_STARTS, starts * part // len(LEVELS)) for part in range(1, len(LEVELS) + 1)}))


def planned(left_s: float, took_s: float, most: int) -> int:
    """Return how many starts fit, including the first one, which took `took_s`."""
    return max(1, min(most, int(left_s / took_s) + 1))


def worse(before: Judged | None, now: Judged) -> Judged:
    """Keep the worse of two starts of one side: a wrong count stays one."""
    order = (Outcome.PASS, Outcome.UNKNOWN, Outcome.FAIL)
    return before if before and order.index(before.outcome) >= order.index(now.outcome) else now
