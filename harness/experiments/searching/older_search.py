"""A search as it was made before: a fresh run a trial. None is made any more; the pages of those that were still are.

The answer is the highest rate that held and the lowest one that failed.

One run with a geometrically rising rate said where about the engine fell behind. From there the rate went up while it
held, or down while it failed, and was bisected until the interval was narrow; a fresh run confirmed the highest rate
that held; then a ladder from 10 to 110 % of it gave the curve of latency against throughput.

A few minutes often show no growth and can't exclude it either. That says nothing against a rate: it is tried again, and
what its runs say of growth is taken together, as of any rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from harness.measuring.steady import LIMIT
from harness.model import Outcome

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
