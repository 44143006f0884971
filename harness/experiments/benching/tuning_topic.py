"""The topic that every variant of the tuning reads, and the counts that each of them must come to."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from generators.disorder import PRESETS
from generators.draws import Ints
from generators.encode import Batch, Encoder
from generators.producers import ConfluentProducer, Producer
from generators.profiles import steady
from generators.tape import Tape
from harness.model import FaultSpec, HarnessError, KafkaAddress, RunSpec, TapeSpec
from harness.services.kafka import create_topic
from workloads.registry import oracle_of, results_of

TOPIC = "tuning"
PARTITIONS = 4
SERVERS = 10
SLICE_MS = 200  # nobody waits for a slice here, and large ones are made faster
WINDOWS = 12
WINDOW_MS = 10_000
EPOCH_MS = 1_763_700_000_000
IN_FLIGHT = 200_000
DEADLINE_S = 300.0

Expected = dict[str, dict[str, str]]  # as it must stand in Redis: campaign -> start of window -> count


def make_tape(events: int) -> Tape:
    """Two minutes of phones on bad networks: out of order, and nothing of it late."""
    duration_ms = WINDOWS * WINDOW_MS
    profile = steady(events * 1000 // duration_ms, duration_ms)
    return Tape(TapeSpec(1, profile, SERVERS, SLICE_MS, PARTITIONS, 100, 10, PRESETS["mobile"]))


def expected(tape: Tape) -> Expected:
    oracle = oracle_of(RunSpec("", "", "", tape.spec, WINDOW_MS, 0, "", None, FaultSpec("none")))
    keys, cells = results_of(tape.spec).keys, Expected()
    for cell, count in zip(*map(np.ndarray.tolist, oracle.settle(oracle.plan(tape.blocks()), EPOCH_MS)), strict=True):
        cells.setdefault(keys[oracle.codes.key(cell)], {})[str(oracle.codes.field(cell))] = str(count)
    return cells


def fill(tape: Tape, kafka: KafkaAddress) -> None:
    """All events in the order of their slices, each where its slice belongs."""
    create_topic(kafka, TOPIC, PARTITIONS)
    producer, encoder = ConfluentProducer(kafka.bootstrap, TOPIC, {}), Encoder(tape.codec, EPOCH_MS)
    producer.await_topic(DEADLINE_S)
    for server, slots in _in_turns(tape):
        block = tape.events(server, slots)
        _offer(producer, int(block.partition[0]), encoder.batch(block))
    if producer.finish(DEADLINE_S) or producer.failures.count:
        raise HarnessError(f"Kafka did not take the topic of the tuning: {producer.failures.sentences()}.")


def _in_turns(tape: Tape) -> Iterator[tuple[int, Ints]]:
    for turn in zip(*(tape.slices(server) for server in range(SERVERS)), strict=True):
        yield from ((server, np.arange(lo, hi)) for server, (_, lo, hi) in enumerate(turn))


def _offer(producer: Producer, partition: int, messages: Batch) -> None:
    rest = producer.offer(partition, messages)
    deadline_s = time.monotonic() + DEADLINE_S
    while rest or producer.waiting() > IN_FLIGHT:
        producer.poll()
        rest = producer.offer(partition, rest) if rest else rest
        time.sleep(0.001)
        if time.monotonic() > deadline_s:
            raise HarnessError(f"Kafka took no record for {DEADLINE_S:g} s; {producer.waiting():,} are in flight.")
