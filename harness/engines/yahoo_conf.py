"""The run config in the format of the original Yahoo benchmark's jobs: flat YAML with dotted keys.

Such a job gets brokers without ports, one port for all of them, and only the host of Redis: the port is 6379, the
database 0, without a password. Other addresses are refused before the job is started.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from harness.engines.config import EngineConfig
from harness.model import KafkaAddress, RedisAddress, UsageError

FILE = "benchmarkConf.yaml"
REDIS_PORT = 6379
ZOOKEEPER_PORT = 2181  # no server there; some jobs require the key
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
        f"spark.continoustime: {FLUSH_MS}",  # one job reads this spelling
        f"time.divisor: {config.window_ms}",
    ]
    return "\n".join(lines) + "\n"


def refuse(kafka: KafkaAddress, redis: RedisAddress) -> None:
    """Refuse an address that this format can't express."""
    _brokers(kafka)
    at = urlsplit(redis.url)
    if at.port != REDIS_PORT or at.path.strip("/") not in ("", "0") or at.password or at.scheme != "redis":
        raise UsageError(
            f"A job with Yahoo's own configuration expects Redis at port {REDIS_PORT}, database 0, without a "
            f"password, but --redis is {at.hostname}:{at.port}{at.path}. Leave --redis out: an embedded Redis is "
            f"started there."
        )


def _brokers(kafka: KafkaAddress) -> tuple[list[str], int]:
    parts = [urlsplit(f"//{server.strip()}") for server in kafka.bootstrap.split(",")]
    ports = sorted({part.port or 9092 for part in parts})
    if len(ports) > 1:
        raise UsageError(
            f"A job with Yahoo's own configuration has one port for all brokers, but {kafka.bootstrap} has "
            f"{len(ports)}. "
            "Name brokers with the same port."
        )
    return [part.hostname or "" for part in parts], ports[0]


def _list(key: str, values: Sequence[str]) -> list[str]:
    return [f"{key}:", *(f'    - "{value}"' for value in values)]
