"""The highest sustainable rate, as an interval: the highest rate that held and the lowest one that failed.

One run with a geometrically rising rate says where about the engine falls behind. From there the rate goes up while it
holds, or down while it fails, and is bisected until the interval is narrow; a fresh run confirms the highest rate that
held; then a ladder from 10 to 110 % of it gives the curve of latency against throughput. What to try next is a pure
function of the trials so far, so that a search that was broken off goes on where it was.

A few minutes often show no growth and can't exclude it either. That says nothing against a rate: it is tried again, and
what its runs say of growth is taken together, as of any rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median

import numpy as np

from harness.measuring.measurement import Measurement, Steady
from harness.measuring.objective import headline_p99_ms
from harness.measuring.processed import Curve
from harness.measuring.steady import LIMIT
from harness.model import Certificate, Outcome, RunSpec, Segment

# Of a trial beside its load: starting, draining, reading, judging; and of a ramp in all. Used to foretell.
OVERHEAD_S = 80.0
RAMP_S = 150.0
WARM_UP_FROM = 0.1
# A machine is slow when the load takes so many times the CPU per event that it took elsewhere at a rate about alike.
SLOWER = 1.15
ABOUT_ALIKE = 1.3
SPOILED_AT_MOST = 2  # of one rate
# A rate whose steadiness is still open after so many runs can't be shown to hold.
RUNS_AT_MOST = 3


class Held(StrEnum):
    """What one trial says of its rate."""

    YES = "held"
    NO = "failed"
    OPEN = "open"  # no growth was seen, but growth that is too much can't be excluded
    LIMITED = "generator-limited"
    ESTIMATE = "estimate"  # of a ramp: where to look, and no more


class Stage(StrEnum):
    RAMP = "ramp"
    BISECT = "bisect"
    CONFIRM = "confirm"
    LADDER = "ladder"


@dataclass(frozen=True)
class Settings:
    """How far and how fine a search goes."""

    start_per_s: float = 50_000.0  # of the ramp, after its warm-up
    ramp_factor: float = 1.25
    ramp_warm_up_ms: int = 45_000  # a JVM that is still compiling says little of what it will do
    ramp_step_ms: int = 5_000
    ramp_steps: int = 14
    # A ramp says how much an engine does with its back to the wall, in batches larger than any that are steady; on a
    # machine that it shares with its load, little is left of that when each batch has to be as long as the last one.
    first_share: float = 0.7
    width: float = 0.10  # the interval is narrow enough when lowest failed <= (1 + width) * highest held
    ladder: tuple[float, ...] = tuple(i / 10 for i in range(1, 12))
    rounds: int = 3  # of the ladder, for its bands
    warm_up_ms: int = 30_000  # of each run: the rate rises to its value; a JVM at full rate from cold tells nothing
    duration_ms: int = 150_000  # then so long at it. A proof of steadiness needs more than a minute and a half
    rung_ms: int = 150_000
    objective_p99_ms: float = 10_000.0
    most_trials: int = 60
    most_s: float | None = None  # no rung of the ladder is begun that would end later

    @property
    def patience_ms(self) -> float:
        """A trial whose oldest event waits for so long is given up: its p99 can't keep to the objective any more."""
        return 2 * self.objective_p99_ms

    def trial_s(self, stage: Stage) -> float:
        """About how long one takes in all."""
        load_ms = self.rung_ms if stage is Stage.LADDER else self.duration_ms
        return (self.warm_up_ms + load_ms) / 1000 + OVERHEAD_S


