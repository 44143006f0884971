"""Measure the cost of another reader of the results: turns with and without a reader, in one run. Pure.

A turn with a reader is compared with the mean of the two turns around it, so that slow changes during a run cancel.
Some seconds at the start of each turn are left out, because work from the turn before is still in progress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from generators.tape import offered_by
from harness.judging.stored_run import StoredRun
from harness.measuring.cost import ENGINE, resources_of
from harness.measuring.latency import by_rank, corrected
from harness.measuring.latency.ways import Raws
from harness.measuring.measurement import Company, Lack, Quantity, Turn
from harness.model import Segment
from harness.rundir.missing_evidence import unless_missing
from harness.util.texts import many

READER = "read-results"  # the fault
SETTLE_S = 2.0
SHORTEST_S = 3.0  # of a turn, without the settling time
FEWEST = 3  # turns with a reader, to show how much they differ

# Figure -> its label and unit.
WORDS: dict[str, tuple[str, str]] = {
    "latency_p50_ms": ("latency p50", "ms"),
    "latency_p99_ms": ("latency p99", "ms"),
    "engine_cores": ("engine", "cores"),
    "redis_cores": ("Redis", "cores"),
    "harness_cores": ("harness", "cores"),
}
PARTS: Mapping[str, Sequence[str]] = {
    "engine_cores": ENGINE,
    "redis_cores": ("redis",),
    "harness_cores": ("harness",),
}


def of_run(run: StoredRun) -> Company | None:
    """Measure the turns of a run; None: there was no other reader."""
    read = [each for each in run.faults if each.landed and each.spec.action == READER]
    if not read:
        return None
    times_ms = ((each.at_ms, each.landed_ms, each.healed_ms) for each in read)
    times_s = [tuple((ms - run.epoch_ms) / 1000 for ms in each) for each in times_ms]
    spans = [*spans_of(times_s, run.spec.tape.load_ms / 1000)]
    events = unless_missing(lambda: by_rank(run))
    resources = resources_of(run)
    turns = tuple(Turn(reads, *span, figures(events, resources, run.epoch_ms, *span)) for reads, span in spans)
    steady = is_steady(offered_by(run.spec.tape))
    return Company(turns, {name: cost(name, turns) if steady else _unknown("the load is not steady") for name in WORDS})


def spans_of(read_s: Sequence[Sequence[float]], load_s: float) -> Iterator[tuple[bool, tuple[float, float]]]:
    """Yield turns in order, without and with a reader.

    `read_s` holds for each reader when it began, got its first answer, and ended.
    """
    since_s = 0.0
    for began_s, answered_s, ended_s in sorted(map(tuple, read_s)):
        yield False, (since_s, began_s)
        yield True, (answered_s, min(ended_s, load_s))
        since_s = ended_s
    yield False, (since_s, load_s)


def is_steady(segments: Sequence[Segment]) -> bool:
    return len({rate for each in segments for rate in (each.start_per_s, each.end_per_s)}) == 1


def figures(
    events: Raws | None, resources: pa.Table | None, epoch_ms: int, from_s: float, until_s: float
) -> dict[str, float | None]:
    """Measure a turn without its first seconds. None: unknown."""
    begin_s = from_s + SETTLE_S
    if until_s - begin_s < SHORTEST_S:
        return dict.fromkeys(WORDS)
    begin_ms, end_ms = (epoch_ms + second * 1000 for second in (begin_s, until_s))
    p50_ms, p99_ms = _latency(events, begin_ms, end_ms)
    cores = {name: _cores(resources, parts, begin_ms, end_ms) for name, parts in PARTS.items()}
    return {"latency_p50_ms": p50_ms, "latency_p99_ms": p99_ms, **cores}


def _latency(events: Raws | None, begin_ms: float, end_ms: float) -> tuple[float | None, float | None]:
    """Take events due in this time."""
    if events is None:
        return None, None
    found = corrected(events.only(lambda due_us: (due_us >= begin_ms * 1000) & (due_us < end_ms * 1000)))
    return (None, None) if found.censored else (found.p50, found.p99)


def _cores(resources: pa.Table | None, parts: Sequence[str], begin_ms: float, end_ms: float) -> float | None:
    if resources is None:
        return None
    used_s = 0.0
    rows = [resources.filter(pc.equal(resources.column("part"), part)) for part in parts]
    for own in (each for each in rows if each.num_rows):
        total_s = sum(np.asarray(own.column(f"cpu_{mode}_s").to_numpy(), np.float64) for mode in ("user", "system"))
        before, after = np.interp([begin_ms, end_ms], own.column("at_ms").to_numpy(), total_s)
        used_s += float(after - before)
    return used_s / (end_ms - begin_ms) * 1000 if any(each.num_rows for each in rows) else None


def cost(name: str, turns: Sequence[Turn]) -> Quantity:
    """Return the ratio of a figure with and without a reader: the median over turns, and its range."""
    ratios = []
    for before, turn, after in zip(turns, turns[1:], turns[2:], strict=False):
        old, new, later = (each.figures[name] for each in (before, turn, after))
        if turn.reads and old and new is not None and later:
            ratios.append(2 * new / (old + later))
    if len(ratios) < FEWEST:
        between = f"{many(len(ratios), 'turn')} between two without a reader"
        return _unknown(f"only {between} can be compared, and {FEWEST} are needed")
    return Quantity(float(np.median(ratios)), f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} turns")


def _unknown(why: str) -> Quantity:
    return Quantity(None, why, lack=Lack.UNKNOWN)
