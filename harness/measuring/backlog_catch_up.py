"""Measure how an engine processed the backlog that existed when it started.

Pure, from the files of a run; times since its start.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.judging.stored_run import StoredRun
from harness.measuring.cost import ENGINE, resources_of
from harness.measuring.measurement import CatchUp, Lack, Quantity, Reconfiguration
from harness.measuring.settling import BEHIND_S, CALM_S, FEWEST_S, band, settled
from harness.measuring.stats import Floats
from harness.measuring.timeline import Lines
from harness.measuring.worth import Behind, of_changes

# The end of the load defines the steady level; a value reached only there was not seen to last.
STEADY_SHARE = 1 / 3


def of_run(run: StoredRun, by_second: pa.Table | None) -> CatchUp | None:
    """Measure the catch-up of a run; None: there was no backlog.

    `by_second` is the latency of events due in each second of the load.
    """
    told = next(run.store.history("backlog"), None)
    if told is None:
        return None
    lines, load_s = Lines(run), run.spec.tape.load_ms // 1000
    started_s = (int(told["at_ms"]) - run.epoch_ms) / 1000
    waiting, oldest_s = int(told["waiting"]), run.spec.tape.warm_up_ms / 1000 + started_s
    a_second = BEHIND_S * float(lines.offered().sum()) / load_s
    left = to_do(lines, load_s)
    caught_up = back(left, waiting, started_s, load_s, what="events to do", noise=a_second)
    p99_ms = lines.latency(by_second)["latency_p99_ms"][:load_s]
    return CatchUp(
        waiting=waiting,
        oldest_s=oldest_s,
        started_s=started_s,
        caught_up=caught_up,
        fresh=fresh(None if by_second is None else p99_ms, oldest_s, started_s, load_s, caught_up),
        per_s=_per_s(lines, started_s, caught_up),
        cpu_s_per_million=_cpu_s_per_million(run, lines, started_s, caught_up),
        largest=None if left is None else float(left.max()),
        new_orders=tuple(_reconfigurations(run, lines, started_s, caught_up, load_s)),
    )


def fresh(p99_ms: Floats | None, oldest_s: float, started_s: float, load_s: int, caught_up: Quantity) -> Quantity:
    """Return when latency was back to its steady level.

    An engine that is as far behind at the end as at the start has constant latency, and never reaches it.
    """
    if caught_up.lack is Lack.NEVER:
        return Quantity(None, "it had not caught up, so that no steady load is there to compare with", lack=Lack.NEVER)
    return back(p99_ms, oldest_s * 1000, started_s, load_s, what="ms of latency (p99)")


def to_do(lines: Lines, load_s: int) -> Floats | None:
    """Return how many events were due and not processed, at the end of each second of the load."""
    return None if lines.processed is None else lines.backlog()[:load_s]


def _due(lines: Lines, load_s: int) -> Floats:
    """Count due events, backlog included, at the start of each second of the load and at its end."""
    return np.asarray(lines.before + np.concatenate(([0.0], np.cumsum(lines.offered())[:load_s])))


def _reconfigurations(
    run: StoredRun, lines: Lines, started_s: float, caught_up: Quantity, load_s: int
) -> Iterator[Reconfiguration]:
    if lines.processed is None:
        return
    until_s, end = float(lines.seconds), "all was done"
    if caught_up.value is not None:
        until_s, end = started_s + caught_up.value, "it had caught up"
    behind = Behind(lines.processed, _due(lines, load_s), started_s, until_s, end)
    yield from of_changes(run.faults, run.epoch_ms, behind)


def back(
    values: Floats | None, began: float, started_s: float, load_s: int, *, what: str, noise: float = 0.0
) -> Quantity:
    """Return when a value entered the band of the load's end and stayed there for some seconds.

    `began` is the initial value: a value that never fell to half of it was never back. `noise` is added to the band.
    """
    steady_s = int(load_s * STEADY_SHARE)
    if values is None or not np.isfinite(values).any():
        return Quantity(None, "it is not known", lack=Lack.UNKNOWN)
    if steady_s < FEWEST_S:
        return Quantity(None, f"a load of {load_s} s has too short an end to compare with", lack=Lack.UNKNOWN)
    end = values[-steady_s:]
    middle = float(np.nanmedian(end))
    if middle > began / 2:
        return Quantity(
            None, f"in the last {steady_s} s of the load it was still at {middle:,.0f} {what}", lack=Lack.NEVER
        )
    most = noise + band(end)
    calm = settled(values, most)
    if calm is None or calm >= len(values) - steady_s:
        return Quantity(None, f"not before the last {steady_s} s of the load", lack=Lack.NEVER)
    words = f"at most {most:,.0f} {what} for {CALM_S} s, as in the last {steady_s} s of the load"
    return Quantity(float(calm) + 1 - started_s, words)


def _per_s(lines: Lines, started_s: float, caught_up: Quantity) -> float | None:
    if caught_up.value is None or lines.processed is None or caught_up.value <= 0:
        return None
    return _done(lines, started_s + caught_up.value) / caught_up.value


def _done(lines: Lines, at_s: float) -> float:
    return float(lines.processed.known(np.array([at_s]))[0]) if lines.processed else 0.0


def _cpu_s_per_million(run: StoredRun, lines: Lines, started_s: float, caught_up: Quantity) -> float | None:
    """Take engine and workers from their start until the catch-up: the start's cost is included."""
    table = resources_of(run)
    if table is None or caught_up.value is None:
        return None
    until_ms = run.epoch_ms + (started_s + caught_up.value) * 1000
    used = [
        float(np.interp(until_ms, rows.column("at_ms").to_numpy(), _cpu_s(rows)))
        for part in ENGINE
        if (rows := table.filter(pc.equal(table.column("part"), part))).num_rows
    ]
    done = _done(lines, started_s + caught_up.value)
    return sum(used) / done * 1e6 if used and done else None


def _cpu_s(rows: pa.Table) -> Floats:
    user, system = (np.asarray(rows.column(f"cpu_{mode}_s").to_numpy(), np.float64) for mode in ("user", "system"))
    return np.asarray(user + system)
