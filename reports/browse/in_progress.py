"""The phase of a run that is being written, from its own files: they are all that another process needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from harness.model import RunSpec
from harness.rundir.store import HISTORY, Store
from harness.util.texts import printable, readable, shown
from reports.live.follow import LINES

# A line of the history -> the phase that it begins, in the order of a run.
PHASES = {
    "made": "it is being prepared",
    "begin": "Kafka, Redis and the engine start",
    "started": "the engine starts",
    "ready": "the engine has counted the opening events",
    "epoch": "load",
    "loaded": "the load is sent, and the engine drains",
    "still": "the results are stable",
    "stopped": "the engine has stopped",
    "closed": "the evidence is complete, and is judged",
    "verdict": "it is judged",
}
RANKS = {kind: rank for rank, kind in enumerate(PHASES)}
LOAD = "epoch"
TAIL = 1 << 16  # bytes of a history that are shown
CUT_OFF = "(cut off)"
NO_LINE = "its history has no line yet"
APART_MS = 60_000


@dataclass(frozen=True)
class Progress:
    """The state of a run in progress."""

    phase: str
    begun_s: float | None  # how long ago; None: unknown
    quiet_s: float | None  # since it wrote a line

    @property
    def sentence(self) -> str:
        words = [self.phase]
        if self.begun_s is not None:
            words.append(f"begun {ago(self.begun_s)}")
        if self.quiet_s is not None:
            words.append(f"last written {ago(self.quiet_s)}")
        return "; ".join(words)


def read(store: Store, spec: RunSpec | None, now_ms: int) -> Progress:
    history = store.path / HISTORY
    written_ms = _written_ms(history)
    lines, last_ms = list(store.history(*PHASES)), _last_ms(tail(history))
    found = progress_of(lines, spec, now_ms, written_ms or 0, last_ms)
    newest_ms = max(written_ms or 0, _written_ms(store.path / LINES) or 0)
    return replace(found, quiet_s=_since_s(newest_ms, now_ms) if newest_ms else None)


def _written_ms(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return None


def _last_ms(lines: Sequence[Line]) -> int:
    return next((each.at_ms for each in reversed(lines) if each.at_ms), 0)


def progress_of(
    lines: Sequence[Mapping[str, Any]], spec: RunSpec | None, now_ms: int, written_ms: int, last_ms: int
) -> Progress:
    """Return the progress by the lines of a history that begin a phase. A run never goes back to an earlier phase: an
    engine that starts again after a fault does so within the load.

    The history was written at `written_ms` by this machine's clock, and its last line is of `last_ms` by the run's. If
    these are apart, the run simulates its clock, and its load has no place in our time.
    """
    if not lines:
        return Progress(NO_LINE, None, None)
    latest = max(lines, key=lambda line: RANKS[line["kind"]])
    phase, made_ms, epoch_ms = PHASES[latest["kind"]], lines[0].get("at_ms"), latest.get("epoch_ms")
    if latest["kind"] == LOAD and isinstance(epoch_ms, int) and abs(written_ms - last_ms) < APART_MS:
        phase = _of_the_load(now_ms - epoch_ms, spec)
    begun_s = _since_s(made_ms, now_ms) if isinstance(made_ms, int) else None
    return Progress(phase, begun_s, _since_s(written_ms, now_ms))


@dataclass(frozen=True)
class Line:
    """A line of a history for people. One that is cut off is shown as it is."""

    at_ms: int
    kind: str
    facts: str


def tail(path: Path) -> list[Line]:
    """Return the last lines of a history, which may grow at the same time."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            lines = file.read(TAIL).split(b"\n")
    except OSError:
        return []
    return [_line(each) for each in (lines[1:] if size > TAIL else lines) if each.strip()]


def _line(line: bytes) -> Line:
    try:
        facts = msgspec.json.decode(line, type=dict[str, Any])
    except (ValueError, RecursionError):
        return Line(0, CUT_OFF, shown(printable(readable(line))))
    at_ms, kind = facts.pop("at_ms", 0), str(facts.pop("kind", ""))
    words = ", ".join(f"{name} {_text(value)}" for name, value in facts.items())
    return Line(at_ms if isinstance(at_ms, int) else 0, shown(printable(kind)), shown(printable(words)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _of_the_load(since_ms: int, spec: RunSpec | None) -> str:
    if since_ms < 0:
        return f"the load starts in {-since_ms / 1000:.0f} s"
    if spec is None:
        return f"load, for {since_ms / 1000:.0f} s"
    if since_ms > spec.tape.load_ms:
        return f"the end of a load of {spec.tape.load_ms / 1000:.0f} s"
    return f"load, {since_ms / 1000:.0f} s of {spec.tape.load_ms / 1000:.0f} s"


def _since_s(at_ms: int, now_ms: int) -> float:
    return max(0.0, (now_ms - at_ms) / 1000)


def ago(seconds: float) -> str:
    """Write an age in one or two units: `7 s ago`, `2 min 5 s ago`, `3 h 10 min ago`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s ago"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s ago"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min ago"
    return f"{whole // 86400} days ago"
