"""What is kept of successive looks: every change once, nothing else, and what was no count is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sampler import LOOK_EVERY_S, MOST_CAMPAIGNS, Pace, Recorder, sampled_campaigns
from tests.quick.cases import SPEC

HASHES = st.dictionaries(st.sampled_from([b"0", b"10000", b"20000", b"x"]), st.sampled_from([b"1", b"2", b"30", b"2?"]))
CAMPAIGNS = (4, 7)


def flat(fields):
    return [part for pair in fields.items() for part in pair]


def recorded(looks, campaigns=CAMPAIGNS):
    recorder = Recorder(campaigns)
    for number, look in enumerate(looks):
        recorder.look(number * 50_000, look)
    return recorder.sampled(10, 0.0)


def rows(sampled):
    return list(zip(*(column.tolist() for column in sampled.columns.values()), strict=True))


@given(st.lists(st.tuples(HASHES, HASHES), min_size=1, max_size=8))
@settings(max_examples=200)
def test_the_changes_tell_every_count_at_every_look_and_nothing_twice(looks):
    sampled = recorded([[flat(fields) for fields in look] for look in looks])
    changes = rows(sampled)
    told: dict[tuple[int, int], int] = {}
    wanted: dict[tuple[int, int], int] = {}
    for number, look in enumerate(looks):
        for at_us, campaign, window_ms, count in changes:
            if at_us == number * 50_000:
                assert told.get((campaign, window_ms)) != count, "a row for each change only"
                told[campaign, window_ms] = count
        for campaign, fields in zip(CAMPAIGNS, look, strict=True):
            wanted |= {cell: 0 for cell in wanted if cell[0] == campaign and b"%d" % cell[1] not in fields}
            sound = {f: v for f, v in fields.items() if f.isdigit() and v.isdigit()}
            wanted |= {(campaign, int(field)): int(value) for field, value in sound.items()}
        assert told == wanted

    assert sampled.looks.scans == len(looks)
    bad = {(p, f, v) for look in looks for p, fields in enumerate(look) for f, v in fields.items() if b"x" in f + v}
    assert (sampled.looks.garbage > 0) == bool(bad or any(b"2?" in look[p].values() for look in looks for p in (0, 1)))


def test_a_count_that_vanished_is_zero_and_one_that_comes_back_is_told_again():
    sampled = recorded([[[b"0", b"5"], []], [[], []], [[b"0", b"5"], []]])

    assert rows(sampled) == [(0, 4, 0, 5), (50_000, 4, 0, 0), (100_000, 4, 0, 5)]


def test_what_is_no_count_is_passed_over_and_counted_once_for_each_change():
    sampled = recorded([[[b"0", b"5"], WRONG], [[b"0", b"5?"], []], [[b"0", b"5?"], []], [[b"0", b"9" * 30], []]])

    assert rows(sampled) == [(0, 4, 0, 5)]
    assert sampled.looks.garbage == 3


WRONG = ValueError("WRONGTYPE")


def test_the_period_is_what_it_was_not_what_was_wished():
    recorder = Recorder(CAMPAIGNS)
    for at_us in (0, 50_000, 100_000, 400_000):
        recorder.unchanged(at_us)
    recorder.failed(OSError("gone"))
    looks = recorder.sampled(4, 0.25).looks

    assert (looks.scans, looks.period_ms, looks.period_max_ms) == (4, 50.0, 300.0)
    assert 250 < looks.period_p99_ms <= 300
    assert (looks.campaigns, looks.cells_sampled_share) == (2, 0.5)
    assert (looks.errors, looks.first_error, looks.cpu_s, looks.wall_s) == (1, "OSError: gone", 0.25, 0.4)


def test_no_look_at_all_has_no_period():
    looks = Recorder(CAMPAIGNS).sampled(2, 0.0).looks

    assert (looks.scans, looks.period_ms, looks.wall_s) == (0, 0.0, 0.0)


@pytest.mark.parametrize(("campaigns", "probes"), [(100, 300), (500, 0), (1000, 300), (1000, 0), (20_000, 499)])
def test_a_sample_holds_all_probes_and_as_many_others_as_fit(campaigns, probes):
    tape = replace(SPEC.tape, campaigns=campaigns, probes=probes)
    chosen = sampled_campaigns(tape)

    assert len(chosen) == min(campaigns + probes, MOST_CAMPAIGNS)
    assert chosen == tuple(sorted(set(chosen)))
    assert set(range(campaigns, campaigns + probes)) <= set(chosen)
    assert sampled_campaigns(tape) == chosen
    if campaigns + probes > MOST_CAMPAIGNS:
        assert sampled_campaigns(replace(tape, seed=99)) != chosen


def test_more_probes_than_can_be_looked_at_fill_the_sample():
    assert sampled_campaigns(replace(SPEC.tape, campaigns=10, probes=2000)) == tuple(range(10, 510))


def test_slow_looks_come_less_often_and_one_hiccup_changes_nothing():
    pace = Pace()
    assert [pace.period_s(0.002) for _ in range(30)] == [LOOK_EVERY_S] * 30
    assert pace.period_s(3.0) == LOOK_EVERY_S
    slow = [pace.period_s(0.03) for _ in range(30)][-1]
    assert slow == pytest.approx(0.09)
    assert [pace.period_s(0.002) for _ in range(30)][-1] == LOOK_EVERY_S, "and it recovers"
