"""A ratio over several starts: as wide as starts differ, and one odd start has no say."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from harness.measuring import ratio_by_start


def starts(draws, count=6, apart=0.015, noise=0.008, by=0.0):
    return [list(by + apart * draws.standard_normal() + noise * draws.standard_normal(6)) for _ in range(count)]


@pytest.mark.parametrize("count", [3, 6, 10])
def test_the_truth_lies_within_as_often_as_it_says(count):
    """A bootstrap alone held it in 80 of 100 intervals of six starts."""
    draws = np.random.default_rng(count)
    held = 0
    for seed in range(400):
        seen = ratio_by_start.ratio(starts(draws, count, by=0.03), seed)
        ratio = ratio_by_start.within(seen.estimate, seen.error, count, 0.95)
        held += ratio.low <= exp(0.03) <= ratio.high

    assert 0.94 <= held / 400 <= 1.0


def test_rounds_do_not_make_it_surer_of_starts():
    """Three starts of ten thousand rounds tell as little as three of ten."""
    few, many = ([list(np.full(rounds, value)) for value in (0.02, -0.02, 0.0)] for rounds in (10, 10_000))

    assert ratio_by_start.ratio(few, 1).error == pytest.approx(ratio_by_start.ratio(many, 1).error, rel=0.1)
    assert ratio_by_start.ratio(few, 1).error == pytest.approx(0.02 / np.sqrt(3), rel=0.15)


@pytest.mark.parametrize(
    ("seen", "aside"),
    [
        ([0.0, 0.01, -0.01, 0.0, 0.3], 4),
        ([0.0, 0.01, -0.01, -0.13, 0.005], 3),
        ([0.0, 0.01, -0.01, 0.0, 0.04], None),  # a few percent are no layout of memory
        ([0.0, 0.01, 0.3, -0.01], None),  # by three others nobody is known
        ([0.0, 0.3, 0.0, 0.3, 0.0, 0.3], None),
        ([0.1, -0.1, 0.2, -0.2, 0.4], None),  # all of them are far apart
    ],
)
def test_one_odd_start_has_no_say(seen, aside):
    told = ratio_by_start.ratio([[value] * 6 for value in seen], 1)

    assert told.aside == aside
    assert told.starts == pytest.approx([exp(value) for value in seen])
    have_a_say = [value for place, value in enumerate(seen) if place != aside]
    assert log(told.estimate) == pytest.approx(np.mean(have_a_say))


def test_one_lone_round_of_a_start_moves_nothing():
    plain = [[0.0, 0.0, 0.0, 0.0, 0.0, 0.5] for _ in range(6)]

    assert ratio_by_start.ratio(plain, 1).estimate == 1.0


def test_one_start_tells_no_ratio():
    with pytest.raises(ValueError, match="2 starts or more, not 1"):
        ratio_by_start.ratio([[0.1, 0.2]], 1)


def test_a_ratio_is_that_of_two_starts_or_more():
    assert ratio_by_start.ratio([[0.1] * 6, [0.3] * 6], 1).estimate == pytest.approx(exp(0.2))
    with pytest.raises(ValueError, match="a ratio needs 2 starts or more, not 1"):
        ratio_by_start.ratio([[0.1] * 6], 1)
