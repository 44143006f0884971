"""The checker is shown to fail: `selftest` finds every planted bug under its right name and kills every wrong checker,
and would say so if it did not."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.engines.fake_memory import FAKE_NOW_MS, FakeClock
from harness.evidence.checksums import Checksum
from harness.judging import checks
from harness.judging.checks import masked
from harness.model import CheckResult, Exit, Outcome
from harness.selftest import by_hand, clean, drive, mutants, planted, sinks
from harness.selftest.report import Report, Tried, lines, words_of
from harness.selftest.runs import fake_run
from harness.util.durations import seconds

MATRIX = drive.expected()


@pytest.mark.timeout(900)
def test_it_all_comes_out_as_the_matrix_says():
    answer = CliRunner().invoke(app.app, ["selftest", "--json"])

    found = json.loads(answer.stdout)
    assert [each for each in found["tried"] if not each["right"]] == []
    assert (answer.exit_code, found["verdict"]) == (Exit.PASS, "PASS")
    parts = [each["part"] for each in found["tried"]]
    assert parts.count("clean") == 50
    assert parts.count("mutants") >= 2 * len(checks.CHECKS)
    assert sum(not words.startswith("PASS") for part in MATRIX.values() for words in part.values()) >= 25


def test_every_check_has_a_bug_that_only_it_is_there_for():
    """The words of the matrix are those of all checks; a check without any would be one that nobody tried."""
    mutants_of_checks = {each.name for each in mutants.mutants() if each.name.endswith("always passes")}

    assert mutants_of_checks == {f"check {name} always passes" for name in checks.CHECKS}


def test_no_name_stands_twice():
    names = [name for part in MATRIX.values() for name in part]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("ahead_ms", range(0, 4000, 1000))
def test_a_bug_of_windows_that_close_strikes_wherever_they_begin(ahead_ms, tmp_path):
    rows = dict(sinks.closing())
    paused = "writes a window when it closes, and is paused"
    of_several = "writes a window when it closes, and one alone of several"

    honest, wrong = (
        fake_run(tmp_path, **rows[name], clock=FakeClock(FAKE_NOW_MS + ahead_ms))[0] for name in (paused, of_several)
    )

    assert (honest.outcome, wrong.outcome) == (Outcome.PASS, Outcome.FAIL)
    assert "lost" in words_of(wrong)


def test_a_bug_that_escapes_is_told(monkeypatch):
    monkeypatch.setitem(checks.CHECKS, "masked", lambda _: CheckResult("masked", Outcome.PASS, "all is well"))

    wrong = [each for each in drive.by_hand() if not each.right]

    escaped = ("one lost, one doubled, with sums", "FAIL masked", "PASS")
    assert escaped in [(each.name, each.expected, each.seen) for each in wrong]
    shown = lines(Report(tuple(wrong), 1, 0.0))
    assert shown[0].startswith("FAIL  0 of ")
    assert "  checksummed: {}: expected {}, seen {}".format(*escaped) in shown


def test_a_bug_that_the_matrix_does_not_have_is_told(monkeypatch):
    monkeypatch.setitem(planted.PARTS, "counts", lambda: iter([("new", by_hand.HONEST)]))

    found = {each.name: each for each in drive.by_hand()}

    assert not found["new"].right
    assert found["one lost"] == Tried("counts", "one lost", "FAIL lost", drive.UNTRIED)


def test_a_checker_that_no_bug_tells_from_the_real_one_survives_and_is_told(monkeypatch):
    harmless = mutants.Mutant("harmless", mutants._check("late", checks.CHECKS["late"]))
    monkeypatch.setattr(drive, "mutants", lambda: [harmless])

    (found,) = drive.on_mutants(lambda _: None)

    assert found.seen == drive.SURVIVED


@pytest.mark.parametrize("mutant", list(mutants.mutants()), ids=lambda mutant: mutant.name)
def test_a_mutant_leaves_nothing_behind(mutant):
    before = dict(checks.CHECKS), masked._expected, vars(Checksum).get("__ne__")

    with mutant.planted():
        pass

    assert (dict(checks.CHECKS), masked._expected, vars(Checksum).get("__ne__")) == before


def test_clean_runs_differ_in_faults_and_in_how_their_times_are_written():
    drawn = [clean.drawn(random.Random(number)) for number in range(300)]

    assert {each["fault"].split("@")[0].split("(")[0] for each in drawn} == {"none", "kill", "pause"}
    assert len({each["fault"] for each in drawn if each["fault"].startswith("pause")}) > 20
    for key, times_ms in (("duration", clean.DURATIONS_MS), ("window", clean.WINDOWS_MS), ("watermark", [10_000])):
        texts = {each[key] for each in drawn}
        assert len(texts) > len(times_ms)
        assert {seconds(text, key) * 1000 for text in texts} == set(times_ms)
