"""What others read of a gate, with their own readers where there are some: the answer, its reason, and no number of a
head that counts wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import junitparser
import pytest
from prometheus_client import parser as older
from prometheus_client.openmetrics import parser as openmetrics

from harness.experiments.gating import gate
from harness.experiments.gating.gate import BASE, HEAD, SIDES, Judged
from harness.experiments.gating.rounds import METRICS, ROUNDS
from harness.model import Outcome, UsageError
from reports import files, gated
from reports.exports import annotation
from reports.exports import gate as gate_exports
from reports.exports import openmetrics as own_openmetrics
from reports.exports.gate import EXPORTS, save
from tests.program import pages
from tests.quick.experiments.test_gate import measured

WRONG = Judged(Outcome.FAIL, 'lost: 251 events, "all" of\nad \\7 | 9', "runs/head")
UNJUDGED = Judged(Outcome.UNKNOWN, "no evidence: log.parquet is missing", "runs/base")


@pytest.fixture
def kept(tmp_path):
    """What is read of a gate's folder, which is as the gate leaves it."""
    return lambda made=(), **what: gated.read(pages.gate(tmp_path, made, **what))


def exported(record):
    save(record)
    return {name: (record.folder.path / name).read_text() for name in EXPORTS}


def suite_of(record):
    exported(record)
    [suite] = junitparser.JUnitXml.fromfile(str(record.folder.path / "junit.xml"))
    return {case.name: case for case in suite}


def gauges(record, read=openmetrics):
    """(name, the labels that are not of all samples) -> value"""
    found = {}
    for family in read.text_string_to_metric_families(exported(record)["metrics.prom"]):
        assert family.type == "gauge"
        for sample in family.samples:
            own = {key: text for key, text in sample.labels.items() if key != "engine"}
            found[sample.name.removeprefix("streamgauge_gate_"), *own.values()] = sample.value
    return found


def annotated(record):
    """Level, title and text, as a runner reads them."""
    [line] = exported(record)[annotation.FILE].splitlines()
    shape = re.fullmatch(r"::(\w+) title=([^:,]*)::(.*)", line)
    assert shape
    level, title, text = shape.groups()
    for sign, code in (("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C"), ("%", "%25")):
        title = title.replace(code, sign)
        text = text if sign in ":," else text.replace(code, sign)
    return level, title, text


def test_every_export_lies_in_the_folder_and_is_explained_on_its_page(kept):
    assert exported(kept(measured())).keys() == EXPORTS.keys() <= files.KNOWN.keys()


def test_what_was_kept_is_what_is_read(kept):
    made = measured(head=0.1)
    record = kept(made)

    assert record.rounds == tuple(made)
    assert record.found.effects == gate.effects(made, 0.05, 2)
    assert record.engine == "count", "a version is none of its name"


# ---------------------------------------------------------------- JUnit


def test_a_regression_is_a_failure_and_the_rest_passes(kept):
    cases = suite_of(kept(measured(head=0.10)))

    assert {name for name, case in cases.items() if case.is_failure} == {"cost"}
    assert all(cases[name].is_passed for name in (*SIDES, "starts"))
    assert "+10." in cases["cost"].result[0].message
    assert cases["cost"].classname == "streamgauge.gate.speed"


def test_what_can_not_be_told_is_skipped_with_its_reason(kept):
    cases = suite_of(kept(measured(starts=4, apart=0.06)))

    assert cases["cost"].is_skipped
    assert "starts are needed" in cases["cost"].result[0].message


def test_a_side_without_a_verdict_is_an_error(kept):
    cases = suite_of(kept(measured(), base=UNJUDGED))

    assert cases["base"].is_error
    assert cases["base"].result[0].message == UNJUDGED.sentence
    assert cases["head"].is_passed


def test_a_gate_that_ended_early_is_never_all_green(kept):
    cases = suite_of(kept(measured(), broken="The head ended in the middle of a burst."))

    assert cases["starts"].is_error
    assert "middle of a burst" in cases["starts"].result[0].message


