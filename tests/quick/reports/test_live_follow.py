"""The files of a run are read while the run writes them: whole lines, each once, and nothing outside of the folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.rundir.live_lines import LiveLines
from harness.services.owners import owner_mark
from reports.live.cases import BROKEN_OFF, Grid, Runs, RunSeen, grid_of, newest
from reports.live.feed import KEPT_FRAMES, ExperimentFeed, RunFeed, frames_for
from reports.live.follow import Follower, Tail, in_order

SECOND = {"offered": 5, "planned": 9, "processed": 4, "visible": 3, "probes_ms": []}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "history.jsonl").write_text('{"at_ms":1,"kind":"made"}\n')
    LiveLines(tmp_path).write("phase", 10, name="load", waits_for="")
    return tmp_path


def kinds(run: Path, follower: Follower) -> list[str]:
    return [str(entry["kind"]) for entry in follower.entries()]


def test_each_line_is_read_once(run):
    follower = Follower(run)
    assert kinds(run, follower) == ["made", "phase"]
    assert kinds(run, follower) == []

    LiveLines(run).write("second", 11, **SECOND)
    assert kinds(run, follower) == ["second"]


def test_a_line_that_is_half_written_waits_for_its_end(run):
    tail, lines = Tail(run, "history.jsonl"), run / "history.jsonl"
    with lines.open("ab") as file:
        file.write(b'{"at_ms":2,"ki')
        file.flush()
        assert [entry["kind"] for entry in tail.lines()] == ["made"]
        file.write(b'nd":"epoch"}\n')
    assert [entry["kind"] for entry in tail.lines()] == ["epoch"]


@pytest.mark.parametrize("torn", [b'{"at_ms":2,"ki', b"[1]", b"\xff\xfe", b"", b"nul"])
def test_a_line_that_was_cut_off_is_skipped(run, torn):
    with (run / "history.jsonl").open("ab") as file:
        file.write(torn + b'\n{"at_ms":3,"kind":"epoch"}\n')

    assert [entry["kind"] for entry in Tail(run, "history.jsonl").lines()] == ["made", "epoch"]


def test_a_torn_file_is_read_again_when_it_is_whole(run):
    follower = Follower(run)
    (run / "plan.json").write_text('{"tape"')
    assert "plan.json" not in kinds(run, follower)

    (run / "plan.json").write_text('{"tape": {}}')
    assert kinds(run, follower) == ["plan.json"]


def test_nothing_outside_of_the_run_is_read_through_a_link(run, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.log"
    secret.write_text("Exception: a secret\n")
    (run / "logs" / "engine.log").symlink_to(secret)
    (run / "verdict.json").symlink_to(secret)
    (run / "report.html").symlink_to(secret)

    assert kinds(run, Follower(run)) == ["made", "phase"]


@pytest.mark.parametrize("linked", ["logs", "live"])
def test_nor_through_a_folder_that_is_a_link(run, linked, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "engine.log").write_text("a secret\n")
    (elsewhere / "lines.jsonl").write_text('{"at_ms":10,"kind":"phase"}\n')
    (elsewhere / "judged.json").write_text('{"groups":[]}')
    shutil.rmtree(run / linked)
    (run / linked).symlink_to(elsewhere)

    assert kinds(run, Follower(run)) == (["made", "phase"] if linked == "logs" else ["made"])


def test_a_run_that_is_a_link_is_no_run_of_the_experiment(tmp_path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for folder in (elsewhere / "b", elsewhere / "runs" / "c", tmp_path / "runs" / "a"):
        folder.mkdir(parents=True)
        (folder / "owner.json").write_text("{}")
        (folder / "verdict.json").write_text('{"outcome": "PASS", "sentence": "a secret"}')
    (tmp_path / "runs" / "b").symlink_to(elsewhere / "b")
    (tmp_path / "linked").symlink_to(elsewhere)

    assert [run.path for run in Runs(tmp_path).seen()] == ["runs/a"]


def test_the_last_exception_of_a_log_is_found(run):
    (run / "logs" / "engine.log").write_text(
        "INFO it begins\njava.lang.IllegalStateException: no state\n\tat a.B.c(B:1)\n"
    )

    log = next(entry for entry in Follower(run).entries() if entry["kind"] == "log")
    assert (log["name"], len(log["lines"])) == ("engine.log", 3)
    assert "no state" in log["exception"][0]


def test_entries_of_both_files_come_by_time_whatever_the_first_line_says():
    history = [{"at_ms": 10**13, "kind": "made"}, {"at_ms": 5, "kind": "epoch"}]
    lines = [{"at_ms": 1, "kind": "phase"}, {"at_ms": 6, "kind": "second"}]

    assert [entry["kind"] for entry in in_order(history, lines)] == ["phase", "epoch", "second", "made"]


def clock(moments: list[float]) -> Any:
    return lambda: moments[0]


def test_a_late_reader_gets_all_of_it_in_one_and_the_others_what_is_new(run):
    moments = [0.0]
    feed = RunFeed(run, clock(moments))
    _, first = feed.after(None)
    LiveLines(run).write("second", 11, **SECOND)
    assert feed.after(first)[0] == [], "files are read about once a second"

    moments[0] = 5.0
    frames, second = feed.after(first)
    assert [json.loads(frame)["rows"] for frame in frames] == [[[11, None, None, None, 1, None, None]]]
    whole, last = feed.after(None)
    assert (json.loads(whole[0])["reset"], last) == (True, second)


def test_a_reader_that_is_far_behind_gets_all_of_it_anew(run):
    moments = [0.0]
    feed = RunFeed(run, clock(moments))
    _, first = feed.after(None)
    for at in range(KEPT_FRAMES + 2):
        moments[0] += 1
        LiveLines(run).write("second", 1000 * at, **SECOND)
        feed.poll()

    frames, last = feed.after(first)
    assert len(frames) == 1
    assert json.loads(frames[0])["reset"]
    assert feed.after(last)[0] == []


def test_a_reader_gets_the_last_frames_when_the_server_ends(run):
    def ends() -> bool:
        (run / "verdict.json").write_text('{"outcome": "PASS", "sentence": "right", "checks": []}')
        for each in feed._feeds.values():
            each._polled_s = -10
        return False

    feed = ExperimentFeed(run)
    frames = [json.loads(frame) for frame in frames_for(feed, "", ends) if frame]

    assert frames[-1]["set"]["verdict"]["judged"]["outcome"] == "PASS"
    assert {frame["run"] for frame in frames} == {""}


CASES = [{"engine": "spark", "sink": "absolute", "fault": fault, "seed": 1} for fault in ("none", "kill@now", "storm")]


def test_planned_cases_fill_in_their_order():
    done = [{"case": CASES[0], "seen": "exactly once", "sentence": "right", "run": "runs/a"}]
    runs = [RunSeen("runs/a", "PASS"), RunSeen("runs/b", "running")]

    grid = grid_of({"wanted": CASES, "done": done}, runs)

    assert [(case.state, case.run) for case in grid] == [("PASS", "runs/a"), ("running", "runs/b"), ("waiting", "")]
    assert grid[1].label == "kill@now, spark/absolute, seed 1"
    assert grid[0].word == "exactly once"


def test_cases_may_begin_out_of_their_order():
    """Two at a time: the baseline of each sink comes before its faults."""
    wanted = [{"engine": "spark", "sink": sink, "fault": fault, "seed": 1} for sink in "ab" for fault in ("none", "x")]
    runs = [RunSeen(f"runs/{at}", "running", values=wanted[at]) for at in (0, 2)]

    grid = grid_of({"wanted": wanted, "done": []}, runs)

    assert [(case.state, case.run) for case in grid] == [
        ("running", "runs/0"),
        ("waiting", ""),
        ("running", "runs/2"),
        ("waiting", ""),
    ]


def test_a_case_may_name_an_engine_by_its_path_and_a_fault_without_its_moment():
    case = {"engine": "jobs/mine", "fault": "redis-restart-empty", "sink": "b", "seed": 1}
    wanted = [{**case, "sink": "a"}, case]
    run = RunSeen("runs/a", "running", values={**case, "engine": "mine", "fault": "redis-restart-empty@t>=12s"})

    assert [case.run for case in grid_of({"wanted": wanted}, [run])] == ["", "runs/a"]


def test_a_case_that_is_made_again_shows_the_run_that_counts():
    first = {"case": CASES[0], "seen": "unknown", "sentence": "starved", "run": "runs/a"}
    runs = [RunSeen("runs/a", "UNKNOWN"), RunSeen("runs/b", "running", values=CASES[0])]
    assert grid_of({"wanted": CASES[:1], "done": [first]}, runs)[0].state == "running"

    again = {"case": CASES[0], "seen": "exactly once", "sentence": "right", "run": "runs/b"}
    (case,) = grid_of({"wanted": CASES[:1], "done": [first, again]}, [runs[0], RunSeen("runs/b", "PASS")])
    assert (case.state, case.word, case.run) == ("PASS", "exactly once", "runs/b")


def test_a_run_that_was_broken_off_is_none_that_goes_on():
    """As when an experiment is killed and resumed: the killed run waits for nothing."""
    runs = [RunSeen("runs/a", BROKEN_OFF), RunSeen("runs/b", "running")]
    assert [case.run for case in grid_of({"wanted": CASES[:2], "done": []}, runs)] == ["runs/b", ""]
    assert newest([RunSeen("a", "running"), RunSeen("b", BROKEN_OFF)]) == "a"

    broken = [{"case": CASES[0], "seen": "unknown", "sentence": "the harness broke", "run": "runs/a"}]
    assert grid_of({"wanted": CASES[:1], "done": broken}, runs[:1])[0].state == BROKEN_OFF


def test_a_run_goes_on_as_long_as_its_process(tmp_path):
    for name, mark in (("a", "1:0:elsewhere"), ("b", owner_mark())):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "owner.json").write_text(json.dumps({"schema": 3, "mark": mark}))

    assert [run.state for run in Runs(tmp_path).seen()] == [BROKEN_OFF, "running"]


def test_an_experiment_that_is_resumed_has_not_ended(tmp_path):
    (tmp_path / "experiment.json").write_text('{"kind": "chaos", "wanted": [], "done": []}')
    ends = {"at_ms": 2, "kind": "ended early", "how": "interrupted", "why": "Stopped by Ctrl-C."}
    history = [{"at_ms": 1, "kind": "begun"}, ends]
    (tmp_path / "history.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in history))
    grid = Grid(tmp_path)
    assert grid.read()[0]["finished"] == {"outcome": "", "sentence": "Stopped by Ctrl-C."}

    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"at_ms": 3, "kind": "begun"}\n')
    assert grid.read()[0]["finished"] is None


def test_a_case_without_a_run_was_not_possible():
    done = [{"case": CASES[0], "seen": "n/a", "sentence": "there is no broker to kill", "run": ""}]

    assert grid_of({"wanted": CASES[:1], "done": done}, [])[0].state == "not possible"


def test_runs_without_a_plan_are_the_cases_and_those_that_are_wanted_wait():
    runs = [RunSeen("runs/a", "PASS", title="ad-impressions on fake/absolute")]

    assert [case.state for case in grid_of({"wanted": 3}, runs)] == ["PASS", "waiting", "waiting"]
    assert [case.label for case in grid_of({}, runs)] == ["ad-impressions on fake/absolute"]


def test_the_run_that_goes_on_is_shown():
    assert newest([]) == ""
    assert newest([RunSeen("a", "running"), RunSeen("b", "PASS")]) == "a"
    assert newest([RunSeen("a", "PASS"), RunSeen("b", "PASS")]) == "b"


def test_an_experiment_that_is_being_written_has_a_grid(tmp_path):
    (tmp_path / "experiment.json").write_text(json.dumps({"kind": "chaos", "wanted": CASES, "done": []}))
    run = tmp_path / "runs" / "20260101-1"
    run.mkdir(parents=True)
    (run / "owner.json").write_text(json.dumps({"mark": owner_mark()}))
    (run / "spec.json").write_text('{"scen')

    grid, shown = Grid(tmp_path).read()

    assert (grid["kind"], shown) == ("chaos", "runs/20260101-1")
    assert [*grid["numbers"].items()] == [("running", 1), ("waiting", 2)]
    (tmp_path / "experiment.json").write_text("{")
    assert Grid(tmp_path).read() == ({}, "")
