"""The state of a running Spark job, copied while it goes on and read by Spark's own reader: RocksDB in both formats of
its checkpoint, the heap, and a state that a job keeps by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.stored import STATES
from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP

STORE = "spark.sql.streaming.stateStore"
HEAP = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

# Plain `test` has a state of one kind; the others are read by the same reader.
others = pytest.mark.thorough
pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param((), id="rocksdb"),
        pytest.param(("--conf", f"{STORE}.checkpointFormatVersion=2"), id="rocksdb, format 2", marks=others),
        pytest.param(("--conf", f"{STORE}.providerClass={HEAP}"), id="heap", marks=others),
        pytest.param(("--engine", "spark-tws"), id="transformWithState", marks=others),
    ],
)
def test_the_state_after_random_batches_is_what_the_log_says_before_and_after_a_kill(tmp_path, served, more):
    dials = ("--rate", "1000", "--duration", "30s", "--states", "6", "--fault", "kill@c3:batch=5")
    answer = run(tmp_path, "state", *dials, *SOON_UP, *served, *more)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert " cells in 6 states are what the log says, after batches " in check(answer, "state")["sentence"]
    assert (Path(answer["run"]) / STATES).is_file()
