"""Compute how often a gate finds a real slowdown, and how often one that does not exist. Pure.

Starts are recorded once: sides without a change, and one with a known change, which is sent a tenth more events than
are billed, so that each costs a tenth more. Then many gates are drawn from those starts, and the answer of each is
computed. Other changes are simulated by raising the cost of the head's rounds, or the bytes that they allocated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import exp
from statistics import fmean

import numpy as np

from harness.experiments.gating.gate import (
    AGAIN,
    BASE,
    HEAD,
    LEVELS,
    SIDES,
    Answer,
    Effect,
    effect,
    effects,
    is_known,
    looks,
)
from harness.experiments.gating.rounds import COST, Round, Settings, by_side, idle_of
from harness.measuring.ratio_by_start import compare
from harness.measuring.stats import binomial_bounds

Start = Sequence[Round]  # of all arms, which were started together


@dataclass(frozen=True)
class Arm:
    """A side, and how much more work each of its events causes."""

    name: str
    more: float = 0.0
    is_recorded: bool = True  # False: simulated from a side without a change


SAME = Arm("no change")
UNCHANGED = tuple(map(Arm, SIDES))
SLOWED = Arm("10% more events", 0.10)
DEARER = tuple(Arm(f"{more:.0%} dearer", more, is_recorded=False) for more in (0.03, 0.05, 0.10, 0.25))
ALLOCATES = Arm("1% more allocated", 0.01, is_recorded=False)
ARMS = (*UNCHANGED, SLOWED)
GATE_SHARE = len(SIDES) / len(ARMS)  # a gate has fewer sides, so its start takes this share of a recorded one's time
THRESHOLDS = (0.05, 0.03, 0.02)
GATES = 500


def settings_of(arm: Arm, settings: Settings) -> Settings:
    return replace(settings, stretch_events=round(settings.stretch_events * (1 + arm.more)))


def billed(each: Round, arm: Arm) -> Round:
    """Bill a round for as many events as the other sides had."""
    return replace(each, events=round(each.events / (1 + arm.more)))


def changed(each: Round, arm: Arm) -> Round:
    """Simulate the change of an arm that was not recorded."""
    if arm.is_recorded:
        return each
    if arm == ALLOCATES:
        return replace(each, allocated_bytes=round((each.allocated_bytes or 0) * (1 + arm.more)))
    return replace(each, cpu_s=each.cpu_s + arm.more * (each.cpu_s - each.compiling_s))


@dataclass(frozen=True)
class Rates:
    """The answers of gates on one arm at one threshold."""

    arm: str
    more: float
    costs: float  # the cost relative to no change in all recorded rounds; below 1 + more, as batches cost something too
    threshold: float
    gates: int
    regressed: int
    ok: int  # includes IMPROVED

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % confidence interval of the share of REGRESSED, if these starts are typical."""
        return binomial_bounds(self.regressed, self.gates)


@dataclass(frozen=True)
class Calibrated:
    """The result of a calibration."""

    rates: tuple[Rates, ...]
    starts_differ: float  # standard deviation, from start to start, of the log ratio of two sides without a change
    rounds_differ: float  # the same from round to round, within a start
    rounds: int  # recorded of each arm in a start
    starts: int
    gate_starts: int  # how many a gate has time for


def table(starts: Sequence[Start], gate_starts: int, seed: int, gates: int = GATES) -> Iterator[Rates]:
    """Yield the rates for each threshold and each change, "no change" included."""
    plain = costs(starts, SAME)
    counted = (ALLOCATES,) if all(each.allocated_bytes for each in chain.from_iterable(starts)) else ()
    seen = {SAME: plain, **{arm: plain * (1 + arm.more) for arm in DEARER}, SLOWED: costs(starts, SLOWED)}
    seen |= dict.fromkeys(counted, plain)
    said = {(threshold, arm): Counter[Answer]() for threshold in THRESHOLDS for arm in seen}
    for head, arms in ((SAME, (SAME, *DEARER, *counted)), (SLOWED, (SLOWED,))):
        draws = np.random.default_rng(seed)
        for _ in range(gates):
            gate = Drawn(drawn(starts, head, gate_starts, draws), gate_starts)
            for arm in arms:
                for threshold, answer in zip(THRESHOLDS, gate.answers(arm), strict=True):
                    said[threshold, arm][answer] += 1
    for (threshold, arm), count in said.items():
        ok = count[Answer.OK] + count[Answer.IMPROVED]
        yield Rates(arm.name, arm.more, seen[arm], threshold, gates, count[Answer.REGRESSED], ok)


