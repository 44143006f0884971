"""Sentences of ours: how they count."""

from __future__ import annotations

import pytest

from harness.util.texts import many, three_digits, when_of_load


@pytest.mark.parametrize(
    ("count", "words", "told"),
    [
        (0, ("round",), "0 rounds"),
        (1, ("round",), "1 round"),
        (2000, ("round",), "2,000 rounds"),
        (1, ("cell holds", "cells hold"), "1 cell holds"),
        (2, ("cell holds", "cells hold"), "2 cells hold"),
    ],
)
def test_a_noun_is_in_the_number_of_its_count(count, words, told):
    assert many(count, *words) == told


@pytest.mark.parametrize(
    ("at_ms", "said"),
    [
        (-2_000, "2.0 s before the load"),
        (0, "0.0 s into the load"),
        (90_000, "90.0 s into the load"),
        (222_700, "132.7 s after the end of the load"),
    ],
)
def test_a_moment_of_a_load_of_90_s_is_inside_of_it_or_said_to_be_outside(at_ms, said):
    assert when_of_load(at_ms, 90_000) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0000123, "0.0000123"), (0.0, "0"), (12.34, "12.3"), (99.96, "100"), (1080.0, "1,080"), (2.5e7, "25,000,000")],
)
def test_a_figure_has_three_digits_and_no_exponent(value, said):
    assert three_digits(value) == said
