"""The page of the applications: its figures are those that are kept, and a figure that was withheld is not shown."""

from __future__ import annotations

import msgspec

from tools import applications
from tools.applications import CASES, PAGE, Case, Figures, Measured
from workloads.shipped import shipped

ANSWER = {
    "verdict": "PASS",
    "sentence": "counted right",
    "slack": 12,
    "withheld": "",
    "measurement": {
        "processed_per_s": 1999.6,
        "latency": [
            {"way": "final value", "corrected": {"p50": 9.0, "p99": 9.0}},
            {"way": "rank-matched", "corrected": {"p50": 120.4, "p99": 1240.0}},
        ],
        "cost": [
            {"part": "engine", "cpu_s_per_million": 100.0, "peak_rss_mib": 700.0},
            {"part": "python workers", "cpu_s_per_million": 50.0, "peak_rss_mib": 80.0},
            {"part": "kafka", "cpu_s_per_million": 17.0, "peak_rss_mib": 300.0},
        ],
    },
    "recovery": [{"quantities": {"first_output_s": {"value": 8.25}, "catch_up_s": {"value": None}}}],
}


def test_figures_are_those_of_the_engine_and_of_the_exact_latency():
    assert applications.figures("a command", ANSWER) == Figures(
        "a command", "PASS", "counted right", 12, 1999.6, 120.4, 1240.0, 150.0, 780.0, 8.25, None
    )


def test_what_was_withheld_is_not_shown():
    withheld = ANSWER | {"measurement": None, "recovery": [], "withheld": "the machine was too slow"}
    calm, killed = (applications.figures("a command", each) for each in (withheld, ANSWER))

    row = applications.row(Case("capping", "flink", 1000, "topic"), Measured({}, calm, killed))

    assert row == "| capping, flink `topic` | PASS, slack 12 | - | -, - | - | - | 8.25 s | - |\n"
    assert msgspec.json.decode(msgspec.json.encode(killed), type=Figures) == killed


def test_the_page_shows_what_is_kept():
    page = PAGE.read_text(encoding="utf-8")

    assert applications.written(page) == page


def test_each_case_has_an_engine_that_has_its_workload():
    from harness.config import plan
    from harness.engines.shipped import workloads_of

    for case in CASES:
        _, keys = plan.read_scenario(case.scenario)
        assert shipped(keys["workload"]).id in workloads_of(case.engine), case.name
