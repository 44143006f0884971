"""The law of scaling: it finds curves that are known, and where it has no answer it gives none.

tests/quality/test_scaling_law.py tries its intervals on 1,000 curves."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from harness.experiments.scaling_law import error_of_a_run, fit, mean_of, ratio_of

CURVES = 1000
ROUNDING = 1e-9


def curve(one, contention, coherency):
    return lambda cores: one * cores / (1 + contention * (cores - 1) + coherency * cores * (cores - 1))


def law_of(rates):
    law = fit(rates)
    assert law is not None
    return law


def measured(truth, cores, rounds, noise, draws):
    return {n: [truth(n) * exp(noise * draws.standard_normal()) for _ in range(rounds)] for n in cores}


def holds(estimate, true):
    return estimate.low * (1 - ROUNDING) - ROUNDING <= true <= estimate.high * (1 + ROUNDING) + ROUNDING


def test_a_curve_without_noise_is_found_exactly():
    truth = curve(50_000, 0.08, 0.003)

    law = law_of({n: [truth(n), truth(n)] for n in (1, 2, 4, 8)})

    assert (law.contention.value, law.coherency.value) == pytest.approx((0.08, 0.003), rel=1e-3)
    assert [law.at(n).value for n in (1, 5, 16)] == pytest.approx([truth(n) for n in (1, 5, 16)], rel=1e-3)
    assert law.peak == pytest.approx((0.92 / 0.003) ** 0.5, rel=1e-3)


def test_perfect_scaling_has_no_peak():
    law = law_of({n: [n * 1000.0, n * 1000.0] for n in (1, 2, 4)})

    assert (law.contention.value, law.coherency.value, law.peak) == (0, 0, None)


def test_few_numbers_of_cores_say_little_about_many():
    """As docs/measure/scale.md says it of two cores."""
    draws = np.random.default_rng(3)
    truth = curve(100_000, 0.05, 0.002)
    near = law_of(measured(truth, (1, 2, 3), 3, 0.05, draws))
    far = law_of(measured(truth, (1, 2, 4, 6, 8), 3, 0.05, draws))

    assert near.at(8).is_wide
    assert not far.at(8).is_wide
    assert not far.at(16).is_wide


@pytest.mark.parametrize("rates", [{1: [9.0] * 5, 2: [17.0] * 5}, {1: [9.0], 2: [17.0], 4: [30.0]}, {}])
def test_without_three_numbers_of_cores_and_four_runs_there_is_no_law(rates):
    assert fit(rates) is None


def test_few_runs_of_each_share_one_spread():
    """The interval of a ratio holds the truth, too."""
    draws, held = np.random.default_rng(5), 0
    for _ in range(CURVES):
        one, two = ([each * exp(0.1 * draws.standard_normal()) for _ in range(3)] for each in (100.0, 180.0))
        error = error_of_a_run([one, two])
        held += holds(ratio_of(two, one, error), 1.8) and holds(mean_of(one, error), 100)

    assert held > 0.9 * CURVES  # of two intervals at 95 % at once
    assert error_of_a_run([[1.0], [2.0]]) is None
    assert mean_of([4.0], None).low is None
    assert ratio_of([4.0], [2.0], None).is_wide
