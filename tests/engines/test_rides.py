"""Windows that overlap, with a count, a maximum and different drivers: the jobs of examples/rides, killed."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import EXAMPLES, check, run
from tests.engines.trial import SOON_UP

RIDES = EXAMPLES / "rides"
SHORT = ("--workload", RIDES, "--rate", "1000", "--duration", "12s", "--fault", "kill@t=6s")

pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize("disorder", ["mobile", pytest.param("late", marks=pytest.mark.thorough)])
def test_a_right_job_in_plain_python_is_right(tmp_path, disorder):
    answer = run(tmp_path, "--engine", RIDES, *SHORT, "--disorder", disorder)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize("disorder", ["mobile", "late"])
@pytest.mark.parametrize("job", ["spark", "spark/topic"])
def test_a_right_job_on_spark_is_right(tmp_path, job, disorder):
    answer = run(tmp_path, "--engine", RIDES / job, *SHORT, *SOON_UP, "--disorder", disorder)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert disorder == "mobile" or check(answer, "late")["count"] > 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("tumbling", "lost"),
        ("shifted", "lost"),
        ("unfinished", "duplicated"),
        ("every-driver", "duplicated"),
        ("first-fare", "lost"),
        ("loses", "lost"),
        ("twice", "duplicated"),
        ("late", "lost"),
    ],
)
def test_a_wrong_job_is_called_what_it_is(tmp_path, wrong, word):
    answer = run(tmp_path, "--engine", RIDES, *SHORT, "--disorder", "late", "--conf", f"wrong={wrong}")

    assert answer["verdict"] == "FAIL", answer["sentence"]
    assert word in answer["words"], answer["sentence"]
