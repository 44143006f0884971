"""A small world for one engine: a table of ads, a topic of events whose every record we remember, and a recount."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from harness.config import plan
from harness.engines import environments
from harness.engines.config import EngineConfig
from harness.engines.manifest import load
from harness.engines.process import ProcessEngine
from harness.faults import registry
from harness.faults.run_at_poll import Moment
from harness.model import BatchLog, FaultReport, KafkaAddress, RedisAddress
from harness.services.redis import connect
from harness.util.wait import wait_until

WINDOW_MS = 10_000
PARTITIONS = 4
START_MS = 1_700_000_000_000
DEADLINE_S = 120
# Counts are what these tests are about, not speed: a JVM that does not optimise starts in two thirds of the time.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Of runs that wait more than they work, for results that stand still, a service that is away or a window that begins:
# one after the other, beside those that keep the cores busy. One at a time can have port 6379, where jobs of the
# original look for Redis.
WAITS = pytest.mark.xdist_group("waits")
# And of those that start Spark, which takes all the CPU that there is: one after the other, from the beginning.
SPARK = pytest.mark.xdist_group("spark")
SOON_UP = ("--conf", f"spark.driver.extraJavaOptions={QUICK_START}")


def in_batches_of(events: int) -> tuple[str, str]:
    """A kill in Spark's third batch needs a third one. Without a limit, how many there are is up to the machine: one
    that is slow has read all that was sent by its second."""
    return "--conf", f"streamgauge.source.maxOffsetsPerTrigger={events}"


Cell = tuple[str, int]


class Trial:
    """Sends events, and knows per partition and offset which cell each one belongs to (None: to none)."""

    def __init__(self, folder: Path, kafka: KafkaAddress, redis: RedisAddress, topic: str, campaigns: int = 20) -> None:
        self.folder, self.kafka, self.redis, self.topic = folder, kafka, redis, topic
        self.random = random.Random(7)
        self.campaigns = [str(uuid.UUID(int=self.random.getrandbits(128))) for _ in range(campaigns)]
        self.ads = {str(uuid.UUID(int=self.random.getrandbits(128))): c for c in self.campaigns for _ in range(10)}
        self._ad_ids = list(self.ads)
        self.log: dict[int, list[Cell | None]] = {partition: [] for partition in range(PARTITIONS)}
        self.now_ms = START_MS
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
        with connect(redis) as client:
            client.sadd("campaigns", *self.campaigns)
            client.mset(dict(self.ads.items()))

    @property
    def sent(self) -> int:
        return sum(map(len, self.log.values()))

    def engine(self, name: str, sink: str, topic: str = "", master: str = "local[2]") -> ProcessEngine:
        manifest = load(name)
        surroundings = environments.prepare(manifest, print)
        private = self.folder / "private"
        private.mkdir(exist_ok=True)
        config = EngineConfig(
            run="trial",
            kafka=self.kafka,
            topic=topic or self.topic,
            redis=self.redis,
            window_ms=WINDOW_MS,
            watermark_ms=10_000,
            checkpoint=str(self.folder / "checkpoint"),
            progress_path=str(self.folder / "progress.jsonl"),
            crash_path=str(self.folder / "crash.json"),
            sink=sink,
            master=master,
            options={"spark.driver.extraJavaOptions": QUICK_START, **manifest.options},
            jars=tuple(map(str, surroundings.jars)),
            partitions=PARTITIONS,
        )
        logs, evidence = self.folder / "logs", self.folder / "evidence"
        return ProcessEngine(
            manifest, config, logs=logs, evidence=evidence, private=private, env={}, surroundings=surroundings
        )

    def send(self, count: int, late_ms: int = 0) -> None:
        """Events of all kinds, a millisecond of event time each, up to a second out of order, and `late_ms` late."""
        for _ in range(count):
            self.now_ms += 1
            ad = self.random.choice(self._ad_ids)
            kind = self.random.choice(("view", "view", "click", "purchase"))
            self.send_event(ad, kind, str(self.now_ms - late_ms - self.random.randrange(1000)))
        self.flush()

    def send_event(self, ad: str, kind: str, event_time: str) -> None:
        value = (
            f'{{"user_id": "u", "page_id": "p", "ad_id": "{ad}", "ad_type": "mail", "event_type": "{kind}", '
            f'"event_time": "{event_time}", "ip_address": "1.2.3.4"}}'
        )
        cell = (self.ads[ad], int(event_time) // WINDOW_MS * WINDOW_MS) if kind == "view" else None
        self.send_record(value.encode(), cell)

    def send_record(self, value: bytes | None, cell: Cell | None = None) -> None:
        partition = self.sent % PARTITIONS
        self._producer.produce(self.topic, value, partition=partition)
        self.log[partition].append(cell)

    def flush(self) -> None:
        assert self._producer.flush(30) == 0

    def expected(self, batches: BatchLog | None = None) -> Counter[Cell]:
        """All that was sent and counts; with a batch log, without what Spark had to drop as late."""
        events = [(p, offset, cell) for p, cells in self.log.items() for offset, cell in enumerate(cells) if cell]
        return Counter(cell for p, offset, cell in events if not _is_dropped(batches, p, offset, cell))

    def in_batch(self, batches: BatchLog, batch: int) -> Counter[Cell]:
        starts = batches.batches[batch - 1].ends if batch else dict.fromkeys(self.log, 0)
        ends = batches.batches[batch].ends
        return Counter(cell for p, cells in self.log.items() for cell in cells[starts[p] : ends[p]] if cell)

    def results(self) -> Counter[Cell]:
        with connect(self.redis) as client:
            return Counter({(c, int(w)): int(n) for c in self.campaigns for w, n in client.hgetall(c).items()})

    def await_drained(self, engine: ProcessEngine) -> None:
        def drained() -> bool:
            engine.collect()
            assert engine.alive(), f"the engine ended ({engine.exit_code()}): {engine.tail(10)}"
            newest = engine.progress()
            return newest is not None and sum(newest.offsets.values()) >= self.sent

        what = f"all {self.sent} records to be done"
        wait_until(drained, deadline_s=DEADLINE_S, what=what, state=lambda: f"{engine.progress()} {engine.tail(5)}")

    def send_in_batches(self, engine: ProcessEngine, batches: int) -> None:
        """Send so many batches, each with events behind the watermark."""
        for _ in range(batches):
            self.send(15_000)
            self.send(500, late_ms=45_000)
            self.await_drained(engine)

    def assert_exact(self, engine: ProcessEngine) -> None:
        """Stop it, and see that it dropped the events that its checkpoint says, and no others."""
        engine.stop()
        engine.collect()
        batches = engine.batch_log()
        assert engine.exit_code() == 0
        assert batches is not None
        assert batches.complete, batches.note
        assert self.expected(batches).total() < self.expected().total(), "nothing was late, so nothing was tested"
        assert self.results() == self.expected(batches)

    def suffer(self, engine: ProcessEngine, sink: str, text: str, total: int = 0) -> FaultReport:
        """Send events by and by until the fault landed and the engine went on."""
        spec, _ = plan.resolve("trial", {"fault": text, "sink": sink}, {}, lambda *_: engine.manifest)
        fault = registry.create(spec, engine.manifest)

        def moment() -> Moment:
            return Moment(time.time_ns() // 1_000_000, 1, engine, engine.progress(), total)

        def over() -> bool:
            self.send(50)
            engine.collect()
            fault.poll(moment())
            return fault.over()

        def state() -> str:
            return f"{fault.reports()} {engine.progress()} {engine.tail(5)}"

        try:
            wait_until(over, deadline_s=DEADLINE_S, what=f"{text} to be over", state=state)
        finally:
            fault.heal(moment())
        (report,) = fault.reports()
        return report


def _is_dropped(log: BatchLog | None, partition: int, offset: int, cell: Cell) -> bool:
    if log is None:
        return False
    batch = next(batch for batch in log.batches if batch.ends[partition] > offset)
    return cell[1] + WINDOW_MS <= batch.drop_watermark_ms
