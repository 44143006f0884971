"""After a stream a batch counts all once more: equal but for what was late, also when it was killed half-way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP

ADDING = Path(__file__).parent / "adding" / "manifest.toml"
SMALL = ("--rate", "1000", "--duration", "12s")
FILES = (*SMALL, *SOON_UP, "--history", "36s", "--backlog", "10s")
KILLED = "no process left, when "

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.mark.parametrize("batch", ["spark-batch", "flink-batch"])
@pytest.mark.parametrize("kill", [(), ("--backfill-kill",)], ids=["", "killed"])
def test_over_files_and_a_range_of_offsets_it_differs_by_what_the_stream_dropped(tmp_path, served, batch, kill):
    answer = run(tmp_path, "backfill", *FILES, *served, "--backfill", batch, *kill)
    said = check(answer, "backfill")["sentence"]

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "exactly those that the stream dropped as late" in said
    assert (KILLED in said) is bool(kill)


@pytest.mark.parametrize("batch", ["spark-batch", "flink-batch"])
def test_by_a_seam_in_time_it_is_right_too(tmp_path, served, batch):
    seam = ("--seam", "time", "--history", "48s")
    answer = run(tmp_path, "history", *FILES, *served, *seam, "--backfill", batch)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "the same as the stream in all" in check(answer, "backfill")["sentence"]


def test_flink_as_a_stream_and_as_a_batch_over_a_range_of_offsets(tmp_path, served):
    late = ("--disorder", "late", "--conf", "streamgauge.late=named")
    answer = run(tmp_path, "calm", *SMALL, *served, "--engine", "flink", *late, "--backfill", "flink-batch")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "exactly those that the stream dropped as late" in check(answer, "backfill")["sentence"]


def test_one_that_adds_to_what_its_killed_half_had_written_fails(tmp_path, served):
    answer = run(tmp_path, "calm", *SMALL, *served, "--engine", "reference", "--backfill", ADDING, "--backfill-kill")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["backfill"])
    assert "exactly what it had written when it was killed" in answer["sentence"]
