"""Latency as a reader of the results sees it, from the files of a run: five ways, each with its exactness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.grouping import grouped, rows_of_groups, sizes, spans
from harness.evidence.observed import picked
from harness.judging.stored_run import StoredRun
from harness.measuring import stats
from harness.measuring.latency.ends import MOST_LEFT_OUT, TOO_MANY, Ends
from harness.measuring.latency.evidence import Evidence, Looked, collect
from harness.measuring.latency.visibility import Floats, Ints, Visibility
from harness.measuring.latency.ways import FINAL, FIRST, PROBES, RANK_MATCHED, YAHOO, Raw, Ways
from harness.measuring.measurement import Latency, OutsideEnds, Quantiles
from harness.util.texts import many

MADE = "latency"  # key of the derived value in a stored run


@dataclass(frozen=True)
class LatencyResult:
    """The latency of a run."""

    latency: tuple[Latency, ...]
    never_final_share: float | None  # of cells
    dipped_share: float | None  # of cells
    by_second: pa.Table  # columns: second since the load start in which events were due, events, p50_ms, p99_ms, max_ms
    raw: pa.Table  # columns: way, corrected_ms, uncorrected_ms; null: never seen
    outside_ends: OutsideEnds | None = None  # None: the engine reports no ends of batches


def latencies(run: StoredRun) -> LatencyResult:
    """Measure the latency of a run. Raise MissingEvidence if a file is missing."""
    return _measured(collect(run), ways_of(run))


def by_rank(run: StoredRun) -> Raw:
    """Return for each event that counts when it was due and its latency."""
    return ways_of(run).rank_matched


def ways_of(run: StoredRun) -> Ways:
    """Return the ways of a run. They take a while to compute, and are kept."""
    if MADE not in run.made:
        run.made[MADE] = _ways(collect(run))
    ways: Ways = run.made[MADE]
    return ways


def _ways(evidence: Evidence) -> Ways:
    seen = Visibility(evidence.samples, len(evidence.cells.events))
    epoch_us = evidence.epoch_ms * 1000
    return Ways(evidence.events, evidence.cells, seen, probes_from=evidence.probes_from, epoch_us=epoch_us)


def measured(evidence: Evidence) -> LatencyResult:
    """Measure the latency from values."""
    return _measured(evidence, _ways(evidence))


def _measured(evidence: Evidence, ways: Ways) -> LatencyResult:
    with ThreadPoolExecutor(1) as beside:  # numpy sorts without Python's lock, and each sort takes seconds
        overtaken = beside.submit(ways.overtaken_ms)
        raws = {PROBES: ways.probes, RANK_MATCHED: ways.rank_matched}
        overtaken_ms = overtaken.result()
    raws |= {FINAL: ways.final_value(), FIRST: ways.first_seen()}
    raws |= {YAHOO: Raw(evidence.yahoo_ms, evidence.yahoo_ms.astype(np.float64), None)}
    raws = {way: raw for way, raw in raws.items() if len(raw.corrected_ms)}
    return LatencyResult(
        latency=tuple(_latency(way, raw, evidence.looked, overtaken_ms) for way, raw in raws.items()),
        never_final_share=_share(ways.never_final()),
        dipped_share=_share(ways.dipped()),
        by_second=_by_second(_headline(raws, overtaken_ms, evidence.looked), evidence.epoch_ms),
        raw=_raw_table(raws),
        outside_ends=_outside(evidence.ends, raws, evidence.looked, overtaken_ms),
    )


def _outside(
    ends: Ends | None, raws: Mapping[str, Raw], looked: Looked, overtaken_ms: float | None
) -> OutsideEnds | None:
    """Report the largest share left out of any way: leaving out only the probes would hide much."""
    events = {way: raws[way] for way in (PROBES, RANK_MATCHED) if way in raws}
    if ends is None or not events:
        return None
    inside = {way: ends.hold(raw.due_us) for way, raw in events.items()}
    share = max(float(each.mean()) for each in inside.values())
    near = ends.among(np.concatenate([raw.due_us for raw in events.values()]))
    kept = {way: raw.only(~inside[way]) for way, raw in events.items()} if share <= MOST_LEFT_OUT else {}
    return OutsideEnds(
        ends=len(near.begin_us),
        longest_ms=near.longest_ms,
        left_out_share=share,
        latency=tuple(_latency(way, raw, looked, overtaken_ms) for way, raw in kept.items()),
        withheld="" if kept else TOO_MANY,
    )


def quantiles(values_ms: Floats) -> Quantiles:
    """Compute quantiles by nearest rank, including events that were never seen.

    A quantile among these, and the mean if there are any, is None.
    """
    seen = np.isfinite(values_ms)
    return stats.quantiles(picked(values_ms, seen), censored=int((~seen).sum()))


def _latency(way: str, raw: Raw, looked: Looked, overtaken_ms: float | None) -> Latency:
    return Latency(
        way=way,
        corrected=quantiles(raw.corrected_ms),
        uncorrected=None if raw.uncorrected_ms is None else quantiles(raw.uncorrected_ms),
        exactness=" ".join(_exactness(way, raw, looked, overtaken_ms)),
        tail_is_lower_bound=way == RANK_MATCHED and not _ranks_are_exact(looked, overtaken_ms),
    )


def _ranks_are_exact(looked: Looked, overtaken_ms: float | None) -> bool:
    """Overtaking by up to x changes no figure by more than x, and less than one poll period can't be measured."""
    return overtaken_ms is not None and overtaken_ms <= looked.period_ms


