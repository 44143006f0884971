"""The command line on the fake engine: exit codes, --json, lists, and a clear sentence for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from harness.cli import app
from harness.drivers import one_run
from harness.install import environment
from harness.model import SCHEMA_VERSION, Exit, UsageError
from harness.rundir.store import Store
from harness.terminal.command_end import ended
from reports import result as results
from reports import screen
from tests.program.calls import invoked, only
from workloads.ad_impressions.schema import AD_TYPES, EVENT_TYPES
from workloads.base import NO_EVENT

ROOT = Path(__file__).resolve().parents[3]

FAST = ["--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]


@pytest.fixture
def call(tmp_path, monkeypatch, few_probes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", dict)  # the real one asks Java for its version
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)  # drawing is slow, and has tests of its own
    return invoked


def test_a_good_run_passes_and_leaves_its_reports(call, tmp_path):
    done = call("run", *FAST)

    assert done.exit_code == Exit.PASS
    assert done.stdout.startswith("PASS  ")
    assert "slack    0" in done.stdout
    path = only(tmp_path / "runs")
    suite = ET.parse(path / "junit.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "0", "0")
    assert "## streamgauge: PASS" in (path / "summary.md").read_text()
    assert (path / "annotations.txt").read_text().startswith("::notice title=streamgauge run%3A PASS::")


def test_every_file_of_a_run_is_explained(call, tmp_path):
    call("run", *FAST)

    section = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert [path.name for path in only(tmp_path / "runs").iterdir() if f"`{path.name}" not in section] == []


def test_the_last_screen_fits_a_terminal(call, tmp_path):
    for bug in ("drop:50", "stall", "stranger:50"):
        call("run", *FAST, "--fault", "none", "--conf", f"misbehave={bug}", "--out", bug.split(":")[0])
    call("run", *FAST, "--sink", "increment")

    paths = [*tmp_path.glob("*/*")]
    assert len(paths) == 4
    for path in paths:
        lines = screen.lines(results.read(path))
        assert len(lines) <= 23
        assert max(map(len, lines)) <= 79


def test_json_is_one_object_with_what_machines_need(call):
    done = call("run", *FAST, "--sink", "increment", "--json")

    told = json.loads(done.stdout)
    assert done.exit_code == told["exit"] == Exit.FAIL
    assert (told["command"], told["verdict"], told["slack"]) == ("run", "FAIL", 0)
    assert told["words"] == ["duplicated"]
    assert told["measurement"] is None
    assert told["withheld"] == "no speed for a run that is FAIL"
    assert told["certificate"]["valid"] is True
    assert {check["name"] for check in told["checks"]} >= {"lost", "duplicated", "phantom", "late", "fault"}


def test_unknown_is_an_error_in_junit_never_skipped(call, tmp_path):
    done = call("run", *FAST, "--fault", "kill@c3:batch=99999")

    assert done.exit_code == Exit.UNKNOWN
    suite = ET.parse(only(tmp_path / "runs") / "junit.xml").getroot()[0]
    assert (suite.get("errors"), suite.get("skipped")) == ("1", "0")
    assert suite.find("testcase[@name='fault']/error") is not None


def test_recheck_says_the_same_and_ls_lists_it(call, tmp_path):
    first = call("run", *FAST, "--sink", "increment")
    again = call("recheck", only(tmp_path / "runs"))
    listed = call("ls")

    assert again.exit_code == first.exit_code == Exit.FAIL
    assert again.stdout == first.stdout
    assert "FAIL" in listed.stdout
    assert json.loads(call("ls", "--json").stdout)["runs"][0]["state"] == "FAIL"


def test_a_run_that_was_broken_off_is_unknown_and_says_what_is_missing(call, tmp_path, monkeypatch):
    call("run", *FAST)
    path = only(tmp_path / "runs")
    (path / "verdict.json").unlink()
    monkeypatch.setattr(Store, "alive", lambda _: False)

    assert "broken off" in call("ls").stdout
    for name in ("observed.parquet", "log.parquet", "history.jsonl", "plan.json"):
        content = (path / name).read_bytes()
        (path / name).unlink()
        done = call("recheck", path)
        assert done.exit_code == Exit.UNKNOWN
        assert name in done.stdout.replace("\n", "") or "broken off" in done.stdout
        (path / name).write_bytes(content[: len(content) // 2])
        assert call("recheck", path).exit_code == Exit.UNKNOWN
        (path / name).write_bytes(content)
    assert call("recheck", path).exit_code == Exit.PASS


def test_a_run_that_still_goes_on_is_not_judged(call, tmp_path):
    call("run", *FAST)
    (only(tmp_path / "runs") / "verdict.json").unlink()

    with pytest.raises(UsageError, match="still running"):
        call("recheck", only(tmp_path / "runs"))


def test_a_schema_from_the_future_is_refused_by_name(call, tmp_path):
    call("run", *FAST)
    owner = only(tmp_path / "runs") / "owner.json"
    owner.write_text(owner.read_text().replace(f'"schema": {SCHEMA_VERSION}', '"schema": 99'))

    with pytest.raises(UsageError, match="schema 99"):
        call("recheck", only(tmp_path / "runs"))


def test_a_folder_that_is_no_run_is_refused(call, tmp_path):
    with pytest.raises(UsageError, match="not a run"):
        call("recheck", tmp_path)


def test_lists(call):
    assert "storm" in call("run", "--list").stdout
    assert {"name", "group", "what"} == set(json.loads(call("run", "--list", "--json").stdout)["scenarios"][0])
    assert call("ls").stdout == "no runs here\n"


@pytest.mark.parametrize("preset", ["none", "yahoo", "mobile", "late", "storm"])
def test_the_tape_can_be_looked_at(call, preset):
    shown = call("tape", "--rate", "1000", "--disorder", preset).stdout.splitlines()
    told = json.loads(call("tape", "--rate", "1000", "--disorder", preset, "--json").stdout)

    assert shown[0].startswith("30,060 records")
    assert len(shown) <= 24
    assert max(map(len, shown)) <= 79
    assert told["events"] == 30_060
    assert sum(bar["events"] for bar in told["lateness"]) == 30_060
    assert (told["poison"] > 0) == (preset == "storm")


@pytest.mark.parametrize("file", ["log.parquet", "log.csv"])
def test_the_log_of_a_run_is_written_with_names(call, tmp_path, file):
    call("run", "--disorder", "storm", *FAST)
    done = call("tape", "--of", only(tmp_path / "runs"), "--out", tmp_path / file)
    rows = [
        {name: value or None for name, value in row.items()}
        for row in (csv.read_csv if file.endswith(".csv") else pq.read_table)(tmp_path / file).to_pylist()
    ]

    coded = Store.open(only(tmp_path / "runs")).read_table("log.parquet").to_pylist()
    assert done.stdout.startswith(f"{len(coded):,} records of ")
    assert [row["event_id"] for row in rows] == [f"{row['event_id']:012x}" for row in coded]
    assert {row["sender"] == "harness" for row in rows} == {True, False}
    for row, code in zip(rows, coded, strict=True):
        is_event = code["kind"] != NO_EVENT
        assert (row["kind"] != "no event", row["event_time"] is not None) == (is_event, is_event)
        assert (row["event.event_type"], row["event.ad_type"]) == (
            (EVENT_TYPES[code["event_type"]], AD_TYPES[code["ad_type"]]) if is_event else (None, None)
        )
    named = {(row["event.campaign"], code["campaign"]) for row, code in zip(rows, coded, strict=True)}
    assert len(named) == len({name for name, _ in named}) == len({number for _, number in named})


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--of", "RUN"], "belong together"),
        (["--out", "log.csv"], "belong together"),
        (["steady", "--of", "RUN", "--out", "log.csv", "--rate", "5"], "Leave out steady, rate"),
        (["--of", "RUN", "--out", "log.txt"], "must end in .parquet or .csv"),
        (["--of", "RUN", "--out", "nowhere/log.csv"], "does not exist. Create it first"),
    ],
)
def test_what_is_written_of_a_run_and_where_is_said(call, tmp_path, arguments, sentence):
    call("run", *FAST)

    with pytest.raises(UsageError, match=sentence):
        call("tape", *(only(tmp_path / "runs") if word == "RUN" else word for word in arguments))


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["run", "--rate", "-5"], Exit.USAGE, "rate = '-5'"),
        (["run", "nothing"], Exit.USAGE, "no scenario 'nothing'"),
        (["run", "--engine", "fake", "--conf", "misbehave=drp"], Exit.USAGE, "nearest: 'drop'"),
    ],
)
def test_mistakes_end_in_a_sentence_and_start_nothing(arguments, code, sentence, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    assert ended(arguments, lambda: app.called(arguments)) == code
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("command", "beside"),
    [
        (["search"], ["calm"]),
        (["search"], ["--quick"]),
        (["search"], ["--engine", "fake"]),
        (["chaos"], ["--tier", "smoke"]),
        (["chaos"], ["--sink", "absolute"]),
        (["chaos"], ["--rate", "5"]),
        (["chaos"], ["--out", "elsewhere"]),
    ],
)
def test_what_is_asked_beside_resume_is_refused_before_anything_is_read(call, tmp_path, command, beside):
    name = "SCENARIO" if beside == ["calm"] else beside[0]

    with pytest.raises(UsageError, match=f"{name} can't be combined with --resume"):
        call(*command, *beside, "--resume", tmp_path / "none")


@pytest.mark.parametrize(("arguments", "code"), [(["chaos", "--list"], Exit.PASS), (["run", "nowhere"], Exit.USAGE)])
def test_a_reader_who_leaves_early_changes_no_exit_code(arguments, code):
    read, write = os.pipe()
    os.close(read)  # as `| head -1` has done before the second line is written
    try:
        command = [sys.executable, "-E", "-m", "harness", *arguments]
        done = subprocess.run(command, stdout=write, stderr=write, cwd=ROOT, timeout=60, check=False)
    finally:
        os.close(write)

    assert done.returncode == code
