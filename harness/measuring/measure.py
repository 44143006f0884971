"""Measure a stored run. Pure: from its files, never from a running system.

Wrong results and a void load check allow no measurement of speed; `withheld` gives the reason.
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
from harness.measuring import (
    backlog_catch_up,
    bursting,
    company,
    cost,
    growth,
    recovery,
    steady,
    table_layout,
    window_state,
)
from harness.measuring import timeline as timelines
from harness.measuring.latency import LatencyResult, RawTable, latencies
from harness.measuring.latency.ends import ONLY_THEN
from harness.measuring.measurement import CatchUp, Measurement, Observer, OutsideEnds, Recovery, Steady
from harness.measuring.timeline import Lines
from harness.metering import clock_steps
from harness.model import Certificate, Outcome, RunSpec, Verdict
from harness.rundir.missing_evidence import from_files, unless_missing
from harness.rundir.store import Store
from workloads.sentinels import totals_of

RECOVERY, LATENCY = "recovery.json", "latency.parquet"


def not_right(verdict: Verdict) -> str:
    """Return why wrong results forbid figures of speed.

    A missed objective does not, because it is about speed itself.
    """
    missed = [check.name for check in verdict.checks if check.outcome is not Outcome.PASS]
    worst = Outcome.worst([verdict.outcome, *(check.outcome for check in verdict.checks)])
    if worst is not Outcome.PASS and missed != ["objective"]:
        return f"no speed for a run that is {worst.value}"
    return ""


def withheld(spec: RunSpec, verdict: Verdict, certificate: Certificate | None, clock: str) -> str:
    """Return why figures of speed are withheld; "" if they are not. `clock`: irregularities of the run's clocks."""
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
    """All values derived from the files of a run."""

    measurement: Measurement | None  # None: withheld, or the run ended too early
    timeline: pa.Table | None  # None: the load never started
    latency: RawTable | None  # raw samples; None: withheld or not observed


def save(run: StoredRun, verdict: Verdict) -> Measurement | None:
    """Measure a run and write the results to its folder."""
    store, found, recovered = run.store, Measured(None, None, None), tuple[Recovery, ...]()
    if verdict.totals:  # otherwise it could not be judged, and none of its files is trusted
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


def _in_texts(latency: RawTable) -> Iterator[dict[str, pa.Array]]:
    """Convert ways to their names, in parts."""
    for part in latency.parts():
        for batch in part.to_batches(max_chunksize=ROWS_AT_ONCE) or (part,):
            columns = {name: batch.column(name) for name in part.column_names}
            yield columns | {"way": columns["way"].cast(pa.string())}


def recoveries(run: StoredRun, verdict: Verdict) -> tuple[Recovery, ...]:
    """Measure recoveries separately from the measurement.

    Faults that delay the generator, or make counts wrong, are those with the recoveries of interest. They are measured
    against due times, so a void load check does not matter.
    """
    if next(run.store.history("epoch"), None) is None:
        return ()
    return recovery.of_run(run, not_right(verdict))


def measure(run: StoredRun, verdict: Verdict) -> Measured:
    """Measure all. If speed is withheld, do not even compute latency."""
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
    sends = of_load(run.sends.select(["intended_us", "finished_us", "sent"]).table())
    load_s, events = pc.max(sends.column("finished_us")).as_py() / 1e6, pc.sum(sends.column("sent")).as_py()
    waited = run.schedule.warm_up_total if run.spec.tape.waits else 0
    lines, resources = Lines(run), _since_epoch(run, cost.resources_of(run))
    by_second = latency.by_second if latency else None
    bursts, catch_up = bursting.of_run(run, by_second), backlog_catch_up.of_run(run, by_second)
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
        cost=() if resources is None else cost.costs(resources, events, waited),
        waited=waited,
        cost_withheld=cost.elsewhere(run.spec),
        checkpoint_bytes=_checkpoint_bytes(run),
        gc_s=_gc_s(run),
        steady=None if bursts or _is_behind(catch_up) else _steady(run, table, load_s),  # at one rate, caught up
        observer=_observer(store, resources),
        catch_up=catch_up,
        bursts=bursts,
        growth=growth.of_run(run),
        company=company.of_run(run),
        table_files=table_layout.of_run(run),
        window_state=window_state.of_run(run),
    )


