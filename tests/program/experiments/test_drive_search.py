"""A driven search on the fake engine: what it keeps, how it goes on, and what it says."""

from __future__ import annotations

import json
import re
import signal
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.drivers import search as drive_search
from harness.engines import fake
from harness.experiments.folder import Folder
from harness.experiments.searching import search, searched
from harness.install import environment
from harness.model import Exit, HarnessError, Outcome, Stopped, UsageError
from harness.runner.rate_search_run import RateSearchRun
from tests.program import pages
from tests.program.calls import invoked, kept, only

FAST = ["search", "--engine", "fake", "--window", "4s", "--campaigns", "5", *pages.SLOW_FAKE]


@pytest.fixture
def call(tmp_path, monkeypatch, few_probes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", dict)
    monkeypatch.setattr(search, "QUICK", pages.FEW_RATES)
    return lambda *arguments: invoked(*FAST, "--quick", *arguments)


def resume(path, *arguments):
    return invoked("search", "--resume", path, *arguments)


def test_a_search_offers_many_rates_to_one_engine_and_says_where_it_falls_behind(call, tmp_path):
    done = call("--json")

    told, path = json.loads(done.stdout), only(tmp_path / "experiments")
    (life,) = kept(path)["lives"]
    rates = [rate["offered_per_s"] for rate in told["rates"]]
    assert done.exit_code == told["exit"] in (Exit.PASS, Exit.UNKNOWN)
    assert told["experiment"] == str(path)
    assert [path / life["run"]] == list((path / "runs").iterdir())
    assert life["outcome"] == "PASS"
    assert life["whole"]
    assert kept(path)["settings"]["life"]["objective_p99_ms"] == 4000
    assert kept(path)["spec"]["objective_p99_ms"] is None
    assert len(rates) >= 6
    assert rates[0] < 1000 < rates[-1]
    assert told["rates"][0]["p50_ms"]["mid"] < 4000
    assert told["rates"][-1]["held"] != "held"


@pytest.mark.parametrize(("rate", "begins_at"), [("500", 2_500), ("10000", 50_000), ("1000000", 50_000)])
def test_a_search_begins_at_five_times_the_rate_of_its_scenario_at_the_most(rate, begins_at):
    settings = search.of(pages.search_spec(rate=rate), search.WHOLE, None)

    assert settings.life.start_per_s == begins_at


def test_wrong_counts_end_it_with_their_name_and_no_speed(call, tmp_path):
    bug = ["misbehave=drop:500" if word == "misbehave=slow:2000" else word for word in FAST]
    done = invoked(*bug, "--quick", "--json")

    told = json.loads(done.stdout)
    assert (done.exit_code, told["verdict"]) == (Exit.FAIL, "FAIL")
    assert "lost" in told["sentence"]
    assert re.search(r"; one of them at [\d,]+ events/s \((warm-up|look|level|again|rest)\)$", told["sentence"])
    assert told["rates"] == []
    assert (told["low_per_s"], told["high_per_s"]) == (None, None)


def test_one_that_is_stopped_judges_what_was_offered_and_goes_on_with_another_life(call, tmp_path, monkeypatch):
    whole, ticks = RateSearchRun._tick, []

    def stops(life):
        whole(life)
        ticks.append(1)
        if len(life.pieces) == 6 and not life.stopped:
            raise Stopped(signal.SIGINT)

    monkeypatch.setattr(RateSearchRun, "_tick", stops)
    assert call().exit_code == Stopped(signal.SIGINT).exit_code
    monkeypatch.setattr(RateSearchRun, "_tick", whole)
    path = only(tmp_path / "experiments")
    (first,) = kept(path)["lives"]
    unfinished = searched.read(Folder(path)).found
    done = resume(path, "--json")

    assert (first["outcome"], first["whole"]) == ("PASS", False)
    assert unfinished.outcome is Outcome.UNKNOWN
    assert "0 of 1 life" in unfinished.sentence
    assert (path / "report.html").exists()
    assert [life["whole"] for life in json.loads(done.stdout)["lives"]] == [False, True]


def test_a_password_and_options_of_redis_reach_every_life_and_no_file(call, tmp_path, redis_claims):
    address = "rediss://:geheim@host:6380/1?ssl_cert_reqs=none"
    call("--redis", address, "--reset")
    path = only(tmp_path / "experiments")

    assert set(redis_claims) == {address}
    assert kept(path)["lives"]
    assert kept(path)["spec"]["redis"] == "rediss://***@host:6380/1?***"
    assert not [each for each in path.rglob("*") if each.is_file() and b"geheim" in each.read_bytes()]
    with pytest.raises(UsageError, match="are not stored"):
        resume(path)


def test_a_search_of_an_earlier_version_is_refused(tmp_path):
    Folder(tmp_path).save("search", spec=pages.search_spec(), settings={}, environment={}, trials=[])
    made = CliRunner().invoke(app.app, ["report", str(tmp_path)])

    for refused in (lambda: searched.read(Folder(tmp_path)), lambda: resume(tmp_path)):
        with pytest.raises(UsageError, match="started by an earlier version"):
            refused()
    assert made.exit_code != Exit.PASS
    assert not (tmp_path / "report.html").exists()


def test_one_database_for_many_lives_has_to_be_one_that_may_be_emptied(tmp_path):
    spec = replace(pages.search_spec(), redis="redis://host:6379/1")

    with pytest.raises(UsageError, match=r"runs share one existing Redis .* --reset"):
        drive_search.begin(spec, fake.MANIFEST, search.WHOLE, tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        ("top_pages", "top_pages has none: each of its values is ranked"),
        ("enrichment", "an answer of enrichment leaves when the watermark has passed"),
        ("pattern", "an answer of pattern leaves when the watermark has passed"),
    ],
)
def test_a_question_without_a_latency_to_search_for_is_refused(tmp_path, workload, why):
    with pytest.raises(UsageError, match=why):
        drive_search.begin(pages.search_spec(workload=workload), fake.MANIFEST, search.WHOLE, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_load_whose_rows_do_not_fit_into_the_memory_is_refused(tmp_path):
    with pytest.raises(HarnessError, match=r"The judge of this run would need about [\d,]+ GB .* lower --rate"):
        drive_search.begin(pages.search_spec(workload="readers_distinct"), fake.MANIFEST, search.WHOLE, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_load_that_several_processes_send_is_refused_before_anything_is_measured(tmp_path):
    spec = replace(pages.search_spec(), workers=2)

    with pytest.raises(UsageError, match=r"workers = 2 is not possible: a search decides its load while it runs"):
        drive_search.begin(spec, fake.MANIFEST, search.WHOLE, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_an_address_that_takes_its_password_from_the_environment_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "describe", dict)
    spec = replace(pages.search_spec(), redis="redis://:${env:SECRET}@host:6379/1", reset=True)
    place = drive_search.begin(spec, fake.MANIFEST, pages.FEW_RATES, tmp_path)

    assert drive_search.resolved(drive_search.resume(place.path)) == (spec, fake.MANIFEST)


def test_what_is_no_search_is_not_resumed(call, tmp_path):
    with pytest.raises(UsageError, match="is not an experiment"):
        drive_search.resume(tmp_path)


def test_time_and_disk_are_told_by_part_before_and_after(call, tmp_path):
    done = call()

    before, after = done.stderr or done.output, done.output
    assert "  ladder             20 s of load" in before
    assert "  other steps        starting, draining," in before
    (life,) = kept(only(tmp_path / "experiments"))["lives"]
    assert list(life["parts_s"]) == ["start", "load", "drain", "read", "judge", "measure"]
    assert life["parts_s"]["load"] > 50
    assert re.search(r"Engine run 1 took [\d.]+ min: start \d+ s, load \d+ s, ", after)
    assert "Engine run 1 took" in (only(tmp_path / "experiments") / "report.html").read_text()
