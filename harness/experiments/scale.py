"""Scale: the rate and the cost of an engine against the number of its cores. Pure.

Each run freezes the engine during the load, thaws it, and measures how fast it then works off its backlog.
The law (`scaling_law.py`) is fitted to three or more numbers of cores. COST (McSherry and others, 2015) is the number
of cores from which the engine is faster than the reference, which is a single process. Every run is judged, and an
engine that counts wrong in one of them has no figures.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from harness.config.scenario_keys import MOST_CORES
from harness.experiments import compare
from harness.experiments.cases import RanCase, pending
from harness.experiments.compare import BUSY_CPU, REFERENCE, Leg, LegRun, Settings
from harness.experiments.scaling_law import FEWEST, WIDEST, Estimate, Law, error_of_a_run, fit, mean_of, ratio_of
from harness.judging.progress_curve import SUSTAINED_S, Curve
from harness.model import Outcome, UsageError
from harness.util.texts import many, three_digits

KIND = "scale"
SCENARIO = compare.SCENARIO
RATE = "rate_per_s"
NEARLY = 0.95  # of the backlog: the last events wait for the last window to close
WHOLE, QUICK = Settings(rounds=3), Settings(rounds=1)
FURTHEST = 2  # times the largest measured number of cores: nothing is predicted beyond
FAR = 4  # times the largest number: the example of what is not known


@dataclass(frozen=True)
class ScaleRequest:
    """The question."""

    engine: str
    cores: tuple[int, ...]
    wanted: tuple[int, ...]  # numbers of cores whose rate is to be predicted
    baseline: bool  # the reference is measured, too
    seed: int
    settings: Settings
    flags: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScaleRun:
    """One run to make."""

    engine: str
    cores: int
    seed: int


@dataclass(frozen=True)
class ScaleRan(RanCase):
    """The result of a run. If figures are withheld they are empty, and the sentence is the reason."""

    case: ScaleRun


# ---------------------------------------------------------------- The question


def refuse_cores(cores: Sequence[int], wanted: Sequence[int], allowed: int) -> None:
    """Refuse numbers of cores that can't give an answer. `allowed` cores may be used here."""
    if len(cores) < 2:
        raise UsageError(
            f"--cores {_listed(cores)} is one number of cores, which shows no scaling. Give two or more, such as 1,2."
        )
    if max(cores) > allowed:
        raise UsageError(
            f"--cores {_listed(cores)} can't be measured: this process may use {cores_in_words(allowed)}. Give numbers "
            f"up to {allowed}, or use a larger machine."
        )
    if wanted and len(cores) < FEWEST:
        raise UsageError(
            f"--for {_listed(wanted)} can't be answered: {_listed(cores)} cores say nothing about other numbers. Give "
            f"{FEWEST} or more numbers to --cores, or leave --for out."
        )
    if wanted and max(wanted) > FURTHEST * max(cores):
        raise UsageError(
            f"--for {max(wanted)} is more than {FURTHEST} times {max(cores)}, the largest number of cores that is "
            f"measured. Ask for at most {FURTHEST * max(cores)}, or measure more cores."
        )


def refuse_idle_cores(cores: Sequence[int], partitions: int) -> None:
    """Refuse more cores than partitions: a core without a partition has nothing to read."""
    if max(cores) > partitions:
        raise UsageError(
            f"--cores {_listed(cores)} needs a topic of {max(cores)} partitions, and this one has {partitions}: an "
            f"engine can't read one partition on two cores. Give --partitions {max(cores)}."
        )


def cores_in_words(cores: int) -> str:
    return many(cores, "core")


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def runs_of(asked: ScaleRequest) -> list[ScaleRun]:
    """Plan the runs. Each round has its own random order: a slow minute then hits no number of cores in every round."""
    dice = random.Random(f"scale {asked.seed}")
    wanted = []
    for number in range(asked.settings.rounds):
        order = [(asked.engine, cores) for cores in asked.cores] + ([(REFERENCE, 1)] if asked.baseline else [])
        dice.shuffle(order)
        wanted += [ScaleRun(engine, cores, asked.seed + number) for engine, cores in order]
    return wanted


def keys_of(case: ScaleRun, settings: Settings, watermark: str = "0") -> dict[str, Any]:
    """Return the keys of a scenario for this run. A requested watermark is never made smaller."""
    own = compare.keys_of(LegRun(case.engine, Leg.CATCH_UP, case.seed), settings, watermark)
    return own | {"cores": case.cores}


# ---------------------------------------------------------------- One run


def backlog_rate(processed: Curve, thawed_s: float) -> float | None:
    """Return the mean rate from the thaw until nearly all of the backlog is done; None if that took no two seconds.

    It begins with the first report after the thaw, whose batch was half done when the engine was frozen, unless that
    batch holds most of the backlog.
    """
    start_s, done = thawed_s, float(processed.known(np.array([thawed_s]))[0])
    end = float(processed.total[-1])
    later = np.flatnonzero(processed.at_s > thawed_s)
    if len(later) and end - processed.total[later[0]] >= (end - done) / 2:
        start_s, done = float(processed.at_s[later[0]]), float(processed.total[later[0]])
    nearly = int(np.argmax(processed.total >= done + NEARLY * (end - done)))
    took_s = float(processed.at_s[nearly]) - start_s
    return (float(processed.total[nearly]) - done) / took_s if took_s >= SUSTAINED_S and end > done else None


