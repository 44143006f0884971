"""Scale: the rate and the cost of an engine against the number of its cores, or of its executors. Pure.

Each run freezes the engine during the load, thaws it, and measures how fast it then works off its backlog.
The law (`scaling_law.py`) is fitted to three or more whole numbers of cores: a part of a core is a quota, by which the
same core runs for a part of the time, and says nothing of what more cores do. COST (McSherry and others, 2015) is the
number of cores from which the engine is faster than the reference, which is a single process. Every run is judged, and
an engine that counts wrong in one of them has no figures.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np

from harness.config.scenario_keys import KEYS, LEAST_PART, MOST_CORES
from harness.experiments import compare
from harness.experiments.cases import RanCase, pending
from harness.experiments.compare import BUSY_CPU, REFERENCE, Leg, LegRun, Settings
from harness.experiments.scaling_law import FEWEST, WIDEST, Estimate, Law, error_of_a_run, fit, mean_of, ratio_of
from harness.judging.progress_curve import SUSTAINED_S, Curve
from harness.model import Outcome, UsageError
from harness.util.texts import many, three_digits

Unit = Literal["core", "executor"]
Cores = int | float  # a part of a core is a quota
KIND = "scale"
SCENARIO = compare.SCENARIO
RATE = "rate_per_s"
WHOLE_NUMBER, A_PART = re.compile(r"\d{1,9}", re.ASCII), re.compile(r"\d{1,9}(\.\d{1,2})?", re.ASCII)
NEARLY = 0.95  # of the backlog: the last events wait for the last window to close
WHOLE, QUICK = Settings(rounds=3), Settings(rounds=1)
FURTHEST = 2  # times the largest measured number of cores: nothing is predicted beyond
FAR = 4  # times the largest number: the example of what is not known


class Numbers(NamedTuple):
    """The numbers of a question."""

    cores: tuple[Cores, ...]
    wanted: tuple[int, ...] = ()
    unit: Unit = "core"


@dataclass(frozen=True)
class ScaleRequest:
    """The question."""

    engine: str
    cores: tuple[Cores, ...]  # or executors of a cluster of the run, with a core each
    wanted: tuple[int, ...]  # numbers of cores whose rate is to be predicted
    baseline: bool  # the reference is measured, too
    seed: int
    settings: Settings
    flags: Mapping[str, Any] = field(default_factory=dict)
    unit: Unit = "core"

    @property
    def has_quota(self) -> bool:
        """Return whether a part of a core is measured."""
        return len(whole(self.cores)) < len(self.cores)


@dataclass(frozen=True)
class ScaleRun:
    """One run to make."""

    engine: str
    cores: Cores
    seed: int


@dataclass(frozen=True)
class ScaleRan(RanCase):
    """The result of a run. If figures are withheld they are empty, and the sentence is the reason."""

    case: ScaleRun


# ---------------------------------------------------------------- The question


def refuse_cores(asked: Numbers, allowed: int) -> None:
    """Refuse numbers of cores that can't give an answer. `allowed` cores may be used here."""
    cores, wanted, unit = asked
    flag = f"--{unit}s"
    if len(cores) < 2:
        raise UsageError(
            f"{flag} {listed(cores)} is one number of {unit}s, which shows no scaling. Give two or more, such as 1,2."
        )
    if max(cores) > allowed:
        each = ", and each takes one" if unit == "executor" else ""
        raise UsageError(
            f"{flag} {listed(cores)} can't be measured: this process may use {in_words(allowed)}{each}. Give numbers "
            f"up to {allowed}, or use a larger machine."
        )
    fitted = whole(cores)
    if wanted and len(fitted) < FEWEST:
        raise UsageError(
            f"--for {listed(wanted)} can't be answered: {listed(cores)} {unit}s say nothing about other numbers. Give "
            f"{FEWEST} or more whole numbers to {flag}, or leave --for out."
        )
    if wanted and max(wanted) > FURTHEST * max(fitted):
        raise UsageError(
            f"--for {max(wanted)} is more than {FURTHEST} times {max(fitted)}, the largest number of {unit}s that is "
            f"measured. Ask for at most {FURTHEST * max(fitted)}, or measure more {unit}s."
        )


