"""Writes the tables that a workload's jobs need to Redis and Kafka before an engine starts."""

from __future__ import annotations

import redis

from generators.producers import ConfluentProducer, send_all
from harness.model import HarnessError, KafkaAddress
from harness.services import kafka
from harness.util.texts import many
from workloads.base import Tables

PAGE = 5000
DEADLINE_S = 60.0


def topic_of(run_topic: str, name: str) -> str:
    """Return a topic name of one run; it is deleted with all topics below the run's own and a dot."""
    return f"{run_topic}.{name}"


def write_to_redis(client: redis.Redis, tables: Tables) -> None:
    for key, members in tables.sets.items():
        for start in range(0, len(members), PAGE):
            client.sadd(key, *members[start : start + PAGE])
    for key, fields in tables.hashes.items():
        client.hset(key, items=[part for each in fields.items() for part in each])
    texts = list(tables.texts.items())
    for start in range(0, len(texts), PAGE):
        client.mset(dict(texts[start : start + PAGE]))


def write_to_kafka(address: KafkaAddress, run_topic: str, tables: Tables) -> None:
    for name, records in tables.topics.items():
        topic = topic_of(run_topic, name)
        kafka.create_topic(address, topic, 1)
        producer = ConfluentProducer(address.bootstrap, topic, {**address.librdkafka, "log_level": "2"})
        try:
            send_all(producer, ((0, {"key": key, "value": value}) for key, value in records), DEADLINE_S)
        except TimeoutError as error:
            raise HarnessError(
                f"The {many(len(records), 'row')} of the table in topic {topic} were not all confirmed by Kafka at "
                f"{address.bootstrap} within {DEADLINE_S:g} s: {error}."
            ) from error
