"""What a stored run measured. Pure: from the files, never from a live system.

No speed is given for wrong answers, and none when the generator did not keep its schedule: then there is no
measurement at all, and `withheld` says why.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from harness import cost, processed, steady
from harness import timeline as timelines
from harness.measurement import Cost, Measurement, Observer
from harness.model import Certificate, Outcome, RunSpec, Verdict
from harness.store import MissingEvidence, Store
from harness.timeline import Lines


def withheld(verdict: Verdict, certificate: Certificate | None) -> str:
    """Why no speed may be given; empty when it may."""
    if verdict.outcome is not Outcome.PASS:
        return f"no speed for a run that is {verdict.outcome.value}"
    if certificate is None or not certificate.valid:
        return "the load certificate is void"
    return ""


def measure(store: Store, verdict: Verdict) -> Measurement | None:
    """The measurement of a run, or None where it has to be withheld."""
    certificate = certificate_of(store)
    if withheld(verdict, certificate) or certificate is None:
        return None
    ready, epoch, drained = (next(store.history(kind), None) for kind in ("ready", "epoch", "engine"))
    if not (ready and epoch and drained):
        return None
    load_s = max(store.read_table("sends.parquet").column("finished_us").to_pylist()) / 1e6
    lines, table, resources = Lines(store), timelines.timeline(store, None), _table(store, "resources.parquet")
    spec: RunSpec = store.read_as("spec.json", RunSpec)
    done = lines.processed.known(np.array([load_s]))[0] if lines.processed else None
    return Measurement(
        events=certificate.sent,
        offered_per_s=certificate.sent / load_s if load_s > 0 else 0.0,
        processed_per_s=float(done) / load_s if done is not None and load_s > 0 else None,
        catch_up_per_s=_catch_up_per_s(lines),
        load_s=load_s,
        ready_s=ready["after_ms"] / 1000,
        drain_s=(drained["at_ms"] - epoch["epoch_ms"]) / 1000 - load_s,
        latency=(),
        never_final_share=0.0,
        dipped_share=0.0,
        cost=_costs(resources, certificate.sent),
        checkpoint_bytes=_last_of_state(store, "checkpoint_bytes"),
        gc_s=_gc_s(store),
        steady=steady.find(table, load_s, spec.window_ms / 1000),
        observer=_observer(store, resources),
    )


def certificate_of(store: Store) -> Certificate | None:
    entries = list(store.history("certificate"))
    return msgspec.convert(entries[-1]["certificate"], Certificate) if entries else None


def _catch_up_per_s(lines: Lines) -> float | None:
    return processed.catch_up_per_s(lines.processed, lines.sent) if lines.processed and lines.sent else None


def _costs(resources: pa.Table | None, events: int) -> tuple[Cost, ...]:
    return () if resources is None else cost.costs(resources, events)


def _last_of_state(store: Store, name: str) -> int | None:
    known = _known_of_state(store, name)
    return int(known[-1]) if known else None


def _gc_s(store: Store) -> float | None:
    """Of the load and the drain: what was collected before the first look does not count."""
    known = _known_of_state(store, "gc_s")
    return known[-1] - known[0] if known else None


def _known_of_state(store: Store, name: str) -> list[float]:
    table = _table(store, "state.parquet")
    return [] if table is None else [value for value in table.column(name).to_pylist() if value is not None]


def _observer(store: Store, resources: pa.Table | None) -> Observer | None:
    """What the observer told of itself, with the CPU of the process that it shares with the harness."""
    told = next(store.history("observer"), None)
    share = cost.cpu_share(resources, "harness") if resources is not None else None
    if told is None or share is None:
        return None
    names = ("period_ms", "period_p99_ms", "scans", "cells_sampled_share")
    facts = told.get("report", told)
    return Observer(**{name: facts[name] for name in names}, cpu_share=share)


def _table(store: Store, name: str) -> pa.Table | None:
    try:
        return store.read_table(name)
    except MissingEvidence:
        return None
