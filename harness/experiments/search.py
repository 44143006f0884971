"""The highest sustainable rate, as an interval: the highest rate that held and the lowest one that failed.

Ramp up by a factor until a rate fails, bisect until the interval is narrow, confirm the highest rate that held by a
fresh run, then climb a ladder from 10 to 110 % of it for the curve of latency against throughput. What to try next is
a pure function of the trials so far, so that a search that was broken off goes on where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

from harness.measurement import Measurement
from harness.model import Certificate, Outcome, RunSpec, Segment
from harness.objective import headline_p99_ms


class Held(StrEnum):
    """What one trial says of its rate."""

    YES = "held"
    NO = "failed"
    LIMITED = "generator-limited"


class Stage(StrEnum):
    RAMP = "ramp"
    BISECT = "bisect"
    CONFIRM = "confirm"
    LADDER = "ladder"


@dataclass(frozen=True)
class Settings:
    """How far and how fine a search goes."""

    start_per_s: float = 10_000.0
    factor: float = 2.0
    width: float = 0.10  # the interval is narrow enough when lowest failed <= (1 + width) * highest held
    ladder: tuple[float, ...] = tuple(i / 10 for i in range(1, 12))
    rounds: int = 3  # of the ladder, for its bands
    duration_ms: int = 180_000
    objective_p99_ms: float = 10_000.0
    most_trials: int = 40


# Trials are as long as a proof of steadiness needs: with shorter ones most rates fail for want of proof.
QUICK = Settings(
    start_per_s=20_000.0, width=0.15, ladder=(0.1, 0.5, 0.8, 1.1), rounds=1, duration_ms=120_000, most_trials=14
)


@dataclass(frozen=True)
class Trial:
    """One fresh run at one rate. Figures are None where they had to be withheld."""

    stage: Stage
    rate_per_s: float
    held: Held
    reason: str
    run: str
    p50_ms: float | None = None
    p99_ms: float | None = None
    processed_per_s: float | None = None
    cpu_s_per_million: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Step:
    """What to try next."""

    stage: Stage
    rate_per_s: float


@dataclass(frozen=True)
class Answer:
    """What the search found. Without `failed_per_s` no rate failed: at least so much, the generator was the limit."""

    held_per_s: float | None
    failed_per_s: float | None
    limited: bool

    @property
    def outcome(self) -> Outcome:
        found = self.held_per_s is not None and self.failed_per_s is not None
        return Outcome.PASS if found else Outcome.UNKNOWN

    @property
    def sentence(self) -> str:
        if self.held_per_s is None:
            lowest = f"; the lowest tried, {self.failed_per_s:,.0f}/s, failed" if self.failed_per_s else ""
            return f"no rate held{lowest}"
        if self.failed_per_s is None:
            return f"at least {self.held_per_s:,.0f} events/s, generator-limited"
        return f"between {self.held_per_s:,.0f} (held) and {self.failed_per_s:,.0f} (failed) events/s"


def judge_trial(
    outcome: Outcome, certificate: Certificate, measurement: Measurement | None, objective_p99_ms: float
) -> tuple[Held, str]:
    """Held: certificate valid, counts right, steady, p99 within the objective. The first that is not is the reason."""
    if outcome is Outcome.PASS and not certificate.valid:
        return Held.LIMITED, "; ".join(certificate.reasons)
    p99_ms = headline_p99_ms(measurement)
    reason = _why_not(outcome, measurement, p99_ms, objective_p99_ms)
    return (Held.NO, reason) if reason else (Held.YES, f"p99 {p99_ms:,.0f} ms")


def _why_not(outcome: Outcome, measurement: Measurement | None, p99_ms: float | None, objective_ms: float) -> str:
    if outcome is not Outcome.PASS:
        return f"the counts are {outcome.value}"
    if measurement is None or measurement.steady is None:
        return "nothing says whether it was steady"
    if not measurement.steady.steady:
        return measurement.steady.sentence
    if p99_ms is None:
        return "no 99th percentile of latency could be measured"
    return f"p99 {p99_ms:,.0f} ms is over the objective of {objective_ms:,.0f} ms" if p99_ms > objective_ms else ""


def answer(trials: Sequence[Trial]) -> Answer:
    """A rate holds when no trial of it, and none of a lower one, failed: one failure outweighs a success."""
    failed = [t.rate_per_s for t in trials if t.held is Held.NO and t.stage is not Stage.LADDER]
    limited = [t.rate_per_s for t in trials if t.held is Held.LIMITED and t.stage is not Stage.LADDER]
    ceiling = min(failed, default=math.inf)
    held = [
        t.rate_per_s for t in trials if t.held is Held.YES and t.stage is not Stage.LADDER and t.rate_per_s < ceiling
    ]
    return Answer(max(held, default=None), None if math.isinf(ceiling) else ceiling, bool(limited))


def next_step(trials: Sequence[Trial], settings: Settings) -> Step | None:
    """The next rate to try, or None at the end."""
    if len(trials) >= settings.most_trials:
        return None
    found = answer(trials)
    limit = min((t.rate_per_s for t in trials if t.held is Held.LIMITED), default=math.inf)
    top = min(found.failed_per_s or math.inf, limit)
    if found.held_per_s is None:
        return _down(settings, top)
    if math.isinf(top):
        return Step(Stage.RAMP, found.held_per_s * settings.factor)
    if top > found.held_per_s * (1 + settings.width):
        return Step(Stage.BISECT, _round(math.sqrt(found.held_per_s * top)))
    if not any(t.stage is Stage.CONFIRM and t.rate_per_s == found.held_per_s for t in trials):
        return Step(Stage.CONFIRM, found.held_per_s)
    return _rung(trials, settings, found.held_per_s)


def _down(settings: Settings, top: float) -> Step | None:
    """Nothing held yet: begin, or go down, but not for ever."""
    rate = settings.start_per_s if math.isinf(top) else top / settings.factor
    return Step(Stage.RAMP, rate) if rate >= settings.start_per_s / 64 else None


def _rung(trials: Sequence[Trial], settings: Settings, base_per_s: float) -> Step | None:
    """Each rung as often as there are rounds, a whole round before the next."""
    tried = [t.rate_per_s for t in trials if t.stage is Stage.LADDER]
    for round_number in range(1, settings.rounds + 1):
        for share in settings.ladder:
            rate = _round(base_per_s * share)
            if tried.count(rate) < round_number:
                return Step(Stage.LADDER, rate)
    return None


def _round(rate_per_s: float) -> float:
    """To three digits: nobody reads more, and equal rates compare equal."""
    digits = 2 - math.floor(math.log10(rate_per_s))
    return float(round(rate_per_s, digits))


def remaining_s(trials: Sequence[Trial], settings: Settings) -> float:
    """How long the rest will take, from how long trials took so far and how many a search usually needs."""
    each_s = median([t.seconds for t in trials]) if trials else settings.duration_ms / 1000 + 35.0
    ladder = len(settings.ladder) * settings.rounds
    rungs = sum(t.stage is Stage.LADDER for t in trials)
    found = answer(trials)
    if rungs:
        left: float = ladder - rungs
    elif found.held_per_s and found.failed_per_s:
        ratio = found.failed_per_s / found.held_per_s
        left = max(0.0, math.ceil(math.log2(math.log(ratio) / math.log1p(settings.width)))) + 1 + ladder
    else:
        left = max(0, 7 - len(trials)) + 1 + ladder
    return each_s * min(left, settings.most_trials - len(trials))


def spec_of(base: RunSpec, step: Step, settings: Settings) -> RunSpec:
    """The base run at another rate, with nothing killed: a fault has no sustainable rate."""
    profile = (Segment(settings.duration_ms, step.rate_per_s, step.rate_per_s),)
    return replace(base, tape=replace(base.tape, profile=profile))


def search(
    trials: Sequence[Trial], settings: Settings, run_trial: Callable[[Step], Trial], keep: Callable[[list[Trial]], None]
) -> list[Trial]:
    """Try until nothing is left to try; `keep` saves after each, so that nothing done is done again."""
    done = list(trials)
    while step := next_step(done, settings):
        done.append(run_trial(step))
        keep(done)
    return done
