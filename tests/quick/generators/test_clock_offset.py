"""The clock of another machine, by exchanges of messages: the stated error holds, however unequal the two ways are."""

from __future__ import annotations

import random

import pytest

from generators.clock_offset import EXCHANGES, Exchange, Offset, error_ns, of

MS = 1_000_000


def exchanges(ahead_ns: int, there: tuple[int, int], back: tuple[int, int], seed: int) -> list[Exchange]:
    """Exchanges over a road that takes so long in each direction, in milliseconds, from and to."""
    draw, now_ns, found = random.Random(seed), 5 * MS, []
    for _ in range(EXCHANGES):
        there_ns, back_ns = draw.randint(*there) * MS, draw.randint(*back) * MS
        found.append(Exchange(now_ns, now_ns + there_ns + ahead_ns, now_ns + there_ns + back_ns))
        now_ns += there_ns + back_ns + 10 * MS
    return found


@pytest.mark.parametrize("ahead_ns", [0, 100_000 * 1000 * MS, -7 * MS])
@pytest.mark.parametrize(("there", "back"), [((1, 9), (1, 9)), ((10, 40), (2, 3)), ((0, 1), (20, 90))])
def test_the_offset_is_wrong_by_at_most_half_of_the_smallest_round_trip(ahead_ns, there, back):
    for seed in range(20):
        made = exchanges(ahead_ns, there, back, seed)
        found = of(made)
        assert abs(found.ahead_ns - ahead_ns) <= found.error_ns
        assert found.error_ns == min(each.end_ns - each.begin_ns for each in made) // 2


def test_one_quick_answer_among_slow_ones_decides():
    assert of([Exchange(0, 500, 1000), Exchange(2000, 2110, 2200), Exchange(3000, 3900, 9000)]) == Offset(10, 100)


def test_an_odd_round_trip_is_rounded_up():
    assert of([Exchange(0, 0, 3)]).error_ns == 2


def test_a_clock_that_drifts_is_as_wrong_as_it_went_away_meanwhile():
    assert error_ns(Offset(1000, 50), Offset(1000, 80)) == 80
    assert error_ns(Offset(1000, 50), Offset(900, 80)) == 180
    assert error_ns(Offset(1000, 500), Offset(1010, 80)) == 500
