"""Measure how bursts of the load affected an engine, and how soon it recovered. Pure, from the files of a run.

The band (harness/measuring/settling.py) is that of p99 of latency in the seconds of steady load before the first burst.
Events due from the start of a burst until the next one are attributed to it, even if a fault strikes in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from generators.tape import offered_by
from harness.evidence.long_rows import Rows
from harness.judging.progress_curve import progress_lines
from harness.judging.stored_run import StoredRun
from harness.measuring import backlog_catch_up
from harness.measuring.cost import ENGINE, MIB, resources_of
from harness.measuring.latency import by_rank
from harness.measuring.latency.ways import Raws
from harness.measuring.measurement import Burst, Bursts, Lack, Quantity, Stretch
from harness.measuring.settling import CALM_S, FEWEST_S, band, settled
from harness.measuring.stats import Floats
from harness.measuring.surges import Surge, surges
from harness.measuring.timeline import Lines
from harness.rundir.missing_evidence import unless_missing
from harness.util.texts import many

KIB = 1 << 10

# Figure -> its label and unit.
WORDS: dict[str, tuple[str, str]] = {
    "latency_ms": ("latency", "ms"),
    "backlog": ("backlog", "events"),
    "memory_mib": ("memory", "MiB"),
    "checkpoint_mib": ("checkpoint", "MiB"),
    "commits_s": ("between commits", "s"),
    "checkpointing_ms": ("checkpoint took", "ms"),
    "in_flight_kib": ("in flight", "KiB"),
}
OF_CHECKPOINTS = ("checkpointing_ms", "in_flight_kib")  # only for an engine that reports each checkpoint


@dataclass(frozen=True)
class Checkpointing:
    """The finished checkpoints."""

    begun_s: Floats
    ended_s: Floats
    in_flight_kib: Floats

    @property
    def took_ms(self) -> Floats:
        return (self.ended_s - self.begun_s) * 1000

    def under_way(self, from_s: float, until_s: float) -> NDArray[np.bool_]:
        return (self.begun_s < until_s) & (self.ended_s > from_s)


@dataclass(frozen=True)
class Seen:
    """The figures of a run over time; times are in seconds since the load start. None: not measured."""

    load_s: float
    p99_ms: Floats | None  # of events due in each second of the load
    largest_ms: Floats | None
    backlog: Floats | None  # at the end of each second of the load
    events: Raws | None  # each event that counts; due times since the load start
    memory: tuple[Floats, Floats]  # times, and MiB
    checkpoint: tuple[Floats, Floats]
    commits_s: Floats
    checkpoints: Checkpointing | None = None  # None: it reported none


def of_run(run: StoredRun, by_second: pa.Table | None) -> Bursts | None:
    """Measure the bursts of a run; None: there was none.

    `by_second` is the latency of events due in each second of the load.
    """
    found = surges(offered_by(run.spec.tape))
    return borne(found, seen(run, by_second)) if found else None


def seen(run: StoredRun, by_second: pa.Table | None) -> Seen:
    """Read the figures of a run. A missing file costs its own figures only."""
    lines, load_s, epoch_ms = Lines(run), run.spec.tape.load_ms / 1000, run.epoch_ms
    seconds = int(load_s)
    known = by_second is not None and by_second.num_rows > 0
    return Seen(
        load_s=load_s,
        p99_ms=_by_second(by_second, "p99_ms", seconds) if known else None,
        largest_ms=_by_second(by_second, "max_ms", seconds) if known else None,
        backlog=backlog_catch_up.to_do(lines, seconds),
        events=_since(unless_missing(lambda: by_rank(run)), epoch_ms) if known else None,
        memory=_memory(resources_of(run), epoch_ms),
        checkpoint=_checkpoint(_table(run, "state.parquet"), epoch_ms),
        commits_s=np.array([(line.at_ms - epoch_ms) / 1000 for line in progress_lines(run.store)], dtype=np.float64),
        checkpoints=checkpointing(run),
    )


def checkpointing(run: StoredRun) -> Checkpointing | None:
    """Include failed checkpoints: they kept no state, but took time."""
    told = run.checkpoints
    if not told:
        return None
    begun_s = np.array([each.at_ms - run.epoch_ms for each in told], dtype=np.float64) / 1000
    took_s = np.array([each.took_ms for each in told], dtype=np.float64) / 1000
    in_flight_kib = np.array([each.in_flight_bytes for each in told], dtype=np.float64) / KIB
    return Checkpointing(begun_s, begun_s + took_s, in_flight_kib)


def _table(run: StoredRun, name: str) -> pa.Table | None:
    return unless_missing(lambda: run.store.read_table(name))


def _since(events: Raws | None, epoch_ms: int) -> Raws | None:
    if events is None:
        return None
    return Raws(lambda: (replace(part, due_us=part.due_us - epoch_ms * 1000) for part in events), events.folder)


def _by_second(table: pa.Table, name: str, seconds: int) -> Floats:
    """Return a column by second: NaN if no event was due, infinite if one of them was never seen."""
    values = np.full(seconds, np.nan)
    second = table.column("second").to_numpy()
    within = (second >= 0) & (second < seconds)
    told = np.array([np.inf if value is None else value for value in table.column(name).to_pylist()])
    values[second[within]] = told[within]
    return values


def _memory(table: pa.Table | None, epoch_ms: int) -> tuple[Floats, Floats]:
    """Sum the memory of engine and workers at each sample."""
    if table is None:
        return np.empty(0), np.empty(0)
    rows = table.filter(pc.is_in(table.column("part"), pa.array(ENGINE)))
    sums = rows.group_by("at_ms").aggregate([("rss_bytes", "sum")]).sort_by("at_ms")
    return _moments(sums, "rss_bytes_sum", epoch_ms)


def _checkpoint(table: pa.Table | None, epoch_ms: int) -> tuple[Floats, Floats]:
    if table is None:
        return np.empty(0), np.empty(0)
    return _moments(table.filter(pc.is_valid(table.column("checkpoint_bytes"))), "checkpoint_bytes", epoch_ms)


def _moments(table: pa.Table, name: str, epoch_ms: int) -> tuple[Floats, Floats]:
    at_s, values = (np.asarray(table.column(each).to_numpy(), np.float64) for each in ("at_ms", name))
    return (at_s - epoch_ms) / 1000, values / MIB


def borne(found: Sequence[Surge], seen: Seen) -> Bursts:
    """Measure the engine's behaviour in these bursts."""
    band_ms = steady_band(found[0], seen.p99_ms)
    ends_s = [*(surge.from_s for surge in found[1:]), seen.load_s]
    bursts = tuple(
        Burst(
            from_s=surge.from_s,
            until_s=surge.until_s,
            rate_per_s=surge.rate_per_s,
            times=surge.rate_per_s / surge.before_per_s,
            area=area(seen.events, surge.from_s, next_s, band_ms),
            back=back(seen.p99_ms, surge, next_s, band_ms, last=next_s == seen.load_s),
        )
        for surge, next_s in zip(found, ends_s, strict=True)
    )
    return Bursts(band_ms, bursts, tuple(_stretches(found, seen)))


