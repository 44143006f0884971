"""A JUnit suite as values, and how it becomes XML: one way for a run and for an experiment."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from harness.model import Outcome

TAGS = {Outcome.FAIL: "failure", Outcome.UNKNOWN: "error"}
# What XML 1.0 can't hold, not even escaped.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """UNKNOWN is an error and never skipped: CI must not pass over it. Without an outcome it can't be done there."""

    classname: str
    name: str
    outcome: Outcome | None
    sentence: str
    type: str = ""
    out: str = ""
    took_s: float = 0.0


@dataclass(frozen=True)
class Suite:
    """One run, or one experiment."""

    name: str
    cases: tuple[Case, ...]
    properties: tuple[tuple[str, str], ...]
    began: datetime | None
    took_s: float
    out: str


def classname(parts: Iterable[str]) -> str:
    """By which a report groups its cases: a dot is a level of it."""
    return ".".join(["streamgauge", *(part.replace(".", "_") for part in parts)])


def as_xml(suite: Suite) -> bytes:
    counts = {
        "tests": str(len(suite.cases)),
        "failures": _count(suite, Outcome.FAIL),
        "errors": _count(suite, Outcome.UNKNOWN),
        "time": f"{suite.took_s:.3f}",
    }
    root = ET.Element("testsuites", {"name": "streamgauge", **counts})
    when = {"timestamp": f"{suite.began:%Y-%m-%dT%H:%M:%S}"} if suite.began else {}
    made = ET.SubElement(root, "testsuite", {"name": suite.name, "skipped": _count(suite, None), **counts, **when})
    properties = ET.SubElement(made, "properties")
    for name, value in suite.properties:
        ET.SubElement(properties, "property", name=name, value=_fit(value))
    for case in suite.cases:
        _case(made, case)
    ET.SubElement(made, "system-out").text = _fit(suite.out)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _count(suite: Suite, outcome: Outcome | None) -> str:
    return str(sum(case.outcome is outcome for case in suite.cases))


def _case(suite: ET.Element, case: Case) -> None:
    made = ET.SubElement(suite, "testcase", classname=case.classname, name=_fit(case.name), time=f"{case.took_s:g}")
    if case.outcome is None:
        ET.SubElement(made, "skipped", message=_fit(case.sentence))
    elif case.outcome is not Outcome.PASS:
        ET.SubElement(made, TAGS[case.outcome], type=case.type, message=_fit(case.sentence))
    if case.out:
        ET.SubElement(made, "system-out").text = _fit(case.out)


def _fit(text: str) -> str:
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
