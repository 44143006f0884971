"""The summary of a run in Markdown, for the summary page of a CI job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from harness.measuring.cost import basis
from harness.measuring.measurement import Cost, Latency, Measurement
from harness.model import CheckResult, Outcome, Witness
from harness.util.text_tables import cell, markdown
from harness.util.texts import many
from reports import outside, project_url, why
from reports.outage import Outage, outage_of, quantiles
from reports.result import Result

NAMED = ("streamgauge", "python", "java", "machine")


def as_text(result: Result) -> str:
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Result) -> Iterator[str]:
    spec, verdict = result.spec, result.verdict
    yield f"## streamgauge: {verdict.outcome.value}"
    yield ""
    yield verdict.sentence + "."
    yield ""
    if explained := why.name(verdict):
        address = project_url.of(explained)
        yield f"Why, and what to do: {f'[{explained}]({address})' if address else f'`{explained}`'}."
        yield ""
    asked = f"`{spec.title}` on `{spec.engine}/{spec.sink}`, seed {spec.tape.seed}"
    yield f"{asked}, disorder `{spec.disorder_name}`, fault `{spec.fault.text}`, slack {verdict.slack_said}."
    yield from _when(result)
    if result.guarantee:
        yield f"The sink: {result.guarantee} of `{spec.sink}`."
    yield from (f"The engine: {note}." for note in result.notes)
    if result.clock:
        yield f"The clocks: {result.clock}."
    if result.taken:
        yield f"The machine: {result.taken}."
    yield ""
    rows = [(check.name, check.outcome.value, check.sentence) for check in verdict.checks]
    yield from markdown(("check", "outcome", "what was seen"), rows)
    yield ""
    yield from _witnesses(result)
    yield from _speed(result)


def _witnesses(result: Result) -> Iterator[str]:
    wrong = [c for c in result.verdict.checks if c.outcome is not Outcome.PASS and c.witnesses]
    for check in wrong:
        yield f"**{check.word or check.name}**"
        yield ""
        yield from _last_words(check) if check.name == "engine" else map(_witness, check.witnesses)
        yield ""


def _witness(witness: Witness) -> str:
    ids = f"; events {', '.join(witness.event_ids)}" if witness.event_ids else ""
    return f"- {cell(witness.cell)}: expected {witness.expected}, seen {witness.seen}; {cell(witness.detail)}{ids}"


def _last_words(check: CheckResult) -> Iterator[str]:
    """The lines are code blocks, so that they can be copied."""
    for place, said in groupby(check.witnesses, lambda witness: witness.cell):
        yield f"`{place}`:"
        yield ""
        yield from (f"    {witness.detail}" for witness in said)
        yield ""


def _when(result: Result) -> Iterator[str]:
    if result.began_ms is None:
        return
    took = f"it took {result.took_s:.0f} s"
    when = f"Begun at {result.began:%Y-%m-%d %H:%M:%S} UTC, {took}" if result.began else f"By a simulated clock {took}"
    known = (f"{name} {value}" for name, value in versions(result.environment) if name in NAMED)
    yield ", ".join([when, *known]) + "."


def versions(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield everything known of the machine and its software, packages by their names."""
    for name, value in environment.items():
        if isinstance(value, Mapping):
            yield from ((package, str(version)) for package, version in value.items())
        elif value:
            yield name, str(value)


def _speed(result: Result) -> Iterator[str]:
    m = result.measurement
    if m is None:
        yield f"Speed withheld: {result.withheld}."
        return
    steady = f" The run is {m.steady.sentence}." if m.steady else ""
    sent = result.certificate.sent if result.certificate else m.events
    yield f"{many(sent, 'record')} sent, drained {m.drain_s:.1f} s after the last event.{steady}"
    yield ""
    yield from markdown(("figure", "value"), list(figures(m, outage_of(result.recovery, m.load_s))))


def figures(m: Measurement, outage: Outage) -> Iterator[tuple[str, str]]:
    """Yield the figures that fit one cell each."""
    rates = (("offered", m.offered_per_s), ("processed", m.processed_per_s), ("caught up at", m.catch_up_per_s))
    yield from ((name, f"{rate:,.0f} events/s") for name, rate in rates if rate is not None)
    yield from ((f"latency, {each.way}", _quantiles(each, outage)) for each in m.latency)
    if m.outside_ends:
        yield f"latency {outside.NAME}", outside.clause(m.outside_ends, outage).removeprefix(f"{outside.NAME} ")
    if m.cost_withheld:
        yield "cost, engine", f"withheld: {m.cost_withheld}"
    yield from ((f"cost, {each.part}", _cost(each, basis(m))) for each in m.cost)


def _quantiles(latency: Latency, outage: Outage) -> str:
    shown = quantiles(latency, {"p50": 0.5, "p99": 0.99, "max": 1.0}, outage)
    return shown + (" (the tail is a lower bound)" if latency.tail_is_lower_bound else "")


def _cost(cost: Cost, per: str) -> str:
    used = f"{cost.cpu_s_per_million:,.2f} CPU-s per million events {per}"
    return f"{used}, at most {cost.peak_rss_mib:,.0f} MiB"
