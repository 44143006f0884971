"""A driven search on the fake engine: what it keeps, how it goes on, and what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from harness import cli, environment
from harness.experiments import drive_search, one_run, search
from harness.model import Exit, UsageError

FEW = replace(search.QUICK, start_per_s=200.0, ladder=(0.5,), duration_ms=12_000, most_trials=3)
FAST = ["search", "--engine", "fake", "--window", "4s", "--campaigns", "5"]


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", dict)
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)  # drawing takes longer than the runs
    monkeypatch.setattr(search, "QUICK", FEW)
    return lambda *arguments: CliRunner().invoke(cli.app, [*FAST, "--quick", *arguments], catch_exceptions=False)


def only_experiment(tmp_path):
    (path,) = (tmp_path / "experiments").iterdir()
    return path


def kept(path):
    return json.loads((path / "experiment.json").read_text())


def test_a_search_keeps_its_trials_and_says_what_it_found(call, tmp_path):
    done = call("--json", "--objective-p99-ms", "7000")

    told, path = json.loads(done.stdout), only_experiment(tmp_path)
    assert done.exit_code == told["exit"] in (Exit.PASS, Exit.UNKNOWN)
    assert told["experiment"] == str(path)
    assert told["trials"] == kept(path)["trials"]
    assert {trial["run"] for trial in told["trials"]} == {str(run) for run in (path / "runs").iterdir()}
    assert kept(path)["settings"]["objective_p99_ms"] == 7000
    assert kept(path)["spec"]["objective_p99_ms"] is None


def test_a_search_that_was_broken_off_goes_on_where_it_was(call, tmp_path, monkeypatch):
    whole, runs = one_run.drive, []

    def second_breaks_off(*arguments):
        runs.append(arguments)
        if len(runs) == 2:
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr(one_run, "drive", second_breaks_off)
    call()
    first = kept(only_experiment(tmp_path))["trials"]
    done = call("--resume", only_experiment(tmp_path), "--json")

    assert len(first) == 1
    assert json.loads(done.stdout)["trials"][:1] == first
    assert len(runs) == 1 + len(json.loads(done.stdout)["trials"])


def test_what_is_no_search_is_not_resumed(call, tmp_path):
    with pytest.raises(UsageError, match="is not an experiment"):
        drive_search.resume(tmp_path)
