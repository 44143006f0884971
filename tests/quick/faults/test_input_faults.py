"""Input faults: what they make of a tape, that nothing else moves, and what counts as proof."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.profiles import steady
from generators.tape import IDLE_PARTITION, Tape
from harness.faults import input as inputs
from harness.faults.input import Burst, Duplicates, Ends, Future, IdlePartition, Poison, Record, Silent, Skew
from harness.faults.registry import FAULTS, parse, reshaped
from harness.model import INDEX_BITS, Disorder, KafkaAddress, TapeSpec, UsageError
from workloads.ad_impressions.schema import VIEW

SPEC = TapeSpec(7, steady(1000, 20_000), 4, 20, 4, 10, 10, Disorder(), probes=5, probe_every_ms=1000)
SPELLS = ("input-poison(share=20%, for=4s)", "input-skew(share=90%, for=4s)", "input-duplicates(share=20%, for=4s)")


def columns(tape: Tape, server: int) -> dict[str, np.ndarray]:
    events = tape.events(server, np.arange(tape.server_total(server)))
    names = "id slot intended_us event_time_rel_ms partition ad ad_type event_type user page poison duplicate"
    return dict(zip(names.split(), events.columns(), strict=True))


def after(text: str, spec: TapeSpec = SPEC) -> TapeSpec:
    return reshaped(spec, parse(text))


@pytest.mark.parametrize("text", SPELLS)
@given(seed=st.integers(0, 1000))
@settings(max_examples=8)
def test_outside_of_its_time_a_spell_moves_nothing(text, seed):
    spec = replace(SPEC, seed=seed)
    before, now = Tape(spec), Tape(after(f"{text}@t>=6s", spec))
    changed = 0
    for server in range(spec.senders):
        old, new = columns(before, server), columns(now, server)
        # A copy has the content of an event from before it, which may be a moment before the spell.
        within = (old["intended_us"] >= 6_000_000) & (old["intended_us"] < 10_000_000)
        differs = np.zeros(len(within), dtype=bool)
        for name in old:
            differs |= old[name] != new[name]
        assert not differs[~within].any()
        changed += int(differs.sum())

    assert changed > 200


def test_one_event_of_all_is_dated_in_the_future():
    tape = Tape(after("input-future(ahead=60m)@t>=6s"))
    parts = [columns(tape, server) for server in range(SPEC.senders)]
    ahead = np.concatenate([part["event_time_rel_ms"] - part["intended_us"] // 1000 for part in parts])

    types = np.concatenate([part["event_type"] for part in parts])
    assert sorted(ahead)[-2:] == [0, 3_600_000]
    assert types[np.argmax(ahead)] == VIEW
    assert tape.event_time_bounds_rel_ms()[1] >= 3_600_000 + 6000


@pytest.mark.parametrize("disorder", [Disorder(), Disorder(silent_servers=1, silent_start_ms=7000, silent_ms=2000)])
def test_an_idle_partition_gets_nothing_and_nothing_is_missing(disorder):
    spec = replace(SPEC, disorder=disorder)
    before, tape = Tape(spec), Tape(after("input-idle-partition(for=5s)@t>=6s", spec))
    for server in range(spec.senders):
        old, new = columns(before, server), columns(tape, server)
        within = (new["intended_us"] >= 6_000_000) & (new["intended_us"] < 11_000_000)

        assert (new["id"] == old["id"]).all()
        assert not (new["partition"][within] == IDLE_PARTITION).any()
        assert (new["partition"][~within] == old["partition"][~within]).all()
        for j, lo, hi in tape.slices(server):
            assert (new["partition"][lo:hi] == tape.slice_partition(server, j)).all()


@pytest.mark.parametrize("at_s", [0, 3, 18])
def test_a_burst_raises_the_rate_and_nothing_else(at_s):
    profile = Tape(after(f"input-burst(times=5, for=2s)@t>={at_s}s")).profile
    us = np.array([at_s, at_s + 2, 20]) * 1_000_000

    counts = profile.cumulative(us.astype(np.int64))
    assert counts.tolist() == pytest.approx([at_s * 1000, at_s * 1000 + 10_000, 28_000])
    assert profile.duration_ms == 20_000


@pytest.mark.parametrize(("servers", "allowed"), [(1, True), (3, True), (4, False)])
def test_at_least_one_server_falls_silent_and_one_keeps_sending(servers, allowed):
    text = f"input-silent(servers={servers}, for=4s)@t>=8s"
    if allowed:
        assert [spell.servers for spell in after(text).spells] == [servers]
    else:
        with pytest.raises(UsageError, match="from 1 to 3"):
            after(text)


def test_servers_that_fall_silent_are_those_of_the_dials():
    dials = replace(SPEC, disorder=Disorder(silent_servers=2, silent_start_ms=4000, silent_ms=3000))
    spell = after("input-silent(servers=2, for=3s)@t>=4s")

    assert spell.reach_ms == dials.reach_ms == 3000
    for server in range(SPEC.senders):
        here, there = columns(Tape(spell), server), columns(Tape(dials), server)
        assert all((here[name] == there[name]).all() for name in here)


@pytest.mark.parametrize(
    ("key", "value", "heard"),
    [
        (b"00000000002a", b'{"event_time": "1750", "ad_id": "a-1"}', Record(42, 1750, "a-1", 3, 99)),
        (b"00000000002a", b'{"event_time": "1750"}', Record(42, None, "", 3, 99)),
        (b"00000000002a", b'{"ad_id": "a-1"}', Record(42, None, "", 3, 99)),
        (b"00000000002a", b'{"event_time": "soon", "ad_id": "a-1"}', Record(42, None, "", 3, 99)),
        (b"00000000002a", b"{", Record(42, None, "", 3, 99)),
        (b"00000000002a", b"[1]", Record(42, None, "", 3, 99)),
        (b"00000000002a", None, Record(42, None, "", 3, 99)),
        (b"no key", b'{"event_time": "1750", "ad_id": "a-1"}', Record(None, 1750, "a-1", 3, 99)),
        (None, b'{"event_time": "1750", "ad_id": "a-1"}', Record(None, 1750, "a-1", 3, 99)),
    ],
)
def test_what_is_heard_of_a_record(key, value, heard):
    assert inputs._record(key, value, 3, 99) == heard


def test_a_record_is_heard_with_its_partition(monkeypatch):
    class Consumed:
        def __init__(self, settings: object) -> None:
            """It has no connection."""

        def offsets_for_times(self, moments: object, timeout_s: float) -> object:
            return moments

        def assign(self, moments: object) -> None:
            """All partitions."""

        def consume(self, most: int, timeout_s: float) -> list[object]:
            return [self.message(partition) for partition in (0, 1)]

        @staticmethod
        def message(partition: int) -> object:
            content = {"key": b"2a", "value": b"{", "partition": partition, "timestamp": (1, 99), "error": None}
            return SimpleNamespace(**{name: lambda value=value: value for name, value in content.items()})

    monkeypatch.setattr(inputs, "Consumer", Consumed)
    monkeypatch.setattr(inputs, "end_offsets", lambda *_: {})
    field: Any = SimpleNamespace(kafka_address=KafkaAddress("nowhere"), topic="topic")

    assert [*inputs.Listener(field, 0).hear()] == [Record(42, None, "", partition, 99) for partition in (0, 1)]


def test_a_tape_without_spells_has_the_digest_that_it_always_had():
    assert Tape(SPEC).digest() == Tape(replace(SPEC, spells=())).digest()
    assert Tape(SPEC).digest() != Tape(after("input-poison@t>=6s")).digest()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("input-burst@t>=+2s", "one explicit time"),
        ("repeat(2; input-burst@t>=2s)", "one explicit time"),
        ("input-burst(times=1)@t>=2s", "'1' is not a whole number"),
        ("input-poison(share=0%)@t>=2s", "'0%' is not a share"),
        ("input-poison(share=5)@t>=2s", "'5' is not a share"),
        ("input-silent(servers=4)@t>=2s", "from 1 to 3"),
        ("input-poison@batch>=3", "can't wait for"),
    ],
)
def test_what_can_not_be_is_named(text, named):
    with pytest.raises(UsageError) as wrong:
        after(text)

    assert named in str(wrong.value)


def record(event=1, time_ms=0, ad="a", partition=0, sent_ms=0) -> Record:
    return Record(event, time_ms, ad, partition, sent_ms)


def strike(kind, text):
    fault = parse(f"{text}@t>=1s")
    return kind(fault, FAULTS[fault.action])


def test_usual_records_prove_nothing_and_those_of_the_fault_do():
    usual = [record(event=n, ad=f"ad {n % 50}", sent_ms=n, time_ms=n) for n in range(1000)]
    bad = [record(event=n, time_ms=None) for n in range(5)]
    hot = [record(event=n, ad="hot") for n in range(5000)]
    cases = [
        (strike(Future, "input-future"), [record(time_ms=3_600_000)], "dated 3,600 s after"),
        (strike(Poison, "input-poison"), bad, "5 of 1,005 records"),
        (strike(Duplicates, "input-duplicates"), usual[:5], "5 events were read from Kafka more than once"),
        (strike(Skew, "input-skew"), hot, "refer to ad hot"),
        (
            strike(Silent, "input-silent(for=5s)"),
            [record(event=3 << INDEX_BITS, sent_ms=at) for at in (0, 4500)],
            "ad server 3 sent nothing to Kafka for 4.5 s",
        ),
    ]
    for each, records, proof in cases:
        assert each.seen(usual) == "", each
        assert proof in each.seen(records)


def test_the_ends_of_partitions_prove_a_burst_and_an_idle_partition():
    burst, idle = strike(Burst, "input-burst(times=5)"), strike(IdlePartition, "input-idle-partition")
    burst._usual_per_s = 100.0

    assert burst.moved(Ends(0, {0: 0, 1: 0}), Ends(1000, {0: 60, 1: 60})) == ""
    assert "300 records/s" in burst.moved(Ends(0, {0: 0, 1: 0}), Ends(1000, {0: 150, 1: 150}))
    assert idle.moved(Ends(0, {0: 5, 1: 0}), Ends(1000, {0: 6, 1: 60})) == ""
    assert idle.moved(Ends(0, {0: 5, 1: 0}), Ends(1000, {0: 5, 1: 0})) == ""
    assert "the others received 60" in idle.moved(Ends(0, {0: 5, 1: 0}), Ends(1000, {0: 5, 1: 60}))


def test_the_partition_that_falls_idle_is_the_one_that_is_watched():
    assert inputs.IDLE_PARTITION == IDLE_PARTITION


def test_a_record_that_is_dated_when_it_was_sent_is_not_from_the_future():
    sent_ms = 1_750_000_000_000
    future = strike(Future, "input-future")

    assert future.seen([record(time_ms=sent_ms + 10_000, sent_ms=sent_ms)]) == ""
    assert "dated 3,600 s after" in future.seen([record(time_ms=sent_ms + 3_600_000, sent_ms=sent_ms)])


def test_fewer_than_500_records_prove_no_skew():
    hot = [record(event=n, ad="hot") for n in range(500)]

    assert strike(Skew, "input-skew").seen(hot[:499]) == ""
    assert "100% of 500 records" in strike(Skew, "input-skew").seen(hot)


def test_a_share_may_be_all_of_it():
    assert inputs.share(parse("input-poison(share=100%)@t>=2s"), FAULTS["input-poison"]) == 1.0


def test_a_burst_lands_by_what_arrives_between_two_polls(monkeypatch):
    """The first of them is when records in transit have arrived. What lay in the topic before the load is no load."""
    ends = {0: 150, 1: 150}
    monkeypatch.setattr(inputs, "end_offsets", lambda *_: dict(ends))
    field: Any = SimpleNamespace(kafka_address=KafkaAddress("nowhere"), topic="topic")
    burst = strike(Burst, "input-burst(times=5, for=8s)")

    def at(now_ms: int) -> Any:
        return SimpleNamespace(now_ms=now_ms, epoch_ms=0, before=100, field=field)

    burst.inject(at(2000))  # 100 a second until now
    assert [burst.landed(at(now_ms)) for now_ms in (2499, 2500)] == ["", ""]
    ends[0] += 500
    assert burst.landed(at(3499)) == ""
    assert "500 records/s, 5.0 times as many as before" in burst.landed(at(3500))
