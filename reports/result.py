"""A run as its reports see it: read from its directory, never from a live system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.experiments.chaos import against_claim
from harness.judging.stored_run import StoredRun
from harness.measuring.measure import RECOVERY, taken_of, withheld
from harness.measuring.measurement import Measurement, Recovery
from harness.metering import clock_steps
from harness.model import Backfill, Certificate, RunSpec, Verdict
from harness.rundir.store import MissingEvidence, Store, unless_missing


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
    began_ms: int | None = None  # None: not known
    simulated: bool = False  # by a clock whose dates are none
    took_s: float = 0.0
    clock: str = ""  # what was odd about the clocks
    taken: str = ""  # from the machine
    backfill: Backfill | None = None  # None: there was none
    guarantee: str = ""  # whether a FAIL is within the one that the sink declares

    @property
    def began(self) -> datetime | None:
        return None if self.began_ms is None or self.simulated else datetime.fromtimestamp(self.began_ms / 1000, UTC)

    @property
    def withheld(self) -> str:
        return "" if self.measurement else withheld(self.spec, self.verdict, self.certificate, self.clock)


def span_ms(store: Store) -> tuple[int, int] | None:
    """From when to when a run went on; None where its history does not say."""
    begin = next(store.history("begin"), None)
    end = next(store.history("verdict"), None) or next(store.history("engine"), None)
    return (begin["at_ms"], end["at_ms"]) if begin and end else None


def guarantee_of(run: StoredRun) -> str:
    """As the guarantee card has it; "" where the run did not come so far that it can be said."""
    try:
        verdict, faults, engine, claim = run.verdict, run.faults, run.engine, run.claim
    except MissingEvidence:
        return ""
    return against_claim(verdict, faults, engine.state, claim.guarantee, planned=run.spec.fault.planned)


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
        simulated=bool(unless_missing(lambda: run.manifest.simulated)),
        clock=clock_steps.in_words(store),
        taken=taken_of(store),
        backfill=run.backfill,
        guarantee=guarantee_of(run),
        took_s=0.0 if began_ms is None else (ended_ms - began_ms) / 1000,
    )
