"""The orders of a job as jobs of the original benchmark read them: flat YAML with dotted keys.

Such a job names brokers without their port, gives all of them one, and knows of Redis the host alone: its port is 6379,
its database 0, and it has no password. What can't be said so is refused before the job is started.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from harness.engines.config import EngineConfig
from harness.model import KafkaAddress, RedisAddress, UsageError

FILE = "benchmarkConf.yaml"
REDIS_PORT = 6379
ZOOKEEPER_PORT = 2181  # nobody is there; some jobs want the words
BATCH_MS = 2000
FLUSH_MS = 1000


def render(config: EngineConfig) -> str:
    hosts, port = _brokers(config.kafka)
    redis = urlsplit(config.redis.url)
    cores = os.cpu_count() or 1
    lines = [
        *_list("kafka.brokers", hosts),
        f"kafka.port: {port}",
        f'kafka.topic: "{config.topic}"',
        f"kafka.partitions: {config.partitions}",
        f'redis.host: "{redis.hostname}"',
        *_list("zookeeper.servers", [hosts[0]]),
        f"zookeeper.port: {ZOOKEEPER_PORT}",
        "process.hosts: 1",
        f"process.cores: {cores}",
        "storm.workers: 1",
        "storm.ackers: 2",
        f"spark.batch.time: {BATCH_MS}",
        f"spark.continuous.time: {FLUSH_MS}",
        f"spark.continoustime: {FLUSH_MS}",  # so it is read by one of them
        f"time.divisor: {config.window_ms}",
    ]
    return "\n".join(lines) + "\n"


def refuse(kafka: KafkaAddress, redis: RedisAddress) -> None:
    """An address that such a job can't be told."""
    _brokers(kafka)
    at = urlsplit(redis.url)
    if at.port != REDIS_PORT or at.path.strip("/") not in ("", "0") or at.password or at.scheme != "redis":
        raise UsageError(
            f"A job with Yahoo's own configuration looks for Redis at port {REDIS_PORT}, database 0, with no password; "
            f"{at.hostname}:{at.port}{at.path} is something else. Leave --redis out, and one is started there."
        )


def _brokers(kafka: KafkaAddress) -> tuple[list[str], int]:
    parts = [urlsplit(f"//{server.strip()}") for server in kafka.bootstrap.split(",")]
    ports = sorted({part.port or 9092 for part in parts})
    if len(ports) > 1:
        raise UsageError(
            f"A job with Yahoo's own configuration takes one port for all brokers; {kafka.bootstrap} has {len(ports)}. "
            "Name brokers with the same port."
        )
    return [part.hostname or "" for part in parts], ports[0]


def _list(key: str, values: Sequence[str]) -> list[str]:
    return [f"{key}:", *(f'    - "{value}"' for value in values)]