QUICK = Settings(
    width=0.15,
    ladder=(0.5, 0.1, 0.8),
    rounds=1,
    warm_up_ms=20_000,
    duration_ms=120_000,
    rung_ms=30_000,
    most_trials=16,
    most_s=900.0,
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
    load_cpu_s_per_million: float | None = None  # the same work each time: it tells how fast the machine was
    slopes: Mapping[str, float] = field(default_factory=dict)  # of backlog, latency, state, as in `Steady`
    bounds: Mapping[str, float] = field(default_factory=dict)  # their upper 95 % bounds
    seconds: float = 0.0
    clock: str = ""  # what was odd about the clocks


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
            lowest = f"; the lowest that failed is {self.failed_per_s:,.0f}/s" if self.failed_per_s else ""
            return f"no rate held{lowest}"
        if self.failed_per_s is None:
            why = "generator-limited" if self.limited else "no higher rate was tried"
            return f"at least {self.held_per_s:,.0f} events/s, {why}"
        return f"between {self.held_per_s:,.0f} (held) and {self.failed_per_s:,.0f} (failed) events/s"


def judge_trial(
    outcome: Outcome,
    certificate: Certificate,
    measurement: Measurement | None,
    objective_p99_ms: float,
    clock: str = "",
) -> tuple[Held, str]:
    """Held: certificate valid, counts right, steady, p99 within the objective. The first that is not is the reason.
    Where something was odd about the clocks, right counts say nothing of the rate."""
    on_time = certificate.lag_ms.get("p99.9", 0.0) <= certificate.budget_ms
    if not certificate.valid and (outcome is Outcome.PASS or not on_time):
        return Held.LIMITED, "; ".join(certificate.reasons)
    if clock and outcome is Outcome.PASS:
        return Held.LIMITED, clock
    p99_ms = headline_p99_ms(measurement)
    if reason := _why_not(outcome, measurement, p99_ms, objective_p99_ms):
        return Held.NO, reason
    steady = measurement.steady if measurement else None
    if steady and not steady.steady:
        return (Held.OPEN if _is_open(steady) else Held.NO), steady.sentence
    return Held.YES, f"p99 {p99_ms:,.0f} ms"


def _why_not(outcome: Outcome, measurement: Measurement | None, p99_ms: float | None, objective_ms: float) -> str:
    if outcome is not Outcome.PASS:
        return f"the counts are {outcome.value}"
    if measurement is None or measurement.steady is None:
        return "nothing says whether it was steady"
    if p99_ms is None:
        return "no 99th percentile of latency could be measured"
    return f"p99 {p99_ms:,.0f} ms is over the objective of {objective_ms:,.0f} ms" if p99_ms > objective_ms else ""


def _is_open(steady: Steady) -> bool:
    return bool(steady.slopes) and all(slope < steady.limits[name] for name, slope in steady.slopes.items())


def answer(trials: Sequence[Trial]) -> Answer:
    """A rate holds when its trials say so, and no lower one failed."""
    said = verdicts(trials)
    ceiling = min((rate for rate, held in said.items() if held is Held.NO), default=math.inf)
    highest = max((rate for rate, held in said.items() if held is Held.YES and rate < ceiling), default=None)
    limited = any(trial.held is Held.LIMITED for trial in _tried(trials))
    return Answer(highest, None if math.isinf(ceiling) else ceiling, limited)


def verdicts(trials: Sequence[Trial]) -> dict[float, Held]:
    """What is known of each rate that was tried, by all of its trials that count."""
    tried = _tried(trials)
    return {rate: _together(_at(rate, tried)) for rate in sorted({trial.rate_per_s for trial in tried})}


def _at(rate_per_s: float, trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.rate_per_s == rate_per_s]


def _together(trials: Sequence[Trial]) -> Held:
    """What trials of one rate say: one failure outweighs a success, and what is open is settled by all together. A void
    certificate says nothing, neither for a rate nor against it."""
    telling = [trial for trial in trials if trial.held is not Held.LIMITED]
    if not telling:
        return Held.LIMITED
    said = {trial.held for trial in telling}
    if Held.NO in said:
        return Held.NO
    if Held.OPEN not in said or all(bound < LIMIT for bound in _common_bounds(telling)):
        return Held.YES
    return Held.OPEN if len(telling) < RUNS_AT_MOST else Held.NO


def _common_bounds(trials: Sequence[Trial]) -> Iterator[float]:
    """Of the mean slope of each series. Fresh runs are independent, so that their doubts add up by squares. A fall, as
    it comes after a slow start, counts for no more than it would take to call it growth the other way."""
    for name in {name for trial in trials for name in trial.slopes}:
        known = [(trial.slopes[name], trial.bounds[name]) for trial in trials if name in trial.slopes]
        doubt = math.hypot(*(bound - slope for slope, bound in known))
        yield (sum(max(-LIMIT, slope) for slope, _ in known) + doubt) / len(known)


def _tried(trials: Sequence[Trial]) -> list[Trial]:
    """What decides: not the ramp, which says where to look, not the ladder, and not what a slow machine spoiled."""
    spoiled = {id(trial) for trial in disturbed(trials)}
    return [t for t in trials if t.stage in (Stage.BISECT, Stage.CONFIRM) and id(t) not in spoiled]


def disturbed(trials: Sequence[Trial]) -> list[Trial]:
    """Trials that failed, or left it open, while the machine was slow: sending each event took much more CPU than at
    another time. And trials of which nothing is known because a clock was odd. Such a rate is tried again, but not for
    ever: the machine may be like that now."""
    found: list[Trial] = []
    for trial in trials:
        before = sum(each.rate_per_s == trial.rate_per_s for each in found)
        slow = trial.held in (Held.NO, Held.OPEN) and _was_slow(trial, trials)
        odd = trial.held is Held.LIMITED and bool(trial.clock)
        if before < SPOILED_AT_MOST and (slow or odd):
            found.append(trial)
    return found


def _was_slow(trial: Trial, trials: Sequence[Trial]) -> bool:
    """Beside trials at about the same rate: what each slice costs besides its events is shared by more of them at a
    higher one."""
    own = trial.load_cpu_s_per_million
    if own is None:
        return False
    alike = [each for each in trials if 1 / ABOUT_ALIKE <= each.rate_per_s / trial.rate_per_s <= ABOUT_ALIKE]
    return own > SLOWER * min(each.load_cpu_s_per_million or own for each in alike)


def next_step(trials: Sequence[Trial], settings: Settings) -> Step | None:
    """The next rate to try, or None at the end."""
    if not trials:
        return Step(Stage.RAMP, settings.start_per_s)
    return _after(trials, settings) if len(trials) < settings.most_trials else None


def _after(trials: Sequence[Trial], settings: Settings) -> Step | None:
    found, tried = answer(trials), _tried(trials)
    limit = min((t.rate_per_s for t in tried if t.held is Held.LIMITED), default=math.inf)
    top, rates = min(found.failed_per_s or math.inf, limit), len({trial.rate_per_s for trial in tried})
    if not tried:
        return Step(Stage.BISECT, _round(trials[0].rate_per_s * settings.first_share))
    if open_ := [rate for rate, held in verdicts(trials).items() if held is Held.OPEN and rate < top]:
        return Step(Stage.CONFIRM, open_[-1])
    if found.held_per_s is None:
        # Where something held before, and then failed, the limit is near.
        once = any(trial.held in (Held.YES, Held.OPEN) for trial in tried)
        return _down(top, 1 if once else rates, trials[0].rate_per_s, settings)
    if top > found.held_per_s * (1 + settings.width):
        stride = _stride(rates, settings) if math.isinf(top) else math.sqrt(top / found.held_per_s)
        return Step(Stage.BISECT, _round(found.held_per_s * stride))
    if not any(trial.stage is Stage.CONFIRM for trial in _at(found.held_per_s, tried)):
        return Step(Stage.CONFIRM, found.held_per_s)
    return _rung(trials, settings, found.held_per_s)


def _stride(count: int, settings: Settings) -> float:
    """The estimate is mostly near, so that the first stride is as wide as the interval may be; then they grow.
    A little less than that, because rates are rounded."""
    return float((1 + 0.95 * settings.width) ** (2 ** (count - 1)))


def _down(top: float, count: int, estimate_per_s: float, settings: Settings) -> Step | None:
    """Nothing held yet: lower, but not for ever."""
    rate = _round(top / _stride(count, settings))
    return Step(Stage.BISECT, rate) if rate >= estimate_per_s / 1000 else None


def _rung(trials: Sequence[Trial], settings: Settings, base_per_s: float) -> Step | None:
    """Each rung as often as there are rounds, a whole round before the next, while there is time."""
    spent_s = sum(trial.seconds for trial in trials)
    if settings.most_s is not None and spent_s + settings.trial_s(Stage.LADDER) > settings.most_s:
        return None
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
    each_s = median([t.seconds for t in _tried(trials)] or [settings.trial_s(Stage.BISECT)])
    found, rungs = answer(trials), sum(t.stage is Stage.LADDER for t in trials)
    if rungs or next_step(trials, settings) is None:
        left = 0
    elif found.held_per_s and found.failed_per_s:
        ratio = found.failed_per_s / found.held_per_s
        left = max(0, math.ceil(math.log2(math.log(ratio) / math.log1p(settings.width)))) + 1
    else:
        left = max(0, 2 - len(_tried(trials))) + 1
    left += Held.OPEN in verdicts(trials).values()
    left = min(left, settings.most_trials - len(trials))
    rungs_left = 0 if next_step(trials, settings) is None else len(settings.ladder) * settings.rounds - rungs
    ramp_s = 0.0 if trials else RAMP_S
    rest_s = ramp_s + left * each_s + rungs_left * settings.trial_s(Stage.LADDER)
    spent_s = sum(trial.seconds for trial in trials)
    return rest_s if settings.most_s is None else min(rest_s, max(ramp_s + left * each_s, settings.most_s - spent_s))


def spec_of(base: RunSpec, step: Step, settings: Settings) -> RunSpec:
    """The base run at another rate, with nothing killed: a fault has no sustainable rate. Each warms up by itself."""
    if step.stage is Stage.RAMP:
        rates = [step.rate_per_s * settings.ramp_factor**n for n in range(settings.ramp_steps)]
        steps = [Segment(settings.ramp_step_ms, rate, rate) for rate in rates]
        profile = (Segment(settings.ramp_warm_up_ms, WARM_UP_FROM * rates[0], rates[0]), *steps)
        patience_ms = settings.objective_p99_ms
    else:
        length_ms = settings.rung_ms if step.stage is Stage.LADDER else settings.duration_ms
        rate = step.rate_per_s
        profile = (Segment(settings.warm_up_ms, WARM_UP_FROM * rate, rate), Segment(length_ms, rate, rate))
        patience_ms = settings.patience_ms
    return replace(base, tape=replace(base.tape, profile=profile, warm_up=()), give_up_ms=patience_ms)


def estimate_per_s(processed: Curve | None, given_up_s: float | None, settings: Settings) -> float | None:
    """Of a ramp that was given up: the most that was done in as much time as its oldest event had waited. Of one that
    came to its end: its highest rate. None: the engine reported no progress, or did nothing at all."""
    if given_up_s is None:
        return settings.start_per_s * settings.ramp_factor ** (settings.ramp_steps - 1)
    if processed is None:
        return None
    span_s = settings.objective_p99_ms / 1000
    ends_s = np.arange(given_up_s, 0.0, -1.0)
    done = float((processed.spread(ends_s) - processed.spread(ends_s - span_s)).max())
    return done / span_s if done > 0 else None


def search(
    trials: Sequence[Trial], settings: Settings, run_trial: Callable[[Step], Trial], keep: Callable[[list[Trial]], None]
) -> list[Trial]:
    """Try until nothing is left to try; `keep` saves after each, so that nothing done is done again."""
    done = list(trials)
    while step := next_step(done, settings):
        done.append(run_trial(step))
        keep(done)
    return done
