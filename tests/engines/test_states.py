"""The state of a running Spark job, copied while it goes on and read by Spark's own reader: RocksDB in both formats of
its checkpoint, the heap, and a state that a job keeps by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.types import DecimalType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from harness.judging.stored_run import StoredRun
from harness.model import Exit
from harness.rundir.store import Store
from harness.selftest import cheat
from tests.engines.test_runs import check, command, run
from tests.engines.trial import QUICK_START, SOON_UP, SPARK, in_batches_of
from workloads.jobs.spark_states import shape_of, variables_of

STORE = "spark.sql.streaming.stateStore"
HEAP = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

TURKISH = "-Duser.language=tr -Duser.country=TR"
DIALS = ("state", "--rate", "1000", "--duration", "30s", *in_batches_of(4000), "--fault", "kill@c3:batch=3")
LATE = ("--disorder", "late")

pytestmark = pytest.mark.timeout(400)


@SPARK
def test_spark_killed_before_its_commit_passes_to_the_single_event_and_its_state_is_what_the_log_says(
    tmp_path, monkeypatch
):
    """On servers of its own, by a user who says nothing of the engine and is Turkish: it keeps the language of its
    user, and what is ours works all the same. Late events are dropped exactly as the checkpoint says."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{QUICK_START} {TURKISH}")
    answer = run(tmp_path, *DIALS, *LATE, "--no-archive")

    assert_state_matches(answer)
    assert "batch 3, which was replayed" in check(answer, "fault")["sentence"]
    log = (Path(answer["run"]) / "logs" / "engine-1.log").read_text()
    assert re.search(f"Picked up JAVA_TOOL_OPTIONS: .*{TURKISH}", log)
    assert answer["totals"]["late_dropped"] > 0
    assert_fails_if_none_may_be_dropped(Path(answer["run"]))


def assert_fails_if_none_may_be_dropped(place: Path) -> None:
    """The evidence is on disk, so the run is judged again and not made again."""
    store = Store.open(place)
    stricter = store.read_json("spec.json") | {"late_dropped_max": 0}
    store.write_json("spec.json", stricter)
    store.write_json("plan.json", store.read_json("plan.json") | {"spec": stricter})
    edited = command("recheck", place)
    assert (edited.returncode, edited.stdout.startswith("UNKNOWN  edited")) == (Exit.UNKNOWN, True), edited.stdout

    cheat.recompute_all(store)  # as if it had been asked for from the start
    refused = command("recheck", place)
    assert (refused.returncode, refused.stdout.startswith("FAIL  late-dropped")) == (Exit.FAIL, True), refused.stdout


@pytest.mark.thorough
@pytest.mark.parametrize(
    "more",
    [
        pytest.param(("--conf", f"{STORE}.checkpointFormatVersion=2"), id="rocksdb, format 2"),
        pytest.param(("--conf", f"{STORE}.providerClass={HEAP}"), id="heap"),
        pytest.param(("--engine", "spark-tws"), id="transformWithState"),
    ],
)
def test_a_state_of_each_other_kind_is_what_the_log_says(tmp_path, served, more):
    assert_state_matches(run(tmp_path, *DIALS, *SOON_UP, *served, *more))


def assert_state_matches(answer: dict[str, Any]) -> None:
    batches = [state.kept.batch for state in StoredRun.open(Path(answer["run"])).states]

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert f" in {len(batches)} states match the log" in check(answer, "state")["sentence"]
    assert batches[-1] >= 3, "none is from after the kill"


NAME, COUNT = StructField("campaign_id", StringType()), StructField("count", LongType())
STARTS, ENDS = StructField("start", TimestampType()), StructField("end", TimestampType())
WINDOW, WINDOW_MS = StructField("window", StructType([STARTS, ENDS])), StructField("window_start_ms", LongType())
SUMS = (StructField("s1", DecimalType(25, 0)), StructField("s2", LongType()))


def schema_of(key, value):
    return StructType([StructField("key", StructType([*key])), StructField("value", StructType([*value]))])


@pytest.mark.parametrize(
    ("key", "value"), [((NAME, WINDOW), (COUNT,)), ((NAME, WINDOW_MS), (COUNT,)), ((NAME, WINDOW), (COUNT, *SUMS))]
)
def test_a_state_is_a_count_of_a_name_in_a_window(key, value):
    assert shape_of(schema_of(key, value)) == (*key, COUNT)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ((NAME, WINDOW), (StructField("amount", DoubleType()),)),
        ((NAME, StructField("ad_id", StringType()), WINDOW), (COUNT,)),
        ((NAME,), (COUNT,)),
    ],
)
def test_a_state_of_another_shape_ends_in_a_sentence(key, value):
    with pytest.raises(SystemExit, match="not a count per name and window: its key is struct<"):
        shape_of(schema_of(key, value))


def test_the_state_of_a_processor_has_a_name_and_its_timers_have_none():
    variables = '{"stateVariables": [{"stateName": "$eventTimers"}, {"stateName": "total"}]}'

    assert [*variables_of(Row(operatorProperties=variables))] == ["total"]
    assert [*variables_of(Row(operatorProperties=""))] == []
