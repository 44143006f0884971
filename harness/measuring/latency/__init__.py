"""Latency as a reader of the results sees it, from the files of a run: five ways, each with its exactness."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.grouping import grouped, sizes, some_groups, spans
from harness.evidence.long_rows import Rows, ordered
from harness.evidence.observed import picked
from harness.judging.stored_run import StoredRun
from harness.measuring import stats
from harness.measuring.latency.ends import MOST_LEFT_OUT, TOO_MANY, Ends
from harness.measuring.latency.evidence import Evidence, Looked, collect
from harness.measuring.latency.visibility import Floats, Ints, Visibility
from harness.measuring.latency.ways import FINAL, FIRST, PROBES, RANK_MATCHED, YAHOO, Raw, Raws, Ways
from harness.measuring.measurement import Latency, OutsideEnds, Quantiles
from harness.util.texts import many

MADE = "latency"  # key of the derived value in a stored run
_SCHEMA = pa.schema(
    {"way": pa.dictionary(pa.int8(), pa.string()), "corrected_ms": pa.float64(), "uncorrected_ms": pa.float64()}
)
_SECOND = np.dtype([("second", np.int32), ("corrected_ms", np.float64)])


class RawTable:
    """All latencies, with the columns way, corrected_ms and uncorrected_ms; null: never seen."""

    def __init__(self, raws: Mapping[str, Raws]) -> None:
        self._raws = raws

    def parts(self) -> Iterator[pa.Table]:
        """Yield the rows in parts. The first part is empty, so that an empty table has its columns."""
        yield _SCHEMA.empty_table()
        for way, raws in self._raws.items():
            for raw in raws:
                columns = [_all(way, len(raw)), _column(raw.corrected_ms), _uncorrected(raw)]
                yield pa.table(columns, schema=_SCHEMA)


@dataclass(frozen=True)
class LatencyResult:
    """The latency of a run."""

    latency: tuple[Latency, ...]
    never_final_share: float | None  # of cells
    dipped_share: float | None  # of cells
    by_second: pa.Table  # columns: second since the load start in which events were due, events, p50_ms, p99_ms, max_ms
    raw: RawTable
    outside_ends: OutsideEnds | None = None  # None: the engine reports no ends of batches


def latencies(run: StoredRun) -> LatencyResult:
    """Measure the latency of a run. Raise MissingEvidence if a file is missing."""
    return _measured(collect(run), ways_of(run))


def by_rank(run: StoredRun) -> Raws:
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
    overtaken_ms = ways.overtaken_ms()
    yahoo = Raw(evidence.yahoo_ms, evidence.yahoo_ms.astype(np.float64), None)
    found = {
        PROBES: ways.probes,
        RANK_MATCHED: ways.rank_matched,
        FINAL: ways.final_value(),
        FIRST: ways.first_seen(),
        YAHOO: Raws.of(yahoo, ways.folder),
    }
    raws = {way: raw for way, raw in found.items() if raw.count}
    return LatencyResult(
        latency=tuple(_latency(way, raw, evidence.looked, overtaken_ms) for way, raw in raws.items()),
        never_final_share=_share(ways.never_final()),
        dipped_share=_share(ways.dipped()),
        by_second=_by_second(_headline(raws, overtaken_ms, evidence.looked), evidence.epoch_ms),
        raw=RawTable(raws),
        outside_ends=_outside(evidence.ends, raws, evidence.looked, overtaken_ms),
    )


def _outside(
    ends: Ends | None, raws: Mapping[str, Raws], looked: Looked, overtaken_ms: float | None
) -> OutsideEnds | None:
    """Report the largest share left out of any way: leaving out only the probes would hide much."""
    events = {way: raws[way] for way in (PROBES, RANK_MATCHED) if way in raws}
    if ends is None or not events:
        return None
    outside = {way: raw.only(lambda due_us: ~ends.hold(due_us)) for way, raw in events.items()}
    share = max((raw.count - outside[way].count) / raw.count for way, raw in events.items())
    near = ends.among(np.array([*chain.from_iterable(map(_first_and_last_us, events.values()))]))
    kept = outside if share <= MOST_LEFT_OUT else {}
    return OutsideEnds(
        ends=len(near.begin_us),
        longest_ms=near.longest_ms,
        left_out_share=share,
        latency=tuple(_latency(way, raw, looked, overtaken_ms) for way, raw in kept.items()),
        withheld="" if kept else TOO_MANY,
    )


def _first_and_last_us(raws: Raws) -> tuple[int, int]:
    parts = [(int(raw.due_us.min()), int(raw.due_us.max())) for raw in raws if len(raw)]
    return min(first for first, _ in parts), max(last for _, last in parts)


def corrected(raws: Raws) -> Quantiles:
    """Compute quantiles of latencies from the intended time, as `quantiles` does."""
    return _of_column(raws, lambda raw: raw.corrected_ms)


def _of_column(raws: Raws, column: Callable[[Raw], Floats]) -> Quantiles:
    seen, censored = raws.ascending(column)
    return stats.of_ascending(seen, seen.mean, censored)


def quantiles(values_ms: Floats) -> Quantiles:
    """Compute quantiles by nearest rank, including events that were never seen.

    A quantile among these, and the mean if there are any, is None.
    """
    seen = np.isfinite(values_ms)
    return stats.quantiles(picked(values_ms, seen), censored=int((~seen).sum()))


def _latency(way: str, raws: Raws, looked: Looked, overtaken_ms: float | None) -> Latency:
    return Latency(
        way=way,
        corrected=corrected(raws),
        uncorrected=None if way == YAHOO else _of_column(raws, _uncorrected_ms),
        exactness=" ".join(_exactness(way, raws, looked, overtaken_ms)),
        tail_is_lower_bound=way == RANK_MATCHED and not _ranks_are_exact(looked, overtaken_ms),
    )


def _uncorrected_ms(raw: Raw) -> Floats:
    assert raw.uncorrected_ms is not None, "only Yahoo's own figure does not know when an event was sent"
    return raw.uncorrected_ms


def _ranks_are_exact(looked: Looked, overtaken_ms: float | None) -> bool:
    """Overtaking by up to x changes no figure by more than x, and less than one poll period can't be measured."""
    return overtaken_ms is not None and overtaken_ms <= looked.period_ms