def steady_band(first: Surge, p99_ms: Floats | None) -> Quantity:
    """Compute the band from the seconds before the first burst."""
    if p99_ms is None:
        return _unknown("latency was not measured")
    steady = p99_ms[int(np.ceil(first.steady_s)) : int(first.from_s)]
    if len(steady) < FEWEST_S:
        return _unknown(f"{len(steady)} s of steady load before the first burst are too few: {FEWEST_S} s are needed")
    if not np.isfinite(steady).all():
        return _unknown("something that was due before the first burst was not seen, or nothing was due")
    ends_ms = band(steady)
    if ends_ms > len(steady) * 1000:
        return _unknown(f"latency of up to {steady.max() / 1000:.1f} s in the {len(steady)} s before it is not steady")
    return Quantity(ends_ms, f"p99 of latency in a second, by the {len(steady)} s before the first burst")


def area(events: Raws | None, from_s: float, until_s: float, band_ms: Quantity) -> Quantity:
    """Sum the time that events took beyond the band."""
    if band_ms.value is None:
        return _unknown("there is no band", band_ms)
    if events is None:
        return _unknown("no event was seen")
    beyond_s, unseen, over = Rows(np.float64, events.folder), 0, 0
    for part in events.only(lambda due_us: (due_us / 1e6 >= from_s) & (due_us / 1e6 < until_s)):
        own_s = np.maximum(0.0, part.corrected_ms - band_ms.value) / 1000
        beyond_s.add(own_s)
        unseen, over = unseen + int((~np.isfinite(own_s)).sum()), over + int((own_s > 0).sum())
    if not len(beyond_s):
        return _unknown("no event was seen")
    if unseen:
        return Quantity(None, f"{many(unseen, 'event was', 'events were')} never seen", lack=Lack.NO_END)
    counted = f"of {many(len(beyond_s), 'event')} that count, {over:,} were above the band"
    return Quantity(beyond_s.total(), counted)


