"""What the tuning of the Spark job tries, and what it concludes."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from harness.experiments.benching import tuning, tuning_threads, tuning_topic
from harness.experiments.benching.tuning import (
    BEST,
    INEXACT,
    READ_ONLY,
    STAGES,
    TEXTBOOK,
    Mark,
    Measured,
    Way,
    best_of,
    tune,
)
from harness.experiments.benching.tuning_threads import ENDED, ORDER, OTHER, PYTHON, TASKS, Used, group, spent
from harness.model import HarnessError
from workloads.ad_impressions.jobs import spark_parse

FIGURES = Measured("", "", True, 200_000.0, 6.0, 12.0, 30.0, {})


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

    found = list(tune(run, rounds=3))

    told = [each.name for each in found]
    assert set(told) == {way.name for ways in STAGES.values() for way in ways} | {name for name, _ in ran}
    assert len(ran) < len(found), "what is known already was measured again"
    assert dict(ran)["HDFSBacked"][tuning.SHUFFLE] == "1"
    assert told[-9:] == [READ_ONLY.name, TEXTBOOK.name, BEST.name] * 3, "a drift would meet only one of them"
    last = dict(ran[-3:])
    assert all(last[BEST.name][key] == value for way in _ways(cpu) for key, value in way.options.items())
    assert last[TEXTBOOK.name] == TEXTBOOK.options
    assert last[READ_ONLY.name] == {**last[BEST.name], **READ_ONLY.options}, "reading had other settings than the best"


def test_a_gain_that_may_be_chance_changes_nothing():
    def kept(cpu):
        ways = STAGES["partitions"]
        return best_of([(way, figures(way, cpu.get(way.name, 9.0))) for way in ways])[0].name

    assert kept({"2 of the shuffle": 6.0, "1 of the shuffle": 5.8}) == "2 of the shuffle"
    assert kept({"2 of the shuffle": 6.0, "1 of the shuffle": 5.4}) == "1 of the shuffle"


def test_each_stage_has_one_way_that_is_the_job_s():
    assert {stage: sum(map(tuning.is_own, ways)) for stage, ways in STAGES.items()} == dict.fromkeys(STAGES, 1)
    assert tuning.DEFAULTS[tuning.PARSER] == spark_parse.BEST


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
    first = Mark(120.0, 20.0, 1_000_000, {(1, 1): Used(TASKS, 15.0)})
    last = Mark(125.0, 30.0, 2_000_000, {(1, 1): Used(TASKS, 21.0), (1, 2): Used(OTHER, 1.0)})

    measured = tuning.measure(TEXTBOOK, Mark(100.0, 0.0, 0), first, last, True)

    assert measured.steady_per_s == 200_000
    assert measured.steady_cpu_s_per_million == 10.0
    assert measured.whole_cpu_s_per_million == 15.0
    assert measured.wall_s == 25.0
    assert {name: cpu for name, cpu in measured.threads.items() if cpu} == {TASKS: 6.0, OTHER: 1.0, ENDED: 3.0}


def test_threads_are_told_apart_by_the_names_that_the_kernel_keeps():
    names = {
        "Executor task l": TASKS,
        "C2 CompilerThre": "compiler of the JVM",
        "G1 Conc#0": "garbage collector",
        "VM Thread": "garbage collector",
        "VM Periodic Tas": OTHER,
        "stream executio": "driver: batches",
        "spark-listener-": "driver: reports of progress",
        "rocksdb:low": OTHER,
    }

    assert {name: group(name, "java") for name in names} == names
    assert group("Executor task l", "python3.11") == PYTHON
    assert {*names.values(), PYTHON, ENDED} == {*ORDER}


def test_what_a_thread_had_used_before_it_ended_is_not_counted_twice():
    first = {(7, 1): Used(TASKS, 40.0), (7, 2): Used(OTHER, 1.0)}
    last = {(7, 2): Used(OTHER, 1.5), (7, 3): Used(TASKS, 2.0)}

    found = spent(first, last, 5.0)

    assert (found[TASKS], found[OTHER], found[ENDED]) == (2.0, 0.5, 2.5)
    assert spent(first, last, 2.4)[ENDED] == 0.0, "rounding of the kernel shows as less than nothing"
    assert spent({}, {}, 5.0) == {}


def test_a_thread_s_line_is_read_whatever_its_name_holds():
    line = "17 (C2 (odd) ) Thre) S " + " ".join(map(str, range(1, 50)))

    name, cpu_s = tuning_threads.parse(line)

    assert name == "C2 (odd) ) Thre"
    assert cpu_s == (11 + 12) / os.sysconf("SC_CLK_TCK")  # utime and stime are the fields 14 and 15 of the whole line


@pytest.mark.skipif(not tuning_threads.PROC.is_dir(), reason="the kernel has no /proc")
def test_the_threads_of_a_process_are_found_with_their_cpu():
    sum(range(3_000_000))  # some CPU of our own

    mine = tuning_threads.threads_of(os.getpid())

    assert mine[os.getpid(), os.getpid()].cpu_s > 0
    assert {used.group for (pid, _), used in mine.items() if pid == os.getpid()} == {PYTHON}


def test_the_table_says_what_is_wrong_and_how_far_the_best_is():
    found = [
        *(figures(TEXTBOOK, cpu) for cpu in (11.0, 12.0, 30.0)),
        *(figures(BEST, cpu) for cpu in (5.0, 6.0, 9.0)),
        *(figures(READ_ONLY, cpu) for cpu in (4.0, 5.0, 5.0)),
        figures(Way("parse", tuning.DEFAULTS[tuning.PARSER])),
        figures(Way("parse", "once"), right=False),
        figures(Way("parse", "substring")),
    ]

    told = list(tuning.lines(found))

    assert "| parse | once | NO | 200,000 | 6.00 | 0.50 | 12.00 |" in told
    assert any(line.startswith("| parse | substring | here |") for line in told)
    assert any(line.startswith(f"| parse | {tuning.DEFAULTS[tuning.PARSER]}, the job's | yes |") for line in told)
    expected = "2.00 times the events per CPU-second; 1.20 times the CPU of reading alone (medians of 3)"
    assert told[-1].endswith(expected), "no threads are known, so there is no table of them"


def test_the_profile_says_where_the_cpu_of_the_best_goes():
    best, reading = dict.fromkeys(ORDER, 0.0), dict.fromkeys(ORDER, 0.0)
    found = [
        figures(TEXTBOOK),
        replace(figures(BEST), threads={**best, TASKS: 3.0, ENDED: 1.0}),
        replace(figures(READ_ONLY), threads={**reading, TASKS: 1.5}),
        replace(figures(TEXTBOOK), threads=best),
    ]

    told = list(tuning.lines(found))

    assert f"| {TASKS} | 3.00 | 75% | 1.50 |" in told
    assert [line.split(" | ")[0].strip("| ") for line in told[-len(ORDER) :]] == [*ORDER]


def test_the_topic_fills_all_windows_and_the_expectation_holds_every_view():
    tape = tuning_topic.make_tape(12_000)
    cells = tuning_topic.expected(tape)
    views = sum(int((block.content["event_type"] == 0).sum()) for block in tape.blocks())

    assert tape.total == 12_000
    assert sum(int(count) for windows in cells.values() for count in windows.values()) == views
    assert len({window for windows in cells.values() for window in windows}) >= tuning_topic.WINDOWS
