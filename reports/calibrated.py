"""A calibration of the gate as a table, text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.gating.calibrate import Calibrated, Rates
from harness.util.texts import many

HEADER = ("threshold", "work per event", "it costs", "REGRESSED", "that is, with 95%", "OK", "INCONCLUSIVE")


def rows(found: Calibrated) -> Iterator[tuple[str, ...]]:
    for each in found.rates:
        low, high = each.bounds
        open_ones = each.gates - each.regressed - each.ok
        said = (each.regressed / each.gates, each.ok / each.gates, open_ones / each.gates)
        regressed, ok, inconclusive = (f"{share:.1%}" for share in said)
        costs = f"{each.costs - 1:+.1%}"
        yield f"{each.threshold:.0%}", each.arm, costs, regressed, f"{low:.1%} to {high:.1%}", ok, inconclusive


def summary(found: Calibrated) -> str:
    return (
        f"{many(found.starts, 'start')} of all arms were recorded, with {many(found.rounds, 'round')} each; a line "
        f"is {many(found.rates[0].gates, 'gate')} of at most {found.gate_starts} starts drawn from them. Two starts of "
        f"the same differ by {found.starts_differ:.1%} (standard deviation), and two rounds within a start by "
        f"{found.rounds_differ:.1%}."
    )


def as_object(found: Calibrated, place: Path, code: int) -> dict[str, Any]:
    told = msgspec.to_builtins(found) | {"rates": [_rates(each) for each in found.rates]}
    return {"command": "gate", "calibration": str(place), "exit": code, **told}


def _rates(each: Rates) -> dict[str, Any]:
    low, high = each.bounds
    return {**msgspec.to_builtins(each), "regressed_share_low": low, "regressed_share_high": high}
