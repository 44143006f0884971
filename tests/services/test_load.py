"""The load for real: Locust as a child process, a real broker, and the books against what Kafka holds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generators.disorder import PRESETS
from generators.profiles import steady
from generators.schedule import Schedule
from harness.judging import log_audit
from harness.kafka_log import recount
from harness.load.adaptive_load import GrowingLoad
from harness.load.fleet import Load, send_marks
from harness.model import INDEX_BITS, MARK_SERVER, FaultSpec, HarnessError, KafkaAddress, RunSpec, Sentinel, TapeSpec
from harness.services.kafka import end_offsets
from harness.util.clock import Clock
from harness.util.wait import wait_until
from workloads.registry import codec_of

TAPE = TapeSpec(
    seed=5,
    profile=steady(3000, 2000),
    servers=4,
    slice_ms=20,
    partitions=4,
    campaigns=10,
    ads_per_campaign=10,
    disorder=PRESETS["storm"],
    probes=20,
    probe_every_ms=500,
)
SPEC = RunSpec(
    scenario="test",
    engine="none",
    sink="none",
    tape=TAPE,
    window_ms=10_000,
    watermark_ms=10_000,
    disorder_name="storm",
    late_dropped_max=None,
    fault=FaultSpec("none"),
    lag_budget_ms=60_000,
)
CODEC = codec_of(TAPE)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


def sent(load: Load, kafka: KafkaAddress, clock: Clock) -> int:
    """Drive a load to its end; the epoch."""
    try:
        load.start()
        load.tell(kafka)
        load.wait_ready()
        epoch_ms = clock.now_ms() // 10_000 * 10_000
        load.go(epoch_ms, clock)
        wait_until(
            lambda: load.status().finished,
            deadline_s=60,
            what="the load to end",
            state=lambda: f"{load.status()}",
        )
    finally:
        load.stop()
    return epoch_ms


@pytest.mark.parametrize("client", ["confluent", "kafka-python"])
def test_what_was_planned_is_in_the_log_and_in_the_books(client, kafka_address, topic, run, tmp_path):
    spec = replace(SPEC, client=client)
    load = Load(spec, topic, run, tmp_path)
    epoch_ms = sent(load, kafka_address, Clock())
    mark = Sentinel(MARK_SERVER << INDEX_BITS | 7, 3, 2, epoch_ms + 5, "closing")
    send_marks(kafka_address, topic, [mark], CODEC)
    certificate = load.certify()
    books = pq.read_table(run / "sends.parquet")
    total = Schedule(TAPE).total

    assert (certificate.intended, certificate.sent, certificate.acknowledged) == (total, total, total)
    assert certificate.valid, certificate.reasons
    assert (books.column("finished_us").to_numpy() >= books.column("intended_us").to_numpy()).all(), (
        "nothing is sent early"
    )
    log = recount.read(kafka_address, topic, end_offsets(kafka_address, topic), CODEC)
    audit = log_audit.compare(Schedule(TAPE), epoch_ms, pa.table(log), [mark])
    assert (audit.planned, audit.found) == (total + 1, total + 1)
    assert not any((audit.missing.count, audit.doubled.count, audit.foreign.count, audit.altered.count)), audit


def _is_past(clock, moment_ms):
    return clock.now_ms() > moment_ms


def test_what_is_decided_while_the_load_goes_on_is_sent_in_time(kafka_address, topic, run, tmp_path):
    load, clock, total = GrowingLoad(SPEC, topic, run, tmp_path), Clock(), Schedule(TAPE).total
    try:
        load.start()
        load.tell(kafka_address)
        load.wait_ready()
        epoch_ms = clock.now_ms() + 500
        load.go(epoch_ms, clock)
        for stretch in (steady(1000, 1000), steady(5000, 1000)):
            near_ms = epoch_ms + load.tape.load_ms - 900
            wait_until(partial(_is_past, clock, near_ms), deadline_s=20, what="the next stretch to be near")
            load.append(stretch)
        load.complete()
        wait_until(lambda: load.status().finished, deadline_s=60, what="the load to end")
    finally:
        load.stop()
    certificate, grown = load.certify(), Schedule(load.tape)
    log = recount.read(kafka_address, topic, end_offsets(kafka_address, topic), CODEC)
    audit = log_audit.compare(grown, epoch_ms, pa.table(log), [])

    assert grown.total > total
    assert certificate.sent == certificate.intended == grown.total
    assert (audit.planned, audit.found) == (grown.total, grown.total)
    assert not any((audit.missing.count, audit.doubled.count, audit.foreign.count, audit.altered.count)), audit


def test_the_fleet_keeps_its_schedule_by_the_clock_of_the_run_and_not_by_the_machines(
    kafka_address, topic, run, tmp_path
):
    an_hour_ahead = Clock(Clock().zero_ns + 3_600 * 10**9)
    load = Load(SPEC, topic, run, tmp_path)
    sent(load, kafka_address, an_hour_ahead)

    assert load.certify().valid


def test_a_load_that_is_stopped_in_the_middle_leaves_true_books(kafka_address, topic, run, tmp_path):
    long = replace(TAPE, profile=steady(2000, 600_000))
    load = Load(replace(SPEC, tape=long), topic, run, tmp_path)
    try:
        load.start()
        load.tell(kafka_address)
        load.wait_ready()
        load.go(Clock().now_ms(), Clock())
        wait_until(lambda: load.status().sent > 1000, deadline_s=30, what="some events to be sent")
    finally:
        load.stop()
    certificate = load.certify()

    assert not certificate.valid
    assert "were not sent" in certificate.reasons[0]
    assert certificate.sent == sum(end_offsets(kafka_address, topic).values())


def test_no_kafka_ends_the_load_with_a_sentence(run, tmp_path):
    load = Load(SPEC, "nowhere", run, tmp_path)
    try:
        load.start()
        load.tell(KafkaAddress("127.0.0.1:1"))
        with pytest.raises(HarnessError, match=r"ended early .* did not say within"):
            load.wait_ready()
    finally:
        load.stop()
    assert not load.certify().valid
