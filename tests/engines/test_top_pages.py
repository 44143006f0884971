"""Top pages on real engines: each place is right, whatever is killed and however late views come."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

# No other test starts from an archive of this engine.
SPARK = ["--engine", "spark-tws", *SOON_UP, "--no-archive", "--rate", "200", "--duration", "24s"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.thorough]  # on first use an environment is made


def test_the_reference_takes_lost_places_back_when_it_is_killed(tmp_path):
    answer = run(tmp_path, "top-pages", "--duration", "12s", "--fault", "kill@t>=6s")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.parametrize("disorder", ["mobile", "late"])
@pytest.mark.parametrize(
    "flags",
    [
        ["--engine", "flink", "--duration", "24s", "--rate", "200", "--fault", "kill@offset=50%"],
        [*SPARK, *in_batches_of(800), "--fault", "kill@c3:batch=3"],
    ],
)
def test_a_window_is_ranked_once_and_right_after_a_kill(tmp_path, flags, disorder):
    answer = run(tmp_path, "top-pages", *flags, "--disorder", disorder)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert bool(check(answer, "late")["count"]) == (disorder == "late")


def test_spark_is_right_when_it_is_killed_half_way_through_a_transaction(tmp_path):
    answer = run(tmp_path, "top-pages", *SPARK, *in_batches_of(800), "--fault", "kill@c2:batch=3")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
