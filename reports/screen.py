"""The last screen of a run: plain text of 80 columns, or fewer on a narrow terminal, and of 24 lines unless more has to
be said.

Colour is added by harness/terminal/console.py, and only on a terminal.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from harness.experiments.upgrade import DIFFERENCE, Upgraded
from harness.judging.checks.engine import MANIFEST
from harness.measuring.cost import ENGINE, basis, engine_s_per_million
from harness.measuring.measurement import Latency, Measurement
from harness.measuring.steady import advice
from harness.model import Backfill, CheckResult, Outcome, Witness
from harness.terminal import screens
from harness.terminal.command_end import short_path
from harness.util.local_time import local
from harness.util.texts import many, three_digits
from reports import outage, outside, why
from reports.load_workers import by_workers
from reports.outage import Outage
from reports.result import Result
from reports.sections import backlog, bursts, company, growth, latency, table_layout, window_state
from reports.sections.reproduce import kind_of

WIDTH = 79
LINES = 23
WITNESSES = 3
HEAD = 2  # lines of a check besides its witnesses: its name, and the count of further witnesses


def lines(result: Result) -> list[str]:
    """Return the verdict, its evidence, and the path of the run. Long sentences are wrapped. Witnesses that do not fit
    the screen are counted.
    """
    result = _in_this_zone(result)
    body = list(_all(result))
    room = LINES - 2 - len(body)
    return [*body, *_witnesses(result, room), "", f"  {short_path(result.path)}"]


def upgraded(old: str, new: str, found: Upgraded, result: Result) -> list[str]:
    """Return the outcome of an upgrade, followed by the screen of its run."""
    verdict, differ = result.verdict, many(found.changed_lines, "line differs", "lines differ")
    sentence, counted = (local(each.sentence, result.began_ms) for each in (found, verdict))
    head = _wrapped(f"{found.outcome.value}  ", f"{found.word.value}, from {old} to {new}: {sentence}")
    counts = _wrapped("  counts   ", f"{verdict.outcome.value}: {counted}")
    jobs = _wrapped("  jobs     ", f"{differ}: {short_path(result.path)}/{DIFFERENCE}")
    is_of_the_upgrade = found.outcome is not Outcome.PASS and verdict.outcome is Outcome.PASS
    explained = _wrapped("  why      ", why.link(why.UPGRADE)) if is_of_the_upgrade else []
    rest = lines(result)
    return [*head, "", *counts, *jobs, *explained, *rest[rest.index("") + 1 :]]


def _in_this_zone(result: Result) -> Result:
    """Translate the times of a verdict before its lines are wrapped. The engine's last words stay as they are."""

    def here(text: str) -> str:
        return local(text, result.began_ms)

    def translated(check: CheckResult) -> CheckResult:
        if check.name == "engine":
            return check
        witnesses = [replace(each, cell=here(each.cell), detail=here(each.detail)) for each in check.witnesses]
        return replace(check, sentence=here(check.sentence), witnesses=tuple(witnesses))

    verdict = result.verdict
    checks = tuple(map(translated, verdict.checks))
    return replace(result, verdict=replace(verdict, sentence=here(verdict.sentence), checks=checks))


def _all(result: Result) -> Iterator[str]:
    spec, verdict = result.spec, result.verdict
    yield from _wrapped(f"{verdict.outcome.value}  ", verdict.sentence)
    yield ""
    if explained := why.name(verdict):
        yield from _wrapped("  why      ", explained)
    asked = f"{spec.title} on {spec.engine}/{spec.sink}, seed {spec.tape.seed}"
    yield from _wrapped("  run      ", f"{asked}, disorder {spec.disorder_name}")
    yield from _load(result)
    told = ("fault", "late", *(["state"] if spec.states else []), *(["backfill"] if result.backfill else []))
    for check in verdict.checks:
        if check.name in told and check.outcome is Outcome.PASS:
            yield from _wrapped(f"  {check.name:<9}", check.sentence)
    if result.guarantee:
        yield from _wrapped("  sink     ", f"{result.guarantee} of {spec.sink}")
    if result.notes:
        yield from _wrapped("  engine   ", "; ".join(result.notes))
    yield from _speed(result)
    if result.clock and result.clock != result.withheld:
        yield from _wrapped("  clock    ", result.clock)
    if result.taken:
        yield from _wrapped("  machine  ", result.taken)
    yield from _wrapped("  checks   ", _signs(verdict.checks))
    yield from _wrapped("  slack    ", verdict.slack_said)
    if verdict.looked:
        yield from _wrapped("  polls    ", verdict.looked)


