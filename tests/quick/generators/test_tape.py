"""Laws of the tape: pure, cut into slices without a rest, sealed by its digest."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators import preview as previews
from generators import tape as tapes
from generators.disorder import PRESETS
from generators.preview import preview
from generators.profiles import steady
from generators.tape import Events, Tape
from harness.model import INDEX_BITS, TapeSpec
from tests.quick.cases import SPEC as RUN
from tests.quick.tapes import specs
from workloads.ad_impressions.schema import VIEW

SPEC = TapeSpec(42, steady(2000, 3000), 4, 20, 4, 10, 10, PRESETS["storm"])


def whole(tape: Tape, server: int) -> Events:
    return tape.events(server, np.arange(tape.server_total(server)))


@given(specs(), st.integers(1, 50), st.randoms())
def test_events_are_the_same_whatever_way_they_are_asked_for(spec, size, random):
    tape = Tape(spec)
    blocks = list(tape.blocks(size))
    server = random.randrange(spec.senders)
    slots = [random.randrange(total) for _ in range(9)] if (total := tape.server_total(server)) else []
    asked = Tape(spec).events(server, np.array(slots, dtype=np.int64))
    mine = [block for block in blocks if block.server == server]

    assert sum(map(len, blocks)) == tape.total
    for number, column in enumerate(asked.columns()):
        stored = np.concatenate([block.columns()[number] for block in mine]) if mine else np.array([])
        assert column.tolist() == stored[slots].tolist() if slots else len(column) == 0


@given(specs())
def test_slices_hold_every_slot_once_and_none_before_it_is_intended(spec):
    tape = Tape(spec)
    for server in range(spec.senders):
        events = whole(tape, server)
        number = events.intended_us // (spec.slice_ms * 1000)
        planned = list(tape.slices(server))
        ranges = [(lo, hi) for _, lo, hi in planned]

        assert [slot for lo, hi in ranges for slot in range(lo, hi)] == events.slot.tolist()
        for j, lo, hi in planned:
            assert (number[lo:hi] == j).all()
            assert (events.intended_us[lo:hi] < tape.slice_due_us(j)).all()
            assert (events.partition[lo:hi] == tape.slice_partition(server, j)).all()
        assert all(j < tape.slice_count for j, _, _ in planned)


@given(specs())
def test_servers_share_the_profile_without_a_rest(spec):
    tape = Tape(replace(spec, disorder=PRESETS["none"]))
    due = np.concatenate([whole(tape, server).intended_us for server in range(spec.servers)])

    assert np.sort(due).tolist() == tape.profile.inverse(np.arange(tape.profile.total)).tolist()


@given(specs())
def test_every_event_has_a_place_of_its_own(spec):
    tape = Tape(spec)
    slots = [np.arange(tape.server_total(server)) | server << INDEX_BITS for server in range(spec.senders)]
    ids = np.concatenate(slots)
    places = tape.places(ids)

    assert sorted(places.tolist()) == list(range(tape.total))
    assert [tape.id_at(place) for place in places.tolist()] == ids.tolist()


@given(specs())
def test_each_probe_campaign_is_due_once_in_each_length_and_no_other_server_draws_it(spec):
    tape = Tape(replace(spec, probes=5))
    probes = whole(tape, spec.servers)
    due_us = tape.probes.due_us(probes.slot)
    campaign = probes.content["ad"] // spec.ads_per_campaign
    length, every_us = due_us // (spec.probe_every_ms * 1000), spec.probe_every_ms * 1000

    assert len(probes) == tape.total - tape.profile.total == tape.profile.duration_ms * 5 // spec.probe_every_ms
    assert (due_us * 5 // every_us == probes.slot).all(), "one in each equal stretch"
    assert (due_us < tape.profile.duration_ms * 1000).all()
    assert len({*zip(length.tolist(), campaign.tolist(), strict=True)}) == len(probes)
    assert set(campaign.tolist()) <= set(range(spec.campaigns, spec.campaigns + 5))
    assert (probes.content["event_type"] == VIEW).all()
    assert not probes.duplicate.any()
    assert not probes.poison.any()
    for server in range(spec.servers):
        assert (whole(tape, server).content["ad"] // spec.ads_per_campaign < spec.campaigns).all()


def test_probes_meet_every_moment_and_partition():
    tape = Tape(replace(SPEC, profile=steady(10, 60_000), probes=300, disorder=PRESETS["mobile"]))
    probes = whole(tape, SPEC.servers)
    within_us = tape.probes.due_us(probes.slot) % 33_333

    assert len(probes) == 6 * 300
    assert (np.abs(np.bincount(probes.partition) - 450) < 120).all()
    assert (np.abs(np.histogram(within_us, bins=4)[0] - 450) < 120).all()
    assert probes.event_time_rel_ms.tolist() != (probes.intended_us // 1000).tolist(), "disorder applies to them too"


def test_probes_change_nothing_of_what_the_other_servers_send():
    with_probes, without = Tape(replace(SPEC, probes=50)), Tape(SPEC)

    for server in range(SPEC.servers):
        one, other = whole(with_probes, server), whole(without, server)
        assert all((a == b).all() for a, b in zip(one.columns(), other.columns(), strict=True))


def test_the_digest_names_the_tape_and_never_changes():
    """Written down, so that a change of the tape is a decision: old runs could not be judged again."""
    assert Tape(SPEC).digest() == "13940d1f61ccbedda7448b327c2b32df"
    with_silence = replace(SPEC, seed=44, profile=steady(200, 20_000))
    assert Tape(with_silence).digest() == "4e0a7e09137cf31f0152cad9c55c4337"


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 43},
        {"servers": 5},
        {"slice_ms": 30},
        {"partitions": 3},
        {"campaigns": 11},
        {"probes": 1},
        {"disorder": PRESETS["late"]},
    ],
)
def test_another_spec_has_another_digest(change):
    assert Tape(replace(SPEC, **change)).digest() != Tape(SPEC).digest()


def test_content_is_uniform_and_ids_say_who_sent_what():
    tape = Tape(TapeSpec(1, steady(30_000, 1000), 3, 10, 3, 5, 2, PRESETS["none"]))
    events = whole(tape, 2)

    assert (events.id >> INDEX_BITS == 2).all()
    for name, values in (("ad", 10), ("ad_type", 5), ("event_type", 3), ("user", 100)):
        counts = np.bincount(events.content[name], minlength=values)
        assert len(counts) == values
        assert (np.abs(counts - len(events) / values) < 5 * np.sqrt(len(events) / values)).all()


def test_a_preview_shows_how_old_the_events_are_and_how_many_of_them_count():
    spec = replace(RUN, tape=SPEC)
    found = preview(spec)
    blocks = [*Tape(SPEC).blocks()]
    views = sum(int(((block.content["event_type"] == VIEW) & (block.poison == 0)).sum()) for block in blocks)

    assert sum(bar.events for bar in found.lateness) == found.events == Tape(SPEC).total
    assert [*found.counted.values()] == [views]
    assert all(bar.events >= 0 for bar in found.lateness)


def test_a_preview_says_of_each_bar_up_to_which_age_it_goes():
    found = preview(replace(RUN, tape=SPEC))
    age_ms = np.concatenate([block.intended_us // 1000 - block.event_time_rel_ms for block in Tape(SPEC).blocks()])
    bounds = (-1, 0, 10, 100, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000, None)

    assert [bar.up_to_ms for bar in found.lateness] == [*bounds]
    reached = [int((age_ms <= bound).sum()) if bound is not None else len(age_ms) for bound in bounds]
    assert np.cumsum([bar.events for bar in found.lateness]).tolist() == reached


def test_an_event_is_behind_the_watermark_if_it_is_older_than_a_window_and_the_watermark_s_delay():
    age_ms = np.concatenate([block.intended_us // 1000 - block.event_time_rel_ms for block in Tape(SPEC).blocks()])
    limit_ms = int(np.sort(age_ms)[-len(age_ms) // 10])
    found = preview(replace(RUN, tape=SPEC, window_ms=500, watermark_ms=limit_ms - 500))

    assert limit_ms > 500
    assert found.behind_watermark == int((age_ms > limit_ms).sum()) < int((age_ms >= limit_ms).sum())


def test_the_label_of_a_bar_names_its_bounds():
    bounds = [(None, -1), (-1, 0), (0, 10), (1_000, 2_000), (60_000, None)]
    labels = [previews._label(low_ms, high_ms) for low_ms, high_ms in bounds]

    assert [re.findall(r"[\d,]+", label) for label in labels] == [
        [],
        ["0"],
        ["0", "10"],
        ["1,000", "2,000"],
        ["60,000"],
    ]
    assert all(labels)


def test_a_silence_is_undone_to_the_first_event_that_is_sent_at_its_end():
    silence_us, due_us = (10, 14), np.arange(20)
    intended_us = tapes._after_silence(due_us, silence_us)
    first_us = [int(due_us[intended_us >= at_us][0]) for at_us in range(20)]

    assert tapes._before_silence(np.arange(20), silence_us).tolist() == first_us
