"""Distinct articles in windows of 60 slides and of a week, on engines that are killed: exact ways are right, a sketch
is not.
"""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

SHORT = ["--duration", "20s", "--rate", "60"]
KILLED = [*SOON_UP, *in_batches_of(400), "--fault", "kill@c3:batch=3"]
HALF_WAY = ["--fault", "kill@offset=50%"]
AT_C3 = [*SOON_UP, "--fault", "kill@c3:t>=42s"]

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("engine", "sink", "more"),
    [
        ("reference", "transaction", HALF_WAY),
        ("spark", "set", KILLED),
        ("spark", "two-level", KILLED),
        ("spark-tws", "absolute", KILLED),
    ],
)
def test_every_exact_way_is_right_after_a_kill(tmp_path, engine, sink, more):
    answer = run(tmp_path, "readers-distinct", "--engine", engine, "--sink", sink, *SHORT, *more)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.parametrize("sink", ["absolute", "stream"])
def test_flink_is_right_after_a_kill(tmp_path, sink):
    """It leaves no list of what it dropped, so there is slack."""
    answer = run(tmp_path, "readers-distinct", "--engine", "flink", "--sink", sink, *SHORT, *HALF_WAY)

    assert answer["verdict"] == "PASS", answer["sentence"]


@pytest.mark.parametrize(
    ("engine", "sink", "more"),
    [
        ("reference", "transaction", HALF_WAY),
        ("spark", "set", AT_C3),
        ("spark", "two-level", AT_C3),
        ("spark-tws", "absolute", AT_C3),
        ("flink", "absolute", HALF_WAY),
        ("flink", "stream", HALF_WAY),
    ],
)
def test_a_week_in_the_state_survives_a_kill(tmp_path, engine, sink, more):
    """The run is UNKNOWN if the engine had not processed a week and its lateness by then."""
    answer = run(tmp_path, "readers-week", "--engine", engine, "--sink", sink, "--rate", "60", *more)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert answer["slack"] == 0 or engine == "flink"


def test_a_sketch_has_wrong_articles_and_right_reads(tmp_path):
    answer = run(tmp_path, "readers-distinct", "--engine", "spark", "--sink", "approximate", *SHORT, *KILLED)

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["wrong value"]), answer["sentence"]
    assert all("articles" in witness["cell"] for witness in check(answer, "wrong")["witnesses"])


@pytest.mark.parametrize("engine", ["spark-tws", "spark"])
def test_a_read_that_is_late_for_some_windows_counts_in_the_others(tmp_path, engine):
    """The state that is written by hand drops by the same watermark as Spark does, window by window."""
    late = ["--disorder", "late"]
    answer = run(tmp_path, "readers-distinct", "--engine", engine, *SHORT, *late, *KILLED)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert check(answer, "late")["count"] > 0
