"""Reading a real topic back: every record, in order, with the offset that it really has."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import psutil
import pyarrow as pa
import pytest

from generators.disorder import PRESETS
from generators.encode import Encoder
from generators.producers import ConfluentProducer
from generators.profiles import steady
from generators.schedule import Schedule
from harness.judging import log_audit
from harness.kafka_log import parallel_readers, recount
from harness.kafka_log.parallel_readers import LogSource
from harness.model import HarnessError, KafkaAddress, TapeSpec
from harness.services.kafka import delete_records, end_offsets
from workloads.ad_impressions.codec import AdCodec
from workloads.ad_impressions.schema import Population

SPEC = TapeSpec(3, steady(10_000, 3000), 3, 50, 4, 10, 10, PRESETS["storm"])
CODEC = AdCodec(Population(3, 10, 10, carries_ids=False), 10)
EPOCH_MS = 1_763_700_000_000


@pytest.fixture
def filled(kafka_address: KafkaAddress, topic: str) -> str:
    """A topic with the whole tape in it."""
    tape, encoder = Schedule(SPEC), Encoder(CODEC, EPOCH_MS)
    producer = ConfluentProducer(kafka_address.bootstrap, topic, {})
    for server in range(SPEC.servers):
        for number, lo, hi in tape.slices(server):
            messages = encoder.batch(tape.events(server, np.arange(lo, hi)))
            assert not producer.offer(tape.slice_partition(server, number), messages)
    assert producer.finish(30) == 0
    assert not producer.failures.count
    return topic


def test_the_whole_topic_comes_back_as_it_was_sent(kafka_address, filled):
    ends = end_offsets(kafka_address, filled)
    log = recount.read(kafka_address, filled, ends, CODEC)
    audit = log_audit.compare(Schedule(SPEC), EPOCH_MS, pa.table(log), ())

    assert audit.found == audit.planned == sum(ends.values()) == 30_000
    assert not any((audit.missing.count, audit.doubled.count, audit.foreign.count, audit.altered.count)), audit
    for partition, end in ends.items():
        assert log["offset"][log["partition"] == partition].tolist() == list(range(end))


def test_only_what_lies_before_the_ends_is_read(kafka_address, filled):
    log = recount.read(kafka_address, filled, {0: 10, 2: 0}, CODEC)

    assert (log["partition"].tolist(), log["offset"].tolist()) == ([0] * 10, list(range(10)))


def test_deleted_records_are_missing_and_the_others_keep_their_offsets(kafka_address, filled):
    ends = end_offsets(kafka_address, filled)
    delete_records(kafka_address, filled, {1: 7})
    log = recount.read(kafka_address, filled, ends, CODEC)

    assert log["offset"][log["partition"] == 1].tolist() == list(range(7, ends[1]))
    assert log_audit.compare(Schedule(SPEC), EPOCH_MS, pa.table(log), ()).missing.count == 7


def test_a_log_that_ends_too_early_is_named(kafka_address, filled, monkeypatch):
    monkeypatch.setattr(recount, "STALL_S", 1.0)
    ends = end_offsets(kafka_address, filled)

    with pytest.raises(HarnessError, match=rf"partition 0 .* stalled .* at offset {ends[0]:,} of {ends[0] + 1:,}"):
        recount.read(kafka_address, filled, {0: ends[0] + 1}, CODEC)


@pytest.fixture
def by_two(monkeypatch):
    """Two processes even for a small log, in many spans."""
    monkeypatch.setattr(parallel_readers, "SPAN", 2000)
    monkeypatch.setattr(parallel_readers, "readers_for", lambda _ends, _cores: 2)


def readers_of_ours() -> list[psutil.Process]:
    return [
        each
        for each in psutil.Process().children(recursive=True)
        if "harness.kafka_log.parallel_readers" in each.cmdline()
    ]


@pytest.mark.usefixtures("by_two")
def test_several_processes_read_what_one_reads(kafka_address, filled, tmp_path):
    ends = end_offsets(kafka_address, filled)
    delete_records(kafka_address, filled, {1: 2500})
    alone = recount.read(kafka_address, filled, ends, CODEC, stamped=True)
    parts = [*parallel_readers.read_in_parts(LogSource(kafka_address, filled, SPEC, stamped=True), ends, tmp_path)]
    log = recount.joined(parts)

    assert len(parts) > len(ends)
    assert {name: column.dtype for name, column in log.items()} == {n: column.dtype for n, column in alone.items()}
    assert all((log[name] == alone[name]).all() for name in alone)
    assert readers_of_ours() == []


@pytest.mark.usefixtures("by_two")
def test_nothing_is_left_of_readers_that_nobody_listens_to(kafka_address, filled, tmp_path):
    topic = LogSource(kafka_address, filled, SPEC, stamped=False)
    with closing(parallel_readers.read_in_parts(topic, end_offsets(kafka_address, filled), tmp_path)) as parts:
        assert [len(next(parts)["offset"]) for _ in range(2)] == [0, 2000]
        assert readers_of_ours()

    assert readers_of_ours() == []


@pytest.mark.usefixtures("by_two")
def test_what_a_reader_refuses_is_said_in_its_words(kafka_address, filled, tmp_path):
    topic = LogSource(kafka_address, f"{filled}-gone", SPEC, stamped=False)

    with pytest.raises(HarnessError, match=r"KafkaException: .*Unknown"):
        list(parallel_readers.read_in_parts(topic, {0: 10, 1: 10}, tmp_path))
    assert readers_of_ours() == []


@pytest.mark.usefixtures("by_two")
def test_a_reader_that_was_killed_is_named(kafka_address, filled, tmp_path):
    topic = LogSource(kafka_address, filled, SPEC, stamped=False)
    parts = parallel_readers.read_in_parts(topic, end_offsets(kafka_address, filled), tmp_path)
    assert [len(next(parts)["offset"]) for _ in range(2)] == [0, 2000]
    for each in readers_of_ours():
        each.kill()

    with pytest.raises(HarnessError, match=r"read partition \d back ended early, with exit code -9"):
        list(parts)
