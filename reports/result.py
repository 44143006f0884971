"""A run as its reports see it: read from its directory, never from a live system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.measuring.measure import RECOVERY, taken_of, withheld
from harness.measuring.measurement import Measurement, Recovery
from harness.model import Backfill, Certificate, RunSpec, Verdict
from harness.store import Store, unless_missing
from harness.stored import StoredRun
from harness.watching import clock_watch


@dataclass(frozen=True)
class Result:
    """One judged run."""

    path: Path
    spec: RunSpec
    verdict: Verdict
    certificate: Certificate | None
    measurement: Measurement | None
    recovery: tuple[Recovery, ...]
    environment: Mapping[str, Any]
    notes: tuple[str, ...] = ()  # what was odd about the engine, and survivable
    began_ms: int | None = None  # by the clock of its world; None: not known
    took_s: float = 0.0
    clock: str = ""  # what was odd about the clocks
    taken: str = ""  # from the machine
    backfill: Backfill | None = None  # None: there was none

    @property
    def began(self) -> datetime | None:
        return None if self.began_ms is None else datetime.fromtimestamp(self.began_ms / 1000, UTC)

    @property
    def withheld(self) -> str:
        return "" if self.measurement else withheld(self.spec, self.verdict, self.certificate, self.clock)


def span_ms(store: Store) -> tuple[int, int] | None:
    """From when to when a run went on; None where its history does not say."""
    begin = next(store.history("begin"), None)
    end = next(store.history("verdict"), None) or next(store.history("engine"), None)
    return (begin["at_ms"], end["at_ms"]) if begin and end else None


def read(path: Path) -> Result:
    """Raises MissingEvidence when the run was not judged yet."""
    run = StoredRun.open(path)
    store = run.store
    began_ms, ended_ms = span_ms(store) or (None, 0)
    return Result(
        path=path,
        spec=run.spec,
        verdict=run.verdict,
        certificate=unless_missing(lambda: run.certificate),
        measurement=store.read_as("measurement.json", Measurement | None),
        recovery=store.read_as(RECOVERY, tuple[Recovery, ...]) if store.has(RECOVERY) else (),
        environment=store.read_as("environment.json", dict[str, Any]),
        notes=tuple(note for entry in store.history("closed") for note in entry["notes"]),
        began_ms=began_ms,
        clock=clock_watch.in_words(store),
        taken=taken_of(store),
        backfill=run.backfill,
        took_s=0.0 if began_ms is None else (ended_ms - began_ms) / 1000,
    )
