"""Enrichment on real engines: each order leaves once, whatever is killed. And a sink by which it may leave twice."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

SHORT = ["--duration", "12s", "--fault", "kill@t>=6s"]
# No other test starts from an archive of this engine.
SPARK = ["--engine", "spark-tws", *SOON_UP, "--no-archive"]
KILLED = ["--duration", "14s", *in_batches_of(1500), "--fault", "kill@c3:batch=3"]

pytestmark = pytest.mark.timeout(600)  # on first use an environment is made


@pytest.mark.thorough
def test_a_batch_that_was_killed_behind_its_transaction_does_not_leave_again(tmp_path):
    answer = run(tmp_path, "enrichment", *SPARK, *KILLED)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize("scenario", ["enrichment", "enrichment-late"])
def test_each_order_leaves_once_with_the_right_answer(tmp_path, scenario):
    answer = run(tmp_path, scenario, *SHORT)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("scenario", "flags"),
    [
        ("enrichment-calm", ["--duration", "12s"]),
        ("enrichment-late", SHORT),
        ("enrichment", ["--duration", "14s", "--fault", "kill@c2:batch=3"]),
        ("enrichment", ["--duration", "20s", "--disorder", "late", "--fault", "kill@c3:batch=4"]),
    ],
)
def test_spark_is_right_without_slack(tmp_path, scenario, flags):
    answer = run(tmp_path, scenario, *SPARK, *flags)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert bool(check(answer, "late")["count"]) == ("late" in flags)


@pytest.mark.thorough
def test_by_the_sink_of_spark_itself_a_batch_that_comes_again_leaves_again(tmp_path):
    answer = run(tmp_path, "enrichment", *SPARK, "--sink", "kafka", *KILLED)

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]
    assert all("outputs of " in witness["cell"] for witness in check(answer, "duplicated")["witnesses"])
