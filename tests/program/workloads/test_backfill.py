"""After the stream a batch counts all once more: equal cell by cell, but for what the stream dropped as late."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.config import plan
from harness.engines import fake
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import Backfill, Outcome, UsageError
from harness.selftest.runs import fake_run
from reports.evidence import Evidence
from reports.sections import backfill

HISTORY = {"history": "24s", "backlog": "6s"}


def of_backfill(verdict):
    return next(each for each in verdict.checks if each.name == "backfill")


def test_without_late_events_both_hold_the_same(tmp_path):
    verdict, store = fake_run(tmp_path, disorder="mobile", backfill="fake")
    run = StoredRun.open(store.path)

    assert (verdict.outcome, verdict.slack) == (Outcome.PASS, 0), verdict.sentence
    assert "the same as the stream in all" in of_backfill(verdict).sentence
    assert run.backfilled.counts == run.observed.counts
    assert run.backfill
    assert run.backfill.took_ms > 0
    assert judge(StoredRun.open(store.path)) == verdict


def test_they_differ_by_exactly_what_the_stream_dropped_and_each_of_it_is_named(tmp_path):
    verdict, store = fake_run(tmp_path, disorder="late", backfill="fake")
    run = StoredRun.open(store.path)
    dropped = sorted(f"{number:012x}" for number in run.countable.events.id[run.countable.dropped].tolist())

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert len(dropped) > 3
    assert f"the batch holds {len(dropped):,} events more" in of_backfill(verdict).sentence
    assert "exactly those that the stream dropped as late" in of_backfill(verdict).sentence
    assert f"event {dropped[0]}" in of_backfill(verdict).sentence
    assert sorted(number for each in of_backfill(verdict).witnesses for number in each.event_ids) == dropped


@pytest.mark.parametrize("fault", ["none", "kill@c3:batch=3"])
def test_it_counts_files_and_a_range_of_offsets(tmp_path, fault):
    verdict, _ = fake_run(tmp_path, disorder="mobile", fault=fault, history="24s", backlog="6s", backfill="fake")

    assert (verdict.outcome, verdict.slack) == (Outcome.PASS, 0), verdict.sentence
    assert "the same as the stream" in of_backfill(verdict).sentence


@pytest.mark.parametrize(
    ("bug", "words"), [("batch-drop:100", "too few and 0 too many"), ("batch-double:100", "0 too few and ")]
)
def test_a_batch_that_is_wrong_fails_and_the_stream_is_not_blamed(tmp_path, bug, words):
    verdict, _ = fake_run(tmp_path, conf={"misbehave": bug}, backfill="fake")

    assert verdict.outcome is Outcome.FAIL
    assert verdict.words == ("backfill",)
    assert words in verdict.sentence


@pytest.mark.parametrize("history", [{}, HISTORY])
def test_killed_half_way_and_started_again_it_comes_to_the_same(tmp_path, history):
    verdict, store = fake_run(tmp_path, disorder="late", backfill="fake", backfill_kill=True, **history)
    run = StoredRun.open(store.path)
    half, whole = run.half_backfilled.counts, run.backfilled.counts

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert 0 < len(half) < len(whole)
    assert all(whole.count(cell) == count for cell, count in half.items())
    assert f"when {len(half):,} of {len(whole):,} cells were written" in of_backfill(verdict).sentence
    assert judge(StoredRun.open(store.path)) == verdict


def test_one_that_adds_to_what_its_killed_half_had_written_fails_and_is_told_so(tmp_path):
    verdict, _ = fake_run(tmp_path, conf={"misbehave": "batch-add"}, backfill="fake", backfill_kill=True)

    assert verdict.outcome is Outcome.FAIL
    assert verdict.words == ("backfill",)
    assert "the batch counts 0 too few and " in verdict.sentence
    assert "exactly what it had written when it was killed" in verdict.sentence


def test_without_a_kill_nobody_sees_that_it_would_add(tmp_path):
    verdict, _ = fake_run(tmp_path, conf={"misbehave": "batch-add"}, backfill="fake")

    assert verdict.outcome is Outcome.PASS, verdict.sentence


def test_a_batch_of_one_key_has_no_half_to_be_killed_at(tmp_path):
    verdict, _ = fake_run(tmp_path, campaigns=1, probes=0, backfill="fake", backfill_kill=True)

    assert verdict.words == ("not landed",)
    assert "it was not killed" in of_backfill(verdict).sentence


def test_a_stream_that_is_wrong_is_not_hidden_by_a_batch_that_is_right(tmp_path):
    verdict, _ = fake_run(tmp_path, conf={"misbehave": "drop:100"}, backfill="fake")

    assert verdict.words == ("lost",)
    assert "the stream differs from it" in of_backfill(verdict).sentence


def test_the_screen_says_how_it_fared_and_what_it_cost(tmp_path):
    dials = ["--rate", "250", "--duration", "12s", "--campaigns", "10", "--fault", "none", "--backfill", "fake"]
    answer = CliRunner().invoke(app.app, ["run", "calm", "--engine", "fake", *dials, "--out", str(tmp_path)])
    told = " ".join(answer.stdout.split())

    assert answer.exit_code == 0, answer.stdout
    assert "backfill the batch holds the same as the stream in all" in told
    assert "batch fake took" in told
    assert re.search(r"took [\d.]+ s, [\d.]+ of the stream's [\d.]+, and [\d.]+ CPU-s, [\d.]+ of the stream's", told)
    assert "with its start; the stream since its last start" in told


def drawn(store):
    case = Evidence(store).case
    assert case.backfilled is not None
    return [*backfill.windows_of(case, case.backfilled)]


def test_the_page_counts_the_cells_of_each_window_that_differ_by_what_the_stream_dropped(tmp_path):
    _, store = fake_run(tmp_path, disorder="late", backfill="fake")
    case = Evidence(store).case
    windows = drawn(store)
    found = backfill.section(Evidence(store))

    assert sum(each.more for each in windows) == case.dropped.sum() > 0
    assert sum(each.cells[1] for each in windows) == len(np.unique(case.events.cell[case.dropped]))
    assert sum(each.cells[2] for each in windows) == 0
    assert {each.half for each in windows} == {None}
    assert found is not None
    assert found.picture is not None
    assert "the stream dropped as late" in found.picture.alt


def test_the_page_shows_what_was_written_when_the_batch_was_killed(tmp_path):
    _, store = fake_run(tmp_path, disorder="late", backfill="fake", backfill_kill=True)
    windows = drawn(store)

    assert sum(each.half for each in windows) == len(StoredRun.open(store.path).half_backfilled.counts)
    assert 0 < sum(each.half for each in windows) < sum(sum(each.cells) for each in windows)


def test_a_difference_that_no_late_event_explains_is_apart_and_no_cost_is_shown_beside_it(tmp_path):
    _, store = fake_run(tmp_path, conf={"misbehave": "batch-drop:100"}, backfill="fake")
    found = backfill.section(Evidence(store))

    assert sum(each.cells[2] for each in drawn(store)) > 0
    assert found is not None
    assert found.tables == ()
    assert found.picture is not None
    assert "differs otherwise" in found.picture.alt


def test_of_a_stream_whose_time_nobody_noted_only_the_cpu_is_shown():
    told = Backfill("fake", "", 4000, 2.0, stream_cpu_s=8.0)

    assert [each.name for each in backfill.costs_of(told)] == ["CPU"]
    assert [each.name for each in backfill.costs_of(replace(told, stream_took_ms=9000))] == ["CPU", "time"]


def test_nobody_asked_for_it(tmp_path):
    verdict, store = fake_run(tmp_path)

    assert StoredRun.open(store.path).backfill is None
    assert of_backfill(verdict).sentence == "not requested"


def test_there_is_no_batch_to_kill():
    with pytest.raises(UsageError, match="backfill is empty"):
        plan.resolve("test", {"engine": "fake", "backfill_kill": True}, {}, lambda *_: fake.MANIFEST)


def refusal(manifest, **keys):
    with pytest.raises(UsageError) as refused:
        plan.resolve("test", {"engine": "fake", "disorder": "none", "backfill": "other", **keys}, {}, manifest)
    return str(refused.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sinks": fake.MANIFEST.sinks[:1]}, "drops late events"),
        ({"progress": False}, "does not report when it is done"),
        ({"results": "command"}, "must write its results where fake does"),
        ({"history": False}, "reads no files"),
    ],
)
def test_an_engine_that_can_be_no_batch_is_refused(changes, said):
    other = replace(fake.MANIFEST, id="other", **changes)

    said_by = refusal(lambda engine, _: other if engine == "other" else fake.MANIFEST, history="10s")
    assert said in said_by
    assert said_by.endswith("spark-batch or flink-batch.")


def test_one_that_can_not_be_aimed_at_is_not_killed():
    blind = replace(fake.MANIFEST, id="other", sinks=(replace(fake.MANIFEST.sinks[1], crash_points=("c1",)),))

    said = refusal(lambda engine, _: blind if engine == "other" else fake.MANIFEST, backfill_kill=True)
    assert "has no crash point c2, at which it has written half" in said


def test_of_a_job_that_is_asked_something_else_there_is_none():
    fault = "change-job(counts=click, means=carry)@batch>=3"

    assert "one query" in refusal(lambda *_: fake.MANIFEST, fault=fault)
