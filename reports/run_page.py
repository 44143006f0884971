"""The page of one run, made from its directory alone. Missing evidence is named in its place on the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from harness.measuring.cost import ENGINE, basis, engine_s_per_million
from harness.measuring.measure import taken_of
from harness.measuring.measurement import Measurement, Recovery
from harness.measuring.objective import headline_p99_ms
from harness.model import Certificate, FaultReport, Outcome
from harness.rundir.missing_evidence import MissingEvidence, unless_missing
from harness.rundir.store import Store
from harness.util.texts import many, three_digits, when_of_load
from reports import outside, project_url, why
from reports.evidence import Evidence
from reports.exports import curves
from reports.figures.style import duration
from reports.listing import RECHECK, RUNNING, TORN, run_of
from reports.live import judged
from reports.load_workers import by_workers
from reports.outage import Outage, outage_of
from reports.page import Link, Number, Page
from reports.result import guarantee_of
from reports.saved import save
from reports.sections import sections


def write(store: Store) -> Page:
    """Write the page with its drawings and curves."""
    evidence = Evidence(store)
    page = page_of(evidence)
    save(page, curves.texts(evidence), store.path)
    judged.write(evidence)
    return page


def page_of(evidence: Evidence) -> Page:
    outcome, sentence, facts, explained = _verdict(evidence)
    withheld = evidence.withheld
    numbers: tuple[Number, ...] = ()
    if not withheld:
        try:
            numbers = tuple(_numbers(evidence))
        except MissingEvidence as error:
            withheld = str(error)
    numbers = (*_survived(evidence), *numbers)
    title, subtitle = _title(evidence)
    link = Link(explained, project_url.of(explained)) if explained else None
    return Page(
        title,
        subtitle,
        outcome,
        sentence,
        facts,
        numbers,
        withheld,
        sections(evidence),
        why=link,
        began_ms=_begun_ms(evidence.store),
    )


def _verdict(evidence: Evidence) -> tuple[Outcome, str, tuple[str, ...], str]:
    """Return the outcome, its sentence, facts, and the name of the link that explains it."""
    try:
        verdict = evidence.verdict
    except MissingEvidence as error:
        sentence = f"This run is not judged: {error}. {_unjudged(evidence.store)}."
        return Outcome.UNKNOWN, sentence, (), why.link(why.NOT_JUDGED)
    facts = [
        f"Slack {verdict.slack_said}.",
        *([f"The results were polled {verdict.looked}."] if verdict.looked else []),
        *([f"The sink: {guarantee} of {evidence.spec.sink}."] if (guarantee := guarantee_of(evidence)) else []),
        *_load(unless_missing(lambda: evidence.certificate)),
        *_machine(evidence),
    ]
    return verdict.outcome, f"{verdict.sentence}.", tuple(facts), why.name(verdict)


def _unjudged(store: Store) -> str:
    """Why a run has no verdict and what to do, in the words of the terminal when the run ended."""
    listed = run_of(store)
    if listed.state == RUNNING:
        return "It is still running"
    return RECHECK if listed.state == TORN else f"{listed.sentence[:1].upper()}{listed.sentence[1:].rstrip('.')}"


def _load(certificate: Certificate | None) -> Iterator[str]:
    if certificate is None:
        yield "There is no load certificate."
    elif certificate.valid:
        yield (
            f"{many(certificate.sent, 'record was', 'records were')} sent on schedule: p99.9 of sending lag is "
            f"{certificate.lag_ms.get('p99.9', 0.0):.1f} ms; up to {certificate.budget_ms:g} ms are allowed."
        )
        if by := by_workers(certificate):
            yield f"The records were sent {by}. Each latency may be wrong by as much."
    else:
        yield f"The load certificate is void: {'; '.join(certificate.reasons)}."


def _machine(evidence: Evidence) -> Iterator[str]:
    """Effects of the clocks and the machine that may look like a slow engine."""
    if evidence.clock:
        yield f"The clocks: {evidence.clock}. The counts are judged anyway."
    if taken := taken_of(evidence.store):
        yield f"The machine: {taken}."


def _title(evidence: Evidence) -> tuple[str, str]:
    try:
        spec = evidence.spec
    except MissingEvidence:
        return evidence.store.path.name, ""
    begun = _begun_ms(evidence.store)
    simulated = unless_missing(lambda: evidence.manifest.simulated)
    when = "" if begun is None or simulated else f", {datetime.fromtimestamp(begun / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    about = f"seed {spec.tape.seed}, disorder {spec.disorder_name}, fault {spec.fault.text}{when}"
    return f"{spec.title} on {spec.engine}/{spec.sink}", about


def _begun_ms(store: Store) -> int | None:
    return next((entry["at_ms"] for entry in store.history("begin")), None)


def _survived(evidence: Evidence) -> Iterator[Number]:
    """The first number of a run with faults: are the counts right in spite of them?"""
    try:
        landed, outcome = [fault for fault in evidence.faults if fault.landed], evidence.verdict.outcome
    except MissingEvidence:
        return
    if landed:
        label = "right, in spite of" if outcome is Outcome.PASS else "landed fault"
        actions = list(dict.fromkeys(fault.spec.action for fault in landed))
        value = actions[0] if len(landed) == 1 else f"{len(landed)} faults"
        yield Number(label, value, note="; ".join(_landed(evidence, landed)))


def _landed(evidence: Evidence, landed: Sequence[FaultReport]) -> Iterator[str]:
    recovered = {each.fault: each for each in _recoveries(evidence)}
    for fault in landed:
        back = recovered[fault.spec.text].quantities.get("first_output_s") if fault.spec.text in recovered else None
        again = f", output again {back.value:.1f} s later" if back and back.value is not None else ""
        load_ms = unless_missing(lambda: evidence.spec.tape.load_ms)
        struck = when_of_load(fault.at_ms - evidence.epoch_ms, math.inf if load_ms is None else load_ms)
        yield f"{fault.spec.text} struck {struck}{again}"


def _recoveries(evidence: Evidence) -> tuple[Recovery, ...]:
    try:
        return evidence.recovery
    except MissingEvidence:
        return ()


def _numbers(evidence: Evidence) -> Iterator[Number]:
    measurement = evidence.measurement
    yield _latency(measurement, outage_of(_recoveries(evidence), measurement.load_s))
    yield _cost(measurement)
    yield _rate(measurement)


def _latency(measurement: Measurement, outage: Outage) -> Number:
    p99_ms = headline_p99_ms(measurement)
    if p99_ms is None:
        return Number("latency p99", "", note="the results were not polled, or too few events were seen")
    if outage.covers(0.99):
        return Number("latency", "", note=f"withheld: {outage.words}; the figures of latency below are the fault's")
    way = next(each for each in measurement.latency if each.corrected.p99 == p99_ms)
    p50 = "" if way.corrected.p50 is None else f"p50 {duration(way.corrected.p50)}, "
    least = "at least " if way.tail_is_lower_bound else ""
    beside = f"; {outside.clause(measurement.outside_ends, outage)}" if measurement.outside_ends else ""
    note = f"{p50}{many(way.corrected.count, 'event')}, by {way.way}{beside}"
    return Number("latency p99", least + duration(p99_ms), note=note)


def _cost(measurement: Measurement) -> Number:
    label, used_s = "CPU per million events", engine_s_per_million(measurement.cost)
    if used_s is None:
        return Number(label, "", note=measurement.cost_withheld or "the CPU use of the engine's processes is not known")
    others = three_digits(sum(each.cpu_s_per_million for each in measurement.cost if each.part not in ENGINE))
    return Number(
        label,
        three_digits(used_s),
        "s",
        f"the engine with its workers, {basis(measurement)}; everything else took {others} s",
    )


def _rate(measurement: Measurement) -> Number:
    offered = f"{measurement.offered_per_s:,.0f}/s were offered"
    if measurement.catch_up_per_s is not None:
        note = f"the highest sustained rate while it worked off a backlog; {offered}"
        return Number("catch-up rate", f"{measurement.catch_up_per_s:,.0f}", "events/s", note)
    if measurement.processed_per_s is not None:
        note = f"while events arrived; {offered}"
        return Number("processed", f"{measurement.processed_per_s:,.0f}", "events/s", note)
    return Number("processed", "", note=f"the engine's progress is not known; {offered}")
