"""Compute each part's cost from the resources of a stored run. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.judging.stored_run import StoredRun
from harness.measuring.measurement import Cost, Measurement
from harness.model import RunSpec, is_remote_master
from harness.rundir.missing_evidence import unless_missing

PARTS = ("engine", "python workers", "kafka", "redis", "postgresql", "generator", "harness", "live page")
ENGINE, GENERATOR = ("engine", "python workers"), "generator"
MIB = 1 << 20


def elsewhere(spec: RunSpec) -> str:
    """Return why the cost of the engine is not known; "" if all of its processes were seen."""
    return (
        f"the executors belong to {spec.master} and are no processes of this run: only the driver was seen"
        if is_remote_master(spec.master)
        else ""
    )


def resources_of(run: StoredRun) -> pa.Table | None:
    """Return what each part used; None if it was not recorded. An engine whose executors run elsewhere is left out: its
    driver alone is no cost of it."""
    table = unless_missing(lambda: run.store.read_table("resources.parquet"))
    if table is None or not elsewhere(run.spec):
        return table
    return table.filter(pc.invert(pc.is_in(table.column("part"), pa.array(ENGINE))))


def costs(resources: pa.Table, sent: int, waited: int = 0) -> tuple[Cost, ...]:
    """Return the cost of every part on this machine, from the first sample to the last.

    `waited`: events of a backlog, which were sent before the first sample and processed after it.
    """
    present = set(resources.column("part").to_pylist())
    events = {part: sent if part == GENERATOR else sent + waited for part in PARTS}
    return tuple(_cost(resources, part, events[part]) for part in PARTS if part in present)


def basis(m: Measurement) -> str:
    """Say which events a cost is divided by."""
    return "of backlog and load" if m.waited else f"at {m.offered_per_s:,.0f}/s"


def engine_s_per_million(parts: Iterable[Cost]) -> float | None:
    """Return the primary figure: CPU seconds of the engine and its Python workers per million events."""
    engine = [each.cpu_s_per_million for each in parts if each.part in ENGINE]
    return sum(engine) if engine else None


def cpu_share(resources: pa.Table, part: str) -> float | None:
    """Return the share of one core, from the first sample to the last; None if unknown."""
    moments = resources.column("at_ms").to_numpy()
    if not len(moments) or moments[-1] <= moments[0]:
        return None
    return sum(_used(resources, part, mode) for mode in ("user", "system")) * 1000 / float(moments[-1] - moments[0])


def _cost(resources: pa.Table, part: str, events: int) -> Cost:
    user_s, system_s = (_used(resources, part, mode) for mode in ("user", "system"))
    peak = pc.max(_of(resources, part).column("rss_bytes")).as_py() / MIB
    return Cost(part, user_s, system_s, peak, (user_s + system_s) / events * 1e6 if events else 0.0)


def _used(resources: pa.Table, part: str, mode: str) -> float:
    """A part that was missing in the first sample started at zero."""
    rows = _of(resources, part)
    used = np.asarray(rows.column(f"cpu_{mode}_s").to_numpy(), dtype=np.float64)
    if not len(used):
        return 0.0
    there_at_first = rows.column("at_ms")[0].as_py() == resources.column("at_ms")[0].as_py()
    return float(used.max() - (used[0] if there_at_first else 0.0))


def _of(resources: pa.Table, part: str) -> pa.Table:
    return resources.filter(pc.equal(resources.column("part"), part))