def back(p99_ms: Floats | None, surge: Surge, next_s: float, band_ms: Quantity, *, last: bool) -> Quantity:
    """Return the time from the end of a burst until latency was in the band again, for CALM_S seconds."""
    if p99_ms is None or band_ms.value is None:
        return _unknown("there is no band", band_ms)
    first, end = int(np.ceil(surge.until_s)), int(next_s)
    until = "the load ended" if last else "the next burst began"
    if end - first < CALM_S:
        return _unknown(f"{end - first} s later {until}: {CALM_S} s are needed")
    if (p99_ms[int(surge.from_s) : end] <= band_ms.value).all():
        return Quantity(0.0, "it never left the band")
    calm = settled(p99_ms[:end], band_ms.value, start=first)
    if calm is None:
        return Quantity(None, f"not in the {next_s - surge.until_s:.0f} s until {until}", lack=Lack.NEVER)
    return Quantity(float(calm) - surge.until_s, f"in the band for {CALM_S} s from then on")


def _unknown(why: str, because: Quantity | None = None) -> Quantity:
    note = f"{why}: {because.note}" if because and because.note else why
    return Quantity(None, note, lack=Lack.UNKNOWN)


def _stretches(found: Sequence[Surge], seen: Seen) -> Iterator[Stretch]:
    """Yield the parts of the load in order, from start to end."""
    at_s, name = 0.0, "before"
    for number, surge in enumerate(found, 1):
        own = f" {number}" if len(found) > 1 else ""
        yield _stretch(name, at_s, surge.from_s, seen)
        yield _stretch(f"burst{own}", surge.from_s, surge.until_s, seen)
        at_s, name = surge.until_s, f"after{own}"
    yield _stretch(name, at_s, seen.load_s, seen)


def _stretch(name: str, from_s: float, until_s: float, seen: Seen) -> Stretch:
    """Take the largest value of each figure."""
    seconds = slice(int(from_s), int(np.ceil(until_s)))
    return Stretch(
        name,
        from_s,
        until_s,
        {
            "latency_ms": _largest_latency(seen.largest_ms, seconds),
            "backlog": _largest(seen.backlog, seconds),
            "memory_mib": _largest_at(*seen.memory, from_s, until_s, "its processes are not on this machine"),
            "checkpoint_mib": _largest_at(*seen.checkpoint, from_s, until_s, "it has no folder on this machine"),
            "commits_s": longest_between(seen.commits_s, from_s, until_s),
            **(_of_checkpoints(seen.checkpoints, from_s, until_s) if seen.checkpoints else {}),
        },
    )


def _of_checkpoints(told: Checkpointing, from_s: float, until_s: float) -> dict[str, Quantity]:
    """Take the checkpoints that were running then."""
    own = told.under_way(from_s, until_s)
    if not own.any():
        return dict.fromkeys(OF_CHECKPOINTS, _unknown("no checkpoint was under way"))
    figures = (told.took_ms[own], told.in_flight_kib[own])
    return {name: Quantity(float(values.max())) for name, values in zip(OF_CHECKPOINTS, figures, strict=True)}


def _largest_latency(values: Floats | None, seconds: slice) -> Quantity:
    if values is not None and np.isinf(values[seconds]).any():
        return Quantity(None, "something that was due then was never seen", lack=Lack.NO_END)
    return _largest(values, seconds)


def _largest(values: Floats | None, seconds: slice) -> Quantity:
    own = np.empty(0) if values is None else values[seconds]
    return Quantity(float(np.nanmax(own))) if np.isfinite(own).any() else _unknown("it was not polled")


def _largest_at(at_s: Floats, values: Floats, from_s: float, until_s: float, why: str) -> Quantity:
    own = values[(at_s >= from_s) & (at_s < until_s)]
    return Quantity(float(own.max())) if len(own) else _unknown(why)


def longest_between(moments_s: Floats, from_s: float, until_s: float) -> Quantity:
    """Return the longest pause between two progress lines that overlaps this time."""
    moments_s = np.sort(moments_s)
    begins_s, ends_s = moments_s[:-1], moments_s[1:]
    own = (begins_s < until_s) & (ends_s > from_s)
    if not own.any():
        return _unknown("the engine reported no progress")
    return Quantity(float((ends_s - begins_s)[own].max()))
