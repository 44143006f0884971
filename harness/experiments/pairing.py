"""Compare engines two at a time: which one costs less CPU? Pure.

Both engines of a pair run at the same moment on the same cores and get the same bursts, so that whatever slows the
machine slows both. Each start of a pair gives one ratio; the interval is as wide as starts differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from math import hypot
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from harness.engines import shipped
from harness.experiments.gating.gate import Judged
from harness.experiments.gating.rounds import COST, Round, Settings, by_side, by_start, idle_cores, idle_of
from harness.measuring.ratio_by_start import FEWEST, ByStart, ratio, within
from harness.measuring.stats import Ratio
from harness.model import Outcome, UsageError
from harness.util.texts import many, three_digits

LEVEL = 0.95
FEWEST_ENGINES, MOST_ENGINES = 2, 4
SAME_WITHIN = 1.1  # an interval that holds 1 and is wider than this up or down does not show that costs are equal
BUSY_IDLE_CORES = 0.3  # an engine that uses more with nothing to do takes the core from the other one


KIND = "pairs"


class Which(StrEnum):
    """The pairs to measure."""

    ALL = "all"
    FIRST = "first"  # each engine against the first one


@dataclass(frozen=True)
class PairsRequest:
    """The engines, the pairs of them, and the time for each pair."""

    engines: tuple[str, ...]
    which: Which
    budget_s: float
    flags: Mapping[str, Any]
    settings: Settings

    @property
    def labels(self) -> tuple[str, ...]:
        return labels_of(self.engines)


@dataclass(frozen=True)
class Pair:
    """Two engines, by their labels."""

    first: str
    second: str

    @property
    def sides(self) -> tuple[str, str]:
        return self.first, self.second


@dataclass(frozen=True)
class Progress:
    """The starts of one pair so far."""

    pair: Pair
    planned: int = 0  # starts; 0: the first one has not shown how long a start takes
    took_s: tuple[float, ...] = ()
    judged: Mapping[str, Judged] = field(default_factory=dict)  # by side
    oddities: tuple[str, ...] = ()
    broken: str = ""  # why it ended early

    @property
    def starts(self) -> int:
        return len(self.took_s)

    @property
    def is_right(self) -> bool:
        return bool(self.judged) and all(each.outcome is Outcome.PASS for each in self.judged.values())

    def is_over(self, budget_s: float) -> bool:
        if self.broken or (self.judged and not self.is_right):
            return True
        no_time_left = bool(self.took_s) and sum(self.took_s) + max(self.took_s) > budget_s
        return bool(self.planned) and (self.starts >= self.planned or no_time_left)


@dataclass(frozen=True)
class Measured:
    """The CPU seconds per million events of one engine divided by those of another one."""

    pair: Pair
    outcome: Outcome
    sentence: str
    ratio: Ratio | None = None  # None: the sentence says why
    starts: tuple[float, ...] = ()  # the ratio of each start
    aside: int | None = None  # the one start that has no say
    starts_differ: float = 0.0
    rounds_differ: float = 0.0
    costs: tuple[float, ...] = ()  # CPU seconds per million events: of the first, of the second
    notes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()  # one of each side

    @property
    def counted(self) -> int:
        return len(self.starts) - (self.aside is not None)


@dataclass(frozen=True)
class Triangle:
    """Three ratios that have to agree: a by b times b by c is a by c."""

    engines: tuple[str, str, str]
    closure: Ratio  # of the product by the third one

    @property
    def agrees(self) -> bool:
        return self.closure.low <= 1 <= self.closure.high

    @property
    def sentence(self) -> str:
        a, b, c = self.engines
        held = "agree" if self.agrees else "DISAGREE: do not trust these three"
        span = f"[{self.closure.low:.3f}, {self.closure.high:.3f}]"
        return f"{a}/{b} x {b}/{c} by {a}/{c} is {self.closure.estimate:.3f} {span}: they {held}"


@dataclass(frozen=True)
class Paired:
    """The answer."""

    engines: tuple[str, ...]
    pairs: tuple[Measured, ...]
    missing: tuple[Pair, ...] = ()

    @property
    def outcome(self) -> Outcome:
        return Outcome.worst([*(each.outcome for each in self.pairs), *(Outcome.UNKNOWN for _ in self.missing)])

    @property
    def sentence(self) -> str:
        missing = [f"{many(len(self.missing), 'pair is', 'pairs are')} missing"] if self.missing else []
        return "; ".join([*(each.sentence for each in self.pairs), *missing])

    @property
    def triangles(self) -> Iterator[Triangle]:
        for engines in combinations(self.engines, 3):
            a, b, c = engines
            sides = [self.between(a, b), self.between(b, c), self.between(a, c)]
            known = [each for each in sides if each and each.ratio]
            if len(known) == len(sides):
                yield triangle(engines, known)

    def between(self, first: str, second: str) -> Measured | None:
        return next((each for each in self.pairs if each.pair == Pair(first, second)), None)


def triangle(engines: tuple[str, str, str], sides: Sequence[Measured]) -> Triangle:
    """Compare a/b times b/c with a/c. Errors of the three add up, with the fewest starts' certainty."""
    ab, bc, ac = (each.ratio for each in sides if each.ratio)
    error = hypot(ab.error, bc.error, ac.error)
    fewest = min(each.counted for each in sides) - 1
    return Triangle(engines, within(ab.estimate * bc.estimate / ac.estimate, error, fewest, LEVEL))


