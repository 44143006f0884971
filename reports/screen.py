"""The last screen of a run: what a person reads first. At most 80 columns and 24 lines, plain text in, plain text out.

Colour is added by harness/console.py, and only on a terminal.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cost import ENGINE, engine_s_per_million
from harness.measurement import Latency, Measurement
from harness.model import CheckResult, Outcome
from reports.load import Result

WIDTH = 79
LINES = 23
WITNESSES = 3


def lines(result: Result) -> list[str]:
    """Verdict first, then what it rests on, then where to read on."""
    body = [line[:WIDTH] for line in _all(result)]
    return [*body[: LINES - 2], "", f"  {_short(result.path)}"]


def _all(result: Result) -> Iterator[str]:
    spec, verdict = result.spec, result.verdict
    yield from _wrapped(f"{verdict.outcome.value}  ", verdict.sentence, 3)
    yield ""
    asked = f"{spec.scenario} on {spec.engine}/{spec.sink}, seed {spec.tape.seed}"
    yield f"  run      {asked}, disorder {spec.disorder_name}"
    yield from _load(result)
    for check in verdict.checks:
        if check.name in ("fault", "late") and check.outcome is Outcome.PASS:
            yield from _wrapped(f"  {check.name:<9}", check.sentence, 2)
    yield from _speed(result)
    yield from _wrapped("  checks   ", _signs(verdict.checks), 3)
    yield f"  slack    {verdict.slack:,} (events that could be missing unnoticed)"
    yield from _witnesses(result)


def _load(result: Result) -> Iterator[str]:
    certificate = result.certificate
    if certificate is None:
        return
    lag = f"lag p99.9 {certificate.lag_ms.get('p99.9', 0):.1f} ms"
    if certificate.valid:
        yield f"  load     {certificate.sent:,} records sent, certificate valid, {lag}"
    else:
        yield from _wrapped("  load     ", f"certificate VOID: {'; '.join(certificate.reasons)}", 2)


def _speed(result: Result) -> Iterator[str]:
    m = result.measurement
    if m is None:
        yield from _wrapped("  speed    ", f"withheld: {result.withheld}", 2)
        return
    yield from _wrapped("  speed    ", ", ".join(_rates(m)), 2)
    if way := headline(m):
        yield f"  latency  {latency_words(way)}"
    elif not m.latency:
        yield "  latency  not known: nobody looked at the results while the run went on"
    if (engine := engine_s_per_million(m.cost)) is not None:
        others = "".join(f", {each.part} {each.cpu_s_per_million:.3g}" for each in m.cost if each.part not in ENGINE)
        yield from _wrapped("  cost     ", f"{engine:.3g} CPU-s of the engine per million events{others}", 2)
    if m.steady:
        yes = "yes " if m.steady.steady else "no"
        said = m.steady.sentence.removeprefix("not ").removeprefix("steady").lstrip(" " if m.steady.steady else "")
        yield from _wrapped("  steady   ", yes + said, 2)


def headline(m: Measurement) -> Latency | None:
    """By probes, which are exact whatever the disorder; else by all counted events."""
    return m.latency_by("probes") or m.latency_by("rank-matched")


def latency_words(latency: Latency) -> str:
    """Which way, of how many, and how long."""
    figures = latency.corrected
    shown = [f"{name} {_ms(value)}" for name, value in (("p50", figures.p50), ("p99", figures.p99))]
    way = "by probes" if latency.way == "probes" else latency.way
    bound = ", a lower bound" if latency.tail_is_lower_bound else ""
    unseen = f", {figures.censored:,} never seen" if figures.censored else ""
    return f"{', '.join(shown)}{bound}, {way} ({figures.count:,}){unseen}"


def _rates(m: Measurement) -> Iterator[str]:
    yield f"{m.offered_per_s:,.0f}/s offered"
    if m.processed_per_s is not None:
        yield f"{m.processed_per_s:,.0f}/s processed"
    if m.catch_up_per_s is not None:
        yield f"caught up at {m.catch_up_per_s:,.0f}/s"
    yield f"drained {m.drain_s:.1f} s after the last event"


def _ms(value: float | None) -> str:
    return "never" if value is None else f"{value:,.0f} ms"


def _witnesses(result: Result) -> Iterator[str]:
    for check in result.verdict.checks:
        if check.outcome is Outcome.PASS or not check.witnesses:
            continue
        yield f"  {check.word or check.name}"
        if check.name == "engine":
            yield from _last_lines(check)
            continue
        for witness in check.witnesses[:WITNESSES]:
            yield f"    {witness.cell}: expected {witness.expected}, seen {witness.seen}"
            yield from _wrapped("      ", witness.detail, 1)


def _last_lines(check: CheckResult) -> Iterator[str]:
    yield "    its last lines (its logs are in logs/ of the run):"
    for witness in check.witnesses:
        yield f"      {witness.detail}"


def _signs(checks: Sequence[CheckResult]) -> str:
    """The worst first, each group in the order in which they were done."""
    signs = {Outcome.FAIL: "FAIL", Outcome.UNKNOWN: "unknown", Outcome.PASS: "ok"}
    groups = {sign: [check.name for check in checks if check.outcome is outcome] for outcome, sign in signs.items()}
    return "; ".join(f"{sign}: {' '.join(names)}" for sign, names in groups.items() if names)


def _wrapped(head: str, text: str, most: int) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), max_lines=most, placeholder=" ..."
    )


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
