"""Whole runs under faults of the process family: the damage has its name, and whoever is safe survives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

WORKERS = Path(__file__).parent / "workers"
SHORT = ["--duration", "20s", "--rate", "1000", "--campaigns", "20"]

pytestmark = pytest.mark.timeout(400)


@pytest.mark.thorough
@pytest.mark.parametrize(("sink", "words"), [("absolute", ["lost"]), ("fenced", [])])
def test_a_zombie_takes_totals_back_and_does_not_pass_a_fence(tmp_path, served, sink, words):
    answer = run(
        tmp_path, *SHORT, *SOON_UP, *in_batches_of(4000), *served, "--sink", sink, "--fault", "zombie@c1:batch=3"
    )

    assert "CONCURRENT_STREAM_LOG_UPDATE" in check(answer, "fault")["sentence"]
    assert "lost" in answer["words"] if words else answer["words"] == [], answer["sentence"]


@pytest.mark.thorough
def test_a_lost_python_worker_is_survived(tmp_path):
    fault = "kill-python@batch>=3"
    answer = run(tmp_path, *SHORT, "--engine", WORKERS, "--fault", fault)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "SIGKILL to the Python worker" in check(answer, "fault")["sentence"]


@pytest.mark.thorough
def test_a_reference_killed_in_a_loop_converges(tmp_path):
    fault = "crash-loop(times=3, after=2s)@t>=5s"
    answer = run(tmp_path, *SHORT, "--engine", "reference", "--fault", fault)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
