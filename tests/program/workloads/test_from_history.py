"""An engine that reads files first: all of both is judged, and who is wrong at the seam is told so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.config import plan
from harness.engines import fake
from harness.host import disk_space
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import INDEX_BITS, Outcome, UsageError
from harness.runner.run_kinds import FromHistory, stages
from harness.selftest.runs import fake_run
from reports.evidence import Evidence
from reports.sections import reproduce, seam, seam_output

HISTORY: dict[str, Any] = {"history": "24s", "backlog": "6s", "disorder": "mobile"}


def refusal(manifest=fake.MANIFEST, **keys):
    with pytest.raises(UsageError) as refused:
        plan.resolve("test", {"engine": "fake", "disorder": "none", **keys}, {}, lambda *_: manifest)
    return str(refused.value)


def test_files_and_kafka_are_one_input(tmp_path):
    verdict, store = fake_run(tmp_path, **HISTORY)
    run = StoredRun.open(store.path)
    server = run.log.column("event_id").to_numpy() >> INDEX_BITS
    early = (server >= run.schedule.spec.senders) & (server < 2 * run.schedule.spec.senders)

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert verdict.slack == 0
    assert stages(run.spec) is FromHistory
    assert early.sum() == run.schedule.warm_up_total
    assert run.seam
    assert all(0 < begins < end for begins, end in zip(run.seam.begins, run.seam.ends, strict=True))
    assert sum(run.seam.ends) < run.schedule.warm_up_total, "the last six seconds lie in Kafka alone"
    assert judge(StoredRun.open(store.path)) == verdict


def test_disorder_goes_across_the_seam(tmp_path):
    _, store = fake_run(tmp_path, **HISTORY)
    run = StoredRun.open(store.path)
    events, seam = run.countable.events, run.seam
    assert seam
    behind = events.offset >= [seam.ends[p] for p in events.partition.tolist()]
    until_ms = run.epoch_ms - run.spec.tape.backlog_ms

    assert (behind & (events.time_ms < until_ms)).sum() > 5


@pytest.mark.parametrize("keys", [{"fault": "kill@c3:batch=2"}, {"sink": "fenced"}, {"backlog": "0s"}])
@pytest.mark.parametrize("seam", ["offset", "time"])
def test_either_seam_is_right(tmp_path, seam, keys):
    verdict, _ = fake_run(tmp_path, **{**HISTORY, "history": "40s", "seam": seam, **keys})

    assert (verdict.outcome, verdict.slack) == (Outcome.PASS, 0), verdict.sentence


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ("early", "2 events too many in 2 cells: exactly the last record of each partition in files"),
        ("late", "1 cell: exactly the first record of each partition behind the files, passed over at the seam"),
        ("earliest", "exactly what both files and Kafka have, counted twice at the seam"),
        ("last-window", "exactly what both have of the window in which the files end, counted twice at the seam"),
        ("torn", "lost: "),
        ("stale-files", "lost: "),
    ],
)
def test_who_is_wrong_at_the_seam_is_told_so(tmp_path, bug, words):
    verdict, _ = fake_run(tmp_path, **HISTORY, conf={"misbehave": bug})

    assert verdict.outcome is Outcome.FAIL
    assert words in verdict.sentence


def shown(store):
    evidence = Evidence(store)
    assert evidence.seam
    return evidence, [*seam.rows_of(evidence.case, evidence.seam)]


def test_the_page_shows_from_which_side_of_the_seam_each_event_counts_and_which_batch_took_it(tmp_path):
    _, store = fake_run(tmp_path, **HISTORY, fault="kill@c3:batch=2")
    evidence, rows = shown(store)
    found = seam.section(evidence)

    assert found is not None
    assert found.picture is not None
    assert "none marked" in found.picture.alt
    assert [row.lies["files"] for row in rows] == [(-end, 0) for end in evidence.seam.ends]
    assert all(row.lies["Kafka"][0] < 0 < row.lies["Kafka"][1] for row in rows), "both have the last quarter"
    for row in rows:
        assert {each.side for each in row.taken} == {"files", "Kafka"}
        assert all((each.end <= 0) == (each.side == "files") for each in row.taken)
        assert all(each.batch for each in row.taken)
    assert {each.batch for row in rows for each in row.taken if each.again} == {"2"}


@pytest.mark.parametrize(("bug", "places"), [("early", {-1}), ("late", {0})])
def test_the_very_records_by_which_somebody_is_wrong_at_the_seam_are_marked(tmp_path, bug, places):
    _, store = fake_run(tmp_path, **HISTORY, conf={"misbehave": bug})
    _, rows = shown(store)

    assert {place for row in rows for place in row.marks["wrong"]} == places


def test_what_the_seam_does_not_explain_is_marked_by_all_of_its_cells(tmp_path):
    _, store = fake_run(tmp_path, **HISTORY, conf={"misbehave": "torn"})
    evidence, rows = shown(store)
    wrong = [each.cell for each in evidence.case.differences]

    assert sum(len(row.marks["wrong"]) for row in rows) == np.isin(evidence.case.events.cell, wrong).sum() > 0


def test_the_page_shows_when_the_output_of_files_came_and_when_that_of_kafka(tmp_path):
    _, store = fake_run(tmp_path, **HISTORY)
    evidence = Evidence(store)
    case, watched = evidence.case, evidence.case.watched
    assert evidence.seam
    assert watched
    cells = seam_output.cells_of(case, evidence.seam)
    end_s = np.array([watched.at_us.max() / 1e6 - evidence.epoch_ms / 1000 + 1])

    assert sorted(np.concatenate([*cells.values()]).tolist()) == np.unique(case.events.cell).tolist()
    for own in cells.values():
        [held] = seam_output.held(watched, own, evidence.epoch_ms, end_s)
        assert held == sum(case.observed.counts.count(cell) for cell in own.tolist())
    assert seam_output.section(evidence) is not None


def test_without_files_there_is_no_seam_to_show(tmp_path):
    _, store = fake_run(tmp_path)

    assert seam.section(Evidence(store)) is None
    assert seam_output.section(Evidence(store)) is None


def test_what_was_moved_is_no_loss_of_kafka(tmp_path):
    verdict, _ = fake_run(tmp_path, **HISTORY)

    assert next(each for each in verdict.checks if each.name == "log").outcome is Outcome.PASS


def test_a_seam_that_hardly_any_cell_crosses_proves_nothing(tmp_path):
    verdict, _ = fake_run(tmp_path, **{**HISTORY, "campaigns": 5})

    assert verdict.outcome is Outcome.UNKNOWN
    assert "cells have events in files and in Kafka, and fewer than 50 prove nothing" in verdict.sentence


def test_it_is_done_again_by_the_same_flags(tmp_path):
    _, store = fake_run(tmp_path, **HISTORY, seam="offset")
    run = StoredRun.open(store.path)
    recipe = reproduce.recipe_of(run.spec, run.manifest)

    assert (recipe.keys["history"], recipe.keys["backlog"]) == ("24s", "6s")
    assert recipe.resolve(run.manifest) == run.spec


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"history": "10s", "warm_up": "5s"}, "Leave one of them out"),
        ({"seam": "time"}, "Also give --history"),
        ({"seam": "times", "history": "10s"}, "one of offset, time"),
        ({"history": "20s", "seam": "time", "disorder": "mobile"}, "to more than four times the reach"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_starts(keys, words):
    assert words in refusal(**keys)


def test_files_of_this_machine_are_none_of_a_cluster():
    servers = {"kafka": "k:1", "redis": "redis://r", "checkpoint": "/c"}
    on_a_cluster = {"master": "yarn", "conf": {"spark.driver.host": "h"}, **servers}

    assert "of this one" in refusal(replace(fake.MANIFEST, settings=None), history="20s", **on_a_cluster)


def test_a_job_that_reads_no_files_is_refused_too():
    said = refusal(replace(fake.MANIFEST, history=False), history="10s")

    assert "does not have history = true" in said
    assert "--backlog" in said


def test_the_command_has_a_scenario_of_it(tmp_path):
    dials = ["--history", "24s", "--backlog", "6s", "--rate", "1000", "--duration", "12s"]
    answer = CliRunner().invoke(app.app, ["run", "history", "--engine", "fake", *dials, "--out", str(tmp_path)])

    assert answer.exit_code == 0, answer.stdout
    assert "PASS" in answer.stdout


def test_there_has_to_be_room_for_the_files(tmp_path):
    def needed(in_files):
        wanted = disk_space.needs(
            fake.MANIFEST, 1000, brokers=1, runs=1, out=tmp_path, temporary=tmp_path, in_files=in_files
        )
        return sum(each.size for each in wanted)

    assert needed(1000) - needed(0) == 1000 * disk_space.LOG_PER_EVENT
