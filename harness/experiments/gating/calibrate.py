"""How often does a gate find a slowdown that is there, and how often one that is not? Pure.

Rounds are recorded once, with no change and with known ones: a side that is sent a tenth more events than are billed
costs a tenth more for each. Then many gates are drawn from those rounds, and each is asked what it would have said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import mean, variance

import numpy as np

from harness.experiments.gating.gate import AGAIN, BASE, HEAD, LEVELS, SIDES, Answer, effect, effects, looks
from harness.experiments.gating.rounds import COST, Round, Settings, by_side, levelled
from harness.measuring.stats import binomial_bounds, quantile_ratio

Session = Sequence[Round]  # what was recorded from one start of all engines to their end


@dataclass(frozen=True)
class Arm:
    """A side, and how much more work each of its events makes."""

    name: str
    more: float = 0.0


UNCHANGED = tuple(map(Arm, SIDES))
SLOWED = (Arm("5% more", 0.05), Arm("10% more", 0.10), Arm("25% more", 0.25))
ARMS = (*UNCHANGED, *SLOWED)
GATE_SHARE = len(SIDES) / len(ARMS)  # of the time of a session a gate takes, which has fewer sides
THRESHOLDS = (0.05, 0.03)
STRETCH = 5  # rounds that follow each other are drawn together: what disturbs one of them lasts
GATES = 1000


def settings_of(arm: Arm, settings: Settings) -> Settings:
    return replace(settings, stretch_events=round(settings.stretch_events * (1 + arm.more)))


def billed(each: Round, arm: Arm) -> Round:
    """As if it had done no more events than the others."""
    return replace(each, events=round(each.events / (1 + arm.more)))


@dataclass(frozen=True)
class Rates:
    """What gates said of one arm at one threshold."""

    arm: str
    more: float
    costs: float  # by what costs nothing more, in all rounds that were recorded: what a batch costs is no event's
    threshold: float
    gates: int
    regressed: int
    ok: int

    @property
    def bounds(self) -> tuple[float, float]:
        """Within which the share of REGRESSED lies with 95 %, as far as these sessions are like all others."""
        return binomial_bounds(self.regressed, self.gates)


@dataclass(frozen=True)
class Calibrated:
    """What came of it."""

    rates: tuple[Rates, ...]
    starts_differ: float  # two starts of the same, beyond what their rounds explain: as `Metric.of_starts`
    rounds: int  # recorded of each arm
    sessions: int
    gate_rounds: int  # so many of each side a gate has time for


def table(sessions: Sequence[Session], gate_rounds: int, seed: int, gates: int = GATES) -> Iterator[Rates]:
    """Of each threshold and each change, none among them."""
    arms = {arm: costs(sessions, arm) for arm in (Arm("no change"), *SLOWED)}
    for threshold in THRESHOLDS:
        for arm, seen in arms.items():
            draws = np.random.default_rng(seed)
            said = Counter(
                answer(drawn(sessions, arm, gate_rounds, draws), gate_rounds, threshold) for _ in range(gates)
            )
            yield Rates(arm.name, arm.more, seen, threshold, gates, said[Answer.REGRESSED], said[Answer.OK])


def costs(sessions: Sequence[Session], arm: Arm) -> float:
    """By those without a change, of which the last one stands for no change."""
    name, plain = (arm.name, UNCHANGED) if arm.more else (UNCHANGED[-1].name, UNCHANGED[:-1])
    differ = [
        quartiles[name] - mean(quartiles[each.name] for each in plain) for quartiles in map(_log_quartiles, sessions)
    ]
    return exp(mean(differ))


def starts_differ(sessions: Sequence[Session], seed: int) -> float:
    """A standard deviation of the logarithm, from those without a change."""
    beyond = []
    for session in sessions:
        told = by_side(session, [arm.name for arm in UNCHANGED], COST)
        first, second, _ = (told[arm.name] for arm in UNCHANGED)
        of_rounds = quantile_ratio([first], [second], COST.share, LEVELS[-1], seed).error ** 2 / 2
        beyond.append(variance(_log_quartiles(session)[arm.name] for arm in UNCHANGED) - of_rounds)
    return sqrt(max(0.0, mean(beyond)))


def _log_quartiles(session: Session) -> Mapping[str, float]:
    """Of each arm, billed for the events of the others."""
    own = [replace(billed(each, arm), side=arm.name) for arm in ARMS for each in session if each.side == arm.name]
    values = levelled(by_side(own, [arm.name for arm in ARMS], COST))
    return {name: log(np.quantile(each, COST.share)) for name, each in values.items()}


def drawn(sessions: Sequence[Session], arm: Arm, rounds: int, draws: np.random.Generator) -> list[Round]:
    """The rounds of one gate: of one session, in stretches, in the order in which they were. Which of the sides without
    a change is the base is drawn too."""
    session = sessions[int(draws.integers(len(sessions)))]
    names = [each.name for each in draws.permutation(np.array(UNCHANGED, dtype=object))]
    roles = {BASE: names[0], AGAIN: names[1], HEAD: arm.name if arm.more else names[2]}
    own = {role: [each for each in session if each.side == name] for role, name in roles.items()}
    own[HEAD] = [billed(each, arm) for each in own[HEAD]]
    count = min(map(len, own.values()))
    starts = np.sort(draws.integers(0, count - STRETCH + 1, -(-rounds // STRETCH)))
    picks = (starts[:, None] + np.arange(STRETCH)).ravel()[:rounds].tolist()
    return [
        replace(own[role][pick], side=role, number=number) for number, pick in enumerate(picks, 1) for role in SIDES
    ]


def answer(measured: Sequence[Round], rounds: int, threshold: float) -> Answer:
    """As the gate comes to it: at the first look that gives one. Then it looks at the other metrics too."""
    for look, count in enumerate(looks(rounds)):
        seen = measured[: count * len(SIDES)]
        found = effect(COST, seen, threshold, LEVELS[look], seed=1)
        if found and found.answer is not Answer.INCONCLUSIVE:
            break
    said = [each.answer for each in effects(seen, threshold, look, seed=1)]
    if Answer.REGRESSED in said:
        return Answer.REGRESSED
    return said[0] if said else Answer.INCONCLUSIVE
