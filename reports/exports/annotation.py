"""An annotation of a GitHub workflow: a line that a step prints, and that the pull request then shows."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import Outcome
from reports.result import Result

FILE = "annotations.txt"
LEVELS = {Outcome.FAIL: "error", Outcome.UNKNOWN: "warning", Outcome.PASS: "notice"}
# The end of a line ends an annotation. In a title, so do the signs that part it from what follows.
TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
TITLE = TEXT | str.maketrans({":": "%3A", ",": "%2C"})


def of_run(result: Result) -> str:
    verdict = result.verdict
    return as_text(verdict.outcome, f"streamgauge run: {verdict.outcome.value}", (verdict.sentence,))


def as_text(outcome: Outcome, title: str, lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    return f"::{LEVELS[outcome]} title={title.translate(TITLE)}::{text.translate(TEXT)}\n"
