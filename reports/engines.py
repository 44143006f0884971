"""The list of engines: claims of each sink, workloads, and whether the engine is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.engines.environments import JDK
from harness.model import EngineManifest

HEADER = ("engine", "sinks: what they claim", "late events", "workloads", "state")


def row(manifest: EngineManifest, workloads: Sequence[str], missing: Sequence[str]) -> list[str]:
    claims = ", ".join(f"{sink.name}: {sink.guarantee}" for sink in manifest.sinks)
    late = "/".join(dict.fromkeys(sink.late for sink in manifest.sinks))
    return [manifest.id, claims, late, ", ".join(workloads), _state(missing)]


def _state(missing: Sequence[str]) -> str:
    made = [each for each in missing if each != JDK]
    told = [f"needs {JDK}, which is not installed"] if JDK in missing else []
    told += [f"to be installed on first use: {', '.join(made)}"] if made else []
    return "; ".join(told) or "ready"


def as_object(manifest: EngineManifest, workloads: Sequence[str], missing: Sequence[str]) -> dict[str, Any]:
    return {
        "engine": manifest.id,
        "sinks": [{"name": s.name, "guarantee": s.guarantee, "late": s.late} for s in manifest.sinks],
        "workloads": list(workloads),
        "ready": not missing,
        "missing": list(missing),
    }
