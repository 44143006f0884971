"""The committed evidence that faults took effect in real runs: one line of JSON each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.model import HarnessError

FILE = Path(__file__).with_name("evidence.jsonl")


@dataclass(frozen=True)
class Evidence:
    """One run in which a fault took effect, and the proof in its report."""

    fault: str  # as planned
    kind: str  # its name
    engine: str
    sink: str
    outcome: str
    proof: str
    healed: bool
    words: tuple[str, ...] = ()


def by_kind(file: Path = FILE) -> Mapping[str, tuple[Evidence, ...]]:
    found: dict[str, tuple[Evidence, ...]] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            each = msgspec.json.decode(line, type=Evidence)
        except msgspec.DecodeError as error:
            raise HarnessError(f"{file}, line {number} is not valid evidence: {error}.") from None
        found[each.kind] = (*found.get(each.kind, ()), each)
    return found