def refuse_idle_cores(asked: Numbers, partitions: int) -> None:
    """Refuse more cores than partitions: a core without a partition has nothing to read."""
    most = ceil(max(asked.cores))
    if most > partitions:
        raise UsageError(
            f"--{asked.unit}s {listed(asked.cores)} needs a topic of {most} partitions, and this one has {partitions}: "
            f"an engine can't read one partition on two {asked.unit}s. Give --partitions {most}."
        )


def refuse_clusterless(engine: str, *, has_cluster: bool, flags: Collection[str]) -> None:
    """Refuse executors of an engine that has none of its own in a run, or a cluster of another size."""
    if not has_cluster:
        raise UsageError(
            f"--executors needs an engine on a cluster that a run starts (Spark, or flink-standalone), and {engine} "
            f"has none. Give --cores instead."
        )
    if others := [f"--{name}" for name in ("cluster", "master") if name in flags]:
        raise UsageError(
            f"--executors starts a cluster of its own for each number, and {' and '.join(others)} names another one. "
            f"Leave one of them out."
        )


def in_words(cores: Cores, unit: Unit = "core") -> str:
    return f"{cores:g} {unit if cores == 1 else f'{unit}s'}"


def listed(numbers: Sequence[Cores]) -> str:
    return ",".join(f"{each:g}" for each in numbers)


def whole(cores: Iterable[Cores]) -> list[int]:
    return [int(each) for each in cores if each == int(each)]


def runs_of(asked: ScaleRequest) -> list[ScaleRun]:
    """Plan the runs. Each round has its own random order: a slow minute then hits no number of cores in every round."""
    dice = random.Random(f"scale {asked.seed}")
    wanted = []
    for number in range(asked.settings.rounds):
        order: list[tuple[str, Cores]] = [(asked.engine, cores) for cores in asked.cores]
        order += [(REFERENCE, 1)] if asked.baseline else []
        dice.shuffle(order)
        wanted += [ScaleRun(engine, cores, asked.seed + number) for engine, cores in order]
    return wanted


def keys_of(case: ScaleRun, settings: Settings, watermark: str = "0", unit: Unit = "core") -> dict[str, Any]:
    """Return the keys of a scenario for this run. A requested watermark is never made smaller."""
    own = compare.keys_of(LegRun(case.engine, Leg.CATCH_UP, case.seed), settings, watermark)
    is_cluster = unit == "executor" and case.engine != REFERENCE
    return own | {"cluster" if is_cluster else "cores": case.cores}


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

    cores: Cores
    rate: Estimate  # events per second
    times: Estimate  # its rate divided by that on the smallest number of cores
    cpu_s_per_million: float | None
    runs: int


@dataclass(frozen=True)
class Cost:
    """The cores from which the engine is faster than the reference."""

    low: Cores | None  # the smallest number that may be faster; None: none of those that were looked at
    high: Cores | None  # the smallest number that is faster for sure; None: none of them
    smallest: Cores  # those that were looked at
    largest: Cores
    why_not: str = ""
    unit: Unit = "core"

    @property
    def sentence(self) -> str:
        if self.why_not:
            return f"COST is not known: {self.why_not}"
        if self.low is None:
            return f"COST is more than {in_words(self.largest, self.unit)}: up to there the reference is faster"
        if self.high is None:
            return (
                f"COST is not known: {in_words(self.low, self.unit)} may be faster than the reference, and "
                f"{self.largest:g} are not for sure"
            )
        if self.high > WIDEST * self.low:
            return (
                f"COST is not known: it lies between {self.low:g} and {in_words(self.high, self.unit)}, more than a "
                f"factor of {WIDEST:g} apart"
            )
        if self.high == self.smallest != 1:
            return f"COST is {in_words(self.high, self.unit)} or fewer; no smaller number was measured"
        low = f"{self.low:g} to " if self.low != self.high else ""
        return f"COST is {low}{in_words(self.high, self.unit)}"


