"""A run as JUnit XML: the run is a suite, and each check is a case."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import CheckResult, Outcome, Witness
from reports.exports import suite
from reports.exports.markdown import figures, versions
from reports.outage import outage_of
from reports.result import Result


def as_xml(result: Result) -> bytes:
    spec, verdict = result.spec, result.verdict
    name = suite.classname((spec.title, spec.engine, spec.sink))
    return suite.as_xml(
        suite.Suite(
            name=name,
            cases=tuple(_case(check, name) for check in verdict.checks),
            properties=tuple(_properties(result)),
            began=result.began,
            took_s=result.took_s,
            out=f"{verdict.outcome.value}  {verdict.sentence}",
        )
    )


def _properties(result: Result) -> Iterator[tuple[str, str]]:
    spec, verdict, certificate = result.spec, result.verdict, result.certificate
    yield "verdict", verdict.outcome.value
    yield "seed", str(spec.tape.seed)
    yield "slack", str(verdict.slack)
    yield "covers", verdict.covers
    if result.guarantee:
        yield "guarantee", result.guarantee
    yield "disorder", spec.disorder_name
    yield "fault", spec.fault.text
    yield "run", result.path.name
    if certificate:
        yield "certificate", "valid" if certificate.valid else f"void: {'; '.join(certificate.reasons)}"
    if result.clock:
        yield "clock", result.clock
    if result.taken:
        yield "taken", result.taken
    yield from ((f"total.{name}", str(value)) for name, value in verdict.totals.items())
    yield from ((f"version.{name}", value) for name, value in versions(result.environment))
    if result.measurement is None:
        yield "measurement", f"withheld: {result.withheld}"
    else:
        found = outage_of(result.recovery, result.measurement.load_s)
        yield from ((f"measurement.{name}", value) for name, value in figures(result.measurement, found))


def _case(check: CheckResult, classname: str) -> suite.JunitCase:
    """Checks have no time of their own; the suite has the time of the run."""
    said = [check.sentence] if check.outcome is Outcome.PASS else [*map(_line, check.witnesses)]
    word = check.word or check.name
    return suite.JunitCase(classname, check.name, check.outcome, check.sentence, word, "\n".join(said))


def _line(witness: Witness) -> str:
    ids = f"; events {', '.join(witness.event_ids)}" if witness.event_ids else ""
    return f"{witness.cell}: expected {witness.expected}, seen {witness.seen}; {witness.detail}{ids}"
