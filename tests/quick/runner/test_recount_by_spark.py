"""When Spark reads a log, and how it is divided among its tasks."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from harness.config import plan
from harness.engines.fake import MANIFEST
from harness.engines.manifest import load
from harness.kafka_log.parallel_readers import LogSource
from harness.model import KafkaAddress, UsageError
from harness.runner.world import spark_recount
from harness.runner.world.recount_task import Recount, rounds
from tests.quick.cases import SPEC

FEW, MANY = ("1000", "10s"), ("100000", "501s")


@pytest.mark.parametrize(
    ("recount", "size", "more", "wanted"),
    [
        ("auto", MANY, {}, False),
        ("auto", MANY, {"cluster": "2"}, True),
        ("auto", FEW, {"cluster": "2"}, False),
        ("spark", FEW, {}, True),
        ("here", MANY, {"cluster": "2"}, False),
    ],
)
def test_spark_reads_if_it_is_asked_or_if_there_are_a_cluster_and_many_records(recount, size, more, wanted):
    keys = {"rate": size[0], "duration": size[1], "fault": "none", "recount": recount, **more}
    spec, _ = plan.resolve("x", keys, {}, lambda *_: load("spark"))

    assert spark_recount.is_wanted(spec) is wanted


def test_an_engine_without_a_topic_has_nothing_for_spark_to_read():
    with pytest.raises(UsageError, match='recount = "spark" reads a topic of Kafka, and fake has none'):
        plan.resolve("x", {"recount": "spark"}, {}, lambda *_: MANIFEST)


def test_rounds_have_a_task_for_each_partition_that_is_not_read_yet():
    found = [[tuple(span) for span in spans] for spans in rounds({1: 25, 0: 10, 2: 0}, at_once=30)]

    assert found == [[(0, 0, 10), (1, 0, 10)], [(1, 10, 20)], [(1, 20, 25)]]
    assert [*rounds({})] == []


def test_a_task_gets_all_that_it_needs_as_text():
    source = LogSource(KafkaAddress("b:1", librdkafka={"sasl.password": "secret"}), "t", SPEC.tape, stamped=True)
    asked = Recount(source, replace(SPEC, recount="spark"), 1_763_700_000_000, ())

    assert Recount.of_text(asked.as_text()) == asked
    assert pickle.loads(pickle.dumps(asked)) == asked
