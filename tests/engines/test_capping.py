"""Capping on real engines: one action for each request, whatever is killed. And a sink by which it may leave twice."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

# No other test starts from an archive of this engine.
SPARK = ["--engine", "spark-tws", *SOON_UP, "--no-archive"]
KILLED = ["--duration", "14s", *in_batches_of(1500), "--fault", "kill@c3:batch=3"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.thorough]  # on first use an environment is made


@pytest.mark.parametrize("disorder", ["mobile", "late"])
def test_the_reference_gives_each_request_its_action_when_it_is_killed(tmp_path, disorder):
    answer = run(tmp_path, "capping", "--duration", "12s", "--fault", "kill@t>=6s", "--disorder", disorder)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert bool(check(answer, "late")["count"]) == (disorder == "late")


@pytest.mark.parametrize(
    ("scenario", "flags"),
    [
        ("capping", KILLED),
        ("capping", ["--duration", "20s", "--disorder", "late", "--fault", "kill@c2:batch=3"]),
        ("capping-calm", ["--duration", "12s"]),
    ],
)
def test_spark_is_right_without_slack(tmp_path, scenario, flags):
    answer = run(tmp_path, scenario, *SPARK, *flags)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert bool(check(answer, "late")["count"]) == ("late" in flags)


@pytest.mark.parametrize("disorder", ["mobile", "late"])
def test_timers_of_flink_survive_a_kill(tmp_path, disorder):
    flags = ["--duration", "14s", "--fault", "kill@t>=6s", "--disorder", disorder]
    answer = run(tmp_path, "capping", "--engine", "flink", *flags)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert bool(check(answer, "late")["count"]) == (disorder == "late")


def test_by_the_sink_of_spark_itself_timers_that_fire_again_act_again(tmp_path):
    answer = run(tmp_path, "capping", *SPARK, "--sink", "kafka", *KILLED)

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]
    assert all("outputs of " in witness["cell"] for witness in check(answer, "duplicated")["witnesses"])
