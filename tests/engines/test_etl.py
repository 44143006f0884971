"""Streaming ETL on real engines: each event is a row, once, whatever is killed. And ways by which it is two."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

FORGET = "checkpoint-delete-commit@offset>=40%"
LOAD = ("etl", "--duration", "14s", *in_batches_of(1500))

pytestmark = pytest.mark.timeout(900)  # on first use packages and jars are fetched


def test_a_plain_process_makes_a_row_of_each_event_when_it_is_killed(tmp_path):
    answer = run(tmp_path, "etl", "--engine", "reference", "--duration", "8s", "--fault", "kill@t>=4s")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("engine", "sink", "fault"),
    [
        *(("spark-delta", "append-txn", f"kill@{point}:batch=3") for point in ("c1", "c3", "c4")),
        ("spark-delta", "two-appends", "kill@c2:batch=3"),
        ("spark-delta", "native", FORGET),
        *(("spark-iceberg", "merge", f"kill@{point}:batch=3") for point in ("c1", "c3", "c4")),
        ("spark-iceberg", "native", FORGET),
        ("spark-parquet", "native", FORGET),
    ],
)
def test_each_event_is_one_row_and_a_reader_sees_whole_batches(tmp_path, engine, sink, fault):
    answer = run(tmp_path, *LOAD, *SOON_UP, "--engine", engine, "--sink", sink, "--fault", fault)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert check(answer, "torn")["asked"] == (sink != "two-appends")


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["spark-delta", "spark-iceberg", "spark-parquet"])
def test_a_batch_that_is_appended_again_makes_two_rows_of_an_event(tmp_path, engine):
    answer = run(tmp_path, *LOAD, *SOON_UP, "--engine", engine, "--sink", "append", "--fault", "kill@c3:batch=3")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]
    assert all("outputs of event " in witness["cell"] for witness in check(answer, "duplicated")["witnesses"])