def labels_of(engines: Sequence[str]) -> tuple[str, ...]:
    """Name each engine shortly and differently: by its id, or by the last part of its path."""
    seen: Counter[str] = Counter()
    labels = []
    for text in engines:
        path = Path(text)
        short = path.parent.name if path.name == shipped.FILE else path.stem if path.is_file() else path.name
        seen[short] += 1
        labels.append(short if seen[short] == 1 else f"{short} ({seen[short]})")
    return tuple(labels)


def pairs_of(labels: Sequence[str], which: Which) -> tuple[Pair, ...]:
    every = (Pair(*two) for two in combinations(labels, 2))
    return tuple(pair for pair in every if which is Which.ALL or pair.first == labels[0])


def all_of(asked: PairsRequest, done: Sequence[Progress]) -> list[Progress]:
    """Return every pair in its order, with what has been done of it."""
    begun = {each.pair: each for each in done}
    return [begun.get(pair, Progress(pair)) for pair in pairs_of(asked.labels, asked.which)]


def rounds_file(number: int, start: int) -> str:
    """Name the file of one start of a pair: a start that was interrupted is not mixed with the next one."""
    return f"rounds-{number}-{start}.jsonl"


def refuse_count(engines: Sequence[str]) -> None:
    if not FEWEST_ENGINES <= len(engines) <= MOST_ENGINES:
        raise UsageError(
            f"--pairs compares {FEWEST_ENGINES} to {MOST_ENGINES} engines, and {many(len(engines), 'engine')} "
            "were given. Each pair needs a budget of its own. Name an engine twice to see how far it differs from "
            "itself."
        )


def measured(progress: Progress, rounds: Sequence[Round]) -> Measured:
    """Compare the two sides of a pair over its starts. A wrong count has no cost."""
    pair, judged = progress.pair, progress.judged
    runs = tuple(each.run for each in judged.values())
    wrong = [(name, each) for name, each in judged.items() if each.outcome is not Outcome.PASS]
    if wrong:
        name, worst = next(((n, each) for n, each in wrong if each.outcome is Outcome.FAIL), wrong[0])
        sentence = f"{name} is {worst.outcome.value} beside {_other(pair, name)}: {worst.sentence}"
        return Measured(pair, worst.outcome, sentence, runs=runs)
    if progress.broken:
        sentence = f"{pair.first} and {pair.second} ended early: {progress.broken}"
        return Measured(pair, Outcome.UNKNOWN, sentence, runs=runs)
    idle = idle_of(rounds, pair.sides)
    starts = [own for each in by_start(rounds) if (own := by_side(each, pair.sides, COST, idle))[pair.first]]
    logs = [list(np.log(each[pair.first]) - np.log(each[pair.second])) for each in starts]
    if len(logs) < FEWEST:
        return Measured(pair, Outcome.UNKNOWN, _too_few(progress, len(logs)), runs=runs)
    seen = ratio(logs)
    costs = tuple(median(value for each in starts for value in each[side]) for side in pair.sides)
    found = seen.within(LEVEL)
    notes = (*progress.oddities, *_notes(pair, rounds, seen))
    sentence = in_words(pair, found)
    differ = seen.starts_differ, seen.rounds_differ
    return Measured(pair, Outcome.PASS, sentence, found, seen.starts, seen.aside, *differ, costs, notes, runs)


def _too_few(progress: Progress, usable: int) -> str:
    first, second = progress.pair.sides
    if progress.starts >= FEWEST:
        return (
            f"the cost of {first} and {second} is known in {usable} of {many(progress.starts, 'start')}: in the others "
            "one of them took as much CPU with nothing to do as with a burst"
        )
    return f"{many(usable, 'start')} of {first} and {second} can't show how much starts differ: raise --budget"


def _other(pair: Pair, name: str) -> str:
    return pair.second if name == pair.first else pair.first


def in_words(pair: Pair, found: Ratio) -> str:
    span = f"[{three_digits(found.low)}, {three_digits(found.high)}]"
    if found.low <= 1 <= found.high:
        alike = max(found.high, 1 / found.low) <= SAME_WITHIN
        ending = ": raise --budget" if not alike else ""
        verb = "cost the same" if alike else "can't be distinguished by cost"
        return f"{pair.first} and {pair.second} {verb}: {three_digits(found.estimate)} times {span}{ending}"
    return f"{pair.first} costs {three_digits(found.estimate)} times {span} what {pair.second} does"


def _notes(pair: Pair, rounds: Sequence[Round], seen: ByStart) -> Iterator[str]:
    if seen.aside is not None:
        own = three_digits(seen.starts[seen.aside])
        yield f"start {seen.aside + 1} is {own} times, far from the others, and is left out"
    for side in pair.sides:
        cores = idle_cores([each for each in rounds if each.side == side])
        if cores >= BUSY_IDLE_CORES:
            yield (
                f"{side} uses {cores:.1f} cores with nothing to do, which is subtracted; it still takes turns of the "
                f"core from {_other(pair, side)}, so that they do not share it fairly"
            )