def _is_behind(catch_up: CatchUp | None) -> bool:
    """A backlog at the end of the load is no steady state, though it may look like one: hardly any of it changes."""
    return catch_up is not None and catch_up.caught_up.value is None


def _steady(run: StoredRun, table: pa.Table, load_s: float) -> Steady:
    return steady.find(table, load_s, run.spec.window_ms / 1000, run.spec.tape.warmed_ms / 1000)


def _outside_ends(latency: LatencyResult | None, lines: Lines) -> OutsideEnds | None:
    """The end of a batch only matters if results appear while the batch runs."""
    found = latency.outside_ends if latency else None
    if found is None or found.withheld or lines.processed_as_seen:
        return found
    return replace(found, latency=(), withheld=ONLY_THEN)


def _last_change_ms(run: StoredRun, ended_ms: int) -> int:
    """Return when the last result of the load was seen: the wait that follows is the harness' own, not the engine's."""
    samples = unless_missing(lambda: run.samples)
    if samples is None or not samples.num_rows:
        told = next(run.store.history("still"), None)
        return int(told["since_ms"]) if told else ended_ms
    key, field, at_us = (np.asarray(samples.column(name).to_numpy()) for name in ("campaign", "window_ms", "at_us"))
    ours = np.isin(run.oracle.codes.of(key, field), totals_of(run.oracle, run.codec, run.marks).cell)
    return int(at_us[~ours].max(initial=0)) // 1000


def taken_of(store: Store) -> str:
    """Return the CPU taken from the machine during load and drain, in words; "" if it does not matter."""
    return next((str(entry["words"]) for entry in store.history("taken")), "")


def _processed_per_s(lines: Lines, load_s: float) -> float | None:
    """Count events processed during the load: neither those of the drain nor those reported before they were sent."""
    if lines.processed is None or lines.sent is None or load_s <= 0:
        return None
    ends_s = np.array([0.0, load_s])
    begin, end = np.minimum(lines.processed.known(ends_s), lines.sent.known(ends_s))
    return float(end - begin) / load_s


def _catch_up_per_s(lines: Lines) -> float | None:
    return progress_curve.catch_up_per_s(lines.processed, lines.sent) if lines.processed and lines.sent else None


def _checkpoint_bytes(run: StoredRun) -> int | None:
    """Take the last value."""
    known = _known_of_state(run, "checkpoint_bytes")
    return int(known[-1]) if known else None


def _gc_s(run: StoredRun) -> float | None:
    """Take load and drain."""
    known = [] if cost.elsewhere(run.spec) else _known_of_state(run, "gc_s")
    return known[-1] - known[0] if known else None


def _since_epoch(run: StoredRun, table: pa.Table | None) -> pa.Table | None:
    """Start at the last sample before the load, because earlier use is no cost of the load."""
    if table is None:
        return None
    before = pc.max(table.filter(pc.less_equal(table.column("at_ms"), run.epoch_ms)).column("at_ms")).as_py()
    return table if before is None else table.filter(pc.greater_equal(table.column("at_ms"), before))


def _known_of_state(run: StoredRun, name: str) -> list[float]:
    table = _since_epoch(run, unless_missing(lambda: run.store.read_table("state.parquet")))
    return [] if table is None else [value for value in table.column(name).to_pylist() if value is not None]


def _observer(store: Store, resources: pa.Table | None) -> Observer | None:
    """Combine the observer's own figures with the CPU of the harness process that it runs in."""
    told = next(store.history("observer"), None)
    share = cost.cpu_share(resources, "harness") if resources is not None else None
    if told is None or share is None:
        return None
    names = ("period_ms", "period_p99_ms", "scans", "cells_sampled_share")
    return Observer(**{name: told[name] for name in names}, cpu_share=share)
