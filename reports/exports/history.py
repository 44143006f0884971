"""A gate as an entry of the user's history."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from harness.experiments.gating.gate import BASE, HEAD, Effect
from harness.experiments.gating.history import Entry, Figure, Stood, environment_of, versions_of
from harness.judging.stored_run import StoredRun
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store, made_ms
from reports.gated import Record


def of_gate(record: Record) -> Entry:
    """Return the entry. A gate with wrong counts has no metrics, only its verdicts."""
    found, asked = record.found, record.asked
    return Entry(
        at=datetime.fromtimestamp((made_ms(record.folder.path) or 0) // 1000, UTC),
        engine=_engine(record),
        base=_stood(record, BASE),
        head=_stood(record, HEAD),
        answer=found.answer,
        sentence=found.sentence,
        threshold=asked["threshold"],
        rounds=record.rounds_a_side,
        burst_events=asked["burst_events"],
        round_events=record.rounds[0].events if record.rounds else 0,
        flags=asked["flags"],
        environment=environment_of(record.environment),
        metrics=tuple(_figure(record, each) for each in found.effects) if found.right else (),
    )


def _engine(record: Record) -> str:
    """The engine with its sink; "" if the head never became a run."""
    with suppress(MissingEvidence):
        return f"{record.engine}/{StoredRun(Store(record.folder.path / record.found.sides[HEAD].run)).spec.sink}"
    return ""


def _stood(record: Record, side: str) -> Stood:
    """For a stored baseline the name is its file."""
    judged = record.found.sides[side]
    versions = versions_of(Store(record.folder.path / judged.run))
    return Stood(record.asked[side], judged.outcome, record.commits.get(side, ""), versions)


def _figure(record: Record, effect: Effect) -> Figure:
    typical = record.typical(effect)
    return Figure(
        metric=effect.metric,
        unit=effect.unit,
        ratio=effect.head.estimate,
        low=effect.head.low,
        high=effect.head.high,
        level=effect.level,
        error=effect.head.error,
        detectable=effect.detectable,
        answer=effect.answer,
        base=None if record.found.stored else typical.get(BASE),
        head=typical.get(HEAD),
        declined=effect.declined,
    )
