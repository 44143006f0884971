"""A log that Spark reads back: its records and their recount are those that one gets here, also if it is wrong."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from generators.schedule import Schedule
from harness.engines.manifest import load
from harness.engines.spark.own_job import ENGINE
from harness.judging import log_audit
from harness.judging.recounted import Recounted
from harness.kafka_log import recount
from harness.kafka_log.parallel_readers import LogSource
from harness.kafka_log.recount import Columns
from harness.model import FaultSpec, RunSpec
from harness.rundir.store import Store
from harness.runner.world import spark_recount
from harness.runner.world.log import RealLog
from harness.runner.world.recount_task import Recount
from harness.services import owners
from harness.services.kafka import delete_records, end_offsets
from harness.util.wait import wait_until
from tests.engines.test_cluster import alive, marked, words_of
from tests.engines.test_runs import run, start
from tests.engines.trial import SPARK
from tests.services.test_recount import CODEC, EPOCH_MS, SPEC, filled

__all__ = ["filled"]
pytestmark = [SPARK, pytest.mark.timeout(900)]
RUN = RunSpec(
    "by-hand", "reference", "absolute", SPEC, 10_000, 10_000, "storm", None, FaultSpec("none"), master="local[2]"
)
BRIEF = ("--engine", "reference", "--fault", "none", "--rate", "500", "--duration", "8s", "--campaigns", "20")


def spoil(kafka_address, topic: str) -> None:
    """Lose seven records, and add one twice, one that nobody planned, and one with a foreign key."""
    first = recount.read_values(kafka_address, topic, {2: 1})[0][0]
    log = recount.read(kafka_address, topic, {2: 1}, CODEC)
    delete_records(kafka_address, topic, {1: 7})
    producer = Producer({"bootstrap.servers": kafka_address.bootstrap})
    producer.produce(topic, first, b"%012x" % int(log["event_id"][0]), 0)
    producer.produce(topic, first, b"not a key", 1)
    producer.produce(topic, None, b"%012x" % int(log["event_id"][0]), 2)
    producer.flush()


def by_spark(asked: Recount, ends, tmp_path: Path) -> tuple[Recounted, Columns]:
    answer = spark_recount.recounted(asked, ends, {}, tmp_path / "private", tmp_path / "spark.log")
    assert answer.used.cpu_s > 0
    return answer.recounted, recount.joined([*spark_recount.parts_in(tmp_path / "private", asked)])


@pytest.mark.parametrize("stamped", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_spark_reads_and_finds_what_one_process_does(kafka_address, filled, tmp_path, stamped, own_state):
    spoil(kafka_address, filled)
    ends = end_offsets(kafka_address, filled)
    asked = Recount(LogSource(kafka_address, filled, SPEC, stamped=stamped), RUN, EPOCH_MS, ())
    here = recount.read(kafka_address, filled, ends, CODEC, stamped=stamped)
    audit = log_audit.compare(Schedule(SPEC), EPOCH_MS, pa.table(here), ())

    found, log = by_spark(asked, ends, tmp_path)

    assert found == asked.of(here).whole(Schedule(SPEC)) == Recounted.of(audit, found.cells)
    assert (found.missing, found.doubled, found.foreign, found.altered) == (7, 2, 1, 1)
    assert {name: column.dtype for name, column in log.items()} == {name: column.dtype for name, column in here.items()}
    assert all(np.array_equal(log[name], here[name]) for name in here)
    assert not any((tmp_path / "private" / spark_recount.RECORDS).iterdir())


def test_a_spark_that_fails_costs_no_run_and_is_named(kafka_address, filled, tmp_path, monkeypatch, own_state):
    monkeypatch.setattr(spark_recount, "JOB", "harness.no_such_job")
    store = Store.create(tmp_path, "run")
    store.tell("epoch", epoch_ms=EPOCH_MS)
    pass_on: Any = SimpleNamespace(
        kafka=kafka_address, once_of_kafka=lambda ask: ask(), query_kafka=lambda ask: ask(), refusals=None
    )
    engine: Any = SimpleNamespace(config=SimpleNamespace(topic=filled), manifest=load("reference"))
    load_: Any = SimpleNamespace(signal=None)
    spec = replace(RUN, recount="spark")
    log = RealLog(spec, pass_on, engine, load_, store, files=tmp_path / "files", private=tmp_path / "private")

    read = recount.joined([{name: np.asarray(column) for name, column in part.items()} for part in log.read()])

    assert len(read["offset"]) == sum(end_offsets(kafka_address, filled).values())
    (told,) = store.history("recount")
    assert told["by"] == "here"
    assert "no_such_job" in told["why"]


@pytest.mark.thorough
@pytest.mark.parametrize("more", [(), ("--cluster", "2")])
def test_a_run_whose_log_spark_reads_is_judged_as_any_other(tmp_path, served, more):
    engine = ("--engine", ENGINE, "--patience", "4") if more else ()
    answer = run(tmp_path, *BRIEF, *engine, *served, "--recount", "spark", *more)

    assert answer["verdict"] == "PASS", answer["sentence"]
    (told,) = Store.open(Path(answer["run"])).history("recount")
    assert told["by"] == "spark"
    assert told["answer"]["planned"] == told["answer"]["found"]
    assert told["used"]["cpu_s"] > 0


@pytest.mark.thorough
def test_a_spark_that_reads_the_log_ends_with_a_killed_harness(tmp_path):
    harness = start(tmp_path, *BRIEF, "--recount", "spark")
    mark = f"{harness.pid}:{owners.start_of(harness.pid)}:"

    def reads() -> bool:
        assert harness.poll() is None
        return any("spark_recount_job" in words_of(process) for process in marked(mark))

    wait_until(reads, deadline_s=300, what="Spark to read the log")
    ours = marked(mark)
    os.kill(harness.pid, signal.SIGKILL)
    harness.communicate()

    wait_until(lambda: not alive(ours), deadline_s=60, what="the end of all of it", state=lambda: str(alive(ours)))
