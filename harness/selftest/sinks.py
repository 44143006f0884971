"""Reference sinks of known class on the fake engine, under the faults that distinguish them, and engines with one bug
each. These are whole runs: tape, log, engine, results, polls, judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.engines import fake
from harness.engines.fake_memory import FakeClock
from harness.model import CRASH_POINTS, EngineManifest
from harness.selftest.report import words_of
from harness.selftest.runs import fake_run

PARTS = ("sinks", "engines")  # parts of expected.toml
SINKS = ("absolute", "fenced", "increment", "marker-first", "marker-last")
STEPS_AFTER_MS = 9000
KILLED_IN_IT = {"fault": "kill@c3:t>=6s"}


def outcomes(folder: Path) -> Iterator[tuple[str, str]]:
    for name, dials in sinks():
        yield name, _outcome(folder, dials)
    for name, dials in engines():
        yield name, _outcome(folder, dials)


def sinks() -> Iterator[tuple[str, dict[str, Any]]]:
    for sink in SINKS:
        for point in CRASH_POINTS:
            yield f"{sink}, killed at {point}", {"sink": sink, "fault": f"kill@{point}:batch=3"}
    for sink in SINKS[:3]:
        yield f"{sink}, overtaken at c2", {"sink": sink, "fault": "zombie@c2:batch=3"}
        yield f"{sink}, its open plan deleted", {"sink": sink, "fault": "kill@c3:batch=3", **bug("replan")}


def engines() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "honest, in order", {}
    yield "honest, in a storm", {"disorder": "storm", "sink": "fenced"}
    yield "loses one in 100", bug("drop:100")
    yield "counts one in 100 twice", bug("double:100")
    yield "loses one in the warm-up", {**warm_up(), **bug("drop:1600")}
    yield "counts one in the warm-up twice", {**warm_up(), **bug("double:1600")}
    yield "counts one in the warm-up an hour ahead", {**warm_up(), **bug("future-window:1600")}
    yield "loses one in the backlog", {**backlog(), **bug("drop:1600")}
    yield "counts one in the backlog twice", {**backlog(), **bug("double:1600")}
    yield "begins behind the backlog", {**backlog(), **bug("latest")}
    yield from of_a_history()
    yield "honest, killed in a burst", {**burst(), **KILLED_IN_IT}
    yield "drops what does not fit its queue in a burst", {**burst(), **bug("overflow:200")}
    yield "counts a batch of a burst twice after a kill", {**burst(), **KILLED_IN_IT, **bug("large-twice:200")}
    yield "the same, killed before the burst", {**burst(), "fault": "kill@c3:t>=3s", **bug("large-twice:200")}
    yield "counts one in 100 an hour ahead", bug("future-window:100")
    yield "counts one in 100 for a stranger", bug("stranger:100")
    yield "writes no numbers", bug("garble:7")
    yield "counts another one twice for each it loses", {**bug("swap:100"), "checksum": True}
    yield "the same, without checksums", bug("swap:100")
    yield "shows a text for a while", bug("visiting-text")
    yield "shows an unknown window for a while", bug("visiting-window")
    yield "shows an unknown campaign for a while", bug("visiting-stranger")
    yield "stops after a while", bug("stall")
    yield "stops to report its progress, and goes on counting", bug("told-to:9")
    yield "tells of twice as many records as it has done", bug("twice-done")
    yield "tells of 1,000 records beyond the log's end", bug("beyond:1000")
    yield "tells of records before they are sent", bug("hasty:2")
    yield "never answers", bug("mute")
    yield "ends by itself", bug("die")
    yield "doubles all counts when it is told to stop", bug("double-at-stop")
    yield "writes what it has only when it is told to stop", bug("flush-at-stop")
    yield "its results vanish in 60 s", bug("expire:60")
    yield "its results vanish in 60 s, as declared", {**bug("expire:60"), "manifest": keeping_for(60)}
    yield "its results vanish in 20 s, where 600 s are declared", {**bug("expire:20"), "manifest": keeping_for(600)}
    yield "its results vanish in 20 s from the stop on", bug("expire-at-stop:20")
    yield "drops what it may, and is allowed to", {"disorder": "late"}
    yield "drops what it may, and is not allowed to", {"disorder": "late", "late_dropped_max": 0}
    yield from closing()
    yield from clocked()
    yield from waited_for()
    yield from asked()
    yield from looked_into()
    yield from with_a_big_state()
    yield "killed when it is too late to be", {"fault": "kill@c3:batch=100000"}


def of_a_history() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield runs with older events in files, and disorder across the seam."""
    yield "reads files and Kafka", history()
    yield "reads files and Kafka, and is killed", {**history(), "fault": "kill@c3:batch=2"}
    yield "reads files and Kafka, by time", {**history(), "history": "40s", "seam": "time"}
    yield "begins in Kafka one record too early", {**history(), **bug("early")}
    yield "begins in Kafka one record too late", {**history(), **bug("late")}
    yield "reads all that Kafka has beside the files", {**history(), **bug("earliest")}
    yield "counts the window in which the files end on both sides", {**history(), **bug("last-window")}
    yield "reads half of a torn file, and says nothing", {**history(), **bug("torn")}
    yield "hands over what the files held without its last batch", {**history(), **bug("stale-files")}


