"""How often does a gate find a slowdown that is there, and how often one that is not? Pure.

Starts are recorded once, of sides with no change and of one with a known one: a side that is sent a tenth more events
than are billed costs a tenth more for each. Then many gates are drawn from those starts, and each is asked what it
would have said. Other changes are made by arithmetic: the head's rounds, each so much dearer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean, median, stdev

import numpy as np

from harness.experiments.gating.gate import AGAIN, BASE, HEAD, LEVELS, SIDES, Answer, effect, effects, looks
from harness.experiments.gating.rounds import COST, Round, Settings, by_side
from harness.measuring.stats import binomial_bounds

Start = Sequence[Round]  # of all arms, that were started together


@dataclass(frozen=True)
class Arm:
    """A side, and how much more work each of its events makes."""

    name: str
    more: float = 0.0
    is_recorded: bool = True  # no: by arithmetic, of a side without a change


UNCHANGED = tuple(map(Arm, SIDES))
SLOWED = Arm("10% more events", 0.10)
DEARER = tuple(Arm(f"{more:.0%} dearer", more, is_recorded=False) for more in (0.03, 0.05, 0.10, 0.25))
ARMS = (*UNCHANGED, SLOWED)
GATE_SHARE = len(SIDES) / len(ARMS)  # of the time of a recorded start one of a gate takes, which has fewer sides
THRESHOLDS = (0.05, 0.03, 0.02)
GATES = 500


def settings_of(arm: Arm, settings: Settings) -> Settings:
    return replace(settings, stretch_events=round(settings.stretch_events * (1 + arm.more)))


def billed(each: Round, arm: Arm) -> Round:
    """As if it had done no more events than the others."""
    return replace(each, events=round(each.events / (1 + arm.more)))


def changed(each: Round, arm: Arm) -> Round:
    return billed(each, arm) if arm.is_recorded else replace(each, cpu_s=each.cpu_s + arm.more * _used_s(each))


def _used_s(each: Round) -> float:
    """Return the CPU seconds that are billed."""
    return each.cpu_s - each.compiling_s


@dataclass(frozen=True)
class Rates:
    """What gates said of one arm at one threshold."""

    arm: str
    more: float
    costs: float  # by what costs nothing more, in all rounds that were recorded: what a batch costs is no event's
    threshold: float
    gates: int
    regressed: int
    ok: int  # IMPROVED among them

    @property
    def bounds(self) -> tuple[float, float]:
        """Within which the share of REGRESSED lies with 95 %, as far as these starts are like all others."""
        return binomial_bounds(self.regressed, self.gates)


@dataclass(frozen=True)
class Calibrated:
    """What came of it."""

    rates: tuple[Rates, ...]
    starts_differ: float  # two sides without a change, from start to start: the standard deviation of their ratio
    rounds_differ: float  # and from round to round, within a start
    rounds: int  # recorded of each arm in a start
    starts: int
    gate_starts: int  # so many a gate has time for


def table(starts: Sequence[Start], gate_starts: int, seed: int, gates: int = GATES) -> Iterator[Rates]:
    """Of each threshold and each change, none among them."""
    plain = costs(starts, Arm("no change"))
    arms = {Arm("no change"): plain, **{arm: plain * (1 + arm.more) for arm in DEARER}, SLOWED: costs(starts, SLOWED)}
    for threshold in THRESHOLDS:
        for arm, seen in arms.items():
            draws = np.random.default_rng(seed)
            said = Counter(answer(drawn(starts, arm, gate_starts, draws), gate_starts, threshold) for _ in range(gates))
            ok = said[Answer.OK] + said[Answer.IMPROVED]
            yield Rates(arm.name, arm.more, seen, threshold, gates, said[Answer.REGRESSED], ok)


def costs(starts: Sequence[Start], arm: Arm) -> float:
    """By those without a change, of which the last one stands for no change."""
    name, plain = (arm.name, UNCHANGED) if arm.more else (UNCHANGED[-1].name, UNCHANGED[:-1])
    differ = [medians[name] - fmean(medians[each.name] for each in plain) for medians in map(_log_medians, starts)]
    return exp(fmean(differ))


def starts_differ(starts: Sequence[Start]) -> float:
    """Compare two sides without a change."""
    seen = [_log_medians(each) for each in starts]
    return stdev(each[HEAD] - each[BASE] for each in seen)


def rounds_differ(starts: Sequence[Start]) -> float:
    """Compare the same two within a start."""
    within = []
    for start in starts:
        told = by_side(start, SIDES, COST)
        logs = np.log(told[HEAD]) - np.log(told[BASE])
        within.append(float(np.var(logs, ddof=1)))
    return float(np.sqrt(fmean(within)))


def _log_medians(start: Start) -> Mapping[str, float]:
    """Of each arm, billed for the events of the others."""
    own = [replace(billed(each, arm), side=arm.name) for arm in ARMS for each in start if each.side == arm.name]
    return {name: log(median(each)) for name, each in by_side(own, [arm.name for arm in ARMS], COST).items()}


def drawn(starts: Sequence[Start], arm: Arm, count: int, draws: np.random.Generator) -> list[Round]:
    """The rounds of one gate, by start. Which of the sides without a change is the base is drawn too, for each."""
    made = []
    for number in range(1, count + 1):
        start = starts[int(draws.integers(len(starts)))]
        names = [each.name for each in draws.permutation(np.array(UNCHANGED, dtype=object))]
        roles = {BASE: names[0], AGAIN: names[1], HEAD: arm.name if arm == SLOWED else names[2]}
        for role, name in roles.items():
            own = [each for each in start if each.side == name]
            made += [replace(changed(each, arm) if role == HEAD else each, side=role, start=number) for each in own]
    return made


def answer(measured: Sequence[Round], starts: int, threshold: float) -> Answer:
    """As the gate comes to it: at the first look that gives one. Then it looks at the other metrics too."""
    for nth, count in enumerate(looks(starts)):
        look = len(LEVELS) - 1 if count >= starts else nth
        seen = [each for each in measured if each.start <= count]
        found = effect(COST, seen, threshold, LEVELS[look], seed=1)
        if found and found.answer is not Answer.INCONCLUSIVE:
            break
    said = [each.answer for each in effects(seen, threshold, look, seed=1)]
    if Answer.REGRESSED in said:
        return Answer.REGRESSED
    return said[0] if said else Answer.INCONCLUSIVE
