"""The parts of `bench`. Each runs in a process of its own, so that its CPU time and memory can be measured.

python -m tools.bench.bench_parts PART ARGUMENTS.json RESULT.json
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from generators.encode import Batch, Encoder
from generators.producers import CONFLUENT_SETTINGS, ConfluentProducer, Producer, PythonProducer
from generators.tape import Tape
from harness.judging import verdict_file
from harness.judging.judge import judge
from harness.judging.stored_run import LOG, StoredRun
from harness.kafka_log import parallel_readers, recount
from harness.kafka_log.parallel_readers import LogSource
from harness.measuring import measure
from harness.model import FaultSpec, KafkaAddress, RunSpec
from harness.rundir.store import Store
from reports import run_page
from tools.bench.bench_records import (
    EPOCH_MS,
    PARTITIONS,
    RATE_PER_S,
    SERVERS,
    Arguments,
    Cost,
    peak_mib,
    ready_made,
    tape_of,
)
from tools.bench.bench_stored import stored_run
from tools.bench.bench_tools import kafka_consumer_performance, kafka_producer_performance
from workloads.base import Oracle
from workloads.declared import oracle as declared
from workloads.registry import oracle_of, results_of

WINDOW_MS = 10_000
ADS_BY_SQL = declared.Question(
    cells="""
        SELECT event, campaign_id, tumbling(event_time, 10000) AS opens, opens + 10000 AS closes
        FROM events JOIN ads USING (ad) WHERE is_view
    """,
    fold="SELECT campaign_id, opens, count(*) AS views FROM cells GROUP BY campaign_id, opens",
    keys=("campaign_id", "opens"),
    values={"views": "count"},
    step_ms=WINDOW_MS,
)
# A paced load has little in flight; a queue of millions would measure the memory of the machine.
IN_FLIGHT = 100_000
DEADLINE_S = 120.0


class Meter:
    """A meter of wall and CPU time of this process with all its threads, and of its ended children."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), _cpu_s()
        self.parts: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the CPU time of this thread only to a named part."""
        begin = time.thread_time()
        yield
        self.parts[name] = self.parts.get(name, 0.0) + time.thread_time() - begin

    def cost(self, events: int) -> Cost:
        wall_s, cpu_s = time.perf_counter() - self._wall, _cpu_s() - self._cpu
        detail = {name: s * 1e6 / events for name, s in self.parts.items()}
        return Cost(events, wall_s, cpu_s, peak_mib(resource.RUSAGE_SELF), detail)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def produce_batches(arguments: Arguments) -> Cost:
    """Send a tape to a broker: all the work of a sender, without its waits for due times."""
    return _produce(arguments, ConfluentProducer(arguments.bootstrap, arguments.topic, {}))


def produce_with_kafka_python(arguments: Arguments) -> Cost:
    return _produce(arguments, PythonProducer(arguments.bootstrap, arguments.topic, {}))


def produce_one_by_one(arguments: Arguments) -> Cost:
    """Send the same tape with the same client as `produce_batches`, but with the usual call for each record."""
    return _produce(arguments, OneByOne(arguments.bootstrap, arguments.topic))


def produce_ready_made(arguments: Arguments) -> Cost:
    """Send existing bytes with the client's own call for a batch: the cost that remains if the load itself is free."""
    messages = ready_made()
    client = confluent_kafka.Producer({**CONFLUENT_SETTINGS, "bootstrap.servers": arguments.bootstrap})
    client.produce_batch(arguments.topic, messages, partition=0)
    client.flush(DEADLINE_S)
    turns = arguments.events // len(messages)
    with uncollected():
        meter = Meter()
        for turn in range(turns):
            client.produce_batch(arguments.topic, messages, partition=turn % PARTITIONS)
            _await_room(client.__len__, lambda: client.poll(0), IN_FLIGHT)
        if client.flush(DEADLINE_S):
            raise RuntimeError(f"Kafka did not confirm everything within {DEADLINE_S:g} s.")
        return meter.cost(turns * len(messages))


