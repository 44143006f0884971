"""A badge in the format of shields.io's endpoint: publish this file and give shields.io its URL."""

from __future__ import annotations

import json

from harness.experiments.gating.gate import HEAD, Answer, Gated
from harness.model import Outcome
from reports.gated import Record, percent

COLOURS = {
    Answer.OK: "brightgreen",
    Answer.IMPROVED: "brightgreen",
    Answer.REGRESSED: "red",
    Answer.INCONCLUSIVE: "yellow",
}


def of_gate(record: Record) -> str:
    found = record.found
    badge = {
        "schemaVersion": 1,
        "label": "streamgauge gate",
        "message": _message(found),
        "color": COLOURS[found.answer],
    }
    return json.dumps(badge) + "\n"


def _message(found: Gated) -> str:
    if found.sides[HEAD].outcome is Outcome.FAIL:
        return f"{found.answer.value}: counts wrong"
    worse = [f"{each.metric} {percent(each.head.estimate)}" for each in found.effects if each.answer is found.answer]
    return f"{found.answer.value}: {', '.join(worse)}" if found.answer is Answer.REGRESSED else found.answer.value