# ---------------------------------------------------------------- The answer


@dataclass(frozen=True)
class Point:
    """An engine on a number of cores."""

    cores: int
    rate: Estimate  # events per second
    times: Estimate  # its rate divided by that on the smallest number of cores
    cpu_s_per_million: float | None
    runs: int


@dataclass(frozen=True)
class Cost:
    """The cores from which the engine is faster than the reference."""

    low: int | None  # the smallest number that may be faster; None: none of those that were looked at
    high: int | None  # the smallest number that is faster for sure; None: none of them
    smallest: int  # those that were looked at
    largest: int
    why_not: str = ""

    @property
    def sentence(self) -> str:
        if self.why_not:
            return f"COST is not known: {self.why_not}"
        if self.low is None:
            return f"COST is more than {cores_in_words(self.largest)}: up to there the reference is faster"
        if self.high is None:
            return (
                f"COST is not known: {cores_in_words(self.low)} may be faster than the reference, and "
                f"{self.largest} are not for sure"
            )
        if self.high > WIDEST * self.low:
            return (
                f"COST is not known: it lies between {self.low} and {self.high} cores, more than a factor of "
                f"{WIDEST:g} apart"
            )
        if self.high == self.smallest > 1:
            return f"COST is {self.high} cores or fewer; no smaller number was measured"
        return f"COST is {cores_in_words(self.high) if self.low == self.high else f'{self.low} to {self.high} cores'}"


@dataclass(frozen=True)
class Scaled:
    """The answer, finished or not."""

    asked: ScaleRequest
    done: tuple[ScaleRan, ...]

    @cached_property
    def missing(self) -> tuple[ScaleRun, ...]:
        return tuple(pending(runs_of(self.asked), self.done))

    @cached_property
    def rates(self) -> dict[int, list[float]]:
        """The rates of the engine by number of cores; nothing if it counted wrong in any run."""
        return self._figures(self.asked.engine, self.asked.cores, RATE)

    @cached_property
    def reference_rates(self) -> list[float]:
        return self._figures(REFERENCE, (1,), RATE).get(1, []) if self.asked.baseline else []

    def _figures(self, engine: str, cores: Sequence[int], name: str) -> dict[int, list[float]]:
        own = [each for each in self.done if each.case.engine == engine]
        if any(each.outcome is Outcome.FAIL for each in own):
            return {}
        seen = (
            (n, [each.figures[name] for each in own if each.case.cores == n and name in each.figures]) for n in cores
        )
        return {n: values for n, values in seen if values}

    @cached_property
    def _error(self) -> float | None:
        return error_of_a_run([*self.rates.values(), self.reference_rates])

    @cached_property
    def points(self) -> tuple[Point, ...]:
        costs = self._figures(self.asked.engine, self.asked.cores, BUSY_CPU)
        base = self.rates[min(self.rates)] if self.rates else []
        return tuple(self._point(cores, values, base, costs.get(cores, [])) for cores, values in self.rates.items())

    @cached_property
    def reference(self) -> Point | None:
        """The single process, on one core; None if it was not measured."""
        values, costs = self.reference_rates, self._figures(REFERENCE, (1,), BUSY_CPU)
        return self._point(1, values, values, costs.get(1, [])) if values else None

    def _point(self, cores: int, values: Sequence[float], base: Sequence[float], costs: Sequence[float]) -> Point:
        error = self._error
        times = Estimate(1.0, 1.0, 1.0) if values is base else ratio_of(values, base, error)
        return Point(cores, mean_of(values, error), times, median(costs) if costs else None, len(values))

    @cached_property
    def law(self) -> Law | None:
        return None if self._beyond_perfect else fit(self.rates)

    @cached_property
    def _beyond_perfect(self) -> Point | None:
        """The first number of cores whose rate grew by more than perfect scaling allows."""
        smallest = min(self.rates, default=1)
        return next((each for each in self.points if (each.times.low or 0.0) * smallest > each.cores), None)

    @property
    def why_no_law(self) -> str:
        if each := self._beyond_perfect:
            return (
                f"{cores_in_words(each.cores)} do {_times(each.times)} the rate of {self.points[0].cores}. More than "
                f"perfect scaling is no matter of cores alone: the smaller number is short of something else"
            )
        if len(self.rates) < FEWEST:
            return f"it needs {FEWEST} different numbers of cores"
        return "it needs more runs than it has parameters"

    @property
    def furthest(self) -> int:
        """The largest number of cores that anything is said about."""
        measured = max(self.rates, default=1)
        return FURTHEST * measured if self.law else measured

    @cached_property
    def curve(self) -> dict[int, Estimate]:
        """The rate on each number of cores that something is known of: of the law, or as measured."""
        if law := self.law:
            return {cores: law.at(cores) for cores in range(min(self.rates), self.furthest + 1)}
        return {each.cores: each.rate for each in self.points}

    @cached_property
    def cost(self) -> Cost | None:
        """The COST; None for the reference itself."""
        if self.asked.engine == REFERENCE:
            return None
        looked_at = (min(self.rates, default=0), max(self.curve, default=0))
        if not self.rates:
            return Cost(None, None, *looked_at, why_not=f"there is no rate of {self.asked.engine}")
        if not self.asked.baseline:
            return Cost(None, None, *looked_at, why_not="the reference does not answer this workload")
        if not (reference := self.reference):
            return Cost(None, None, *looked_at, why_not="there is no rate of the reference")
        if reference.rate.low is None:
            return Cost(None, None, *looked_at, why_not="one run of each has no interval; give --repeat 2 or more")
        return cost_of(self.curve, reference.rate)

    @property
    def predicted(self) -> Mapping[int, Estimate]:
        """The wanted predictions that may be given: those within a factor of two."""
        return {cores: self.law.at(cores) for cores in self.asked.wanted if self.law and not self.law.at(cores).is_wide}

    @property
    def outcome(self) -> Outcome:
        """A missing run and a prediction that is refused are UNKNOWN, and so is a run without a rate."""
        known = len(self.rates) == len(self.asked.cores) and len(self.predicted) == len(self.asked.wanted)
        unknown = () if known and not self.missing else (Outcome.UNKNOWN,)
        return Outcome.worst([*(each.outcome for each in self.done), *unknown])

    @property
    def sentence(self) -> str:
        wrong = next((each for each in self.done if each.outcome is Outcome.FAIL), None)
        if wrong and not self.rates:
            case, why = wrong.case, wrong.sentence.rstrip(".")
            return f"no rates: {case.engine} on {cores_in_words(case.cores)}, seed {case.seed}: {why}"
        if len(self.rates) < 2:
            unknown = next((each.sentence for each in self.done if not each.figures), "no run finished")
            return f"no scaling can be shown: {unknown.rstrip('.')}"
        first, last = self.points[0], self.points[-1]
        told = [
            f"{self.asked.engine} on {cores_in_words(last.cores)} does {_times(last.times)} the rate of {first.cores}",
            *([self.cost.sentence] if self.cost else []),
            *([f"{many(len(self.missing), 'run is', 'runs are')} missing"] if self.missing else []),
        ]
        return "; ".join(told)

    def notes(self) -> Iterator[str]:
        """Yield what can and what can't be concluded."""
        if law := self.law:
            yield (
                f"contention {_share(law.contention)}, coherency {_share(law.coherency)}"
                + (f"; by the best fit the rate falls beyond {law.peak:.0f} cores" if law.peak else "")
            )
        elif self.rates:
            yield f"no law is fitted: {self.why_no_law}"
        for cores in self.asked.wanted:
            if law := self.law:
                yield _prediction(cores, law.at(cores))
        if self.rates:
            listed = " and ".join(filter(None, [", ".join(map(str, [*self.rates][:-1])), str(max(self.rates))]))
            far = FAR * max(self.rates)
            beyond = f"; nothing is said beyond {self.furthest}" if self.law else ""
            yield f"{listed} cores say nothing about {far}{beyond}"


