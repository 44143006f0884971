"""Late policies on real engines: each read in one class, whatever is killed."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

SMALL = ["--rate", "200", "--duration", "25s"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.thorough]  # on first use an environment is made


@pytest.mark.parametrize("fault", ["none", "kill@offset=50%"])
def test_the_reference_has_each_read_in_its_class(tmp_path, fault):
    answer = run(tmp_path, "readers-late", *SMALL, "--fault", fault)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert check(answer, "late")["count"]


@pytest.mark.parametrize("point", ["c2", "c3"])
def test_spark_has_each_read_in_its_class_by_its_checkpoint(tmp_path, point):
    flags = [*SOON_UP, "--no-archive", *in_batches_of(500), "--fault", f"kill@{point}:batch=9"]
    answer = run(tmp_path, "readers-late", "--engine", "spark-tws", *SMALL, *flags)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert check(answer, "late")["count"]


def test_flink_loses_none_between_results_and_side_output(tmp_path):
    """It has no list of late reads, so that a first result is bounded, and what is known at last is exact."""
    answer = run(tmp_path, "readers-late", "--engine", "flink", *SMALL, "--sink", "kept")

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert answer["slack"] > 0
