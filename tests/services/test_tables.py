"""What a job joins events with lies where its workload says, in a real Redis and a real Kafka."""

from __future__ import annotations

from dataclasses import replace

from confluent_kafka import Consumer, TopicPartition

from harness.runner.world.tables import topic_of, write_to_kafka, write_to_redis
from harness.services import made
from harness.services.kafka import topic_ids
from harness.services.redis import connect
from workloads.base import Tables

TABLES = Tables(
    {"shop:a": "north"},
    {"regions": ["north", "south"]},
    {"shops": {"a": "north", "b": "south"}},
    {"shops": [(b"a", b'{"shop": "a"}'), (b"b", b'{"shop": "b"}')]},
)


def test_texts_sets_and_hashes_lie_in_redis(redis_address):
    with connect(redis_address) as client:
        write_to_redis(client, TABLES)
        write_to_redis(client, TABLES)  # as after a fault that emptied it: no row is there twice

        assert client.get("shop:a") == "north"
        assert client.smembers("regions") == {"north", "south"}
        assert client.hgetall("shops") == {"a": "north", "b": "south"}


def test_rows_lie_in_a_topic_that_goes_with_the_run(kafka_address):
    run_topic = made.of_this_run_alone("streamgauge-tables")
    write_to_kafka(kafka_address, run_topic, TABLES)

    own = topic_of(run_topic, "shops")
    assert rows(kafka_address.bootstrap, own, 2) == TABLES.topics["shops"]
    made.create(theirs := replace(kafka_address, external=True), run_topic, 1)
    assert made.delete_own(theirs, run_topic) == []
    assert own not in topic_ids(kafka_address)


def rows(bootstrap, topic, most):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [(each.key(), each.value()) for each in consumer.consume(most, timeout=30)]
    finally:
        consumer.close()
