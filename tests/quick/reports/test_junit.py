"""What a CI server reads: the shape of JUnit's usual schema, when and how long, where from, and every witness."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from harness.model import CheckResult, Outcome, Verdict, Witness
from reports import result as results
from reports.exports import junit, markdown
from tests.program.runner.test_run import fake_run
from tests.quick.reports.test_screen import MEASURED, result

# Of the schema that Jenkins publishes (junit-10.xsd): which attributes and children each element may have, in which
# order, and which attributes it must have.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, ["testsuite"]),
    "testsuite": (
        {
            "name",
            "tests",
            "failures",
            "errors",
            "time",
            "disabled",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
        },
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "properties": (set(), ["property"]),
    "property": ({"name", "value"}, []),
    "testcase": (
        {"name", "assertions", "time", "classname", "status"},
        ["skipped", "error", "failure", "system-out", "system-err"],
    ),
    "failure": ({"type", "message"}, []),
    "error": ({"type", "message"}, []),
    "system-out": (set(), []),
}
NEEDED = {"testsuite": {"name", "tests"}, "testcase": {"name"}, "property": {"name", "value"}}


def fits(element):
    allowed, children = ALLOWED[element.tag]
    assert NEEDED.get(element.tag, set()) <= set(element.attrib) <= allowed
    places = [children.index(child.tag) for child in element]
    assert places == sorted(places)
    for child in element:
        fits(child)


def suite_of(shown):
    root = ET.fromstring(junit.as_xml(shown))
    fits(root)
    (suite,) = root
    return suite


@pytest.fixture
def wrong(tmp_path):
    _, store, _ = fake_run(tmp_path, sink="increment", fault="kill@c3:batch=5")
    store.write_json("measurement.json", None)
    return results.read(store.path)


def test_a_run_has_its_time_its_place_and_its_properties(wrong):
    shown = replace(wrong, environment={"streamgauge": "0.1.0", "java": 17, "packages": {"redis": "8.1.0"}})

    suite = suite_of(shown)

    assert suite.get("timestamp") is None, "the clock of the fake world has no date"
    dated = replace(shown, simulated=False)
    assert suite_of(dated).get("timestamp") == "2025-06-15T15:06:40"
    assert float(suite.get("time", "0")) == shown.took_s > 15
    assert {case.get("classname") for case in suite.iter("testcase")} == {"streamgauge.test.fake.increment"}
    told = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert (told["verdict"], told["seed"], told["slack"]) == ("FAIL", "1", "0")
    assert (told["version.streamgauge"], told["version.java"], told["version.redis"]) == ("0.1.0", "17", "8.1.0")
    assert told["measurement"] == "withheld: no speed for a run that is FAIL"
    assert told["fault"] == "kill@c3:batch=5"
    assert int(told["total.counted"] or 0) > 0


def test_a_measurement_is_among_the_properties():
    told = {each.get("name"): each.get("value") for each in suite_of(result(MEASURED)).iter("property")}

    assert told["measurement.offered"] == "1,234,567 events/s"
    assert told["measurement.latency, probes"] == "p50 1,234 ms, p99 98,765 ms, max 98,765 ms"


def test_a_witness_stands_in_the_output_with_the_ids_of_its_events(wrong):
    case = suite_of(wrong).find("testcase[@name='duplicated']")

    assert case is not None
    (failure,) = case.findall("failure")
    check = next(check for check in wrong.verdict.checks if check.name == "duplicated")
    assert (failure.get("message"), failure.get("type")) == (check.sentence, "duplicated")
    said = (case.findtext("system-out") or "").splitlines()
    assert len(said) == len(check.witnesses) > 1
    for line, witness in zip(said, check.witnesses, strict=True):
        assert line.startswith(f"{witness.cell}: expected {witness.expected}, seen {witness.seen}; {witness.detail}")
        assert line.endswith(", ".join(witness.event_ids))


def test_what_a_key_of_somebody_else_may_hold_makes_no_broken_file():
    odd = Witness("key \x00\x1b[31m\ud800", "<1>", "&", "\uffff ]]>")
    shown = result(None)
    checks = (CheckResult("phantom", Outcome.FAIL, "sentence \x08", "phantom", 1, "engine", (odd,)),)

    suite = suite_of(replace(shown, verdict=Verdict(Outcome.FAIL, "it is \x00", 0, checks, {})))

    assert "key \ufffd\ufffd[31m\ufffd: expected <1>, seen &; \ufffd ]]>" in (
        suite.findtext("testcase/system-out") or ""
    )


def test_a_version_in_the_name_of_an_engine_is_no_level_of_the_class():
    shown = result(MEASURED)

    suite = suite_of(replace(shown, spec=replace(shown.spec, engine="spark@4.1.1")))

    assert suite.get("name") == "streamgauge.ad-impressions.spark@4_1_1.absolute"


def test_a_run_of_which_no_time_is_known_has_none():
    assert suite_of(result(MEASURED)).get("timestamp") is None


def test_the_summary_says_when_with_what_and_what_was_odd(wrong):
    shown = replace(wrong, environment={"streamgauge": "0.1.0", "java": 17}, notes=("it was killed",))

    text = markdown.as_text(shown)

    assert f"By a simulated clock it took {shown.took_s:.0f} s, streamgauge 0.1.0, java 17." in text
    dated = markdown.as_text(replace(shown, simulated=False))
    assert f"Begun at 2025-06-15 15:06:40 UTC, it took {shown.took_s:.0f} s, streamgauge 0.1.0, java 17." in dated
    assert "The engine: it was killed." in text
    witness = next(check for check in shown.verdict.checks if check.name == "duplicated").witnesses[0]
    assert f"{witness.detail}; events {', '.join(witness.event_ids)}\n" in text


def test_the_summary_quotes_the_last_words_and_the_lines_for_the_manifest_as_they_are():
    said = (
        Witness("manifest.toml", "these lines", "others", 'key = "a|{campaign}"'),
        Witness("logs/engine-1.log", "goes on", "stuck", "ValueError: no such table"),
    )
    checks = (CheckResult("engine", Outcome.FAIL, "no answer", "stuck", 1, "engine", said),)

    text = markdown.as_text(replace(result(None), verdict=Verdict(Outcome.FAIL, "no answer", 0, checks, {})))

    assert '`manifest.toml`:\n\n    key = "a|{campaign}"\n' in text
    assert "`logs/engine-1.log`:\n\n    ValueError: no such table\n" in text