@pytest.mark.parametrize("sides", [{}, {"head": WRONG}, {"base": UNJUDGED}])
def test_every_gate_has_the_same_cases(kept, sides):
    assert list(suite_of(kept(measured(starts=2), **sides))) == [*SIDES, "starts", *(m.name for m in METRICS)]


# ---------------------------------------------------------------- OpenMetrics


def test_every_unit_of_a_metric_is_told_in_base_units(kept):
    record = kept(measured(head=0.10))
    found = gauges(record)

    assert {metric.unit for metric in METRICS} == own_openmetrics.UNITS.keys()
    typical = record.typical(record.found.effects[0])
    assert found["cost_cpu_seconds_per_event", HEAD] == pytest.approx(typical[HEAD] * 1e-6)
    assert 15 < typical[BASE] < typical[HEAD] < 34
    assert found["catch_up_seconds_per_event", BASE] == pytest.approx(0.9 / 100_000), "0.9 s for 100,000 events"
    assert found["head_by_base_ratio", "cost"] == record.found.effects[0].head.estimate


def test_the_answer_is_one_of_four(kept):
    found = gauges(kept(measured()))

    assert {name[1]: value for name, value in found.items() if name[0] == "answer"} == {
        "REGRESSED": 0,
        "OK": 1,
        "IMPROVED": 0,
        "INCONCLUSIVE": 0,
    }
    assert found["counts", HEAD, "PASS"] == 1
    assert found["starts",] == 8


def test_labels_survive_what_people_call_their_branches(kept):
    odd = 'feat/"x"\\n\n}'
    text = exported(kept(measured(), asked={"head": odd}))["metrics.prom"]
    [info] = [f for f in openmetrics.text_string_to_metric_families(text) if f.name == "streamgauge_gate_info"]

    assert info.samples[0].labels["head"] == odd
    assert info.samples[0].labels["machine"] == "Linux x86_64, 2 cores, 25 GB"


def test_who_reads_only_the_older_text_reads_the_same(kept):
    """A textfile collector and a push gateway know no OpenMetrics."""
    record = kept(measured())

    assert gauges(record, read=older) == gauges(record)


def test_an_end_that_is_missing_would_be_seen(kept):
    text = exported(kept(measured()))["metrics.prom"]

    with pytest.raises(ValueError, match="EOF"):
        list(openmetrics.text_string_to_metric_families(text.removesuffix("# EOF\n")))


# ---------------------------------------------------------------- Annotations


@pytest.mark.parametrize(
    ("made", "sides", "level", "title"),
    [
        (measured(head=0.10), {}, "error", "streamgauge gate: REGRESSED"),
        (measured(), {"head": WRONG}, "error", "streamgauge gate: REGRESSED"),
        (measured(starts=4, apart=0.06), {}, "warning", "streamgauge gate: INCONCLUSIVE"),
        (measured(), {}, "notice", "streamgauge gate: OK"),
    ],
)
def test_an_annotation_is_one_line_as_loud_as_the_answer(kept, made, sides, level, title):
    record = kept(made, **sides)

    seen_level, seen_title, text = annotated(record)
    assert (seen_level, seen_title) == (level, title)
    assert text.startswith(record.found.sentence)


def test_what_an_engine_said_can_not_begin_a_command_of_its_own(kept):
    loud = Judged(Outcome.FAIL, "lost\n::error title=x::50%0A\r::stop-commands::y", "runs/head")

    _, _, text = annotated(kept(measured(), head=loud))

    assert text == f"the head counts wrong: {loud.sentence}"


def test_a_side_that_the_answer_does_not_name_is_named(kept):
    _, _, text = annotated(kept(measured(), head=WRONG, base=replace(UNJUDGED, outcome=Outcome.FAIL)))

    assert f"base (main): FAIL, {UNJUDGED.sentence}" in text