def closing() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield runs whose results come when windows close, without evidence of late events."""
    claim = replace(fake.MANIFEST.sinks[0], final=True, crash_points=())
    final: dict[str, Any] = {"manifest": replace(fake.MANIFEST, evidence="none", sinks=(claim,)), "sink": "absolute"}
    killed = {**final, "fault": "kill@t>=5s", "watermark": "2s"}
    # So long that two windows of the load close at once, whenever they begin.
    paused = {**final, "fault": "pause(for=9s)@t>=2s", "watermark": "2s"}
    slow = bug("slow-start:6")
    yield "writes a window when it closes", final
    yield "writes a window when it closes, and is killed", {**killed, **slow}
    yield "writes a window when it closes, and is paused", paused
    yield "writes a window when it closes, and one alone of several", {**paused, **bug("close-one")}


def clocked() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield runs during which the machine's clock steps."""
    for by_ms, words in ((-3000, "back by 3 s"), (3000, "ahead by 3 s"), (-3_600_000, "back by an hour")):
        steps = ((STEPS_AFTER_MS, by_ms),)
        yield f"the clock is set {words}", {"clock": FakeClock(steps=steps)}
        yield f"the clock is set {words}, and one in 100 is lost", {"clock": FakeClock(steps=steps), **bug("drop:100")}


def waited_for() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield runs of engines that need the right wait: slow ones that are right, and some that lose events."""
    silent: dict[str, Any] = {"manifest": replace(fake.SILENT, ready_s=80.0, drain_s=80.0)}
    killed = {**silent, "fault": "kill@t>=5s"}
    keeps = {"sink": "fenced"}
    yield "reports no progress", silent
    yield "reports no progress, and loses one in 100", {**silent, **bug("drop:100")}
    yield "reports no progress, and stops after a while", {**silent, **bug("stall")}
    late = {"disorder": "mobile", **bug("short-watermark:100")}
    yield "drops as late what is in time", late
    yield "drops as late what is in time, and reports no progress", {**silent, **late}
    steady = {**killed, "disorder": "mobile", "duration": "24s"}
    yield "reports no progress, and has an empty state after a kill", {**steady, **bug("no-checkpoint")}
    yield "reports no progress, and has an older state after a kill", {**steady, **bug("stale-checkpoint")}
    yield "writes every 50 s", {**silent, **bug("flush:50")}
    yield "writes every 50 s, and keeps late events", {**silent, **keeps, **bug("flush:50")}
    yield "writes every 50 s, and is killed", {**killed, **bug("flush:50")}
    yield "is back 65 s after a kill", {**killed, **bug("slow-start:65")}
    yield "is back 65 s after a kill, and keeps late events", {**killed, **keeps, **bug("slow-start:65")}
    yield "is back 100 s after a kill, later than it claims", {**killed, **bug("slow-start:100")}
    yield "never comes back after a kill", {**killed, **bug("slow-start:1000")}
    yield "goes on at the end of the log after a kill", {**killed, **bug("forget")}
    upgraded = {"fault": "change-job@batch>=8", "sink": "absolute"}
    yield "hands its state over without its last batch", {**upgraded, **bug("stale-state")}
    yield "gets no CPU", bug("starve")
    yield "is killed for want of memory", bug("eat-memory")
    yield "gets no CPU, and reports no progress", {**silent, **bug("starve")}
    yield "counts equal records once", bug("dedupe-values")
    yield "counts records with equal keys once", bug("dedupe-keys")


def asked() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield runs in which another job takes over and answers another question."""
    clicks, dials = "change-job(counts=click, means=carry)", {"sink": "absolute", "campaigns": 60, "rate": 1000}
    yield "asked for clicks from now on", {**dials, "fault": f"{clicks}@batch>=16"}
    yield "asked for ads from now on", {**dials, "fault": "change-job(by=ad, means=carry)@batch>=16"}
    yield "asked for longer windows", {**dials, "fault": "change-job(window=6s, means=carry)@batch>=16"}
    yield "asked for clicks, and of all that was", {**dials, "fault": f"{clicks.replace('carry', 'fresh')}@batch>=16"}
    yield "asked for clicks, and goes on as before", {**dials, "fault": f"{clicks}@batch>=16", **bug("deaf")}
    yield (
        "asked for clicks, and keeps half of its state",
        {**dials, "fault": f"{clicks}@batch>=16", **bug("half-state")},
    )
    yield "asked for clicks, and keeps no state", {**dials, "fault": f"{clicks}@batch>=16", **bug("empty-state")}
    sparse = {**dials, "campaigns": 500, "fault": f"{clicks}@c3:batch=16"}
    yield "asked for clicks behind a write that was not committed", sparse
    yield "asked for clicks, of five campaigns", {**dials, "campaigns": 5, "fault": f"{clicks}@batch>=16"}


