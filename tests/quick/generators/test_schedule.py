"""Laws of a reel: the load's own tape does not move, the warm-up is over at the epoch, and every event has a name."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.disorder import PRESETS
from generators.profiles import steady
from generators.schedule import Schedule
from generators.tape import Events, Tape
from harness.model import INDEX_BITS, INDEX_MASK, TapeSpec
from tests.quick.tapes import segments, specs

SPEC = TapeSpec(42, steady(2000, 3000), 4, 20, 4, 10, 10, PRESETS["storm"], probes=7)
WARM_UP = steady(2000, 2500)


def warmed_up() -> st.SearchStrategy[TapeSpec]:
    return st.builds(lambda spec, warm_up: replace(spec, warm_up=warm_up), specs(), segments())


def all_of(schedule: Schedule, server: int) -> Events:
    return schedule.events(server, np.arange(schedule.server_total(server)))


def same(one: Events, other: Events) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.columns(), other.columns(), strict=True))


def test_the_tape_of_the_load_and_its_digest_are_what_they_are_without_a_warm_up():
    alone, schedule = Tape(SPEC), Schedule(replace(SPEC, warm_up=WARM_UP))

    assert schedule.load.digest() == alone.digest()
    assert schedule.load.total == alone.total == schedule.total - schedule.warm_up_total
    for server in range(SPEC.senders):
        assert same(all_of(schedule, server), alone.events(server, np.arange(alone.server_total(server))))


def test_a_warm_up_has_draws_and_a_digest_of_its_own_that_follow_from_the_seed():
    first, again, other = (Schedule(replace(SPEC, seed=seed, warm_up=WARM_UP)).warm_up for seed in (42, 42, 43))

    assert first
    assert again
    assert other
    assert first.digest() == again.digest() != other.digest()
    assert first.digest() != Tape(replace(SPEC, profile=WARM_UP)).digest()


@given(warmed_up(), st.integers(1, 50))
@settings(max_examples=30, deadline=None)
def test_every_event_has_one_id_and_one_place(spec, size):
    schedule = Schedule(spec)
    blocks = list(schedule.blocks(size))
    ids = np.concatenate([block.id[~block.duplicate] for block in blocks]).astype(np.int64)
    places = schedule.places(ids)

    assert sum(map(len, blocks)) == schedule.total
    assert len(np.unique(ids)) == len(np.unique(places)) == len(ids)
    assert ((places >= 0) & (places < schedule.total)).all()
    assert [schedule.id_at(place) for place in places[:20].tolist()] == ids[:20].tolist()
    for server in range(schedule.servers):
        mine = [block for block in blocks if block.server == server]
        assert sum(map(len, mine)) == schedule.server_total(server)
        if mine:
            assert same(mine[0], schedule.events(server, mine[0].slot))


def test_who_takes_all_blocks_has_sealed_both_tapes(monkeypatch):
    schedule = Schedule(replace(SPEC, warm_up=WARM_UP))
    tapes = [tape for tape in (schedule.load, schedule.warm_up) if tape]
    digests = [tape.digest() for tape in tapes]
    assert len(set(digests)) == 2

    monkeypatch.setattr("generators.tape._digests", {})
    blocks = [*schedule.sealed_blocks()]
    monkeypatch.setattr(Tape, "blocks", lambda _: iter(()))

    assert sum(map(len, blocks)) == schedule.total
    assert [tape.digest() for tape in tapes] == digests


@given(warmed_up())
@settings(max_examples=30, deadline=None)
def test_the_copies_are_the_slots_that_send_an_earlier_event_once_more(spec):
    schedule = Schedule(spec)
    doubled = [
        (int(slot) | block.server << INDEX_BITS, int(number))
        for block in schedule.blocks()
        for slot, number in zip(block.slot[block.duplicate], block.id[block.duplicate], strict=True)
    ]

    assert [*zip(*map(np.ndarray.tolist, schedule.copies()), strict=True)] == doubled


@given(warmed_up(), st.integers(1, 50), st.randoms())
@settings(max_examples=30, deadline=None)
def test_each_row_that_a_server_has_a_slot_for_is_found_once(spec, most, random):
    schedule = Schedule(spec)
    slots = [(server, slot) for server in range(schedule.servers + 1) for slot in (0, 1, 40, 1 << 30)]
    ids = np.array([server << INDEX_BITS | slot for server, slot in random.choices(slots, k=200)] + [-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("generators.schedule.BLOCK", most)
        found = [*schedule.by_server(ids)]

    rows = [row for server, rows in found for row in rows.tolist()]
    assert all((np.diff(rows) > 0).all() and len(rows) <= most for _, rows in found)
    assert all((ids[rows] >> INDEX_BITS == server).all() for server, rows in found)
    assert sorted(rows) == [
        row
        for row, each in enumerate(ids.tolist())
        if 0 <= each >> INDEX_BITS < schedule.servers and each & INDEX_MASK < schedule.server_total(each >> INDEX_BITS)
    ]


@given(warmed_up())
@settings(max_examples=30, deadline=None)
def test_a_warm_up_is_over_at_the_epoch_and_an_ad_server_sends_its_slices_in_order(spec):
    schedule = Schedule(spec)
    for sender in range(spec.senders):
        early, own = schedule.servers_of(sender)
        due_us = [schedule.slice_due_us(server, j) for server in (early, own) for j, _, _ in schedule.slices(server)]
        before = [schedule.slice_due_us(early, j) for j, _, _ in schedule.slices(early)]

        assert all(first < then for first, then in pairwise(due_us))
        assert all(-schedule.warm_up_ms * 1000 < due <= 0 for due in before)
        for j, lo, hi in schedule.slices(early):
            events = schedule.events(early, np.arange(lo, hi))
            assert (events.intended_us < schedule.slice_due_us(early, j)).all()
            assert (events.partition == schedule.slice_partition(early, j)).all()
    assert schedule.due_before(-schedule.warm_up_ms * 1000) == 0
    assert schedule.due_before(10**12) == schedule.load.profile.total + (
        schedule.warm_up.profile.total if schedule.warm_up else 0
    )


@pytest.mark.parametrize("warm_up", [(), WARM_UP])
def test_a_server_is_called_by_its_own_number(warm_up):
    schedule = Schedule(replace(SPEC, warm_up=warm_up))

    assert [schedule.name_of(server) for server in (0, 4)] == ["server 0", "server 4"]
    assert schedule.servers_of(3)[-1] == 3
    if warm_up:
        assert schedule.name_of(schedule.servers_of(3)[0]) == "server 3 of the warm-up"