def _load(result: Result) -> Iterator[str]:
    certificate = result.certificate
    if certificate is None:
        return
    lag = f"lag p99.9 {certificate.lag_ms.get('p99.9', 0):.1f} ms"
    if certificate.valid:
        warm_up_ms = result.spec.tape.warm_up_ms
        kind = kind_of(result.spec.tape)
        among = f", {warm_up_ms / 1000:g} s of {kind} among them" if warm_up_ms else ""
        by = by_workers(certificate)
        told = f"{many(certificate.sent, 'record')} sent{among}{f' {by}' if by else ''}, certificate valid, {lag}"
        yield from _wrapped("  load     ", told)
    else:
        yield from _wrapped("  load     ", f"certificate VOID: {'; '.join(certificate.reasons)}")


def _cost_of(batch: Backfill) -> str:
    """The batch's cost beside the stream's, which includes all of the time in which events came."""
    time = _beside(batch.took_ms / 1000, batch.stream_took_ms / 1000, "s")
    cpu = _beside(batch.cpu_s, batch.stream_cpu_s, "CPU-s")
    starts = "two starts" if batch.killed else "start"
    return f"{batch.engine} took {time} and {cpu} with its {starts}; the stream since its last start"


def _beside(batch: float, stream: float, unit: str) -> str:
    share = f", {batch / stream:.2f} of the stream's {stream:.1f}," if stream else ""
    return f"{batch:.1f} {unit}{share}"


def _speed(result: Result) -> Iterator[str]:
    m = result.measurement
    if m is None:
        yield from _wrapped("  speed    ", f"withheld: {result.withheld}")
        return
    yield from _wrapped("  speed    ", ", ".join(_rates(m)))
    yield from _of_its_life(result, m)
    if back := outage.in_words(result.recovery):
        yield from _wrapped("  recovery ", back)
    if way := headline(m):
        found = outage.outage_of(result.recovery, m.load_s)
        beside = f"; {outside.clause(m.outside_ends, found)}" if m.outside_ends else ""
        yield from _wrapped("  latency  ", f"{latency_words(way, found)}{beside}")
    elif not m.latency:
        yield from _wrapped("  latency  ", f"not known: {latency.why_unknown(result.verdict)}")
    if m.cost_withheld:
        yield from _wrapped("  cost     ", f"withheld: {m.cost_withheld}")
    elif (engine := engine_s_per_million(m.cost)) is not None:
        others = "".join(
            f", {each.part} {three_digits(each.cpu_s_per_million)}" for each in m.cost if each.part not in ENGINE
        )
        yield from _wrapped(
            "  cost     ", f"{three_digits(engine)} CPU-s of the engine per million events {basis(m)}{others}"
        )
    if m.steady:
        yes = "yes " if m.steady.steady else "no"
        said = m.steady.sentence.removeprefix("not ").removeprefix("steady").lstrip(" " if m.steady.steady else "")
        if todo := advice(m.steady, result.spec.tape.warmed_ms / 1000):
            said += f": {todo}"
        yield from _wrapped("  steady   ", yes + said)


def _of_its_life(result: Result, m: Measurement) -> Iterator[str]:
    """Lines for a run that had more than a steady load."""
    if m.catch_up:
        yield from _wrapped("  backlog  ", backlog.in_words(m.catch_up))
        for change in m.catch_up.new_orders:
            yield from _wrapped("  change   ", backlog.worth_in_words(change, m.catch_up.largest or change.to_do))
    if result.backfill:
        yield from _wrapped("  batch    ", _cost_of(result.backfill))
    if m.bursts:
        yield from _wrapped("  bursts   ", bursts.in_words(m.bursts))
    if m.growth:
        yield from _wrapped("  growth   ", growth.in_words(m.growth, result.recovery))
    if m.window_state:
        yield from _wrapped("  window   ", window_state.in_words(m.window_state))
    if m.company:
        yield from _wrapped("  reader   ", company.in_words(m.company))
    if m.table_files:
        yield from _wrapped("  files    ", table_layout.in_words(m.table_files))


def headline(m: Measurement) -> Latency | None:
    """Return the latency by probes, which are exact in any disorder; else by all counted events."""
    return m.latency_by("probes") or m.latency_by("rank-matched")


