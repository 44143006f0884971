"""Patterns on real engines: each match once with both events, whatever is killed. And a sink that writes one twice."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

# No other test starts from an archive of this engine.
SPARK = ["--engine", "spark-tws", *SOON_UP, "--no-archive", "--rate", "200", "--duration", "16s"]
KILLED = [*in_batches_of(600), "--fault", "kill@c3:batch=3"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.thorough]  # on first use an environment is made


@pytest.mark.parametrize("disorder", ["mobile", "late"])
@pytest.mark.parametrize(
    ("engine", "flags"),
    [
        ("reference", ["--duration", "12s", "--fault", "kill@t>=6s"]),
        ("flink", ["--duration", "16s", "--rate", "200", "--fault", "kill@offset=50%"]),
    ],
)
def test_a_job_that_names_what_it_drops_finds_each_match_when_it_is_killed(tmp_path, engine, flags, disorder):
    answer = run(tmp_path, "pattern", "--engine", engine, *flags, "--disorder", disorder)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert bool(check(answer, "late")["count"]) == (disorder == "late")


@pytest.mark.parametrize(
    ("scenario", "flags"),
    [
        ("pattern", KILLED),
        ("pattern", ["--disorder", "late", *in_batches_of(600), "--fault", "kill@c2:batch=3"]),
        ("pattern-calm", []),
    ],
)
def test_spark_is_right_without_slack(tmp_path, scenario, flags):
    answer = run(tmp_path, scenario, *SPARK, *flags)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert bool(check(answer, "late")["count"]) == ("late" in flags)


def test_by_the_sink_of_spark_itself_a_match_of_a_batch_that_comes_again_leaves_again(tmp_path):
    answer = run(tmp_path, "pattern", *SPARK, "--sink", "kafka", *KILLED)

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]
    assert all("outputs of " in witness["cell"] for witness in check(answer, "duplicated")["witnesses"])
