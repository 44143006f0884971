"""Each read with its reader's count, on real engines: it leaves once, whatever is killed, or once for each window."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

SHORT = ["--rate", "100", "--duration", "14s"]
KILLED = ["--fault", "kill@t>=6s"]
# No other test starts from an archive of this engine.
SPARK = ["--engine", "spark", *SOON_UP, "--no-archive"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.thorough]  # on first use an environment is made


@pytest.mark.parametrize("disorder", ["mobile", "late"])
def test_the_reference_puts_out_each_read_once_when_it_is_killed(tmp_path, disorder):
    answer = run(tmp_path, "readers-join", *SHORT, *KILLED, "--disorder", disorder)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert bool(check(answer, "late")["count"]) == (disorder == "late")


def test_flink_joins_each_read_with_one_window_when_it_is_killed(tmp_path):
    answer = run(tmp_path, "readers-join", "--engine", "flink", *SHORT, *KILLED)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


def test_a_join_by_the_time_of_the_whole_window_multiplies_each_read(tmp_path):
    answer = run(tmp_path, "readers-join", "--engine", "flink", "--sink", "each-window", *SHORT, "--fault", "none")

    assert (answer["verdict"], answer["words"][0]) == ("FAIL", "duplicated"), answer["sentence"]
    assert any(str(witness["seen"]) == "60" for witness in check(answer, "duplicated")["witnesses"])


def test_spark_joins_two_streams_when_it_is_killed(tmp_path):
    batches = [*in_batches_of(300), "--fault", "kill@c3:batch=3"]
    answer = run(tmp_path, "readers-join", *SPARK, *SHORT, *batches)

    assert answer["verdict"] == "PASS", answer["sentence"]
