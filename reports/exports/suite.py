"""A JUnit suite as values and its XML, for runs and experiments alike."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from harness.model import Outcome

TAGS = {Outcome.FAIL: "failure", Outcome.UNKNOWN: "error"}
# Characters that XML 1.0 can't hold, not even escaped.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class JunitCase:
    """A test case. UNKNOWN is an error and never skipped, because CI must not ignore it. None: not possible,
    skipped.
    """

    classname: str
    name: str
    outcome: Outcome | None
    sentence: str
    type: str = ""
    out: str = ""
    took_s: float = 0.0


@dataclass(frozen=True)
class Suite:
    """One run or one experiment."""

    name: str
    cases: tuple[JunitCase, ...]
    properties: tuple[tuple[str, str], ...]
    began: datetime | None
    took_s: float
    out: str


def classname(parts: Iterable[str]) -> str:
    """Join the parts of the class name, by which CI reports group cases. A dot begins a level, thus parts get none."""
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


def _case(suite: ET.Element, case: JunitCase) -> None:
    made = ET.SubElement(suite, "testcase", classname=case.classname, name=_fit(case.name), time=f"{case.took_s:g}")
    if case.outcome is None:
        ET.SubElement(made, "skipped", message=_fit(case.sentence))
    elif case.outcome is not Outcome.PASS:
        ET.SubElement(made, TAGS[case.outcome], type=case.type, message=_fit(case.sentence))
    if case.out:
        ET.SubElement(made, "system-out").text = _fit(case.out)


def _fit(text: str) -> str:
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
