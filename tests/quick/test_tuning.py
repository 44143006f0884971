"""What the tuning of the Spark job tries, and what it concludes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.experiments import tuning, tuning_topic
from harness.experiments.tuning import BEST, INEXACT, READ_ONLY, STAGES, TEXTBOOK, Mark, Measured, Way, best_of, tune
from harness.model import HarnessError

FIGURES = Measured("", "", True, 200_000.0, 6.0, 12.0, 30.0)


def figures(way, cpu=6.0, right=True):
    return replace(FIGURES, stage=way.stage, name=way.name, steady_cpu_s_per_million=cpu, right=right)


def test_each_stage_has_at_least_three_ways():
    assert {"parse", "state provider", "partitions", "trigger", "sink batching"} <= set(STAGES)
    assert all(len(ways) >= 3 for ways in STAGES.values())


def test_each_stage_is_tried_with_the_best_of_those_before_it():
    ran = []
    cpu = {
        "prefilter": 1.9,
        "1 of the shuffle": 1.8,
        "RocksDB, changelog": 1.7,
        "2 s": 1.6,
        "arrow": 1.5,
        "Serial": 1.4,
    }

    def run(way, options):
        ran.append((way.name, dict(options)))
        return figures(way, cpu.get(way.name, 2.0))

    found = list(tune(run))

    told = [each.name for each in found]
    assert set(told) == {way.name for ways in STAGES.values() for way in ways} | {name for name, _ in ran}
    assert len(ran) < len(found), "what is known already was measured again"
    assert ran[0] == (READ_ONLY.name, READ_ONLY.options)
    assert ran[1] == (TEXTBOOK.name, TEXTBOOK.options)
    assert dict(ran)["HDFSBacked"][tuning.SHUFFLE] == "1"
    best = [options for name, options in ran if name == BEST.name]
    assert len(best) == 3
    assert all(best[0][key] == value for way in _ways(cpu) for key, value in way.options.items())
    for control in (TEXTBOOK, READ_ONLY):
        assert told.count(control.name) == 3


def _ways(names):
    return [way for ways in STAGES.values() for way in ways if way.name in names]


def test_what_is_wrong_here_or_elsewhere_is_not_kept():
    ways = [Way("parse", name) for name in ("from_json", "once", *INEXACT)]
    cpu = {"from_json": 3.0, "once": 2.0}
    found = [(way, figures(way, cpu.get(way.name, 1.0), right=way.name != "once")) for way in ways]

    assert best_of(found)[0].name == "from_json"
    with pytest.raises(HarnessError, match="'parse' counts wrong"):
        best_of([(way, replace(each, right=False)) for way, each in found])


def test_figures_are_of_the_steady_part_only():
    measured = tuning.measure(
        TEXTBOOK, Mark(100.0, 0.0, 0), Mark(120.0, 20.0, 1_000_000), Mark(125.0, 30.0, 2_000_000), True
    )

    assert measured.steady_per_s == 200_000
    assert measured.steady_cpu_s_per_million == 10.0
    assert measured.whole_cpu_s_per_million == 15.0
    assert measured.wall_s == 25.0


def test_the_table_says_what_is_wrong_and_how_far_the_best_is():
    found = [
        *(figures(TEXTBOOK, cpu) for cpu in (11.0, 12.0, 30.0)),
        *(figures(BEST, cpu) for cpu in (5.0, 6.0, 9.0)),
        *(figures(READ_ONLY, cpu) for cpu in (4.0, 5.0, 5.0)),
        figures(Way("parse", "once"), right=False),
        figures(Way("parse", "substring")),
    ]

    told = list(tuning.lines(found))

    assert "| parse | once | NO | 200,000 | 6.00 | 0.50 | 12.00 |" in told
    assert any(line.startswith("| parse | substring | here |") for line in told)
    assert "2.00 times the events per CPU-second; 1.20 times the CPU of reading alone" in told[-1]


def test_the_topic_fills_all_windows_and_the_expectation_holds_every_view():
    tape = tuning_topic.make_tape(12_000)
    cells = tuning_topic.expected(tape)
    views = sum(int((block.event_type == 0).sum()) for block in tape.blocks())

    assert tape.total == 12_000
    assert sum(int(count) for windows in cells.values() for count in windows.values()) == views
    assert len({window for windows in cells.values() for window in windows}) >= tuning_topic.WINDOWS
