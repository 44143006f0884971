"""Laws of disorder: nothing is lost or invented, every dial keeps its bounds and moves nothing but its own."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given

from generators.disorder import LATE_PRESETS, PRESETS
from generators.profiles import steady
from generators.tape import Events, Tape
from harness.model import Disorder, TapeSpec
from tests.quick.tapes import specs

SPEC = TapeSpec(7, steady(20_000, 20_000), 8, 10, 4, 10, 10, Disorder())


def columns(tape: Tape, *names: str) -> list[np.ndarray]:
    blocks = list(tape.blocks())
    return [np.concatenate([column(block, name) for block in blocks]) for name in names]


def column(events: Events, name: str) -> np.ndarray:
    found: np.ndarray = events.content[name] if name in events.content else getattr(events, name)
    return found


def with_disorder(disorder: Disorder) -> Tape:
    return Tape(replace(SPEC, disorder=disorder))


@given(specs())
def test_no_event_lies_further_behind_than_the_reach(spec):
    tape = Tape(spec)
    intended, time_ms = columns(tape, "intended_us", "event_time_rel_ms")
    order = np.argsort(intended, kind="stable")
    newest = np.maximum.accumulate(time_ms[order])

    assert (newest - time_ms[order]).max() <= spec.disorder.reach_ms + spec.slice_ms


def test_two_clocks_can_be_wrong_in_opposite_ways():
    tape = Tape(replace(SPEC, servers=60, disorder=Disorder(clock_offset_ms=1000)))
    intended, time_ms = columns(tape, "intended_us", "event_time_rel_ms")
    order = np.argsort(intended, kind="stable")
    furthest = (np.maximum.accumulate(time_ms[order]) - time_ms[order]).max()

    assert 1800 < furthest <= tape.spec.disorder.reach_ms


@given(specs())
def test_event_times_keep_their_bounds(spec):
    tape = Tape(spec)
    (time_ms,) = columns(tape, "event_time_rel_ms")
    first, last = tape.event_time_bounds_rel_ms()

    assert first <= time_ms.min()
    assert time_ms.max() <= last


@given(specs())
def test_a_copy_is_the_original_once_more_and_every_other_event_is_sent_once(spec):
    tape = Tape(spec)
    for server in range(spec.servers):
        events = tape.events(server, np.arange(tape.server_total(server)))
        origin = (events.id & np.uint64((1 << 36) - 1)).astype(np.int64)
        copy = events.duplicate

        assert (origin[~copy] == events.slot[~copy]).all()
        assert not copy[origin[copy]].any(), "never a copy of a copy"
        gaps = events.slot[copy] - origin[copy]
        assert ((gaps >= 1) & (gaps <= spec.disorder.duplicate_gap)).all()
        for name in ("event_time_rel_ms", "ad", "ad_type", "event_type", "user", "page", "poison"):
            values = column(events, name)
            assert (values[copy] == values[origin[copy]]).all()


@given(specs())
def test_silence_moves_when_events_are_sent_and_nothing_else(spec):
    quiet = Tape(replace(spec, disorder=replace(spec.disorder, silent_servers=0)))
    silent = Tape(spec)
    names = ("id", "event_time_rel_ms", "poison", "ad")

    for column, same in zip(columns(silent, *names), columns(quiet, *names), strict=True):
        assert (column == same).all()
    moved = columns(silent, "intended_us")[0] - columns(quiet, "intended_us")[0]
    assert (moved >= 0).all()
    assert moved.max() <= spec.disorder.silent_ms * 1000


@pytest.mark.parametrize(
    "dial",
    [
        {"delay_scale_ms": 300, "delay_max_ms": 7500},
        {"skew_min_ms": -49, "skew_max_ms": 50},
        {"late_share": 0.01, "late_min_ms": 500, "late_max_ms": 900},
        {"clock_offset_ms": 200},
        {"future_share": 0.01, "future_ms": 5000},
        {"poison_share": 0.01},
    ],
)
def test_each_dial_alone_moves_no_other_draw(dial):
    names = ("id", "intended_us", "ad", "ad_type", "event_type", "user", "page", "partition")

    for column, same in zip(columns(with_disorder(Disorder(**dial)), *names), columns(Tape(SPEC), *names), strict=True):
        assert (column == same).all()


def shift_ms(disorder: Disorder) -> np.ndarray:
    intended, time_ms = columns(with_disorder(disorder), "intended_us", "event_time_rel_ms")
    return np.asarray(time_ms - intended // 1000)


def test_yahoos_own_disorder_is_exactly_his():
    assert PRESETS["yahoo"] == Disorder(
        skew_min_ms=-49, skew_max_ms=50, late_share=1e-5, late_min_ms=0, late_max_ms=59_999
    )
    shift = shift_ms(replace(PRESETS["yahoo"], late_share=0.0))

    assert sorted(set(shift.tolist())) == list(range(-49, 51))
    counts = np.bincount(shift + 49)
    assert (np.abs(counts - 4000) < 5 * np.sqrt(4000)).all()


def test_the_heavy_tail_has_its_median_and_its_cut():
    delay = -shift_ms(Disorder(delay_scale_ms=300, delay_max_ms=7500))

    assert abs(np.median(delay) - 0.41 * 300) < 3
    assert delay.min() == 0
    assert delay.max() == 7500
    assert abs((delay >= 3000).mean() - (300 / 3300) ** 2) < 0.001


def test_shares_are_kept():
    storm = with_disorder(PRESETS["storm"])
    poison, duplicate = columns(storm, "poison", "duplicate")

    assert abs((poison > 0).mean() - 0.001) < 0.0003
    assert sorted(set(poison[poison > 0].tolist())) == [1, 2, 3, 4, 5, 6, 7]
    assert abs(duplicate.mean() - 0.01) < 0.001


def test_the_right_number_of_servers_falls_silent_and_comes_back_with_everything():
    tape = with_disorder(PRESETS["storm"])
    blocks = [tape.events(server, np.arange(tape.server_total(server))) for server in range(8)]
    backlog = [np.unique(block.intended_us, return_counts=True)[1].max() for block in blocks]

    assert sorted(count > 1 for count in backlog) == [False] * 6 + [True] * 2
    assert max(backlog) == 5 * 20_000 // 8


def test_only_the_presets_that_say_so_reach_beyond_the_default_watermark():
    reach = {name: disorder.reach_ms for name, disorder in PRESETS.items()}

    assert {name for name, ms in reach.items() if ms > 8000} == LATE_PRESETS


def test_a_copy_comes_at_most_a_second_after_its_event_unless_the_dial_says_otherwise():
    assert Disorder(duplicate_share=0.1).reach_ms == 1000
    assert Disorder(duplicate_share=0.1, duplicate_max_ms=50).reach_ms == 50
    assert Disorder().reach_ms == 0
    assert Disorder(skew_min_ms=-200, skew_max_ms=300).reach_ms == 500


def test_a_dial_that_is_not_named_is_not_turned():
    assert {name: value for name, value in asdict(Disorder()).items() if value} == {"duplicate_max_ms": 1000}
