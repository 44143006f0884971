"""A judged run as its reports read it: from its directory, never from a live system."""

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
from harness.rundir.missing_evidence import MissingEvidence, unless_missing
from harness.rundir.store import Store


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
    notes: tuple[str, ...] = ()  # problems of the engine that did not end the run
    began_ms: int | None = None  # None: unknown
    simulated: bool = False  # its clock is simulated, thus it has no dates
    took_s: float = 0.0
    clock: str = ""  # problems of the clocks
    taken: str = ""  # CPU time that others took from the machine
    backfill: Backfill | None = None  # None: the run had none
    guarantee: str = ""  # whether a FAIL is within the sink's declared guarantee

    @property
    def began(self) -> datetime | None:
        return None if self.began_ms is None or self.simulated else datetime.fromtimestamp(self.began_ms / 1000, UTC)

    @property
    def withheld(self) -> str:
        return "" if self.measurement else withheld(self.spec, self.verdict, self.certificate, self.clock)


def span_ms(store: Store) -> tuple[int, int] | None:
    """Return the begin and the end of a run; None if its history lacks one of them."""
    begin = next(store.history("begin"), None)
    end = next(store.history("verdict"), None) or next(store.history("engine"), None)
    return (begin["at_ms"], end["at_ms"]) if begin and end else None


def guarantee_of(run: StoredRun) -> str:
    """Compare the verdict with the sink's claim, as the guarantee card does; "" if the run ended too early for that."""
    try:
        verdict, faults, engine, claim = run.verdict, run.faults, run.engine, run.claim
    except MissingEvidence:
        return ""
    return against_claim(verdict, faults, engine.state, claim.guarantee, planned=run.spec.fault.planned)


def read(path: Path) -> Result:
    """Read a run. Raises MissingEvidence if it was not judged yet."""
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
