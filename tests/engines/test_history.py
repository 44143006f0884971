"""Spark reads older events from files and newer ones from Kafka, as one input: right, killed, and wrong at the seam."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP

SEAMS = Path(__file__).parent / "seams" / "manifest.toml"
HISTORY = ("history", "--rate", "1000", "--history", "36s", "--backlog", "10s", "--duration", "12s", *SOON_UP)
WAY = "streamgauge.history="

pytestmark = pytest.mark.timeout(400)


def test_files_and_then_kafka_killed_among_the_files(tmp_path, served):
    """In each second file, of six; its state, its watermark and its numbers go over to Kafka."""
    answer = run(tmp_path, *HISTORY, *served, "--fault", "kill@c3:batch=2")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "which was replayed" in check(answer, "fault")["sentence"]
    assert "were moved into files" in check(answer, "log")["sentence"]


@pytest.mark.thorough
def test_a_seam_by_time_is_right_too(tmp_path, served):
    answer = run(tmp_path, *HISTORY, *served, "--fault", "none", "--seam", "time", "--history", "48s")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.thorough
def test_a_stream_begins_with_the_state_that_a_batch_made_from_files(tmp_path, served):
    answer = run(tmp_path, *HISTORY, *served, "--engine", "spark-tws")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.thorough
def test_a_batch_over_files_and_a_range_of_offsets_differs_by_what_the_stream_dropped(tmp_path, served):
    late = ("--disorder", "late", "--backfill", "spark-batch")
    answer = run(tmp_path, *HISTORY, *served, *late)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "exactly those that the stream dropped as late" in check(answer, "backfill")["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("fresh", ["lost", "non-monotonic"]),  # cells across the seam begin anew
        ("union", ["late-dropped"]),  # the watermark is that of Kafka
        ("union-each", []),  # nothing is ever late any more
    ],
)
def test_what_the_other_ways_make_of_it(tmp_path, served, way, words):
    answer = run(tmp_path, *HISTORY, *served, "--conf", f"{WAY}{way}")

    assert (answer["words"], answer["slack"]) == (words, 0), answer["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bug", "said"),
    [
        ("early", "duplicated: "),
        ("torn", "crashed: "),
        ("torn-unseen", "lost: "),
    ],
)
def test_who_is_wrong_at_the_seam_fails_by_its_right_name(tmp_path, served, bug, said):
    answer = run(tmp_path, *HISTORY, *served, "--engine", SEAMS, "--conf", f"streamgauge.bug={bug}")

    assert answer["verdict"] == "FAIL"
    assert answer["sentence"].startswith(said), answer["sentence"]
    assert ("at the seam" in answer["sentence"]) is (bug == "early")
