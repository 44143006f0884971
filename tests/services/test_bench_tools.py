"""Kafka's own performance tools as `bench` starts them: they send records of ours, and read them again."""

from __future__ import annotations

from harness.services.kafka import create_topic, end_offsets
from tools.bench import bench
from tools.bench.bench_records import Arguments
from tools.bench.bench_tools import kafka_consumer_performance, kafka_producer_performance

EVENTS = 20_000
TOPIC = "performance"


def test_they_send_records_of_ours_and_read_them_again(tmp_path, kafka_address):
    create_topic(kafka_address, TOPIC, 2)
    classpath, missing = bench.kafka_tools(print)
    assert missing == ""
    told = Arguments(EVENTS, kafka_address.bootstrap, TOPIC, classpath, str(tmp_path))

    costs = [kafka_producer_performance(told), kafka_consumer_performance(told)]

    assert [cost.events for cost in costs] == [EVENTS, EVENTS]
    assert all(min(cost.per_s, cost.cpu_s, cost.peak_mib) > 0 for cost in costs)
    assert sum(end_offsets(kafka_address, TOPIC).values()) == EVENTS
