"""The summary of a run in Markdown, made for the summary page of a CI job."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import Outcome
from reports.load import Result


def as_text(result: Result) -> str:
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Result) -> Iterator[str]:
    spec, verdict = result.spec, result.verdict
    yield f"## streamgauge: {verdict.outcome.value}"
    yield ""
    yield verdict.sentence + "."
    yield ""
    asked = f"`{spec.scenario}` on `{spec.engine}/{spec.sink}`, seed {spec.tape.seed}"
    yield f"{asked}, disorder `{spec.disorder_name}`, fault `{spec.fault.text}`, slack {verdict.slack:,}."
    yield ""
    yield "| check | outcome | what was seen |"
    yield "| --- | --- | --- |"
    for check in verdict.checks:
        yield f"| {check.name} | {check.outcome.value} | {_cell(check.sentence)} |"
    yield ""
    yield from _witnesses(result)
    yield from _speed(result)


def _witnesses(result: Result) -> Iterator[str]:
    wrong = [c for c in result.verdict.checks if c.outcome is not Outcome.PASS and c.witnesses]
    for check in wrong:
        yield f"**{check.word or check.name}**"
        yield ""
        for w in check.witnesses:
            yield f"- {_cell(w.cell)}: expected {w.expected}, seen {w.seen}; {_cell(w.detail)}"
        yield ""


def _speed(result: Result) -> Iterator[str]:
    m = result.measurement
    if m is None:
        yield f"Speed withheld: {result.withheld}."
    else:
        drained = f"drained {m.drain_s:.1f} s after the last event"
        yield f"{m.events:,} records at {m.offered_per_s:,.0f}/s offered, {drained}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