# ---------------------------------------------------------------- Badge and benchmark


@pytest.mark.parametrize(
    ("made", "sides", "message", "colour"),
    [
        (measured(), {}, "OK", "brightgreen"),
        (measured(head=0.25), {}, r"REGRESSED: cost \+2[456]\.\d%", "red"),
        (measured(), {"head": WRONG}, "REGRESSED: counts wrong", "red"),
        (measured(starts=4, apart=0.06), {}, "INCONCLUSIVE", "yellow"),
    ],
)
def test_a_badge_says_the_answer_in_its_colour(kept, made, sides, message, colour):
    badge = json.loads(exported(kept(made, **sides))["badge.json"])

    assert re.fullmatch(message, badge.pop("message"))
    assert badge == {"schemaVersion": 1, "label": "streamgauge gate", "color": colour}


def test_names_of_a_benchmark_are_the_same_for_every_commit(kept):
    first = json.loads(exported(kept(measured()))["benchmark.json"])
    later = json.loads(exported(kept(measured(seed=2), asked={"base": "0ddba11", "head": "v2"}))["benchmark.json"])

    assert [each["name"] for each in first] == [each["name"] for each in later]
    assert first[0]["name"] == "count cost"
    assert first[0]["value"] != later[0]["value"]
    for each in first:
        assert each.keys() <= {"name", "unit", "value", "range", "extra"}
        assert isinstance(each["value"], float)
        assert all(isinstance(each[key], str) for key in each.keys() - {"value"})


# ---------------------------------------------------------------- What is never shown


@pytest.mark.parametrize("sides", [{"head": WRONG}, {"base": UNJUDGED}])
def test_no_number_of_a_wrong_head_is_exported(kept, sides):
    record = kept(measured(head=0.5), **sides)

    assert record.found.effects == ()
    assert json.loads(exported(record)["benchmark.json"]) == []
    assert {name for name, *_ in gauges(record)} == {"info", "answer", "counts", "starts", "threshold_ratio"}
    for name, text in exported(record).items():
        assert not re.search(r"[+-]\d+\.\d%|CPU-s|detectable", text), name
    assert all(suite_of(record)[metric.name].is_skipped for metric in METRICS)


def test_the_numbers_of_a_right_head_would_be_seen_there(kept):
    """The search above finds them where they may stand."""
    shown = exported(kept(measured()))

    for name in ("junit.xml", "summary.md", "annotations.txt", "benchmark.json"):
        assert re.search(r"[+-]\d+\.\d%|CPU-s|detectable", shown[name].replace("%25", "%")), name


# ---------------------------------------------------------------- Whatever is left of a gate


def test_a_gate_that_was_broken_off_has_no_answer(kept):
    record = kept(measured())
    content = json.loads((record.folder.path / "experiment.json").read_text())
    del content["found"]
    (record.folder.path / "experiment.json").write_text(json.dumps(content))
    with (record.folder.path / ROUNDS).open("a") as file:
        file.write('{"side": "base", "numb')

    left = gated.read(record.folder)

    assert left.rounds == record.rounds
    assert (left.found.outcome, left.found.sentence) == (Outcome.UNKNOWN, gated.BROKEN_OFF)
    assert suite_of(left)["starts"].is_error
    assert left.engine == ""


def test_a_round_of_another_version_is_told(kept):
    record = kept(measured())
    (record.folder.path / ROUNDS).write_text('{"lap": 1}\n')

    with pytest.raises(UsageError, match="made by another version of streamgauge"):
        gated.read(record.folder)


def test_the_command_can_be_typed_again(kept):
    record = kept(
        measured(), asked={"head": "my branch", "threshold": 0.03, "flags": {"seed": 7}, "burst_events": 2000}
    )

    assert gate_exports.command(record) == (
        "./streamgauge gate --base main --head 'my branch' --engine jobs/count --threshold 3% --budget 10 "
        "--burst 2000 --seed 7"
    )
