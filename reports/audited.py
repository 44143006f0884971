"""What an audit found: one table, the worst first, and the sentences that go with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.audit.checks import Audited
from harness.model import Outcome

HEADER = ("results", "verdict", "cells", "of offered", "what is wrong")
ROWS, TOLD = 15, 5  # a screen has no more


def rows(audited: Sequence[Audited], below: Path) -> list[list[str]]:
    """The worst, as far as a screen goes."""
    return [
        [
            _place(each.place, below),
            each.outcome.value,
            f"{each.cells:,}",
            "" if each.share is None else f"{each.share:.2f} x",
            ", ".join(dict.fromkeys(finding.word for finding in each.findings)),
        ]
        for each in audited[:ROWS]
    ]


def endings(audited: Sequence[Audited], below: Path) -> Iterator[str]:
    """What the table left out, and the sentences of the worst."""
    if len(audited) > ROWS:
        yield f"... and {len(audited) - ROWS:,} more; --json has all of them"
    yield ""
    told = [(each, finding) for each in audited for finding in each.findings]
    for each, finding in told[:TOLD]:
        yield f"{_place(each.place, below)}: {finding.word}: {finding.sentence}"
    if len(told) > TOLD:
        yield f"... and {len(told) - TOLD:,} more sentences in --json"


def summary(audited: Sequence[Audited]) -> str:
    counts = {outcome: sum(each.outcome is outcome for each in audited) for outcome in Outcome}
    told = [f"{counts[o]:,} {o.value}" for o in (Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS) if counts[o]]
    return f"{outcome(audited).value}  {len(audited):,} results: {', '.join(told)}"


def outcome(audited: Sequence[Audited]) -> Outcome:
    return Outcome.worst([each.outcome for each in audited])


def as_object(audited: Sequence[Audited], target: str) -> dict[str, Any]:
    worst = outcome(audited)
    return {
        "command": "audit",
        "path": target,
        "verdict": worst.value,
        "exit": int(worst.exit_code),
        "results": [{**msgspec.to_builtins(each), "sentence": each.sentence} for each in audited],
    }


def _place(place: str, below: Path) -> str:
    return os.path.relpath(place, below) if below.is_dir() and place.startswith(str(below)) else place
