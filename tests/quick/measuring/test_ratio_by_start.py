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
    draws = np.random.default_rng(count)
    held = 0
    for _ in range(400):
        ratio = ratio_by_start.ratio(starts(draws, count, by=0.03)).within(0.95)
        held += ratio.low <= exp(0.03) <= ratio.high

    assert 0.92 <= held / 400 <= 0.98


@pytest.mark.parametrize("count", [3, 5])
def test_of_three_sides_the_truth_lies_within_as_often_as_it_says_and_the_interval_is_narrower(count):
    """Rounds of one side are odd by a tenth, and whole rounds by a half."""
    draws = np.random.default_rng(count)
    held, widths, widths_of_two = 0, [], []
    for _ in range(200):
        made = [start_of_three(draws, by=0.05) for _ in range(count)]
        head, itself = (each.within(0.95) for each in ratio_by_start.compare(made, HEAD_AND_CONTROL))
        held += (head.low <= exp(0.05) <= head.high) + (itself.low <= 1 <= itself.high)
        widths.append(log(head.high / head.low))
        alone = ratio_by_start.ratio([list(each[1] - (each[0] + each[2]) / 2) for each in made]).within(0.95)
        widths_of_two.append(log(alone.high / alone.low))

    assert 0.92 <= held / 400 <= 0.98
    assert np.mean(widths) < np.mean(widths_of_two)


HEAD_AND_CONTROL = [(-0.5, 1.0, -0.5), (-1.0, 0.0, 1.0)]


def start_of_three(draws, by, noise=0.008):
    machine = 0.4 * draws.random(6)
    own = 0.015 * draws.standard_normal(3) + [0.0, by, 0.0]
    made = machine + own[:, None] + noise * draws.standard_normal((3, 6))
    made[draws.integers(3), draws.integers(6)] += 0.1
    return made


def test_an_odd_round_of_one_side_and_a_slow_round_of_all_change_nothing():
    plain = [np.array([[0.3, 0.1, 0.0]] * 3) for _ in range(4)]
    odd = [each.copy() for each in plain]
    odd[0][1, 2] += 0.6
    odd[2][:, 1] += 0.5

    for one, other in zip(*(ratio_by_start.compare(each, HEAD_AND_CONTROL) for each in (odd, plain)), strict=True):
        assert (one.estimate, one.error, one.starts) == (other.estimate, other.error, other.starts)


def test_a_side_that_is_far_more_restless_is_judged_by_itself():
    draws = np.random.default_rng(4)
    made = [start_of_three(draws, by=0.0) for _ in range(8)]
    for each in made[::2]:
        each[1] += 1.0
    head, control = ratio_by_start.compare(made, HEAD_AND_CONTROL)

    assert (head.freedom, control.freedom) == (7, 14)


def test_a_start_that_is_odd_for_one_comparison_is_left_out_of_all():
    draws = np.random.default_rng(2)
    made = [start_of_three(draws, by=0.0) for _ in range(6)]
    made[3][2] += 0.2  # the base once more, which the head is compared with only by half
    head, control = ratio_by_start.compare(made, HEAD_AND_CONTROL)

    assert (head.aside, control.aside) == (3, 3)
    assert (head.counted, head.freedom) == (5, 8)


def test_more_rounds_do_not_hide_how_far_starts_are_apart():
    """Three starts of ten thousand rounds tell as little as three of ten."""
    few, many = ([list(np.full(rounds, value)) for value in (0.02, -0.02, 0.0)] for rounds in (10, 10_000))

    assert ratio_by_start.ratio(few).error == pytest.approx(ratio_by_start.ratio(many).error)
    assert ratio_by_start.ratio(few).error == pytest.approx(0.02 / np.sqrt(3))


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
    told = ratio_by_start.ratio([[value] * 6 for value in seen])

    assert told.aside == aside
    assert told.starts == pytest.approx([exp(value) for value in seen])
    have_a_say = [value for place, value in enumerate(seen) if place != aside]
    assert log(told.estimate) == pytest.approx(np.mean(have_a_say))


def test_one_lone_round_of_a_start_moves_nothing():
    plain = [[0.0, 0.0, 0.0, 0.0, 0.0, 0.5] for _ in range(6)]

    assert ratio_by_start.ratio(plain).estimate == 1.0


def test_one_start_tells_no_ratio():
    with pytest.raises(ValueError, match="2 starts or more, not 1"):
        ratio_by_start.ratio([[0.1, 0.2]])


def test_a_ratio_is_that_of_two_starts_or_more():
    assert ratio_by_start.ratio([[0.1] * 6, [0.3] * 6]).estimate == pytest.approx(exp(0.2))
    with pytest.raises(ValueError, match="a ratio needs 2 starts or more, not 1"):
        ratio_by_start.ratio([[0.1] * 6])


def test_an_outlier_of_what_hardly_varies_is_nearer():
    seen = [0.0, 0.0002, 0.0001, 0.02, 0.0001]

    assert ratio_by_start.outlier(seen, far=0.005) == 3
    assert ratio_by_start.outlier(seen) is None
