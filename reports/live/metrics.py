"""A run's state as OpenMetrics text: a pure function of what reports/live/state.py has folded.

A family is missing as long as nothing is known of it. Cells are right *so far*; checks come with the verdict. All types
exist in the older text format of Prometheus, too, so that node_exporter's textfile collector reads the same text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reports.exports.openmetrics_text import Family, Labels, Sample, as_text
from reports.live.state import FAULT_STATES, MEAN_OF_S, PROBES_OF_S, RunState

FILE = "metrics.prom"
OUTCOMES = ("PASS", "FAIL", "UNKNOWN")
ABOUT = ("scenario", "engine", "sink", "workload", "seed", "disorder")
COMMON = ("scenario", "engine", "sink")


def of_run(state: RunState, run: str) -> str:
    """Return the text. Each sample has the name of the run, its scenario, engine and sink as labels."""
    return as_text(families(state), common(state, run))


def common(state: RunState, run: str) -> dict[str, str]:
    return {"run": run} | {name: str(state.about[name]) for name in COMMON if name in state.about}


def with_labels(found: Iterable[Family], labels: Labels) -> list[Family]:
    """Return the families with these labels on each sample."""
    return [
        replace(each, samples=tuple(Sample({**labels, **own}, value, suffix) for own, value, suffix in each.samples))
        for each in found
    ]


def families(state: RunState) -> Iterator[Family]:
    if state.about:
        about = {name: str(state.about.get(name, "")) for name in ABOUT if name not in COMMON}
        yield _family("run_info", "gauge", "", "What runs.", [Sample(about, 1)])
    yield from _progress(state)
    yield from _events(state)
    yield from _latency(state)
    yield _family(
        "cells",
        "gauge",
        "",
        "Cells by how they stand: so far, until there is a verdict.",
        (Sample({"stands": name}, count) for name, count in state.numbers.items()),
    )
    yield _family(
        "fault",
        "gauge",
        "",
        "1 at the state of each fault.",
        (
            Sample({"fault": fault["text"], "state": name}, int(fault["state"] == name))
            for fault in state.faults
            for name in FAULT_STATES
        ),
    )
    yield from _parts(state)
    yield from _verdict(state)


def _progress(state: RunState) -> Iterator[Family]:
    names = list(dict.fromkeys(phase.name for phase in state.phases))
    current = state.phase.name if state.phase else ""
    samples = [Sample({"phase": name}, int(name == current)) for name in names]
    yield _family("phase", "gauge", "", "1 at the phase that goes on.", samples)
    if state.phase and state.phase.ends_ms is not None:
        left_s = max(0.0, (state.phase.ends_ms - state.now_ms) / 1000)
        help_ = "Time until the phase ends, by the plan or at the latest."
        yield _family("phase_left_seconds", "gauge", "seconds", help_, [Sample({}, left_s)])


def _events(state: RunState) -> Iterator[Family]:
    counts = state.counts
    if not counts.at_ms:
        return
    yield _family("planned_events", "gauge", "events", "Events of the whole load.", [Sample({}, counts.planned)])
    about = "Events that were sent."
    yield _family("offered_events", "counter", "events", about, [Sample({}, counts.offered, "_total")])
    for name, value, about in (
        ("processed_events", counts.processed, "Events that the engine has processed; a replay takes some back."),
        ("visible_events", counts.visible, "Events that the results show; a wrong engine takes some back."),
        ("backlog_events", counts.backlog, "Events that were sent and are not processed."),
    ):
        yield _family(name, "gauge", "events", about, [] if value is None else [Sample({}, value)])
    rates = {"offered": state.rates.offered, "processed": state.rates.processed, "visible": state.rates.visible}
    yield _family(
        "rate_events_per_second",
        "gauge",
        "events_per_second",
        f"Events in a second: offered, and processed and visible as a mean of {MEAN_OF_S:g} s.",
        (Sample({"of": name}, value) for name, value in rates.items() if value is not None),
    )


def _latency(state: RunState) -> Iterator[Family]:
    if not state.probes_seen:
        return
    quantiles = (("0.5", state.p50_ms), ("0.99", state.p99_ms))
    samples = [Sample({"quantile": name}, ms / 1000) for name, ms in quantiles if ms is not None]
    about = (
        "From when a probe was due until the results show it. Quantiles of the probes that appeared in the last "
        f"{PROBES_OF_S:g} s, the count of all."
    )
    count = Sample({}, state.probes_seen, "_count")
    yield _family("probe_latency_seconds", "summary", "seconds", about, [*samples, count])


def _parts(state: RunState) -> Iterator[Family]:
    cpu = [Sample({"part": part.name}, part.cpu_s, "_total") for part in state.parts]
    memory = [Sample({"part": part.name}, part.rss_bytes) for part in state.parts]
    yield _family("cpu_seconds", "counter", "seconds", "CPU time of each part of the run.", cpu)
    yield _family("memory_bytes", "gauge", "bytes", "Resident memory of each part of the run.", memory)


def _verdict(state: RunState) -> Iterator[Family]:
    verdict = state.verdict
    outcome = verdict["outcome"] if verdict else None
    judged = [Sample({"verdict": each}, int(each == outcome)) for each in OUTCOMES]
    yield _family("verdict", "gauge", "", "1 at the verdict of the run; 0 at each as long as there is none.", judged)
    checks: Iterable[Sample] = (
        Sample({"check": check["name"], "outcome": each}, int(check["outcome"] == each))
        for check in (verdict["checks"] if verdict else ())
        for each in OUTCOMES
    )
    yield _family("check", "gauge", "", "1 at the outcome of each check.", checks)
    early = int(bool(state.ended) and verdict is None)  # a command can be stopped while it draws the page
    yield _family("ended_early", "gauge", "", "1 if it ended without a verdict.", [Sample({}, early)])


def _family(name: str, kind: str, unit: str, about: str, samples: Iterable[Sample]) -> Family:
    return Family(f"streamgauge_{name}", kind, unit, about, tuple(samples))