def _exactness(way: str, raws: Raws, looked: Looked, overtaken_ms: float | None) -> Iterator[str]:
    count = raws.count
    if way == YAHOO:
        negative = sum(int((raw.corrected_ms < 0).sum()) for raw in raws)
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


def _headline(raws: Mapping[str, Raws], overtaken_ms: float | None, looked: Looked) -> Raws | None:
    """Prefer probes if events may overtake each other; else all events, because they are more. None: there is none."""
    order = (RANK_MATCHED, PROBES) if _ranks_are_exact(looked, overtaken_ms) else (PROBES, RANK_MATCHED)
    return next((raws[way] for way in order if way in raws), None)


def _by_second(raws: Raws | None, epoch_ms: int) -> pa.Table:
    found: dict[int, Quantiles] = {}
    for some, values_ms in _seconds_of(raws, epoch_ms) if raws is not None else ():
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


def _seconds_of(raws: Raws, epoch_ms: int) -> Iterator[tuple[range, list[Floats]]]:
    """Yield ranges of seconds, with the latencies of the events that are due in each."""

    def parts() -> Iterator[tuple[NDArray[np.int32], NDArray[Any]]]:
        for raw in raws:
            rows = np.empty(len(raw), dtype=_SECOND)
            rows["second"], rows["corrected_ms"] = _seconds(raw.due_us, epoch_ms), raw.corrected_ms
            yield rows["second"], rows

    counts = np.zeros(0, dtype=np.int64)
    for second, _ in parts():
        own = sizes(second, max(len(counts), int(second.max(initial=-1)) + 1))
        own[: len(counts)] += counts
        counts = own
    rows, end = ordered(parts(), counts, Rows(_SECOND, raws.folder), _in_order_of_seconds), 0
    for some in some_groups(np.append(0, np.cumsum(counts))):
        own = counts[some.start : some.stop]
        begin, end = end, end + int(own.sum())
        yield some, np.split(rows.read(slice(begin, end))["corrected_ms"], np.cumsum(own)[:-1])


def _in_order_of_seconds(rows: NDArray[Any]) -> NDArray[Any]:
    return rows[grouped(rows["second"] - rows["second"].min(initial=0))]


def _seconds(due_us: Ints, epoch_ms: int) -> NDArray[np.int32]:
    """Return the second in which each event is due. Measured events are due at the load start or later."""
    second = np.zeros(len(due_us), dtype=np.int32)
    for rows in spans(len(second)):
        second[rows] = (due_us[rows] - epoch_ms * 1000) // 1_000_000
    return second


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