@dataclass(frozen=True)
class Scaled:
    """The answer, finished or not."""

    asked: ScaleRequest
    done: tuple[ScaleRan, ...]

    @cached_property
    def missing(self) -> tuple[ScaleRun, ...]:
        return tuple(pending(runs_of(self.asked), self.done))

    @cached_property
    def rates(self) -> dict[Cores, list[float]]:
        """The rates of the engine by number of cores; nothing if it counted wrong in any run."""
        return self._figures(self.asked.engine, self.asked.cores, RATE)

    @cached_property
    def reference_rates(self) -> list[float]:
        return self._figures(REFERENCE, (1,), RATE).get(1, []) if self.asked.baseline else []

    def _figures(self, engine: str, cores: Sequence[Cores], name: str) -> dict[Cores, list[float]]:
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

    def _point(self, cores: Cores, values: Sequence[float], base: Sequence[float], costs: Sequence[float]) -> Point:
        error = self._error
        times = Estimate(1.0, 1.0, 1.0) if values is base else ratio_of(values, base, error)
        return Point(cores, mean_of(values, error), times, median(costs) if costs else None, len(values))

    @cached_property
    def _fitted(self) -> dict[int, list[float]]:
        """The rates to which the law is fitted: those on whole cores."""
        return {cores: self.rates[cores] for cores in whole(self.rates)}

    @cached_property
    def law(self) -> Law | None:
        return None if self._beyond_perfect else fit(self._fitted)

    @cached_property
    def _beyond_perfect(self) -> tuple[int, Estimate] | None:
        """The first number of cores whose rate grew by more than perfect scaling allows, and how many times."""
        smallest = min(self._fitted, default=1)
        times = (
            (cores, ratio_of(values, self._fitted[smallest], self._error))
            for cores, values in self._fitted.items()
            if cores != smallest
        )
        return next(((cores, each) for cores, each in times if (each.low or 0.0) * smallest > cores), None)

    @property
    def why_no_law(self) -> str:
        if found := self._beyond_perfect:
            cores, times = found
            return (
                f"{self._in_words(cores)} do {_times(times)} the rate of {min(self._fitted)}. More than perfect "
                f"scaling is no matter of {self.asked.unit}s alone: the smaller number is short of something else"
            )
        if len(self._fitted) < FEWEST:
            numbers = "different whole numbers" if self.asked.has_quota else "different numbers"
            return f"it needs {FEWEST} {numbers} of {self.asked.unit}s"
        return "it needs more runs than it has parameters"

    @property
    def furthest(self) -> int:
        """The largest number of cores that anything is said about."""
        return FURTHEST * max(self._fitted) if self.law else ceil(max(self.rates, default=1))

    @cached_property
    def curve(self) -> dict[Cores, Estimate]:
        """The rate on each number of cores that something is known of: of the law, or as measured."""
        found = {each.cores: each.rate for each in self.points}
        if law := self.law:
            found |= {cores: law.at(cores) for cores in range(min(self._fitted), self.furthest + 1)}
        return dict(sorted(found.items()))

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
        return replace(cost_of(self.curve, reference.rate), unit=self.asked.unit)

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
            return f"no rates: {self.case_in_words(case)}, seed {case.seed}: {why}"
        if len(self.rates) < 2:
            unknown = next((each.sentence for each in self.done if not each.figures), "no run finished")
            return f"no scaling can be shown: {unknown.rstrip('.')}"
        first, last = self.points[0], self.points[-1]
        told = [
            f"{self.asked.engine} on {self._in_words(last.cores)} does {_times(last.times)} the rate of "
            f"{first.cores:g}",
            *([self.cost.sentence] if self.cost else []),
            *([f"{many(len(self.missing), 'run is', 'runs are')} missing"] if self.missing else []),
        ]
        return "; ".join(told)

    def _in_words(self, cores: Cores) -> str:
        return in_words(cores, self.asked.unit)

    def case_in_words(self, case: ScaleRun) -> str:
        return f"{case.engine} on {in_words(case.cores, unit_of(case, self.asked))}"

    def notes(self) -> Iterator[str]:
        """Yield what can and what can't be concluded."""
        if law := self.law:
            yield (
                f"contention {_share(law.contention)}, coherency {_share(law.coherency)}"
                + (f"; by the best fit the rate falls beyond {law.peak:.0f} {self.asked.unit}s" if law.peak else "")
            )
        elif self.rates:
            yield f"no law is fitted: {self.why_no_law}"
        for cores in self.asked.wanted:
            if law := self.law:
                yield _prediction(self._in_words(cores), law.at(cores), self.asked.unit)
        if self.rates:
            *others, last = (f"{each:g}" for each in self.rates)
            known = " and ".join(filter(None, [", ".join(others), last]))
            beyond = f"; nothing is said beyond {self.furthest}" if self.law else ""
            yield f"{known} {self.asked.unit}s say nothing about {FAR * ceil(max(self.rates))}{beyond}"