def cost_of(curve: Mapping[int, Estimate], reference: Estimate) -> Cost:
    """Find the smallest number of cores that may be faster than the reference, and the smallest that is for sure."""
    low, high = reference.low or reference.value, reference.high or reference.value
    cores = sorted(curve)
    may = next((each for each in cores if (curve[each].high or curve[each].value) > low), None)
    sure = next((each for each in cores if (curve[each].low or 0.0) > high), None)
    return Cost(may, sure, cores[0], cores[-1])


def _prediction(cores: int, rate: Estimate) -> str:
    if rate.is_wide:
        return (
            f"{cores} cores: no rate is given, since its interval ({_rate(rate.low)} to {_rate(rate.high)} events/s) "
            f"spans more than a factor of {WIDEST:g}; measure more cores, or more rounds"
        )
    return f"{cores} cores: {_rate(rate.value)} events/s ({_rate(rate.low)} to {_rate(rate.high)})"


def _rate(per_s: float | None) -> str:
    return "?" if per_s is None else f"{float(f'{per_s:.3g}'):,.0f}"


def _times(times: Estimate) -> str:
    if times.low is None or times.high is None:
        return f"{three_digits(times.value)} times"
    return f"{three_digits(times.value)} ({three_digits(times.low)} to {three_digits(times.high)}) times"


def _share(value: Estimate) -> str:
    low, high = (0.0 if each is None else each for each in (value.low, value.high))
    return f"{value.value:.2%} ({low:.2%} to {high:.2%})"


def read_cores(text: str, flag: str) -> tuple[int, ...]:
    """Parse `1,2,4`: whole numbers above 0, each once, in order."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isascii() and word.isdigit() and 0 < int(word) <= MOST_CORES for word in words):
        raise UsageError(f"{flag} is {text!r}, but whole numbers of cores are expected, such as 1,2,4.")
    return tuple(sorted({int(word) for word in words}))