def latency_words(latency: Latency, found: Outage) -> str:
    """Write the quantiles, the way of measuring, and the number of events."""
    shown = outage.quantiles(latency, {"p50": 0.5, "p99": 0.99}, found)
    if found.covers(0.5):
        return f"{shown}; `streamgauge run steady` measures the engine's own"
    way = "by probes" if latency.way == "probes" else latency.way
    bound = ", a lower bound" if latency.tail_is_lower_bound else ""
    figures = latency.corrected
    unseen = f", {figures.censored:,} never seen" if figures.censored else ""
    return f"{shown}{bound}, {way} ({figures.count:,}){unseen}"


def _rates(m: Measurement) -> Iterator[str]:
    yield f"{m.offered_per_s:,.0f}/s offered"
    if m.processed_per_s is not None:
        yield f"{m.processed_per_s:,.0f}/s processed{' (as seen in the results)' if m.processed_as_seen else ''}"
    if m.catch_up_per_s is not None:
        yield f"caught up at {m.catch_up_per_s:,.0f}/s"
    yield f"drained {m.drain_s:.1f} s after the last event"


def _witnesses(result: Result, room: int) -> Iterator[str]:
    """The first witness of each wrong check, then as many further ones as fit."""
    wrong = [check for check in result.verdict.checks if check.outcome is not Outcome.PASS and check.witnesses]
    shown = [_shown(check) for check in wrong]
    for check, blocks, count in zip(wrong, shown, _fitting(shown, room), strict=True):
        yield f"  {check.word or check.name}"
        for block in blocks[:count]:
            yield from block
        left = len(check.witnesses) - count
        if left > 0 and check.name != "engine":
            yield f"    and {many(left, 'more such witness', 'more such witnesses')} in verdict.json and report.html"


def _fitting(shown: Sequence[Sequence[Sequence[str]]], room: int) -> list[int]:
    """How many blocks of each check fit. Each check shows its first block in any case, and earlier checks go first."""
    left = room - sum(len(blocks[0]) + HEAD for blocks in shown)
    counts = []
    for blocks in shown:
        count = 1
        for block in blocks[1:]:
            if (left := left - len(block)) < 0:
                break
            count += 1
        counts.append(count)
    return counts


def _shown(check: CheckResult) -> list[list[str]]:
    """The lines of each witness. The last lines of an engine's log and the lines of a manifest form one block."""
    if check.name == "engine":
        return [[line for place, said in groupby(check.witnesses, _place_of) for line in _said(place, said)]]
    return [
        [
            *_wrapped("    ", f"{witness.cell}: expected {witness.expected}, seen {witness.seen}", "      "),
            *_wrapped("      ", witness.detail),
        ]
        for witness in check.witnesses[:WITNESSES]
    ]


def _place_of(witness: Witness) -> str:
    if witness.cell == MANIFEST:
        return f"lines for its {MANIFEST}:"
    return f"its last words, from {witness.cell if '/' in witness.cell else 'logs/'} of the run:"


def _said(place: str, witnesses: Iterable[Witness]) -> Iterator[str]:
    yield from _wrapped("    ", place)
    for witness in witnesses:
        yield from _wrapped("      ", witness.detail)


def _signs(checks: Sequence[CheckResult]) -> str:
    """The names of the checks by outcome, the worst first. If some are wrong the right ones are only counted: there is
    no room for both.
    """
    groups: dict[str, list[str]] = {"FAIL": [], "unknown": [], "ok": [], "not asked": []}
    signs = {Outcome.FAIL: "FAIL", Outcome.UNKNOWN: "unknown", Outcome.PASS: "ok"}
    for check in checks:
        groups[signs[check.outcome] if check.asked else "not asked"].append(check.name)
    if (groups["FAIL"] or groups["unknown"]) and (right := groups["ok"]):
        groups["ok"] = [f"{len(right)} others"]
    return "; ".join(f"{sign}: {' '.join(names)}" for sign, names in groups.items() if names)


def _wrapped(head: str, text: str, further: str = "") -> list[str]:
    """Long words such as paths stay whole, so that they can be copied."""
    return textwrap.wrap(
        text,
        min(WIDTH, screens.room(sys.stdout) or WIDTH),
        initial_indent=head,
        subsequent_indent=further or " " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
