"""The table of `bench`: the harness' own clients beside those that come with Kafka, which may not be there."""

from __future__ import annotations

import json

import pytest

from harness.install import jvm
from harness.model import HarnessError
from tools.bench import bench, bench_tools
from tools.bench.bench import Ceiling, Client, Found
from tools.bench.bench_records import ready_made
from tools.bench.bench_tools import as_payloads, told_of_reading, told_of_sending

SENDING = """Reading payloads from: /tmp/payloads
Number of messages read: 2500
1214532 records sent, 242906.4 records/sec (52.12 MB/sec), 310.4 ms avg latency, 702.0 ms max latency.
5000000 records sent, 413223.140496 records/sec (88.67 MB/sec), 290.11 ms avg latency, 702.00 ms max latency.
"""
# A row as the tool prints it without a header.
READING = (
    "2026-11-24 23:00:00:000, 2026-11-24 23:00:08:000, 1072.8, 134.1, 5000100, 625012.5, 3012, 4988, 215.1, 1002425.8"
)


def test_a_tool_is_believed_by_its_last_line():
    assert told_of_sending(SENDING) == (5_000_000, 413_223.140496)
    assert told_of_reading(READING) == (5_000_100, 1_002_425.8)


@pytest.mark.parametrize("said", ["", "usage: producer-performance [-h]", "WARNING: Exiting before consuming, sadly"])
def test_a_tool_that_came_to_nothing_has_no_figures(said):
    assert told_of_sending(said) is None
    assert told_of_reading(said) is None


def test_kafka_s_client_is_set_as_ours_is():
    assert bench_tools.PRODUCER_SETTINGS == {
        "enable.idempotence": "true",
        "linger.ms": "5",
        "batch.size": "1000000",
        "compression.type": "none",
    }


def test_each_line_of_the_payloads_is_a_record_of_ours():
    records = [message["value"] for message in ready_made()]

    lines = as_payloads(ready_made()).splitlines()

    assert lines == [value for value in records if value]
    assert {"ad_id", "event_time"} <= json.loads(lines[0]).keys()


CEILING = Ceiling("oracle fold", 12.3, "M events/s per core", 5.0, True, {"tape and fold": 4.5}, "5,000,000 events")
OURS = Client("sends", bench.OURS, 812_345.0, 1.05)
THEIRS = Client("sends", bench.PRODUCER, 413_223.0, 3.21)


def test_what_a_million_records_cost_stands_beside_the_rate_at_which_they_were_sent():
    *_, head, ours, theirs = bench.lines(Found((CEILING,), (OURS, THEIRS)))

    assert head.split() == ["client", "events/s", "CPU-s", "per", "M"]
    assert ours.split()[-2:] == ["812,345", "1.05"]
    assert theirs.startswith("sends  Kafka's ProducerPerformance ")
    assert max(map(len, (head, ours, theirs))) < 80


def test_tools_that_cannot_be_fetched_are_said_to_be_missing_and_the_rest_goes_on(monkeypatch):
    def jars(which, _say):
        if which == "kafka-tools":
            raise HarnessError("The JVM artifacts of kafka-tools could not be fetched: the network is cut.")
        return f"/jars/{which}"

    monkeypatch.setattr(jvm, "jars", jars)
    heard: list[str] = []

    classpath, missing = bench.kafka_tools(heard.append)

    assert classpath == ""
    assert heard == ["The JVM artifacts of kafka-tools could not be fetched: the network is cut."]
    assert list(bench.lines(Found((), (OURS,), missing)))[-1] == f"Kafka's own tools are not among them. {heard[0]}"


def test_tools_run_on_the_broker_s_jars_and_one_more(monkeypatch):
    monkeypatch.setattr(jvm, "jars", lambda which, _say: f"/jars/{which}")

    assert bench.kafka_tools(print) == ("/jars/services/*:/jars/kafka-tools/*", "")
