"""The work that a recovery made the engine do again: CPU time, tasks, records. Read from a run's files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from harness.engines.spark.losses import lost_tasks
from harness.judging.stored_run import StoredRun
from harness.measuring.cost import ENGINE, resources_of
from harness.measuring.stats import Floats
from harness.model import BatchLog, workers_of_master

DRIVERS = "engine-*.log"  # one for each start


@dataclass(frozen=True)
class CpuUse:
    """CPU seconds of an engine since its first sample, at some times (seconds since the load start)."""

    at_s: Floats
    used_s: Floats

    def between(self, from_s: float, to_s: float) -> float:
        before, after = np.interp([from_s, to_s], self.at_s, self.used_s)
        return float(after - before)


def cpu_use(run: StoredRun, epoch_ms: int) -> CpuUse | None:
    """Return what the engine used, with its Python workers and executors; None if it was not seen."""
    resources = resources_of(run)
    if resources is None or not resources.num_rows:
        return None
    moments_ms = np.unique(resources.column("at_ms").to_numpy())
    used_s = np.zeros(len(moments_ms))
    for part in ENGINE:
        of_part = resources.filter(pc.equal(resources.column("part"), part))
        if not of_part.num_rows:
            continue
        cpu_s = np.asarray(of_part.column("cpu_user_s").to_numpy()) + np.asarray(
            of_part.column("cpu_system_s").to_numpy()
        )
        used_s += np.interp(moments_ms, of_part.column("at_ms").to_numpy(), cpu_s, left=0.0)
    return CpuUse((moments_ms - epoch_ms) / 1000, used_s) if used_s.any() else None


def tasks_lost(run: StoredRun) -> int | None:
    """Return how many tasks Spark lost on a cluster of the run, by its drivers' logs; None for any other engine."""
    logs = sorted(run.store.logs.glob(DRIVERS))
    if not workers_of_master(run.spec.master) or not run.manifest.on_spark or not logs:
        return None
    return lost_tasks(line for log in logs for line in log.read_text(encoding="utf-8", errors="replace").splitlines())


def records_again(log: BatchLog | None) -> int | None:
    """Return how many records were in batches that ran again after a restart; None if it is not known."""
    if log is None or not log.complete:
        return None
    return sum(_again(log))


def _again(log: BatchLog) -> Iterator[int]:
    done = 0
    for batch in sorted(log.batches, key=lambda each: each.batch):
        end = sum(batch.ends.values())
        if batch.replayed:
            yield end - done
        done = end
