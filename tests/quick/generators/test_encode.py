"""Encoders write what the schema's reference writes, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.disorder import PRESETS
from generators.encode import Batch, Encoder
from generators.profiles import steady
from generators.tape import Events, Tape
from harness.model import TapeSpec
from tests.quick.tapes import specs
from workloads.ad_impressions.codec import AdCodec
from workloads.ad_impressions.schema import (
    AD_TYPES,
    EVENT_TYPES,
    Population,
    event_json,
    poison_bytes,
    population_of,
)
from workloads.base import Values
from workloads.keys import encode_keys, read_keys
from workloads.registry import codec_of
from workloads.sentinels import mark

EPOCH_MS = 1_763_700_000_000


def slowly(events: Events, population: Population) -> list[dict[str, bytes | None]]:
    """One event at a time, by the reference."""
    messages = []
    for i in range(len(events)):
        fields = {
            "user_id": population.user_ids[events.content["user"][i]],
            "page_id": population.page_ids[events.content["page"][i]],
            "ad_id": population.ad_ids[events.content["ad"][i]],
            "ad_type": AD_TYPES[events.content["ad_type"][i]],
            "event_time_ms": int(events.event_time_rel_ms[i]) + EPOCH_MS,
        }
        kind = int(events.poison[i])
        event_type = EVENT_TYPES[events.content["event_type"][i]]
        value = poison_bytes(kind, **fields) if kind else event_json(**fields, event_type=event_type)
        messages.append({"value": value, "key": b"%012x" % int(events.id[i])})
    return messages


@given(specs())
def test_whole_blocks_are_written_as_the_reference_writes_each_event(spec):
    population = population_of(spec)
    encoder = Encoder(codec_of(spec), EPOCH_MS)
    for block in Tape(spec).blocks(200):
        assert list(encoder.batch(block)) == slowly(block, population)


def test_a_record_as_it_has_always_been():
    tape = Tape(TapeSpec(1, steady(1000, 1000), 2, 10, 2, 100, 10, PRESETS["mobile"]))
    message = Encoder(tape.codec, EPOCH_MS).batch(tape.events(1, np.array([5])))[0]

    assert message == GOLDEN


GOLDEN = {
    "value": b'{"user_id": "efd86965-d95b-4fc1-a42d-3ce4fca3dfb8", "page_id": "0da9f366-2007-4731-8436-d1c4dc40f47f", '
    b'"ad_id": "c7324d99-7875-44af-bc5a-099f317d5c6b", "ad_type": "mobile", '
    b'"event_type": "view", "event_time": "1763700000026", "ip_address": "1.2.3.4"}',
    "key": b"001000000005",
}


def test_no_events_make_no_messages():
    tape = Tape(TapeSpec(1, steady(1000, 1000), 2, 10, 2, 100, 10, PRESETS["none"]))

    assert list(Encoder(tape.codec, 0).batch(tape.events(0, np.array([], dtype=np.int64)))) == []


@given(st.lists(st.integers(0, 2**48 - 1)))
def test_keys_can_be_read_back(ids):
    keys = [row.tobytes() for row in encode_keys(np.array(ids, dtype=np.uint64))]

    assert keys == [b"%012x" % number for number in ids]
    assert read_keys(Values.of(keys)).tolist() == ids


@pytest.mark.parametrize(
    "key", [None, b"", b"00000000000", b"0000000000000", b"00000000000G", b"00000000000A", b" 0000000000 "]
)
def test_a_foreign_key_is_no_id_and_harms_no_other(key):
    assert read_keys(Values.of([b"00000000000a", key, b"ffffffffffff"])).tolist() == [10, -1, 2**48 - 1]


def test_a_mark_is_a_view_of_its_campaigns_first_ad():
    population = Population(3, 4, 5, carries_ids=False)
    message = Encoder(AdCodec(population, population.campaigns), 123).mark(mark(201, 2, 0, EPOCH_MS, "closing"))

    assert message["key"] == b"fff0000000c9"
    assert message["value"] == event_json(
        user_id=population.user_ids[1],
        page_id=population.page_ids[2],
        ad_id=population.ad_ids[10],
        ad_type="banner",
        event_type="view",
        event_time_ms=EPOCH_MS,
    )


def test_no_two_marks_of_a_run_are_the_same_record():
    encoder = Encoder(AdCodec(Population(3, 4, 5, carries_ids=False), 4), 0)
    messages = [encoder.mark(mark(number, 0, 0, EPOCH_MS, "opening")) for number in range(10_000)]

    assert len({message["value"] for message in messages}) == len({message["key"] for message in messages}) == 10_000


def test_a_batch_is_the_same_cut_and_put_together():
    tape = Tape(TapeSpec(1, steady(1000, 1000), 2, 10, 2, 100, 10, PRESETS["mobile"]))
    whole = Encoder(tape.codec, EPOCH_MS).batch(tape.events(1, np.arange(50)))
    messages = list(whole)

    assert list(whole[10:20]) == messages[10:20]
    assert whole[-1] == messages[-1]
    assert list(whole.only(np.arange(50) % 7 == 0)) == messages[::7]
    assert list(Batch.of([*messages, {"value": None, "key": b"0" * 12}]))[:-1] == messages
    assert Batch.of([{"value": None, "key": b"0" * 12}])[0] == {"value": None, "key": b"0" * 12}
    assert not whole[:0]


def test_ten_thousand_campaigns_need_no_huge_table():
    population = Population(1, 10_000, 10, carries_ids=False)
    codec = AdCodec(population, population.campaigns)
    encoder = Encoder(codec, EPOCH_MS)
    tape = Tape(TapeSpec(1, steady(1000, 1000), 1, 10, 1, 10_000, 10, PRESETS["none"]))
    block = tape.events(0, np.arange(100))

    assert list(encoder.batch(block)) == slowly(block, population)
    tables = (codec._writer._heads, codec._writer._ads, codec._writer._rests)
    assert sum(table.nbytes for table in tables) < 8_000_000
