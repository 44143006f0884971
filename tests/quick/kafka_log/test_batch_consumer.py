"""How the bytes of many records are copied out of librdkafka's memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from generators.librdkafka import MESSAGE
from harness.kafka_log.batch_consumer import PAGE, _fields, _structs, copied

RECORDS = st.lists(st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=300)), max_size=40)
GAPS = st.lists(st.integers(0, 2 * PAGE), min_size=80, max_size=80)


def laid_out(records, gaps):
    """Memory with these records, with gaps between, and a message for each."""
    memory = np.full(sum(len(part or b"") for pair in records for part in pair) + sum(gaps) + 1, 255, dtype=np.uint8)
    messages, at, gaps = np.zeros(len(records), dtype=MESSAGE), 0, iter(gaps)
    for message, pair in zip(messages, records, strict=True):
        for part, names in zip(pair, (("key", "key_length"), ("payload", "length")), strict=True):
            at += next(gaps)
            if part is not None:
                memory[at : at + len(part)] = np.frombuffer(part, dtype=np.uint8)
                message[names[0]], message[names[1]] = memory.ctypes.data + at, len(part)
                at += len(part)
    return memory, messages


@given(RECORDS, GAPS, st.booleans())
def test_keys_and_values_come_out_as_they_lie_in_memory(records, gaps, backwards):
    memory, messages = laid_out(records, gaps)
    if backwards:
        records, messages = records[::-1], messages[::-1].copy()

    keys, values = _fields(messages)

    assert list(zip(keys, values, strict=True)) == records
    assert memory is not None


def test_structs_are_found_wherever_they_lie():
    some = [np.zeros(3, dtype=MESSAGE) for _ in range(4)]
    for number, each in enumerate(some):
        each["offset"] = (number, number + 10, number + 20)
    pointers = [each.ctypes.data + row * MESSAGE.itemsize for row in (2, 0, 1) for each in some]

    assert _structs(np.array(pointers))["offset"].tolist() == [*range(20, 24), *range(4), *range(10, 14)]
    assert len(_structs(np.zeros(0, dtype=np.int64))) == 0


def test_near_bytes_are_copied_with_those_between_them_and_far_ones_without():
    memory = np.arange(3 * PAGE, dtype=np.int64).astype(np.uint8)
    at = memory.ctypes.data

    octets, begins = copied(np.array([at, at + 30, at + 2 * PAGE]), np.array([10, 10, 10]))

    assert begins.tolist() == [0, 30, 40]
    assert octets[:50].tolist() == [*memory[:40], *memory[2 * PAGE : 2 * PAGE + 10]]
    assert len(octets) == 50 + PAGE
