"""Sentences of ours: how they count."""

from __future__ import annotations

import pytest

from harness.texts import many


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
