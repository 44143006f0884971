"""JUnit XML: a run is a suite, a check is a case. UNKNOWN is an error, never skipped: CI must not pass over it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from harness.model import CheckResult, Outcome, Witness
from reports.exports.markdown import figures, versions
from reports.load import Result

# What XML 1.0 can't hold, not even escaped.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_xml(result: Result) -> bytes:
    checks = result.verdict.checks
    counts = {
        "tests": str(len(checks)),
        "failures": str(sum(c.outcome is Outcome.FAIL for c in checks)),
        "errors": str(sum(c.outcome is Outcome.UNKNOWN for c in checks)),
    }
    counts["time"] = f"{result.took_s:.3f}"
    root = ET.Element("testsuites", {"name": "streamgauge", **counts})
    when = {"timestamp": f"{result.began:%Y-%m-%dT%H:%M:%S}"} if result.began else {}
    suite = ET.SubElement(root, "testsuite", {"name": _classname(result), "skipped": "0", **counts, **when})
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(result):
        ET.SubElement(properties, "property", name=name, value=_fit(value))
    for check in checks:
        _case(suite, check, _classname(result))
    ET.SubElement(suite, "system-out").text = _fit(f"{result.verdict.outcome.value}  {result.verdict.sentence}")
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _classname(result: Result) -> str:
    """By which a report groups its cases: a dot is a level of it."""
    spec = result.spec
    return ".".join(["streamgauge", *(part.replace(".", "_") for part in (spec.scenario, spec.engine, spec.sink))])


def _properties(result: Result) -> Iterator[tuple[str, str]]:
    spec, verdict, certificate = result.spec, result.verdict, result.certificate
    yield "verdict", verdict.outcome.value
    yield "seed", str(spec.tape.seed)
    yield "slack", str(verdict.slack)
    yield "disorder", spec.disorder_name
    yield "fault", spec.fault.text
    yield "run", result.path.name
    if certificate:
        yield "certificate", "valid" if certificate.valid else f"void: {'; '.join(certificate.reasons)}"
    yield from ((f"total.{name}", str(value)) for name, value in verdict.totals.items())
    yield from ((f"version.{name}", value) for name, value in versions(result.environment))
    if result.measurement is None:
        yield "measurement", f"withheld: {result.withheld}"
    else:
        yield from ((f"measurement.{name}", value) for name, value in figures(result.measurement))


def _case(suite: ET.Element, check: CheckResult, classname: str) -> None:
    """No check is timed by itself: all of the time is that of the run."""
    case = ET.SubElement(suite, "testcase", classname=classname, name=check.name, time="0")
    if check.outcome is not Outcome.PASS:
        tag = "failure" if check.outcome is Outcome.FAIL else "error"
        ET.SubElement(case, tag, type=check.word or check.name, message=_fit(check.sentence))
    said = [check.sentence] if check.outcome is Outcome.PASS else [*map(_line, check.witnesses)]
    if said:
        ET.SubElement(case, "system-out").text = _fit("\n".join(said))


def _line(witness: Witness) -> str:
    ids = f"; events {', '.join(witness.event_ids)}" if witness.event_ids else ""
    return f"{witness.cell}: expected {witness.expected}, seen {witness.seen}; {witness.detail}{ids}"


def _fit(text: str) -> str:
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