def looked_into() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield runs whose state is copied after ten batches."""
    dials = {"sink": "absolute", "states": 10, "duration": "24s", "disorder": "mobile"}
    yield "its state is kept", dials
    yield "its state is kept, and some events are late", {**dials, "disorder": "late"}
    yield "its state is kept, and it is killed", {**dials, "fault": "kill@c3:batch=20"}
    yield "its state is that of the batch before", {**dials, **bug("old-copies")}
    yield "its state lacks a cell", {**dials, **bug("leaky-copies")}
    yield "its state keeps what is over", {**dials, **bug("evict-nothing")}
    yield "one cell of its state is never written", {**dials, **bug("withhold")}


def with_a_big_state() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield runs whose state keeps everything until the end of the load."""
    dials = {"sink": "absolute", "watermark": "60s", "disorder": "mobile"}
    killed = {**dials, "fault": "kill@c3:batch=8; kill@c3:batch=16"}
    yield "nothing leaves its state, and it is killed twice", killed
    yield "has an empty state after a kill", {**killed, **bug("no-checkpoint")}
    yield "has the state before its last batch after a kill", {**killed, **bug("stale-checkpoint")}
    yield "each commit takes longer, and is soon enough", {**dials, **bug("thrash:10")}
    yield "each commit takes longer, until it stands still", {**dials, **bug("thrash:1000")}


def warm_up() -> dict[str, Any]:
    """Return a warm-up so long that only one view is the 1,600th, which is before the load start."""
    return {"warm_up": "24s", "disorder": "mobile"}


def backlog() -> dict[str, Any]:
    """Return the same length as a backlog before the engine starts."""
    return {"backlog": "24s", "disorder": "mobile"}


def history() -> dict[str, Any]:
    return {"history": "24s", "backlog": "6s", "disorder": "mobile"}


def burst() -> dict[str, Any]:
    """Return a burst of ten times the rate, from 5 s on and for 2 s."""
    return {"profile": {"kind": "burst", "factor": 10, "burst_ms": 2000}, "disorder": "mobile"}


def keeping_for(seconds: float) -> EngineManifest:
    return replace(fake.MANIFEST, retention_s=seconds)


def bug(kind: str) -> dict[str, Any]:
    return {"conf": {"misbehave": kind}}


def _outcome(folder: Path, dials: dict[str, Any]) -> str:
    verdict, _ = fake_run(folder, **dials)
    return words_of(verdict)
