"""Laws of the tape: pure, cut into slices without a rest, sealed by its digest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.disorder import PRESETS
from generators.profiles import steady
from generators.tape import Events, Tape
from harness.model import INDEX_BITS, TapeSpec
from tests.quick.tapes import specs

SPEC = TapeSpec(42, steady(2000, 3000), 4, 20, 4, 10, 10, PRESETS["storm"])


def whole(tape: Tape, server: int) -> Events:
    return tape.events(server, np.arange(tape.server_total(server)))


@given(specs(), st.integers(1, 50), st.randoms())
@settings(max_examples=60, deadline=None)
def test_events_are_the_same_whatever_way_they_are_asked_for(spec, size, random):
    tape = Tape(spec)
    blocks = list(tape.blocks(size))
    server = random.randrange(spec.servers)
    slots = [random.randrange(total) for _ in range(9)] if (total := tape.server_total(server)) else []
    asked = Tape(spec).events(server, np.array(slots, dtype=np.int64))
    mine = [block for block in blocks if block.server == server]

    assert sum(map(len, blocks)) == tape.total
    for number, column in enumerate(asked.columns()):
        stored = np.concatenate([block.columns()[number] for block in mine]) if mine else np.array([])
        assert column.tolist() == stored[slots].tolist() if slots else len(column) == 0


@given(specs())
@settings(max_examples=60, deadline=None)
def test_slices_hold_every_slot_once_and_none_before_it_is_intended(spec):
    tape = Tape(spec)
    for server in range(spec.servers):
        events = whole(tape, server)
        number = events.intended_us // (spec.slice_ms * 1000)
        planned = list(tape.slices(server))
        ranges = [(lo, hi) for _, lo, hi in planned]

        assert [slot for lo, hi in ranges for slot in range(lo, hi)] == events.slot.tolist()
        for j, lo, hi in planned:
            assert (number[lo:hi] == j).all()
            assert tape.slice_range(server, j) == (lo, hi)
            assert (events.intended_us[lo:hi] < tape.slice_due_us(j)).all()
            assert (events.partition[lo:hi] == tape.slice_partition(server, j)).all()
        assert all(j < tape.slice_count for j, _, _ in planned)
        assert tape.slice_range(server, tape.slice_count) == (len(events), len(events))


@given(specs())
@settings(max_examples=30, deadline=None)
def test_servers_share_the_profile_without_a_rest(spec):
    tape = Tape(replace(spec, disorder=PRESETS["none"]))
    due = np.concatenate([whole(tape, server).intended_us for server in range(spec.servers)])

    assert np.sort(due).tolist() == tape.profile.inverse(np.arange(tape.total)).tolist()


def test_the_digest_names_the_tape_and_never_changes():
    """Written down, so that a change of the tape is a decision: old runs could not be judged again."""
    assert Tape(SPEC).digest() == Tape(SPEC).digest()
    assert Tape(SPEC).digest() == "13940d1f61ccbedda7448b327c2b32df"


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 43},
        {"servers": 5},
        {"slice_ms": 30},
        {"partitions": 3},
        {"campaigns": 11},
        {"disorder": PRESETS["late"]},
    ],
)
def test_another_spec_has_another_digest(change):
    assert Tape(replace(SPEC, **change)).digest() != Tape(SPEC).digest()


def test_content_is_uniform_and_ids_say_who_sent_what():
    tape = Tape(TapeSpec(1, steady(30_000, 1000), 3, 10, 3, 5, 2, PRESETS["none"]))
    events = whole(tape, 2)

    assert (events.id >> INDEX_BITS == 2).all()
    for column, values in ((events.ad, 10), (events.ad_type, 5), (events.event_type, 3), (events.user, 100)):
        counts = np.bincount(column, minlength=values)
        assert len(counts) == values
        assert (np.abs(counts - len(events) / values) < 5 * np.sqrt(len(events) / values)).all()
