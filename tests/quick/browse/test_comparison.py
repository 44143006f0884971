"""Two runs side by side: what differs in plan, counts, speed and cost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.measuring.measurement import Cost, Latency, Measurement, Quantiles, Quantity, Recovery
from harness.model import CheckResult, Outcome, Verdict, Witness
from harness.rundir.store import Store
from reports.browse import comparison, side
from reports.browse.comparison import Row
from reports.browse.index import Entry
from reports.browse.side import Side, flat
from reports.page import Section
from tests.quick.browse.folders import DOUBLES, OLD, RIGHT

FIGURES = Quantiles(100, 0, 20.0, 10.0, 50.0, 100.0, 200.0, 300.0)
MEASURED = Measurement(
    events=1000,
    offered_per_s=100.0,
    processed_per_s=100.0,
    catch_up_per_s=None,
    load_s=100.0,
    ready_s=5.0,
    drain_s=1.0,
    latency=(Latency("probes", FIGURES, None, "exact"),),
    never_final_share=0.0,
    dipped_share=0.0,
    cost=(Cost("engine", 8.0, 2.0, 500.0, 10.0), Cost("kafka", 1.0, 1.0, 300.0, 2.0)),
    checkpoint_bytes=None,
    gc_s=None,
    steady=None,
    observer=None,
)
RIGHT_VERDICT = Verdict(
    Outcome.PASS, "all right", 0, (CheckResult("lost", Outcome.PASS, "no cell holds too few"),), {"counted": 1000}
)
WRONG_VERDICT = Verdict(
    Outcome.FAIL,
    "lost: 3 events",
    0,
    (
        CheckResult(
            "lost",
            Outcome.FAIL,
            "3 events are missing",
            "lost",
            3,
            "engine",
            (Witness("campaign 1", "5", "2", "in batch 3"),),
        ),
    ),
    {"counted": 997},
)
A = Side(
    Entry("runs/one", "run", "PASS"),
    "PASS",
    "all right",
    {"engine": "spark", "fault": "none", "seed": "1"},
    {"id": "spark"},
    {"cpu": "x", "java": "17"},
    "events",
    "expected",
    RIGHT_VERDICT,
    MEASURED,
    "",
    (),
    has_timeline=False,
)
B = replace(
    A,
    outcome="FAIL",
    plan={"engine": "flink", "seed": "1", "cores": "2"},
    machine={"cpu": "y", "java": "17"},
    verdict=WRONG_VERDICT,
    measurement=None,
    withheld="no speed for a run that is FAIL",
)


def sections(a: Side, b: Side) -> dict[str, Section]:
    return {each.id: each for each in comparison.sections(a, b)}


def rows(section: Section, table: int = 0) -> dict[Any, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in section.tables[table].rows}


def test_only_settings_that_differ_are_in_the_first_table() -> None:
    plan = sections(A, B)["plan"]
    assert rows(plan) == {"engine": ("spark", "flink"), "fault": ("none", "-"), "cores": ("-", "2")}
    assert plan.tables[2].rows == (("seed", "1"),)
    assert plan.text == ("Both sent the same events.", "The plan expects the same counts of both.")
    assert comparison.sentence(A, B).startswith("A is PASS and B is FAIL; 3 settings differ, and both sent the same")


def test_the_same_run_twice_differs_in_nothing() -> None:
    found = sections(A, A)
    assert "All settings are equal." in found["plan"].text
    assert found["counts"].text == ("Every check has the same outcome in both.",)
    assert found["machine"].text == ("Machine and versions are equal.",)
    assert comparison.sentence(A, A) == "Both are PASS; the plan is the same, and both sent the same events."


def test_other_events_are_named() -> None:
    plan = sections(A, replace(A, events="others", expected="others"))["plan"]
    assert plan.text[:2] == ("They sent different events.", "The plan expects different counts of them.")


def test_counts_checks_and_witnesses_stand_side_by_side() -> None:
    counts = sections(A, B)["counts"]
    assert rows(counts) == {"events counted": ("1,000", "997", "-3")}
    assert rows(counts, 1) == {"lost": ("PASS: no cell holds too few", "FAIL, lost: 3 events are missing")}
    assert counts.tables[2].rows == (("B", "lost", "campaign 1", "5", "2"),)


def test_no_speed_is_shown_for_wrong_counts() -> None:
    speed, cost = sections(A, B)["speed"], sections(A, B)["cost"]
    assert speed.missing == ("the speed and the cost of B: no speed for a run that is FAIL.",)
    assert {row[1] for row in rows(speed).values()} == {"-"}
    assert rows(cost)["engine, peak memory"] == ("500 MiB", "-", "")


def test_figures_have_a_ratio_and_another_machine_is_named() -> None:
    twice = replace(
        MEASURED,
        latency=(Latency("probes", replace(FIGURES, p99=250.0), None, "exact"),),
        cost=(Cost("engine", 16.0, 4.0, 500.0, 20.0),),
    )
    found = sections(A, replace(A, measurement=twice, machine={"cpu": "y"}))
    assert rows(found["speed"])["latency p99, probes"] == ("100 ms", "250 ms", "2.50")
    assert rows(found["cost"])["engine with its workers, CPU-s per million events"] == ("10", "20", "2.00")
    assert "The machines differ (cpu), so speed and cost can't be compared." in found["speed"].text
    assert not [each for each in sections(A, A)["speed"].text if "machines differ" in each]


def test_a_quantile_that_a_fault_decides_is_withheld() -> None:
    away = Recovery("kill", 10.0, 10.0, 100.0, {"first_output_s": Quantity(5.0), "catch_up_s": Quantity(None)})
    found = sections(A, replace(A, recovery=(away,)))["speed"]
    assert rows(found)["latency p99, probes"] == ("100 ms", "withheld", "")
    assert rows(found)["latency p50, probes"] == ("10 ms", "withheld", "")
    assert rows(found, 1)["fault 1: first output"] == ("-", "5.0 s", "")
    assert any(each.startswith("B: for 90 s of the load's 100 s") for each in found.text)


@pytest.mark.parametrize(
    ("values", "ratio"),
    [
        ((2.0, 3.0), "1.50"),
        ((0.0, 3.0), ""),
        ((None, 3.0), ""),
        ((2.0, None), ""),
        ((-1.0, 2.0), ""),
        ((2.0, 0.0), "0.00"),
    ],
)
def test_a_ratio_needs_two_values(values: tuple[float | None, float | None], ratio: str) -> None:
    assert Row("x", values, str).ratio == ratio


def test_nested_settings_have_dotted_names() -> None:
    assert flat({"a": {"b": [1, 2], "c": []}, "d": [{"e": True}, {"e": None}], "f": 0.5, "g": 0}) == {
        "a.b": "1, 2",
        "d.0.e": "yes",
        "f": "0.5",
        "g": "0",
    }


def test_a_plan_is_read_in_words_whatever_its_form() -> None:
    segments = [{"duration_ms": 2000, "start_per_s": 10.0, "end_per_s": 1000.0}]
    found = side.in_words({"fault": {"text": "kill"}, "tape": {"profile": segments, "warm_up": "x", "seed": 1}})
    assert found == {"fault": "kill", "profile": "10/s to 1,000/s for 2 s", "warm_up": "x", "seed": "1"}


def test_a_setting_of_a_later_version_stands_at_its_default(stored: Path, tmp_path: Path) -> None:
    """An older run differs in what it was asked, and not in what it could not be asked."""
    shutil.copytree(stored / OLD, tmp_path / OLD)
    store = Store(tmp_path / OLD)
    spec = store.read_json("spec.json")
    assert "workers" not in spec
    assert side.plan_of(store)["workers"] == "0"
    store.write_json("spec.json", {**spec, "window_ms": "x"})
    assert side.plan_of(store)["window_ms"] == "x"
    assert "workers" not in side.plan_of(store)
    store.write_json("spec.json", [1])
    assert side.plan_of(store) == {}


def read(stored: Path, name: str, state: str = "PASS") -> Side:
    return side.read(Entry(f"runs/{name}", "run", state), Store(stored / name))


def test_stored_runs_of_two_versions_are_compared(stored: Path) -> None:
    new, old, wrong = read(stored, RIGHT), read(stored, OLD), read(stored, DOUBLES)
    assert (new.outcome, old.outcome, wrong.outcome) == ("PASS", "PASS", "FAIL")
    assert new.events
    assert new.events != old.events
    found = sections(old, wrong)
    assert "duplicated" in rows(found["counts"], 1)
    assert found["counts"].tables[2].rows[0][0] == "B"
    assert "the speed and the cost of B: no speed for a run that is FAIL." in found["speed"].missing
