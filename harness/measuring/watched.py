"""Read from a run's files what was observed over time, as input to the arithmetic of recovery."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from harness.judging.progress_curve import progress_lines
from harness.judging.stored_run import StoredRun
from harness.measuring.exposure import Exposure, exposure, unknowable
from harness.measuring.rework import CpuUse, cpu_use, records_again, tasks_lost
from harness.measuring.stats import Floats
from harness.measuring.timeline import Lines
from harness.metering import clock_steps
from harness.model import FaultReport
from harness.rundir.missing_evidence import unless_missing
from harness.rundir.store import Store

TWIN = "twin.json"
SINCE = "since_us"


@dataclass(frozen=True)
class Watched:
    """The observations of a run. Times are in seconds since the load start."""

    faults: tuple[FaultReport, ...]  # those that landed, in the order of their strikes
    epoch_ms: int
    load_s: float
    offered_per_s: float  # the mean over the load
    end_s: float  # all was done, or the run stopped waiting for the engine
    drained: bool
    progress_s: Floats  # each progress line of the engine
    changes_s: Floats  # each poll that saw counts grow
    # For each of them the earliest time of the change: when the poll before began.
    since_s: Floats
    windows: Mapping[float, float]  # the start of each window -> when it was first seen
    backlog: Floats | None  # due and not processed, at the end of each second
    wrong: Exposure | None  # None: unknown
    why_unknown: str = "the results were not polled"
    starts_s: tuple[float, ...] = ()
    stops_s: tuple[float, ...] = ()  # when the engine ended by itself
    errors: tuple[tuple[float, str], ...] = ()
    cpu: CpuUse | None = None  # of the engine
    tasks_lost: int | None = None  # None: unknown, or an engine without tasks of Spark on a cluster
    records_again: int | None = None  # None: unknown


def watched(run: StoredRun) -> Watched:
    """Read a run. A missing file costs its own quantities only."""
    store, spec, lines, unsayable = run.store, run.spec, Lines(run), unknowable(run.change)
    epoch_ms = int(next(store.history("epoch"))["epoch_ms"])
    told = {kind: list(store.history(kind)) for kind in ("started", "restart", "gone", "error", "engine", "fault")}

    def since_s(kind: str) -> tuple[float, ...]:
        return tuple((entry["at_ms"] - epoch_ms) / 1000 for entry in told[kind])

    faults = [msgspec.convert(entry["report"], FaultReport) for entry in told["fault"]]
    crashed = [s for s, entry in zip(since_s("gone"), told["gone"], strict=True) if entry["state"] == "crashed"]
    load_s = spec.tape.load_ms / 1000
    changes_s, looked_s, windows = _seen(run, epoch_ms, load_s)
    return Watched(
        faults=tuple(sorted((each for each in faults if each.landed), key=lambda each: each.at_ms)),
        epoch_ms=epoch_ms,
        load_s=load_s,
        offered_per_s=float(lines.offered().sum()) / load_s,
        end_s=max(since_s("engine"), default=float(lines.seconds)),
        drained=any(entry["report"]["state"] in ("drained", "unsettled") for entry in told["engine"]),
        progress_s=np.sort(np.array([(line.at_ms - epoch_ms) / 1000 for line in progress_lines(store)])),
        changes_s=changes_s,
        since_s=looked_s,
        windows=windows,
        backlog=None if lines.processed is None else lines.backlog(),
        wrong=None if unsayable else unless_missing(lambda: exposure(run)),
        why_unknown=unsayable or Watched.why_unknown,
        starts_s=since_s("started"),
        stops_s=tuple(sorted([*since_s("restart"), *crashed])),
        errors=tuple(zip(since_s("error"), (entry["line"] for entry in told["error"]), strict=True)),
        cpu=cpu_use(run, epoch_ms),
        tasks_lost=tasks_lost(run),
        records_again=unless_missing(lambda: records_again(run.batch_log)),
    )


def _seen(run: StoredRun, epoch_ms: int, load_s: float) -> tuple[Floats, Floats, dict[float, float]]:
    """Return when counts grew, the earliest time of each growth, and when each window was first seen.

    Closing events are left out.
    """
    samples = unless_missing(lambda: run.samples)
    if samples is None or not samples.num_rows:
        return np.empty(0), np.empty(0), {}
    at_us, window_ms, count = (samples.column(name).to_numpy() for name in ("at_us", "window_ms", "count"))
    # Older versions recorded only the end of a poll.
    since_us = samples.column(SINCE).to_numpy() if SINCE in samples.column_names else at_us
    at_s, since_s = (np.asarray(us, dtype=np.float64) / 1e6 - epoch_ms / 1000 for us in (at_us, since_us))
    window_s = (np.asarray(window_ms, dtype=np.float64) - epoch_ms) / 1000
    there = (np.asarray(count) > 0) & (window_s < load_s)
    order = np.lexsort((since_s[there], at_s[there]))
    at_s, since_s, window_s = (column[there][order] for column in (at_s, since_s, window_s))
    starts, first = np.unique(window_s, return_index=True)
    last = np.append(np.diff(at_s) > 0, True) if len(at_s) else np.empty(0, dtype=np.bool_)  # latest bound of each poll
    return at_s[last], since_s[last], dict(zip(starts.tolist(), at_s[first].tolist(), strict=True))


def link_twin(store: Store, twin: Path) -> None:
    """Record the baseline run: same seed, no fault."""
    store.write_json(TWIN, {"run": os.path.relpath(twin, store.path)})


def twin_of(store: Store) -> Watched | None:
    """Read the baseline run; None if there is none, it was removed, or its clock is unreliable."""
    if not store.has(TWIN):
        return None
    twin = Store(store.path / store.read_json(TWIN)["run"])
    usable = list(twin.history("epoch")) and not clock_steps.in_words(twin)
    return unless_missing(lambda: watched(StoredRun(twin))) if usable else None