def costs(starts: Sequence[Start], arm: Arm) -> float:
    """Compute an arm's cost relative to the sides without a change. For "no change", the last of these is the arm."""
    name, plain = (arm.name, UNCHANGED) if arm.more else (UNCHANGED[-1].name, UNCHANGED[:-1])
    differ = [medians[name] - fmean(medians[each.name] for each in plain) for medians in _in_each_start(starts)]
    return exp(fmean(differ))


def differ(starts: Sequence[Start]) -> tuple[float, float]:
    """Compare two sides without a change: return how much starts differ, and how much rounds within a start."""
    idle = idle_of([*chain.from_iterable(starts)], SIDES)
    logs = [np.log([by_side(start, SIDES, COST, idle)[side] for side in SIDES]) for start in starts]
    [found] = compare(logs, [(-1.0, 1.0, 0.0)])
    return found.starts_differ, found.rounds_differ


def _in_each_start(starts: Sequence[Start]) -> Iterator[Mapping[str, float]]:
    """Yield, for each start, the log of each arm's cost by that of the sides without a change, as a gate computes it.

    All arms are billed for as many events.
    """
    names = [arm.name for arm in ARMS]
    idle = idle_of([*chain.from_iterable(starts)], names)
    for start in starts:
        own = [replace(billed(each, arm), side=arm.name) for arm in ARMS for each in start if each.side == arm.name]
        logs = np.log([by_side(own, names, COST, idle)[name] for name in names])
        yield dict(
            zip(names, np.median(logs - np.median(logs[: len(UNCHANGED)], axis=0), axis=1).tolist(), strict=True)
        )


def drawn(starts: Sequence[Start], arm: Arm, count: int, draws: np.random.Generator) -> list[Round]:
    """Draw the rounds of one gate, start by start. The roles of the sides without a change are drawn for each start."""
    made = []
    for number in range(1, count + 1):
        start = starts[int(draws.integers(len(starts)))]
        names = [each.name for each in draws.permutation(np.array(UNCHANGED, dtype=object))]
        roles = {BASE: names[0], AGAIN: names[1], HEAD: arm.name if arm == SLOWED else names[2]}
        for role, name in roles.items():
            own = [each for each in start if each.side == name]
            made += [replace(billed(each, arm) if role == HEAD else each, side=role, start=number) for each in own]
    return made


class Drawn:
    """One drawn gate. Its metrics other than the cost are the same for all arms that only cost more."""

    def __init__(self, measured: Sequence[Round], starts: int) -> None:
        self._measured = measured
        self._looks = [(len(LEVELS) - 1 if count >= starts else nth, count) for nth, count in enumerate(looks(starts))]
        self._others: dict[tuple[int, bool], tuple[Effect, ...]] = {}  # by look, and whether more is allocated

    def answers(self, arm: Arm) -> Iterator[Answer]:
        """Yield the answer at each threshold."""
        measured = self._of(arm)
        found = [effect(COST, _first(measured, count), 1.0, LEVELS[look]) for look, count in self._looks]
        for threshold in THRESHOLDS:
            yield self._answer([each and _asked(each, threshold) for each in found], threshold, arm)

    def _answer(self, found: Sequence[Effect | None], threshold: float, arm: Arm) -> Answer:
        """Answer as a gate does: at the first look with a known answer."""
        for nth, cost in enumerate(found):
            others = [_asked(each, threshold) for each in self._others_at(*self._looks[nth], arm)]
            if cost and (is_known([cost, *others]) or nth == len(found) - 1):
                is_red = any(each.answer is Answer.REGRESSED for each in others)
                return Answer.REGRESSED if is_red else cost.answer
        return Answer.INCONCLUSIVE

    def _others_at(self, look: int, count: int, arm: Arm) -> tuple[Effect, ...]:
        """Compare the other metrics. CPU time is in none of them, so all arms that only cost more share an answer."""
        key = look, arm == ALLOCATES
        if key not in self._others:
            _, *others = effects(_first(self._of(arm), count), 1.0, look)
            self._others[key] = tuple(others)
        return self._others[key]

    def _of(self, arm: Arm) -> list[Round]:
        return [changed(each, arm) if each.side == HEAD else each for each in self._measured]


def _first(measured: Sequence[Round], starts: int) -> list[Round]:
    return [each for each in measured if each.start <= starts]


def _asked(found: Effect, threshold: float) -> Effect:
    """Return an effect that was computed with a threshold of 1 with the requested one."""
    return replace(found, threshold=found.threshold * threshold)
