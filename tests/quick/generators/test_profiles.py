"""Laws of the cumulative rate and its inverse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.profiles import PROFILES, Profile, pause_and_drain, raised, steady
from harness.model import Segment
from tests.quick.tapes import named_profile, segments


@given(segments())
def test_every_event_is_due_where_the_cumulative_rate_says(chain):
    profile = Profile(chain)
    n = np.arange(profile.total)
    due_us = profile.inverse(n)
    fastest = max(max(s.start_per_s, s.end_per_s) for s in chain)

    assert (np.diff(due_us) >= 0).all()
    assert due_us[0] >= 0
    assert due_us[-1] < profile.duration_ms * 1000
    # Due times are whole microseconds, so the count may be off by what comes in one, and never beyond.
    assert (np.abs(profile.cumulative(due_us) - n) <= fastest / 1e6 + 1e-6).all()


@given(segments(), st.lists(st.integers(0, 3_000_000), min_size=1, max_size=20))
def test_the_first_event_at_a_moment_is_found_exactly(chain, moments):
    profile = Profile(chain)
    due_us = profile.inverse(np.arange(profile.total))

    assert profile.first_due_at(np.array(moments)).tolist() == np.searchsorted(due_us, moments, side="left").tolist()


@pytest.mark.parametrize("rate", [3.0, 7.0, 30.0, 300.0, 700.0, 3000.0, 7000.0, 33_333.0])
def test_rounding_never_moves_an_event_over_the_edge_of_a_slice(rate):
    """Where an event is due on the microsecond, a float may fall on either side: both ways must agree."""
    profile = Profile((*steady(rate, 3000), Segment(3000, rate, rate / 3), *steady(rate / 3, 3000)))
    due_us = profile.inverse(np.arange(profile.total))
    moments = np.unique(np.concatenate([due_us, due_us + 1, np.arange(0, 9_000_001, 1000)]))

    assert (profile.first_due_at(moments) == np.searchsorted(due_us, moments, side="left")).all()


@given(segments())
def test_the_total_is_the_area(chain):
    area = sum(s.duration_ms * (s.start_per_s + s.end_per_s) / 2000 for s in chain)

    assert Profile(chain).total == int(np.ceil(area - 1e-6))


@pytest.mark.parametrize("name", PROFILES)
def test_named_profiles_last_as_long_as_they_were_told(name):
    profile = Profile(named_profile(name, duration_ms=12_345))

    assert profile.duration_ms == 12_345
    assert profile.total > 0
    assert len(np.unique(profile.inverse(np.arange(profile.total)))) == profile.total


def test_a_steady_rate_is_a_metronome():
    profile = Profile(steady(10_000, 30_000))

    assert profile.total == 300_000
    assert profile.inverse(np.array([0, 1, 2, 299_999])).tolist() == [0, 100, 200, 29_999_900]


def test_what_is_raised_twice_is_raised_by_what_it_was_at_each_moment():
    """On a ramp from 0 to 1,000 a second in ten seconds, behind another stretch of five."""
    slope = (Segment(5_000, 100.0, 100.0), Segment(10_000, 0.0, 1000.0))
    twice = raised(raised(slope, 6_000, 8_000, 3.0), 12_000, 13_000, 2.0)

    assert [(part.duration_ms, round(part.start_per_s), round(part.end_per_s)) for part in twice] == [
        (5_000, 100, 100),
        (1_000, 0, 100),
        (2_000, 300, 900),
        (4_000, 300, 700),
        (1_000, 1400, 1600),
        (2_000, 800, 1000),
    ]


def test_raised_by_one_it_is_the_same_load():
    slope = (Segment(5_000, 100.0, 100.0), Segment(10_000, 0.0, 1000.0))
    cut, whole = Profile(raised(slope, 6_000, 8_000, 1.0)), Profile(slope)

    assert cut.total == whole.total
    assert np.abs(cut.inverse(np.arange(cut.total)) - whole.inverse(np.arange(whole.total))).max() <= 1  # microsecond


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("steady", [(1000, 1000)]),
        ("ramp", [(0, 1000)]),
        ("steps", [(200, 200), (400, 400), (600, 600), (800, 800), (1000, 1000)]),
        ("burst", [(1000, 1000), (5000, 5000), (1000, 1000)]),
        ("square", [(1000, 1000), (0, 0), (1000, 1000)]),
        ("pause-and-drain", [(1000, 1000), (0, 0), (1000, 1000)]),
    ],
)
def test_named_profiles_have_the_rates_of_their_name(name, rates):
    assert [(part.start_per_s, part.end_per_s) for part in named_profile(name)] == rates


def test_nothing_is_due_in_a_pause():
    due_us = (profile := Profile(pause_and_drain(1000, 9000))).inverse(np.arange(profile.total))

    assert profile.total == 6000
    assert not ((due_us >= 3_000_000) & (due_us < 6_000_000)).any()
    assert due_us[3000] == 6_000_000


def test_a_ramp_down_to_nothing_ends_in_time():
    profile = Profile((Segment(1000, 1000.0, 0.0),))

    assert profile.total == 500
    assert profile.inverse(np.array([499])) < 1_000_000


def test_a_load_that_was_broken_off_before_its_first_event_has_none():
    nothing = Profile((Segment(0, 5.0, 5.0),))

    assert (nothing.total, nothing.cumulative(np.array([0, 10**6])).tolist()) == (0, [0.0, 0.0])
    assert nothing.first_due_at(np.array([5])).tolist() == [0]
