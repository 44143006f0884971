"""A gate as the line that the user's history gets of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from harness.experiments.gate import BASE, HEAD, Effect
from harness.experiments.history import Entry, Figure, Stood
from harness.store import MissingEvidence, Store, made_ms
from harness.stored import manifest_of, spec_of
from reports.gated import Record

# What engines are built on. Of those that run on a Python of their user's nothing is known.
FRAMEWORKS = ("pyspark", "apache-flink", "quixstreams")


def of_gate(record: Record) -> Entry:
    """Nothing but the verdicts of a gate in which somebody counted wrong."""
    found, asked = record.found, record.asked
    return Entry(
        at=datetime.fromtimestamp((made_ms(record.folder.path) or 0) // 1000, UTC),
        engine=_engine(record),
        base=_stood(record, BASE),
        head=_stood(record, HEAD),
        answer=found.answer,
        sentence=found.sentence,
        threshold=asked["threshold"],
        rounds=found.rounds,
        burst_events=asked["burst_events"],
        flags=asked["flags"],
        environment=_environment(record.environment),
        metrics=tuple(_figure(record, each) for each in found.effects) if found.right else (),
    )


def _engine(record: Record) -> str:
    """As runs are shown: with its sink. "" where the head never became a run."""
    with suppress(MissingEvidence):
        return f"{record.engine}/{spec_of(Store(record.folder.path / record.found.sides[HEAD].run)).sink}"
    return ""


def _stood(record: Record, side: str) -> Stood:
    judged = record.found.sides[side]
    versions = _versions(Store(record.folder.path / judged.run))
    return Stood(record.named[side], judged.outcome, record.commits.get(side, ""), versions)


def _versions(run: Store) -> dict[str, str]:
    try:
        environment: dict[str, Any] = run.read_json("environment.json")
        ours = manifest_of(run).command[:1] == ("{python}",)
    except MissingEvidence:
        return {}
    packages = environment.get("packages of the engine") or (environment.get("packages", {}) if ours else {})
    return {name: packages[name] for name in FRAMEWORKS if name in packages}


def _environment(told: Mapping[str, Any]) -> dict[str, str]:
    """By the names that harness/experiments/history.py decides by."""
    granted = told.get("granted", {})
    quota = granted.get("quota", "none")
    cores = f"{granted.get('cores', '')}" + ("" if quota == "none" else f", quota {quota}")
    names = ("machine", "cpu", "kernel", "java", "python", "streamgauge")
    known = {name: str(told.get(name, "")) for name in names}
    return {**known, "cores": cores, "kafka": str(told.get("embedded kafka", ""))}


def _figure(record: Record, effect: Effect) -> Figure:
    typical = record.typical(effect)
    return Figure(
        metric=effect.metric,
        unit=effect.unit,
        ratio=effect.head.estimate,
        low=effect.head.low,
        high=effect.head.high,
        level=effect.level,
        detectable=effect.detectable,
        answer=effect.answer,
        base=typical.get(BASE),
        head=typical.get(HEAD),
        declined=effect.declined,
    )
