"""The run config of jobs of the original benchmark, and what it can't express."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.engines import yahoo_conf
from harness.engines.config import EngineConfig
from harness.engines.manifest import load
from harness.model import KafkaAddress, RedisAddress, UsageError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "yahoo"
KAFKA, REDIS = KafkaAddress("127.0.0.1:4321"), RedisAddress("redis://127.0.0.1:6379/0")


def config(kafka: KafkaAddress = KAFKA) -> EngineConfig:
    return EngineConfig("run", kafka, "events", REDIS, 10_000, 10_000, "/c", "/p", "/r", "default", partitions=4)


def test_every_word_of_it():
    lines = yahoo_conf.render(config()).splitlines()

    assert lines[:6] == [
        "kafka.brokers:",
        '    - "127.0.0.1"',
        "kafka.port: 4321",
        'kafka.topic: "events"',
        "kafka.partitions: 4",
        'redis.host: "127.0.0.1"',
    ]
    assert "time.divisor: 10000" in lines
    assert all(":" in line or line.startswith("    - ") for line in lines)


def test_several_brokers_have_one_port():
    two = KafkaAddress("one:9092, two:9092")

    assert '    - "two"' in yahoo_conf.render(config(two))
    with pytest.raises(UsageError, match="one port for all brokers"):
        yahoo_conf.refuse(KafkaAddress("one:1,two:2"), REDIS)


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:6380/0", "redis://127.0.0.1:6379/1", "redis://:hush@127.0.0.1:6379/0"]
)
def test_redis_is_where_such_a_job_looks_for_it(url):
    yahoo_conf.refuse(KAFKA, REDIS)
    with pytest.raises(UsageError, match="port 6379") as refused:
        yahoo_conf.refuse(KAFKA, RedisAddress(url))
    assert "hush" not in str(refused.value)


def template(name, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda program: program)  # its engine need not be here
    return load(str(EXAMPLES / name))


def test_flink_gets_a_slot_for_each_core_that_its_job_asks_for(monkeypatch):
    words = template("flink", monkeypatch).command
    (slots,) = [int(word.partition("=")[2]) for word in words if word.startswith("-Dtaskmanager.numberOfTaskSlots=")]
    asked = dict(re.findall(r"^process\.(hosts|cores): (\d+)$", yahoo_conf.render(config()), re.MULTILINE))

    assert slots >= int(asked["hosts"]) * int(asked["cores"])


def test_what_flink_and_spark_need_on_java_17_is_in_their_templates(monkeypatch):
    opened = template("flink", monkeypatch).env["JDK_JAVA_OPTIONS"].split()
    (connector,) = [word for word in template("spark", monkeypatch).command if "spark-sql-kafka" in word]
    version = tuple(map(int, connector.rpartition(":")[2].split(".")))

    assert opened == [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("util", "lang")]
    assert version >= (3, 3), "the first Spark that runs on Java 17"