class OneByOne(ConfluentProducer):
    """A producer that calls produce() for each record."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic, {})
        self._single = confluent_kafka.Producer({**CONFLUENT_SETTINGS, "bootstrap.servers": bootstrap})

    def offer(self, partition: int, messages: Batch) -> Batch:
        produce, topic = self._single.produce, self._name
        for message in messages:
            produce(topic, message["value"], message["key"], partition)
        self._single.poll(0)
        return messages[:0]

    def waiting(self) -> int:
        return len(self._single)

    def poll(self) -> None:
        self._single.poll(0)

    def finish(self, deadline_s: float) -> int:
        return self._single.flush(deadline_s)


def _produce(arguments: Arguments, producer: Producer) -> Cost:
    tape = tape_of(arguments.events)
    encoder = Encoder(tape.codec, EPOCH_MS)
    producer.await_topic(DEADLINE_S)
    producer.offer(0, encoder.batch(tape.events(0, np.arange(100))))
    # Connect and get an identity for idempotence first: a constant cost, however long the load is.
    _await_room(producer.waiting, producer.poll, 0)
    with uncollected():  # as in the ad servers
        cost = _send_all(tape, encoder, producer)
    if producer.failures.count:
        raise RuntimeError(f"Kafka did not confirm everything: {producer.failures.sentences()}")
    return cost


def _send_all(tape: Tape, encoder: Encoder, producer: Producer) -> Cost:
    meter = Meter()
    for server, (number, lo, hi) in _slices(tape):
        with meter.part("tape_us"):
            events = tape.events(server, np.arange(lo, hi))
        with meter.part("bytes_us"):
            messages = encoder.batch(events)
        with meter.part("client_us"):
            rest = producer.offer(tape.slice_partition(server, number), messages)
            _await_room(producer.waiting, producer.poll, IN_FLIGHT)
        if rest:
            raise RuntimeError(f"{len(rest)} records did not fit into the client's queue of {IN_FLIGHT:,} and more.")
    producer.finish(DEADLINE_S)
    return meter.cost(tape.total)


def _slices(tape: Tape) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Yield the slices of all servers in turn, as the fleet sends them."""
    for turn in zip(*(tape.slices(server) for server in range(SERVERS)), strict=True):
        yield from enumerate(turn)


