"""A driven search on the fake engine: what it keeps, how it goes on, and what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from harness import cli
from harness.experiments import drive_search, one_run, search
from harness.install import environment
from harness.model import Exit, UsageError
from tests.program import pages

FEW = replace(pages.FEW_TRIALS, most_trials=3)
FAST = ["search", "--engine", "fake", "--window", "4s", "--campaigns", "5"]


@pytest.fixture
def call(tmp_path, monkeypatch, few_probes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", dict)
    monkeypatch.setattr(one_run, "write_page", lambda *_: None)  # drawing takes longer than the runs
    monkeypatch.setattr(search, "QUICK", FEW)
    return lambda *arguments: CliRunner().invoke(cli.app, [*FAST, "--quick", *arguments], catch_exceptions=False)


def resume(path, *arguments):
    return CliRunner().invoke(cli.app, ["search", "--resume", str(path), *arguments], catch_exceptions=False)


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
    done = resume(only_experiment(tmp_path), "--json")

    assert len(first) == 1
    assert json.loads(done.stdout)["trials"][:1] == first
    assert len(runs) == 1 + len(json.loads(done.stdout)["trials"])


def test_a_password_and_options_of_redis_reach_every_trial_and_no_file(call, tmp_path, monkeypatch):
    address, seen = "rediss://:geheim@host:6380/1?ssl_cert_reqs=none", []
    monkeypatch.setattr(one_run, "claim_external", lambda spec: seen.append(spec.redis))
    call("--redis", address, "--reset")
    path = only_experiment(tmp_path)

    assert set(seen) == {address}
    assert kept(path)["trials"]
    assert kept(path)["spec"]["redis"] == "rediss://***@host:6380/1?***"
    assert not [each for each in path.rglob("*") if each.is_file() and b"geheim" in each.read_bytes()]
    with pytest.raises(UsageError, match="were not kept"):
        resume(path)


def test_one_database_for_many_trials_has_to_be_one_that_may_be_emptied(tmp_path):
    spec = replace(pages.search_spec(), redis="redis://host:6379/1")

    with pytest.raises(UsageError, match=r"runs share one existing Redis .* --reset"):
        drive_search.begin(spec, search.QUICK, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_an_address_that_takes_its_password_from_the_environment_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "describe", dict)
    spec = replace(pages.search_spec(), redis="redis://:${env:SECRET}@host:6379/1", reset=True)
    place = drive_search.begin(spec, FEW, tmp_path)

    assert drive_search.spec_of(drive_search.resume(place.path)) == spec


def test_what_is_no_search_is_not_resumed(call, tmp_path):
    with pytest.raises(UsageError, match="is not an experiment"):
        drive_search.resume(tmp_path)
