"""What a stored run measured. Pure: from the files, never from a live system.

No speed is given for wrong answers, and none when the generator did not keep its schedule: then there is no
measurement at all, and `withheld` says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.evidence.changed_query import asked_of
from harness.evidence.observed import ROWS_AT_ONCE
from harness.judging import progress_curve
from harness.judging.stored_run import StoredRun
from harness.load.certificate import of_load
from harness.measuring import bursting, catching_up, company, cost, growth, recovery, steady
from harness.measuring import timeline as timelines
from harness.measuring.latency import LatencyResult, latencies
from harness.measuring.latency.ends import ONLY_THEN
from harness.measuring.measurement import Measurement, Observer, OutsideEnds, Recovery, Steady
from harness.measuring.timeline import Lines
from harness.metering import clock_steps
from harness.model import Certificate, Outcome, RunSpec, Verdict
from harness.rundir.store import Store, from_files, unless_missing
from workloads.sentinels import totals_of

RECOVERY, LATENCY = "recovery.json", "latency.parquet"


def not_right(verdict: Verdict) -> str:
    """Why nothing may be said of how fast the answers came. A missed objective is about speed, and hides none."""
    missed = [check.name for check in verdict.checks if check.outcome is not Outcome.PASS]
    worst = Outcome.worst([verdict.outcome, *(check.outcome for check in verdict.checks)])
    if worst is not Outcome.PASS and missed != ["objective"]:
        return f"no speed for a run that is {worst.value}"
    return ""


def withheld(spec: RunSpec, verdict: Verdict, certificate: Certificate | None, clock: str) -> str:
    """Why no speed may be given; empty when it may. `clock`: what was odd about the clocks of the run."""
    if wrong := not_right(verdict):
        return wrong
    if clock:
        return clock
    if spec.tape.checksum:
        return "in checksum mode ids are summed beside the counts, which is other work than is measured elsewhere"
    if asked_of(spec.fault):
        return "the question changes on the way, and a speed is that of one question"
    if certificate is None or not certificate.valid:
        return "the load certificate is void"
    return ""


@dataclass(frozen=True)
class Measured:
    """All that is derived from the files of a run."""

    measurement: Measurement | None  # None: withheld, or the run did not come so far
    timeline: pa.Table | None  # None: the load never began
    latency: pa.Table | None  # raw samples; None: withheld or not observed


def save(run: StoredRun, verdict: Verdict) -> Measurement | None:
    """Measure, and write it beside what it was measured from."""
    store, found, recovered = run.store, Measured(None, None, None), tuple[Recovery, ...]()
    if verdict.totals:  # else it could not be judged, and no file of it is to be believed
        found = from_files("a measurement", lambda: measure(run, verdict))
        recovered = from_files("a recovery", lambda: recoveries(run, verdict))
    store.write_json(RECOVERY, recovered)
    store.write_json("measurement.json", found.measurement)
    for name in (timelines.FILE, LATENCY):
        (store.path / name).unlink(missing_ok=True)
    if found.timeline is not None:
        store.write_table(timelines.FILE, {name: found.timeline.column(name) for name in found.timeline.column_names})
    if found.latency is not None:
        store.write_parts(LATENCY, _in_texts(found.latency))
    return found.measurement


def _in_texts(latency: pa.Table) -> Iterator[dict[str, pa.Array]]:
    """Its ways by their names, some rows at once; an empty part comes first, so that an empty table has its columns."""
    for part in (latency.schema.empty_table(), *latency.to_batches(max_chunksize=ROWS_AT_ONCE)):
        columns = {name: part.column(name) for name in latency.column_names}
        yield columns | {"way": columns["way"].cast(pa.string())}


def recoveries(run: StoredRun, verdict: Verdict) -> tuple[Recovery, ...]:
    """Beside the measurement and not in it: faults that make the generator late, or counts wrong, are just those whose
    recovery is asked for. Against what was due, a void certificate hides nothing."""
    if next(run.store.history("epoch"), None) is None:
        return ()
    return recovery.of_run(run, not_right(verdict))


def measure(run: StoredRun, verdict: Verdict) -> Measured:
    """No latency is even looked for where speed has to be withheld."""
    if next(run.store.history("epoch"), None) is None:
        return Measured(None, None, None)
    certificate = unless_missing(lambda: run.certificate)
    if withheld(run.spec, verdict, certificate, clock_steps.in_words(run.store)):
        return Measured(None, timelines.timeline(run, None), None)
    latency = unless_missing(lambda: latencies(run))
    table = timelines.timeline(run, latency.by_second if latency else None)
    measurement = _measurement(run, latency, table)
    return Measured(measurement, table, latency.raw if latency else None)


def _measurement(run: StoredRun, latency: LatencyResult | None, table: pa.Table) -> Measurement | None:
    store = run.store
    ready, epoch, drained = (next(store.history(kind), None) for kind in ("ready", "epoch", "engine"))
    if not (ready and epoch and drained):
        return None
    sends = of_load(run.sends)
    load_s, events = pc.max(sends.column("finished_us")).as_py() / 1e6, pc.sum(sends.column("sent")).as_py()
    lines, resources = Lines(run), unless_missing(lambda: _since_epoch(run, "resources.parquet"))
    bursts = bursting.of_run(run, latency.by_second if latency else None)
    return Measurement(
        events=events,
        offered_per_s=events / load_s if load_s > 0 else 0.0,
        processed_per_s=_processed_per_s(lines, load_s),
        processed_as_seen=lines.processed_as_seen,
        catch_up_per_s=_catch_up_per_s(lines),
        load_s=load_s,
        ready_s=ready["after_ms"] / 1000,
        drain_s=max(0.0, (_last_change_ms(run, drained["at_ms"]) - epoch["epoch_ms"]) / 1000 - load_s),
        latency=latency.latency if latency else (),
        outside_ends=_outside_ends(latency, lines),
        never_final_share=latency.never_final_share if latency else None,
        dipped_share=latency.dipped_share if latency else None,
        cost=() if resources is None else cost.costs(resources, events),
        checkpoint_bytes=_checkpoint_bytes(run),
        gc_s=_gc_s(run),
        steady=None if bursts else _steady(run, table, load_s),  # it asks what comes of one rate
        observer=_observer(store, resources),
        catch_up=catching_up.of_run(run, latency.by_second if latency else None),
        bursts=bursts,
        growth=growth.of_run(run),
        company=company.of_run(run),
    )


def _steady(run: StoredRun, table: pa.Table, load_s: float) -> Steady:
    return steady.find(table, load_s, run.spec.window_ms / 1000, run.spec.tape.warmed_ms / 1000)


def _outside_ends(latency: LatencyResult | None, lines: Lines) -> OutsideEnds | None:
    """Only where results come while a batch runs does its end make a difference."""
    found = latency.outside_ends if latency else None
    if found is None or found.withheld or lines.processed_as_seen:
        return found
    return replace(found, latency=(), withheld=ONLY_THEN)


def _last_change_ms(run: StoredRun, ended_ms: int) -> int:
    """When the last of the load came to be seen. How long we waited to be sure of it is no work of the engine."""
    samples = unless_missing(lambda: run.samples)
    if samples is None or not samples.num_rows:
        told = next(run.store.history("still"), None)
        return int(told["since_ms"]) if told else ended_ms
    key, field, at_us = (np.asarray(samples.column(name).to_numpy()) for name in ("campaign", "window_ms", "at_us"))
    ours = np.isin(run.oracle.codes.of(key, field), totals_of(run.oracle, run.codec, run.marks).cell)
    return int(at_us[~ours].max(initial=0)) // 1000


def taken_of(store: Store) -> str:
    """What was taken from the machine while the load and the drain went on; "" where it does not matter."""
    return next((str(entry["words"]) for entry in store.history("taken")), "")


def _processed_per_s(lines: Lines, load_s: float) -> float | None:
    """Over the load: what was done only in the drain does not count, nor what was told before it was sent."""
    if lines.processed is None or lines.sent is None or load_s <= 0:
        return None
    ends_s = np.array([0.0, load_s])
    begin, end = np.minimum(lines.processed.known(ends_s), lines.sent.known(ends_s))
    return float(end - begin) / load_s


def _catch_up_per_s(lines: Lines) -> float | None:
    return progress_curve.catch_up_per_s(lines.processed, lines.sent) if lines.processed and lines.sent else None


def _checkpoint_bytes(run: StoredRun) -> int | None:
    """In the end."""
    known = _known_of_state(run, "checkpoint_bytes")
    return int(known[-1]) if known else None


def _gc_s(run: StoredRun) -> float | None:
    """Of the load and the drain."""
    known = _known_of_state(run, "gc_s")
    return known[-1] - known[0] if known else None


def _since_epoch(run: StoredRun, name: str) -> pa.Table:
    """From the last look before the load on: what was used before it is no cost of it."""
    table, epoch_ms = run.store.read_table(name), run.epoch_ms
    before = pc.max(table.filter(pc.less_equal(table.column("at_ms"), epoch_ms)).column("at_ms")).as_py()
    return table if before is None else table.filter(pc.greater_equal(table.column("at_ms"), before))


def _known_of_state(run: StoredRun, name: str) -> list[float]:
    table = unless_missing(lambda: _since_epoch(run, "state.parquet"))
    return [] if table is None else [value for value in table.column(name).to_pylist() if value is not None]


def _observer(store: Store, resources: pa.Table | None) -> Observer | None:
    """What the observer told of itself, with the CPU of the process that it shares with the harness."""
    told = next(store.history("observer"), None)
    share = cost.cpu_share(resources, "harness") if resources is not None else None
    if told is None or share is None:
        return None
    names = ("period_ms", "period_p99_ms", "scans", "cells_sampled_share")
    return Observer(**{name: told[name] for name in names}, cpu_share=share)