def _await_room(waiting: Callable[[], int], poll: Callable[[], object], in_flight: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while waiting() > in_flight:
        poll()
        time.sleep(0.001)
        if time.monotonic() > deadline:
            raise RuntimeError(f"Kafka took no record for {DEADLINE_S:g} s; {waiting():,} are in flight.")


def fold_only(arguments: Arguments) -> Cost:
    """Compute the expected counts from existing blocks."""
    tape = tape_of(arguments.events)
    blocks = list(tape.blocks())
    meter = Meter()
    _oracle(tape).plan(blocks)
    return meter.cost(sum(map(len, blocks)))


def fold_with_tape(arguments: Arguments) -> Cost:
    """Make the tape and compute its expected counts, as a run does. Memory must not grow with the number of events."""
    tape = tape_of(arguments.events)
    meter = Meter()
    _oracle(tape).plan(tape.blocks())
    return meter.cost(tape.total)


def fold_by_sql(arguments: Arguments) -> Cost:
    """Answer the same question by SQL, from existing events, which DuckDB gets as columns, with one thread."""
    tape = tape_of(arguments.events)
    columns = _columns(tape)
    meter = Meter()
    views = declared.Oracle(ADS_BY_SQL, {"ads": _ads(tape)}).answer(_relation(columns)).column("views").to_numpy().sum()
    cost = meter.cost(len(columns["event_time"]))
    if views != columns["is_view"].sum():
        raise RuntimeError(f"DuckDB counted {views:,} views, and the tape has another number of them.")
    return cost


def fold_by_sql_twice(arguments: Arguments) -> Cost:
    """Answer it twice, as a run does: again in another order, with two threads, to check that the answers are equal."""
    tape = tape_of(arguments.events)
    events, tables = _relation(_columns(tape)), {"ads": _ads(tape)}
    meter = Meter()
    declared.answered_twice(ADS_BY_SQL, tables, events, "event_time")
    return meter.cost(len(events))


def _columns(tape: Tape) -> dict[str, NDArray[Any]]:
    """Return the columns that the question uses, of all events that are not poison."""
    parts: dict[str, list[NDArray[Any]]] = {"event_time": [], "ad": [], "is_view": []}
    for block in tape.blocks():
        sound = block.poison == 0
        parts["event_time"].append(block.event_time_rel_ms[sound] + EPOCH_MS)
        parts["ad"].append(block.content["ad"][sound])
        parts["is_view"].append(tape.codec.counts(block.content)[sound])
    return {name: np.concatenate(part) for name, part in parts.items()}


def _relation(columns: dict[str, NDArray[Any]]) -> pa.Table:
    return pa.table({"event": np.arange(len(columns["event_time"])), **columns})


def _ads(tape: Tape) -> pa.Table:
    campaigns = results_of(tape.spec).keys
    ads = np.arange(len(campaigns) * tape.spec.ads_per_campaign)
    return pa.table({"ad": ads, "campaign_id": pa.array(campaigns).take(ads // tape.spec.ads_per_campaign)})


def _oracle(tape: Tape) -> Oracle:
    return oracle_of(RunSpec("", "", "", tape.spec, WINDOW_MS, 0, "", None, FaultSpec("none")))


def consume_bare(arguments: Arguments) -> Cost:
    """Read the topic with the recount's settings of librdkafka, without parsing."""
    return _consume_all(arguments)


def consume_uncollected(arguments: Arguments) -> Cost:
    """Do the same without Python's cycle collector."""
    with uncollected():
        return _consume_all(arguments)


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch the cycle collector off: it would scan all records repeatedly, and never find a cycle."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _consume_all(arguments: Arguments) -> Cost:
    consumer = _consumer(arguments)
    ends = _ends(consumer, arguments.topic)
    meter = Meter()
    count = sum(_consume(consumer, arguments.topic, partition, end) for partition, end in ends.items())
    cost = meter.cost(count)
    consumer.close()
    return cost


def _consumer(arguments: Arguments) -> confluent_kafka.Consumer:
    own = {"bootstrap.servers": arguments.bootstrap, "group.id": "streamgauge-bench"}
    return confluent_kafka.Consumer({**recount.CONSUMER_SETTINGS, **own})


def _consume(consumer: confluent_kafka.Consumer, topic: str, partition: int, end: int) -> int:
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
    read, deadline = 0, time.monotonic() + DEADLINE_S
    while read < end and time.monotonic() < deadline:
        read += len(consumer.consume(min(recount.CHUNK, end - read), 0.5))
    return read


def recount_log(arguments: Arguments) -> Cost:
    """Read the log into a table, as a run does, with as many processes as are useful."""
    consumer = _consumer(arguments)
    ends = _ends(consumer, arguments.topic)
    consumer.close()
    topic = LogSource(KafkaAddress(arguments.bootstrap), arguments.topic, tape_of(RATE_PER_S).spec, stamped=False)
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as folder:
        meter, run = Meter(), Store(Path(folder))
        with closing(parallel_readers.read_in_parts(topic, ends, run.logs)) as parts:
            run.write_parts(LOG, parts)
        return meter.cost(len(run.read_table(LOG)))


def _ends(consumer: confluent_kafka.Consumer, topic: str) -> dict[int, int]:
    places = {number: confluent_kafka.TopicPartition(topic, number) for number in range(PARTITIONS)}
    return {number: consumer.get_watermark_offsets(place, timeout=10)[1] for number, place in places.items()}


def store_run(arguments: Arguments) -> Cost:
    """Make a whole run without its services, for `judge_run`."""
    meter = Meter()
    run = StoredRun(stored_run(_of_run(arguments), arguments.events))
    return meter.cost(run.schedule.total)


def judge_run(arguments: Arguments) -> Cost:
    """Make everything that `recheck` makes from the files of a run: the verdict, the measurement, and the page."""
    (folder,) = _of_run(arguments).iterdir()
    meter = Meter()
    events = _judge_and_measure(StoredRun.open(folder), meter)
    with meter.part("page"):
        run_page.write(Store.open(folder))
    return meter.cost(events)


def _judge_and_measure(run: StoredRun, meter: Meter) -> int:
    """Judge and measure, and return the number of events, whose memory is free before the page is made."""
    with meter.part("judging"):
        verdict = judge(run)
    verdict_file.keep(run.store, verdict)
    with meter.part("measuring"):
        measurement = measure.save(run, verdict)
    if measurement is None:
        raise RuntimeError(f"The run in {run.store.path} should be right and measured, and is {verdict.sentence}.")
    return run.schedule.total


def _of_run(arguments: Arguments) -> Path:
    return Path(arguments.folder) / f"run-{arguments.events}"


PARTS: dict[str, Callable[[Arguments], Cost]] = {
    part.__name__: part
    for part in (
        produce_batches,
        produce_ready_made,
        produce_one_by_one,
        produce_with_kafka_python,
        fold_only,
        fold_with_tape,
        fold_by_sql,
        fold_by_sql_twice,
        consume_bare,
        consume_uncollected,
        recount_log,
        store_run,
        judge_run,
        kafka_producer_performance,
        kafka_consumer_performance,
    )
}


if __name__ == "__main__":
    name, told, result = sys.argv[1:]
    cost = PARTS[name](Arguments(**json.loads(Path(told).read_text())))
    Path(result).write_text(json.dumps(asdict(cost)))
