"""When a series is back in its band, and for how long it has to stay there."""

from __future__ import annotations

import numpy as np
import pytest

from harness.measuring.settling import band, settled

VALUES = np.array([1.0, 9.0, 1.0, 1.0, np.nan, 1.0, 1.0, 1.0, 9.0])


@pytest.mark.parametrize(
    ("hold", "start", "index"),
    [(1, 0, 0), (2, 0, 2), (3, 0, 5), (1, 1, 2), (2, 3, 5), (1, 7, 7), (2, 7, None), (4, 0, None), (1, 9, None)],
)
def test_a_figure_is_back_at_the_first_value_of_a_run_within_the_band(hold, start, index):
    assert settled(VALUES, 2.0, hold, start) == index


def test_of_values_that_are_all_unknown_there_is_no_band():
    assert np.isnan(band(np.full(5, np.nan)))