def _exactness(way: str, raw: Raw, looked: Looked, overtaken_ms: float | None) -> Iterator[str]:
    count = len(raw.corrected_ms)
    if way == YAHOO:
        negative = int((raw.corrected_ms < 0).sum())
        yield (
            f"time_updated less the window's end in {many(count, 'cell')}, as the engine writes it, to its millisecond;"
        )
        yield f"{negative:,} of them are negative and count as they are."
        return
    if way == PROBES:
        yield f"{many(count, 'cell')} of one event each, whatever the disorder."
    if way == RANK_MATCHED:
        yield f"{many(count, 'event')} of cells with right counts, the k-th visible against the k-th due."
        yield _on_ranks(looked, overtaken_ms)
    if way in (FINAL, FIRST):
        begin, end = ("last", "its right final count") if way == FINAL else ("first", "anything of it")
        yield f"{many(count, 'cell')}, from the {begin} event of each to the look that showed {end}."
    yield (
        f"Each figure is late by at most the time since the look before: {looked.period_ms:.0f} ms, "
        f"{looked.period_p99_ms:.0f} ms at p99, {looked.period_max_ms:.0f} ms at most."
    )
    if looked.seen_late:
        yield (
            f"{many(looked.seen_late, 'change')} of settled windows are late by up to "
            f"{looked.whole_period_max_ms:,.0f} ms."
        )


def _on_ranks(looked: Looked, overtaken_ms: float | None) -> str:
    if _ranks_are_exact(looked, overtaken_ms):
        return f"None overtook another of its cell by more than {overtaken_ms:.0f} ms, so every percentile is exact."
    bounds = "so the mean is exact, and the tail's means are lower bounds"
    if overtaken_ms is None:
        return f"Events of a cell may overtake each other on their way, {bounds}."
    by = f"by up to {overtaken_ms:,.0f} ms"
    return f"Events of a cell overtook each other {by} on their way, {bounds}; no percentile is off by more than that."


def _headline(raws: Mapping[str, Raw], overtaken_ms: float | None, looked: Looked) -> Raw:
    """Prefer probes if events may overtake each other; else all events, because they are more."""
    order = (RANK_MATCHED, PROBES) if _ranks_are_exact(looked, overtaken_ms) else (PROBES, RANK_MATCHED)
    nothing = Raw(np.zeros(0, dtype=np.int64), np.zeros(0), None)
    return next((raws[way] for way in order if way in raws), nothing)


def _by_second(raw: Raw, epoch_ms: int) -> pa.Table:
    second = _seconds(raw.due_us, epoch_ms)
    found: dict[int, Quantiles] = {}
    for some, rows in rows_of_groups(second, int(second.max(initial=-1)) + 1):
        own = second[rows] - some.start
        values_ms = np.split(raw.corrected_ms[rows[grouped(own)]], np.cumsum(sizes(own, len(some)))[:-1])
        found |= {each: quantiles(values) for each, values in zip(some, values_ms, strict=True) if len(values)}
    told = found.values()
    return pa.table(
        {
            "second": pa.array([*found], pa.int64()),
            "events": pa.array([each.count + each.censored for each in told], pa.int64()),
            "p50_ms": pa.array([each.p50 for each in told], pa.float64()),
            "p99_ms": pa.array([each.p99 for each in told], pa.float64()),
            "max_ms": pa.array([each.max for each in told], pa.float64()),
        }
    )


def _seconds(due_us: Ints, epoch_ms: int) -> NDArray[np.int32]:
    """Return the second in which each event is due. Measured events are due at the load start or later."""
    second = np.zeros(len(due_us), dtype=np.int32)
    for rows in spans(len(second)):
        second[rows] = (due_us[rows] - epoch_ms * 1000) // 1_000_000
    return second


def _raw_table(raws: Mapping[str, Raw]) -> pa.Table:
    kinds = {"way": pa.dictionary(pa.int8(), pa.string()), "corrected_ms": pa.float64(), "uncorrected_ms": pa.float64()}
    schema = pa.schema(kinds)
    tables = [
        pa.table([_all(way, len(raw.corrected_ms)), _column(raw.corrected_ms), _uncorrected(raw)], schema=schema)
        for way, raw in raws.items()
    ]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _all(way: str, count: int) -> pa.Array:
    """Build a column that names the way in each row, in one byte per row."""
    return pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int8), [way])


def _uncorrected(raw: Raw) -> pa.Array:
    if raw.uncorrected_ms is None:
        return pa.nulls(len(raw.corrected_ms), pa.float64())
    return _column(raw.uncorrected_ms)


def _column(values_ms: Floats) -> pa.Array:
    return pa.array(values_ms, pa.float64(), mask=~np.isfinite(values_ms))


def _share(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float | None:
    """Return None for an empty mask."""
    return float(mask.mean()) if len(mask) else None
