"""The shared part of all jobs in Flink SQL: the topic as a source, and totals that are written to Redis."""

from __future__ import annotations

import functools
from typing import Any

from redis import Redis

from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config

Column = Any  # a pandas.Series

# The Kafka client inside the connector's jar has another package name, also in settings that name a class.
KAFKA, KAFKA_INSIDE = "org.apache.kafka.", "org.apache.flink.kafka.shaded.org.apache.kafka."
AS_JSON = {"format": "json", "json.ignore-parse-errors": "true"}


def source_options(config: Config) -> dict[str, str]:
    return {
        "connector": "kafka",
        "topic": config["topic"],
        "scan.startup.mode": "earliest-offset",
        **AS_JSON,
        **{f"properties.{key}": value for key, value in client_settings(config).items()},
    }


def client_settings(config: Config) -> dict[str, str]:
    security = {key: value.replace(KAFKA, KAFKA_INSIDE) for key, value in config["kafka"]["java"].items()}
    return {"bootstrap.servers": config["kafka"]["bootstrap"], **security}


# KEYS: totals, times of update. ARGV: time, then window and total in turns. A script is atomic.
WRITE_LARGER = """
for i = 2, #ARGV, 2 do
  if tonumber(ARGV[i + 1]) > tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or '-1') then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[1])
  end
end
"""


@functools.cache
def connection(url: str, prefix: str) -> Redis:
    """Return the one connection of a worker."""
    return connect({"redis": url, "redis_prefix": prefix})


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
