"""The catalogue of faults with the evidence that each took effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.faults.base import Kind
from harness.faults.evidence import FILE, Evidence
from harness.terminal.command_end import short_path
from harness.util.texts import many

HEADER = ("fault", "needs", "a correct pipeline", "seen landing on")


def rows(kinds: Mapping[str, Kind], seen: Mapping[str, Sequence[Evidence]]) -> list[list[str]]:
    """List the faults in the catalogue's order, which keeps families together."""
    return [[name, kind.needs or "nothing", kind.correct, _where(seen.get(name, ()))] for name, kind in kinds.items()]


def summary(kinds: Mapping[str, Kind], seen: Mapping[str, Sequence[Evidence]]) -> str:
    proved = sum(bool(seen.get(name)) for name in kinds)
    return f"{many(len(kinds), 'fault')}, {proved} of them seen landing, with proof: {short_path(FILE)}"


def as_object(kinds: Mapping[str, Kind], seen: Mapping[str, Sequence[Evidence]]) -> dict[str, Any]:
    return {"faults": [_object(kind, seen.get(name, ())) for name, kind in kinds.items()]}


def _object(kind: Kind, seen: Sequence[Evidence]) -> dict[str, Any]:
    return {
        "name": kind.name,
        "family": kind.family,
        "what": kind.what,
        "needs": kind.needs,
        "correct": kind.correct,
        "options": dict(kind.options),
        "moments": list(kind.moments),
        "usual": kind.usual,
        "evidence": msgspec.to_builtins(seen),
    }


def _where(seen: Sequence[Evidence]) -> str:
    return ", ".join(dict.fromkeys(f"{each.engine} {each.sink} {each.outcome}" for each in seen)) or "not yet"
