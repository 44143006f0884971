"""An annotation of a GitHub workflow: a step prints the line, and the pull request shows it."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import Outcome
from reports.result import Result

FILE = "annotations.txt"
LEVELS = {Outcome.FAIL: "error", Outcome.UNKNOWN: "warning", Outcome.PASS: "notice"}
# A line break ends an annotation. In a title, so do the characters that separate it from the next part.
TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
TITLE = TEXT | str.maketrans({":": "%3A", ",": "%2C"})


def of_run(result: Result) -> str:
    verdict = result.verdict
    return as_text(verdict.outcome, f"streamgauge run: {verdict.outcome.value}", (verdict.sentence,))


def as_text(outcome: Outcome, title: str, lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    return f"::{LEVELS[outcome]} title={title.translate(TITLE)}::{text.translate(TEXT)}\n"
