"""The kafka family on real brokers: each lands with a proof that comes from Kafka, and no record is unaccounted for."""

from __future__ import annotations

import signal
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from generators.disorder import PRESETS
from generators.encode import Encoder
from generators.producers import ConfluentProducer
from generators.profiles import steady
from generators.schedule import Schedule
from harness.evidence.observed import LogAudit
from harness.faults.kafka import KINDS
from harness.faults.kafka_replicas import KINDS as OF_REPLICAS
from harness.faults.registry import create, parse
from harness.faults.run_at_poll import Field, Moment
from harness.judging import log_audit
from harness.kafka_log import recount
from harness.model import Progress, Sentinel, TapeSpec
from harness.rundir.store import Store
from harness.runner.world.topic import TopicLog
from harness.services.kafka import EmbeddedKafka, create_topic, end_offsets
from harness.services.kafka_cluster import EmbeddedCluster
from harness.util.wait import wait_until
from tests.quick.cases import SCRIPTED
from tests.quick.cases import SPEC as CASE
from tests.quick.faults.test_faults_kafka import Engine
from workloads.ad_impressions.codec import AdCodec
from workloads.ad_impressions.schema import Population

pytestmark = pytest.mark.timeout(600)

MANIFEST = SCRIPTED
TAPE = TapeSpec(3, steady(4_000, 3000), 3, 50, 4, 10, 10, PRESETS["none"])
SPEC = replace(CASE, engine="scripted", sink="default", tape=TAPE)
CODEC = AdCodec(Population(3, 10, 10, carries_ids=False), 10)
EPOCH_MS = 1_763_700_000_000
DONE = 100  # by the engine, in each partition


class Place:
    """A run's topic on a real broker, with the first half of its tape in it; the rest comes when it is asked for."""

    def __init__(self, server: EmbeddedKafka, store: Store) -> None:
        self.server, self.store, self.topic = server, store, f"test-{uuid.uuid4().hex[:12]}"
        create_topic(server.address, self.topic, TAPE.partitions)
        self.held: list[signal.Signals] = []
        self.log = TopicLog(SPEC, server.address, self.topic, self.held.append, store)
        self._producer = ConfluentProducer(server.address.bootstrap, self.topic, {})
        self._rest = self._slices()
        self.send(TAPE.servers * 40)

    def send(self, slices: int | None = None) -> None:
        """So many more, or all that are left, and wait until they are confirmed."""
        for partition, messages in self._rest:
            assert not self._producer.offer(partition, messages)
            slices = None if slices is None else slices - 1
            if slices == 0:
                break
        assert self._producer.finish(60) == 0
        assert not self._producer.failures.count

    def is_held(self) -> bool:
        """As the ad servers of a run would be, by a signal."""
        return self.held[-1:] == [signal.SIGSTOP]

    def field(self) -> Field:
        nobody: Any = None
        address = self.server.address
        return Field(self.server, None, address, self.topic, nobody, (), lambda _: None, log=self.log)

    def audit(self) -> LogAudit:
        """The tape and all that was sent beside it against all that ever was in the log."""
        ends = end_offsets(self.server.address, self.topic)
        left = recount.read_in_parts(self.server.address, self.topic, ends, CODEC)
        log = recount.joined([*self.log.all_records(left)])
        marks = tuple(msgspec.convert(m, Sentinel) for entry in self.store.history("marks") for m in entry["marks"])
        return log_audit.compare(Schedule(TAPE), EPOCH_MS, pa.table(log), marks)

    def _slices(self) -> Iterator[tuple[int, Any]]:
        tape, encoder = Schedule(TAPE), Encoder(CODEC, EPOCH_MS)
        planned = [(server, *part) for server in range(TAPE.servers) for part in tape.slices(server)]
        for server, number, lo, hi in sorted(planned, key=lambda each: each[1]):
            yield tape.slice_partition(server, number), encoder.batch(tape.events(server, np.arange(lo, hi)))


@pytest.fixture(scope="module")
def broker(tmp_path_factory, jars, java):
    """Of its own: it is harmed."""
    server = EmbeddedKafka(tmp_path_factory.mktemp("kafka"), jars, java, heap="512m")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, jars, java):
    server = EmbeddedCluster(tmp_path_factory.mktemp("cluster"), jars, java)
    server.start()
    yield server
    server.stop()


def over(text: str, place: Place) -> Any:
    """Its whole course; while it goes on the load does too."""
    engine: Any = Engine(newest=Progress(1, 3, 1, dict.fromkeys(range(TAPE.partitions), DONE)))
    fault = create(replace(SPEC, fault=parse(f"{text}@now")), MANIFEST)

    def is_over() -> bool:
        now_ms = time.time_ns() // 1_000_000
        fault.poll(Moment(now_ms, 1, engine, engine.newest, Schedule(TAPE).total, place.field()))
        if fault.reports()[0].at_ms and not place.is_held() and place.server.serves() and not fault.over():
            place.send(3)
        return fault.over()

    wait_until(is_over, deadline_s=400, what=f"{text} to be over", state=lambda: fault.reports()[0].proof)
    (report,) = fault.reports()
    assert (report.landed, report.healed) == (True, True), report.proof
    return report


TRIED = [
    ("kafka-kill(for=100ms)", "ended with exit code -9", 0),
    ("kafka-restart", "ended with exit code 143", 0),
    ("kafka-pause(for=500ms)", "it is in state T; SIGCONT, and it answers", 0),
    ("kafka-delete-records(share=50%, for=100ms)", "begins at ", None),
    ("kafka-topic-recreate", "its id changed from ", None),
    ("kafka-add-partitions(count=2)", "4 (1 record), 5 (1 record)", 0),
    ("kafka-aborted-transaction(records=100, for=200ms)", "to the end of partitions 0 (", 0),
]
REPLICAS = [
    ("kafka-leader-change(for=100ms)", "is led by broker ", 0),
    ("kafka-unclean-election(for=500ms)", "confirmed records are gone", None),
]


def test_all_of_the_family_are_tried_here():
    names = {text.partition("(")[0] for text, _, _ in (*TRIED, *REPLICAS)}
    assert {each.name for each in (*KINDS, *OF_REPLICAS)} == names


@pytest.mark.parametrize(("text", "proof", "removed"), TRIED)
def test_each_lands_on_a_real_broker_and_no_record_is_unaccounted_for(broker, tmp_path, text, proof, removed):
    place = Place(broker, Store.create(tmp_path, "run"))
    report = over(text, place)
    place.send()
    audit = place.audit()

    assert proof in report.proof
    assert audit.found == audit.planned, report.proof
    assert not any((audit.missing.count, audit.doubled.count, audit.foreign.count, audit.altered.count)), audit
    assert audit.removed == 0 if removed == 0 else audit.removed > 4 * DONE


@pytest.mark.parametrize(("text", "proof", "removed"), REPLICAS)
def test_a_change_of_who_leads_lands_on_three_brokers(cluster, tmp_path, text, proof, removed):
    place = Place(cluster, Store.create(tmp_path, "run"))
    report = over(text, place)
    place.send()
    audit = place.audit()

    assert proof in report.proof
    assert not any((audit.missing.count, audit.doubled.count, audit.foreign.count, audit.altered.count)), audit
    assert audit.removed == 0 if removed == 0 else audit.removed > 0
