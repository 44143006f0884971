"""The head's figures for github-action-benchmark, in the format of its tool `customSmallerIsBetter`.

It draws each name over commits, thus no name contains anything of a commit. An engine's figures differ from machine to
machine; the ratio to the base of the same gate differs less.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.experiments.gating.gate import BASE, HEAD
from harness.util.texts import many, three_digits
from reports.gated import Record, in_words


def of_gate(record: Record) -> str:
    return json.dumps(list(_figures(record)), indent=1) + "\n"


def _figures(record: Record) -> Iterator[dict[str, str | float]]:
    """Empty if the head's counts are wrong, because there are no effects then."""
    engine = record.engine
    for effect in record.found.effects:
        name = f"{engine} {effect.metric}"
        starts = many(len(effect.starts), "start")
        extra = f"{record.asked['head']} by {record.asked['base']}: {in_words(effect)}; {starts}"
        values = record.typical(effect)
        if values:
            base = f"in {record.burst}; the base takes {three_digits(values[BASE])}"
            yield {"name": name, "unit": effect.unit, "value": values[HEAD], "extra": f"{base}; {extra}"}
        ratio = effect.head
        within = f"{ratio.low:.3f} to {ratio.high:.3f}"
        yield {
            "name": f"{name}, head by base",
            "unit": "ratio",
            "value": ratio.estimate,
            "range": within,
            "extra": extra,
        }
