"""Which part of a topic a batch of Flink reads, and what of the files beside it."""

from __future__ import annotations

from workloads.ad_impressions.jobs.flink_range import ALL, conditions, range_options

ENDS = {"0": 90, "1": 0}
HISTORY = {"folder": "/files", "ends": [40, 30], "begins": [30, 20], "until_ms": None}
UP_TO = {
    "scan.bounded.mode": "specific-offsets",
    "scan.bounded.specific-offsets": "partition:0,offset:90;partition:1,offset:0",
}


def config_with(**history):
    return {"history": {**HISTORY, **history}}


def since(text):
    return {**UP_TO, "scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": text}


def test_without_files_it_is_the_topic_from_its_beginning():
    assert range_options({"history": None}, ENDS) == UP_TO


def test_by_a_seam_in_offsets_the_topic_begins_where_the_files_end():
    assert range_options(config_with(), ENDS) == since("partition:0,offset:40;partition:1,offset:30")
    assert conditions(config_with()) == (ALL, ALL)


def test_by_a_seam_in_time_both_have_some_and_each_event_counts_from_one():
    assert range_options(config_with(until_ms=500), ENDS) == since("partition:0,offset:30;partition:1,offset:20")
    assert conditions(config_with(until_ms=500)) == ("event_time_ms < 500", "event_time_ms >= 500")
