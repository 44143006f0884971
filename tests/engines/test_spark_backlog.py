"""A backlog written by a real Spark into a real Kafka: the records and the order of the ad servers, or no topic."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from contextlib import closing
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from generators.spark_plan import Plan
from harness.kafka_log import recount
from harness.model import Exit, KafkaAddress
from harness.services import kafka
from harness.services.kafka import EmbeddedKafka
from harness.services.small_disk import SmallDisk, impossible
from harness.util.wait import wait_until
from tests.quick.generators.test_by_partition import EPOCH_MS, Records, no_client, sent_by_servers

__all__ = ["no_client"]
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
EXECUTOR = "CoarseGrainedExecutorBackend"


def start(kafka_address: KafkaAddress, *flags: str, topic: str = "") -> tuple[str, subprocess.Popen[str]]:
    topic = topic or f"backlog-{uuid.uuid4().hex[:12]}"
    words = ["--topic", topic, "--kafka", kafka_address.bootstrap, "--until", str(EPOCH_MS), "--json", *flags]
    command = [sys.executable, "-m", "harness", "backlog", *words]
    return topic, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, said = process.communicate()
    answer: dict[str, Any] = json.loads(out)
    assert answer["exit"] == process.returncode, said
    return answer | {"said": " ".join(said.split())}


def records_in(address: KafkaAddress, topic: str) -> dict[int, Records]:
    """Read whole partitions, one after the other."""
    found: dict[int, Records] = {}
    with closing(Consumer({**recount.CONSUMER_SETTINGS, "bootstrap.servers": address.bootstrap})) as consumer:
        for partition, end in kafka.end_offsets(address, topic).items():
            found[partition] = []
            consumer.assign([TopicPartition(topic, partition, 0)])
            while len(found[partition]) < end:
                read = [each for each in consumer.consume(4000, 10) if not each.error()]
                assert read
                found[partition] += [(each.key() or b"", each.value()) for each in read]
    return found


@pytest.mark.parametrize("workload", ["ad_impressions", "etl"])
def test_each_partition_has_the_keys_values_and_order_of_the_ad_servers(workload, kafka_address, tmp_path, no_client):
    flags = ("--rate", "2000", "--backlog", "10s", "--disorder", "mobile,poison_share=0.01", "--workload", workload)
    topic, process = start(kafka_address, *flags, "--master", "local[2]")

    answer = ended(process)

    assert answer["exit"] == Exit.PASS, answer["said"]
    plan = Plan.of_text(answer["plan"])
    assert plan.epoch_ms == EPOCH_MS
    sent = sent_by_servers(plan.tape, str(tmp_path))
    assert records_in(kafka_address, topic) == sent
    assert answer["partitions"] == [len(records) for records in sent.values()]
    assert answer["cpu_s"] > 0
    for how in ("here", "spark"):
        _, process = start(kafka_address, *flags, "--master", "local[2]", "--check", how, topic=topic)
        checked = ended(process)
        assert checked["verdict"] == "PASS", checked["said"]
        assert [(each["records"], each["first"]) for each in checked["partitions"]] == [
            (count, -1) for count in answer["partitions"]
        ]


def test_a_record_too_many_is_found_here_and_by_spark_alike(kafka_address):
    flags = ("--rate", "1000", "--backlog", "5s", "--master", "local[2]")
    topic, process = start(kafka_address, *flags)
    assert ended(process)["exit"] == Exit.PASS
    producer = Producer({"bootstrap.servers": kafka_address.bootstrap})
    producer.produce(topic, b"one more", b"key", 2)
    producer.flush()

    answers = [ended(start(kafka_address, *flags, "--check", how, topic=topic)[1]) for how in ("here", "spark")]

    assert [answer["exit"] for answer in answers] == [Exit.FAIL, Exit.FAIL]
    assert answers[0]["partitions"] == answers[1]["partitions"]
    assert [(each["extra"], each["missing"]) for each in answers[0]["partitions"]] == [(0, 0), (0, 0), (1, 0), (0, 0)]


def test_a_dead_executor_costs_the_topic_and_no_record_is_there_twice(kafka_address):
    flags = ("--rate", "50000", "--backlog", "30s", "--master", "local-cluster[2,1,1024]")
    topic, process = start(kafka_address, *flags)
    _await_records(kafka_address, topic, process)
    executors = [each for each in psutil.Process(process.pid).children(recursive=True) if _is_executor(each)]
    executors[0].kill()

    answer = ended(process)

    assert len(executors) == 2
    assert answer["exit"] == Exit.BROKEN
    assert "is not tried again" in answer["error"]
    assert f"Deleted the topic {topic}" in answer["said"]
    assert topic not in kafka.topic_ids(kafka_address)


def test_a_signal_leaves_no_topic_and_no_process(kafka_address):
    topic, process = start(kafka_address, "--rate", "50000", "--backlog", "30s", "--master", "local[2]")
    _await_records(kafka_address, topic, process)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)  # a shell may have its children ignore SIGINT

    answer = ended(process)

    assert answer["exit"] == 128 + signal.SIGTERM
    assert f"Deleted the topic {topic}" in answer["said"]
    assert topic not in kafka.topic_ids(kafka_address)
    assert [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []


def test_a_disk_that_fills_meanwhile_is_named_and_the_topic_is_not_taken_for_whole(jars, java, tmp_path):
    if why := impossible():
        pytest.skip(f"NO REAL FULL DISK IS TRIED: none can be mounted here ({why})")
    disk = SmallDisk(tmp_path / "disk", 800)
    disk.mount()
    broker = EmbeddedKafka(disk.folder, jars, java, heap="512m")
    try:
        address = broker.start()
        topic, process = start(address, "--rate", "50000", "--backlog", "20s", "--master", "local[2]")
        _await_records(address, topic, process)
        disk.fill()

        answer = ended(process)

        assert answer["exit"] == Exit.BROKEN
        assert "Spark could not write the backlog" in answer["error"]
        assert f"The topic {topic}" in answer["said"]
        assert "stays, and is no whole backlog: delete it before you use it" in answer["said"]
        disk.free()
    finally:
        broker.stop()
        disk.unmount()


def _await_records(address: KafkaAddress, topic: str, process: subprocess.Popen[str]) -> None:
    def some() -> bool:
        assert process.poll() is None
        return topic in kafka.topic_ids(address) and sum(kafka.end_offsets(address, topic).values()) > 0

    wait_until(some, deadline_s=600, what=f"records in {topic}", every_s=1.0)


def _is_executor(process: psutil.Process) -> bool:
    try:
        return EXECUTOR in " ".join(process.cmdline())
    except psutil.Error:
        return False