def unit_of(case: ScaleRun, asked: ScaleRequest) -> Unit:
    """Return what the run has so many of: the reference always has a core."""
    return "core" if case.engine == REFERENCE else asked.unit


def cost_of(curve: Mapping[Cores, Estimate], reference: Estimate) -> Cost:
    """Find the smallest number of cores that may be faster than the reference, and the smallest that is for sure."""
    low, high = reference.low or reference.value, reference.high or reference.value
    cores = sorted(curve)
    may = next((each for each in cores if (curve[each].high or curve[each].value) > low), None)
    sure = next((each for each in cores if (curve[each].low or 0.0) > high), None)
    return Cost(may, sure, cores[0], cores[-1])


def _prediction(cores: str, rate: Estimate, unit: Unit) -> str:
    if rate.is_wide:
        return (
            f"{cores}: no rate is given, since its interval ({_rate(rate.low)} to {_rate(rate.high)} events/s) "
            f"spans more than a factor of {WIDEST:g}; measure more {unit}s, or more rounds"
        )
    return f"{cores}: {_rate(rate.value)} events/s ({_rate(rate.low)} to {_rate(rate.high)})"


def _rate(per_s: float | None) -> str:
    return "?" if per_s is None else f"{float(f'{per_s:.3g}'):,.0f}"


def _times(times: Estimate) -> str:
    if times.low is None or times.high is None:
        return f"{three_digits(times.value)} times"
    return f"{three_digits(times.value)} ({three_digits(times.low)} to {three_digits(times.high)}) times"


def _share(value: Estimate) -> str:
    low, high = (0.0 if each is None else each for each in (value.low, value.high))
    return f"{value.value:.2%} ({low:.2%} to {high:.2%})"


def read_whole(text: str, flag: str, unit: Unit = "core") -> tuple[int, ...]:
    """Parse `1,2,4`: whole numbers above 0, each once, in order."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(WHOLE_NUMBER.fullmatch(word) and 0 < int(word) <= MOST_CORES for word in words):
        raise UsageError(f"{flag} is {text!r}, but whole numbers of {unit}s are expected, such as 1,2,4.")
    return tuple(sorted({int(word) for word in words}))


def read_cores(text: str, flag: str) -> tuple[Cores, ...]:
    """Parse `0.5,1,2`: a part of a core is a quota."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(A_PART.fullmatch(word) and LEAST_PART <= float(word) <= MOST_CORES for word in words):
        raise UsageError(
            f"{flag} is {text!r}, but numbers of cores are expected, such as 1,2,4 or 0.5,1,2, and each at least "
            f"{LEAST_PART:g}, with at most two decimals."
        )
    return tuple(sorted({KEYS["cores"].read(word) for word in words}))
