"""Quantiles, intervals and slopes against what is known of the samples they are given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measuring.stats import (
    binomial_bounds,
    holm,
    median_interval,
    merged,
    quantiles,
    slope,
    student,
    student_chance,
)
from harness.util.nearest_rank import index_of, of_samples

SAMPLES = st.lists(st.floats(0, 1e6), min_size=1, max_size=200)


@given(SAMPLES)
def test_every_quantile_is_a_sample_with_its_share_at_or_below_it(samples):
    found = quantiles(samples)

    for share, value in ((0.5, found.p50), (0.9, found.p90), (0.99, found.p99), (0.999, found.p999), (1.0, found.max)):
        assert value in samples
        assert sum(each <= value for each in samples) >= share * len(samples) - 1e-6
        assert sum(each < value for each in samples) < share * len(samples)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=200), st.sampled_from([0.0, 0.07, 0.5, 0.99, 0.999, 1.0]))
def test_counted_samples_have_the_percentiles_of_the_samples(samples, share):
    counts = np.bincount(samples, minlength=12)

    assert of_samples(samples, (share,)) == [index_of(counts, share)]
    assert index_of(np.array([counts, 2 * counts]), share).tolist() == [index_of(counts, share)] * 2


def test_a_rank_is_not_raised_by_the_rounding_of_a_product():
    assert of_samples(range(1, 101), (0.07, 0.99)) == [7.0, 99.0]


@given(SAMPLES, st.integers(1, 300))
def test_what_was_never_seen_lies_beyond_every_sample(samples, censored):
    found = quantiles(samples, censored)
    finite = quantiles([*samples, *[2e6] * censored])

    assert (found.mean, found.max, found.count) == (None, None, len(samples))
    for name in ("p50", "p90", "p99", "p999"):
        expected = getattr(finite, name)
        assert getattr(found, name) == (None if expected == 2e6 else expected)


def test_no_samples_have_no_quantiles():
    assert quantiles([]).p50 is None
    assert quantiles([]).mean is None


@given(st.lists(SAMPLES, min_size=1, max_size=4))
def test_rounds_are_merged_by_their_samples_not_by_their_quantiles(rounds):
    assert merged(rounds) == quantiles([each for part in rounds for each in part])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9))
def test_the_interval_holds_the_median_and_stays_within_the_rounds(rounds):
    found = median_interval(rounds, seed=1)

    assert found.low is not None
    assert found.high is not None
    assert min(rounds) <= found.low <= found.median <= found.high <= max(rounds)
    assert found == median_interval(rounds, seed=1)


def test_one_round_has_no_interval():
    assert (median_interval([3.0], 1).low, median_interval([3.0], 1).high) == (None, None)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    rounds = np.random.default_rng(7).normal(100, 10, size=(200, 9))

    found = [median_interval(each, 3, draws=500) for each in rounds]
    held = sum((each.low or 0) <= 100 <= (each.high or 0) for each in found)

    assert held >= 0.88 * 200


@given(st.floats(-100, 100), st.floats(-1e4, 1e4))
def test_a_straight_line_has_its_slope_and_no_doubt(rise, start):
    x = np.arange(40)

    found = slope(x, start + rise * x, seed=1)

    assert found.estimate == pytest.approx(rise, abs=1e-6)
    assert found.upper == pytest.approx(rise, abs=1e-6)


@pytest.mark.parametrize("memory", [0.0, 0.7])
def test_the_bound_lies_above_the_true_slope_nineteen_times_in_twenty(memory):
    """Also where neighbouring seconds resemble each other; a bootstrap of single points fails there."""
    draw = np.random.default_rng(11)
    x, held = np.arange(120), 0
    for _ in range(150):
        noise = draw.normal(size=len(x))
        for i in range(1, len(x)):
            noise[i] += memory * noise[i - 1]
        held += slope(x, 0.5 * x + noise, seed=5, draws=300).upper >= 0.5

    assert held >= 0.88 * 150


def test_a_saw_of_the_given_period_is_no_growth_and_no_noise():
    x = np.arange(60)
    saw = 400.0 * (x % 10)

    assert slope(x, saw + 0.5 * x, seed=1, period=10).upper == pytest.approx(0.5)
    assert slope(x, saw + 0.5 * x, seed=1).upper > 2


def test_two_points_are_no_line():
    with pytest.raises(ValueError, match="at least 3 points"):
        slope([0, 1], [0, 1], seed=1)


@pytest.mark.parametrize(
    ("found", "of", "low", "high"),
    [(0, 20, 0.0, 0.1684), (20, 20, 0.8316, 1.0), (5, 10, 0.1871, 0.8129), (950, 1000, 0.9346, 0.9627)],
)
def test_the_bounds_of_a_share_are_those_of_clopper_and_pearson(found, of, low, high):
    assert binomial_bounds(found, of) == pytest.approx((low, high), abs=5e-5)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_questions_asked_by_holm_are_those_that_he_rejects(chances):
    """By its definition: all up to the first that fails its share of alpha."""
    asked = holm(chances, 0.05)
    rejected, failed = set(), False
    for left, which in zip(range(len(chances), 0, -1), np.argsort(chances, kind="stable").tolist(), strict=True):
        failed = failed or chances[which] > 0.05 / left
        rejected |= set() if failed else {which}

    assert {which for which, chance in enumerate(chances) if chance <= asked[which]} == rejected


def test_many_questions_without_an_answer_find_one_no_more_often_than_one_does():
    draws = np.random.default_rng(1)
    found = sum(
        any(chance <= of for chance, of in zip(chances, holm(chances, 0.05), strict=True))
        for chances in draws.random((2000, 4)).tolist()
    )

    assert found / 2000 < 0.065


@pytest.mark.parametrize(
    ("level", "freedom", "wanted"),
    [(0.9, 1, 6.3138), (0.95, 2, 4.3027), (0.99, 3, 5.8409), (0.99, 5, 4.0321), (0.98, 9, 2.8214), (0.95, 30, 2.0423)],
)
def test_students_quantile_is_that_of_the_tables(level, freedom, wanted):
    assert student(level, freedom) == pytest.approx(wanted, abs=5e-5)


@pytest.mark.parametrize(("level", "freedom"), [(0.9, 1), (0.95, 2), (0.99, 5), (0.98, 30)])
def test_a_chance_is_the_share_of_the_tail_above_on_either_side_of_0(level, freedom):
    errors = student(level, freedom)

    assert student_chance(errors, freedom) == pytest.approx((1 - level) / 2)
    assert student_chance(-errors, freedom) == pytest.approx((1 + level) / 2)
    assert student_chance(0.0, freedom) == pytest.approx(1 / 2)
