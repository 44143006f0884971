"""The same run a few times, each fresh and with the next seed, to measure the variation between rounds.

A figure of the experiment is the median over its rounds with a bootstrap interval. Samples within a round are
correlated, thus they are no independent evidence; the percentiles of all samples together have no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.measuring.cost import engine_s_per_million
from harness.measuring.measurement import Measurement, Quantiles
from harness.measuring.stats import Interval, median_intervals, merged
from harness.model import Outcome, RunSpec


@dataclass(frozen=True)
class Round:
    """One run of the experiment."""

    seed: int
    run: str  # directory
    outcome: Outcome
    sentence: str
    figures: Mapping[str, float]  # empty if withheld
    withheld: str


@dataclass(frozen=True)
class Repeated:
    """The result of the experiment."""

    outcome: Outcome
    sentence: str
    rounds: tuple[Round, ...]
    intervals: Mapping[str, Interval]
    percentiles: Mapping[str, Quantiles]  # way -> percentiles of the raw samples of all measured rounds


def specs(spec: RunSpec, rounds: int) -> list[RunSpec]:
    return [replace(spec, tape=replace(spec.tape, seed=spec.tape.seed + i)) for i in range(rounds)]


def repeat(
    spec: RunSpec, rounds: int, run_round: Callable[[RunSpec], Round], keep: Callable[[Sequence[Round]], None]
) -> list[Round]:
    """Make the rounds one after the other, and store each when it is done."""
    done: list[Round] = []
    for each in specs(spec, rounds):
        done.append(run_round(each))
        keep(done)
    return done


def figures(measurement: Measurement | None) -> dict[str, float]:
    """Return the figures of one run that can be compared between rounds, by name with unit."""
    if measurement is None:
        return {}
    return {name: value for name, value in _figures(measurement) if value is not None}


def _figures(m: Measurement) -> Iterator[tuple[str, float | None]]:
    yield "offered_per_s", m.offered_per_s
    yield "processed_per_s", m.processed_per_s
    yield "catch_up_per_s", m.catch_up_per_s
    for each in m.latency:
        way = each.way.replace(" ", "_").replace("-", "_")
        yield f"{way}_p50_ms", each.corrected.p50
        yield f"{way}_p99_ms", each.corrected.p99
    yield "engine_cpu_s_per_million", engine_s_per_million(m.cost)
    yield "engine_peak_rss_mib", next((each.peak_rss_mib for each in m.cost if each.part == "engine"), None)
    yield "ready_s", m.ready_s
    yield "drain_s", m.drain_s


def answer(rounds: Sequence[Round], samples: Sequence[pa.Table], seed: int) -> Repeated:
    """Return the worst verdict of all. `samples` are the raw latencies of the measured rounds (latency.parquet)."""
    outcome = Outcome.worst([each.outcome for each in rounds])
    if outcome is not Outcome.PASS:
        first = next(each for each in rounds if each.outcome is outcome)
        sentence = f"seed {first.seed} is {outcome.value}: {first.sentence}"
        return Repeated(outcome, sentence, tuple(rounds), {}, {})
    intervals = median_intervals([each.figures for each in rounds], seed)
    return Repeated(outcome, _sentence(rounds), tuple(rounds), intervals, _percentiles(samples))


def _sentence(rounds: Sequence[Round]) -> str:
    said = f"right in all {len(rounds)} rounds"
    left_out = [f"seed {each.seed} ({each.withheld})" for each in rounds if not each.figures]
    return f"{said}; without figures: {', '.join(left_out)}" if left_out else said


def _percentiles(samples: Sequence[pa.Table]) -> dict[str, Quantiles]:
    """A null is an event that was never seen."""
    ways = dict.fromkeys(way for table in samples for way in table.column("way").unique().to_pylist())
    return {way: _heap([table.filter(pc.equal(table.column("way"), way)) for table in samples]) for way in ways}


def _heap(rounds: Sequence[pa.Table]) -> Quantiles:
    columns = [table.column("corrected_ms") for table in rounds]
    seen = [np.asarray(column.drop_null().to_numpy(), dtype=np.float64) for column in columns]
    return merged(seen, censored=sum(column.null_count for column in columns))
