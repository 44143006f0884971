"""The orders of jobs of the original benchmark, and what can't be said in them."""

from __future__ import annotations

import pytest

from harness.engines import yahoo_conf
from harness.engines.config import EngineConfig
from harness.model import KafkaAddress, RedisAddress, UsageError

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
