"""JUnit XML: a run is a suite, a check is a case. UNKNOWN is an error, never skipped: CI must not pass over it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from harness.model import CheckResult, Outcome
from reports.load import Result


def as_xml(result: Result) -> bytes:
    checks = result.verdict.checks
    suite = ET.Element(
        "testsuite",
        name=f"streamgauge.{result.spec.scenario}.{result.spec.engine}.{result.spec.sink}",
        tests=str(len(checks)),
        failures=str(sum(c.outcome is Outcome.FAIL for c in checks)),
        errors=str(sum(c.outcome is Outcome.UNKNOWN for c in checks)),
        skipped="0",
    )
    for check in checks:
        _case(suite, check)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _case(suite: ET.Element, check: CheckResult) -> None:
    case = ET.SubElement(suite, "testcase", classname="streamgauge", name=check.name)
    if check.outcome is Outcome.PASS:
        ET.SubElement(case, "system-out").text = check.sentence
        return
    tag = "failure" if check.outcome is Outcome.FAIL else "error"
    body = ET.SubElement(case, tag, type=check.word or check.name, message=check.sentence)
    body.text = "\n".join(f"{w.cell}: expected {w.expected}, seen {w.seen}; {w.detail}" for w in check.witnesses)
