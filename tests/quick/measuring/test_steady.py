"""Steady, not steady, or too short to tell: series whose truth is known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measuring import steady
from harness.measuring.steady import advice, find, foretold, warm_up

WINDOW_S = 10.0
OFFERED = 10_000.0


def noise(seed, count, spread):
    return np.random.default_rng(seed).normal(0, spread, count)


def timeline(backlog=None, latency=None, state=None, load_cores=None, count=None, offered=None):
    count = count or len(next(each for each in (backlog, latency, state) if each is not None))

    def column(values):
        return pa.array([None] * count if values is None else values, pa.float64())

    return pa.table(
        {
            "second": pa.array(np.arange(count)),
            "offered_per_s": pa.array(np.full(count, OFFERED) if offered is None else offered),
            "in_flight": column(backlog),
            "latency_p50_ms": column(latency),
            "state_bytes": column(state),
            "cpu_generator": column(load_cores),
        }
    )


def judge(**series):
    table = timeline(**series)
    return find(table, float(table.num_rows), WINDOW_S)


def test_noise_around_constants_is_steady_and_false_alarms_are_rare():
    steady = sum(
        judge(
            backlog=5000 + noise(seed, 180, 2000),
            latency=500 + noise(1000 + seed, 180, 50),
            state=1e6 + noise(2000 + seed, 180, 1e4),
        ).steady
        for seed in range(40)
    )

    assert steady >= 38


@pytest.mark.parametrize(
    ("grows", "series"),
    [
        ("the backlog", {"backlog": np.arange(180) * 0.03 * OFFERED}),
        ("the median latency", {"latency": 500 * (1 + 0.003 * np.arange(180))}),
        ("the state", {"state": 1e6 * (1 + 0.003 * np.arange(180))}),
    ],
)
def test_a_ramp_is_never_steady_and_is_named(grows, series):
    flat = {"backlog": np.zeros(180), "latency": np.full(180, 500.0), "state": np.full(180, 1e6)}
    for seed in range(20):
        noisy = {name: values + noise(seed, 180, 1.0) for name, values in (flat | series).items()}

        found = judge(**noisy)

        assert not found.steady
        assert f"{grows} grew by" in found.sentence
        assert len(found.bounds) == 3
        assert all(found.slopes[name] <= found.bounds[name] for name in found.bounds)


def warmed_up(seed, length):
    values = 1000 + noise(seed, 180, 20)
    values[:length] += np.linspace(20_000, 2000, length)
    return values


@given(st.integers(0, 10_000), st.integers(5, 60))
def test_a_warm_up_is_cut_off_whole(seed, length):
    assert length - 2 <= warm_up(warmed_up(seed, length)) <= 90


def test_what_follows_a_warm_up_is_mostly_kept():
    late = [warm_up(warmed_up(seed, 20)) - 20 for seed in range(60)]

    assert sum(seconds <= 30 for seconds in late) >= 55


def test_a_run_with_a_warm_up_is_steady_after_it():
    backlog = 1000 + noise(1, 180, 20)
    backlog[:30] += 50_000

    found = judge(backlog=backlog)

    assert found.steady
    assert 30 <= found.from_s <= 35
    assert f"after {found.from_s:.0f} s of warm-up" in found.sentence
    assert "too little was seen of the median latency and the state" in found.sentence


def test_too_short_a_load_says_so():
    found = judge(backlog=noise(1, 15, 1))

    assert not found.steady
    assert "20 s are needed to tell" in found.sentence


def test_a_few_noisy_seconds_prove_nothing():
    found = judge(backlog=noise(3, 60, 400_000))

    assert not found.steady
    assert "can't be excluded" in found.sentence


def test_what_fell_is_not_said_to_have_grown():
    found = judge(backlog=noise(3, 60, 400_000) - 3000 * np.arange(60))

    assert not found.steady
    assert "the backlog fell by" in found.sentence
    assert "and growth of" in found.sentence


def test_without_a_backlog_nothing_can_be_said():
    assert "the backlog is not known" in judge(latency=np.full(60, 5.0)).sentence


def test_the_drain_does_not_count():
    table = timeline(backlog=np.concatenate([np.full(60, 100.0), np.arange(60) * 1000.0]))

    assert find(table, 60.0, WINDOW_S).steady


def test_an_empty_backlog_is_a_steady_one():
    assert judge(backlog=np.zeros(60), latency=np.full(60, 3.0)).steady


def test_seconds_without_a_value_are_bridged():
    latency = [None if i % 7 == 0 else 500.0 for i in range(60)]

    assert judge(backlog=np.zeros(60), latency=latency).steady


def saw(seed, floor):
    """A state that grows with each batch and is cleaned every 13 to 19 s, out of step with the windows."""
    dice = np.random.default_rng(seed)
    values: list[float] = []
    while len(values) < len(floor):
        values += list(np.linspace(0, 1.5e6, dice.integers(13, 20)))
    return floor + np.array(values[: len(floor)])


def test_a_state_is_judged_by_what_is_left_after_cleaning():
    flat = np.full(180, 1e6)
    steady = sum(judge(backlog=np.zeros(180), state=saw(seed, flat)).steady for seed in range(20))
    leaking = sum(
        judge(backlog=np.zeros(180), state=saw(seed, flat * np.linspace(1, 2, 180))).steady for seed in range(20)
    )

    assert steady >= 19
    assert leaking == 0


def slow_spells(seed, count=180):
    """How slow a machine is that others use too: 1, and up to a half more for some seconds now and then."""
    dice = np.random.default_rng(seed)
    slowness = np.ones(count)
    for start in dice.integers(0, count, 8):
        slowness[start : start + dice.integers(5, 20)] += dice.uniform(0.2, 0.5)
    slowness[-12:] += 0.4  # a slow end looks like growth
    return slowness


def on(slowness, seed, growth=0.0):
    """What an engine does on such a machine: all of it goes with its speed, beside what may grow."""
    seconds = np.arange(len(slowness))
    return {
        "backlog": OFFERED * slowness + noise(seed, len(slowness), 300),
        "latency": 1000 * (1 + growth * seconds) * slowness + noise(1000 + seed, len(slowness), 40),
    }


def test_a_run_that_was_warmed_up_is_judged_on_all_of_its_load():
    begins_high = {"backlog": warmed_up(3, 40)}

    assert judge(**begins_high).from_s == pytest.approx(40, abs=3)
    table = timeline(**begins_high)
    found = find(table, float(table.num_rows), WINDOW_S, warm_up_s=60)
    assert (found.from_s, found.to_s) == (0, 180)
    assert not found.steady or found.slopes["backlog"] < 0
    flat = timeline(backlog=1000 + noise(4, 180, 20))
    assert "from 0 s to 180 s of the load after 60 s of warm-up: " in find(flat, 180.0, WINDOW_S, 60).sentence
    short = timeline(backlog=np.zeros(10))
    assert "after 60 s of warm-up only 10 s of load are left" in find(short, 10.0, WINDOW_S, 60).sentence


@pytest.mark.parametrize(
    ("warm_up_s", "series", "said"),
    [
        (60, 1000 + noise(5, 180, 20), ""),
        (60, 1000 + 0.03 * OFFERED * np.arange(180) + noise(5, 180, 20), "--rate"),
        (60, 1000 + noise(5, 180, 20) + 200_000 * (np.arange(180) // 20 % 2), "--duration"),
        (60, np.zeros(10), "--duration"),
        (0, np.zeros(10), "`streamgauge run steady`"),
    ],
)
def test_what_is_not_steady_is_told_what_may_show_it(warm_up_s, series, said):
    found = find(timeline(backlog=series), float(len(series)), WINDOW_S, warm_up_s)

    told = advice(found, warm_up_s)

    assert found.steady == (not said)
    assert said in told if said else told == ""


def test_what_a_run_with_a_warm_up_takes_is_said_before():
    said = foretold(45, 140, 10)

    assert said.startswith("Warm-up 45 s, ")
    assert "then 140 s of load, 14 windows, " in said
    assert said.endswith("about 4 minutes.")


def test_a_machine_that_is_slow_at_times_is_told_from_growth_by_what_its_load_costs():
    blind = told = 0
    for seed in range(40):
        slowness = slow_spells(seed)
        blind += judge(**on(slowness, seed)).steady
        told += judge(**on(slowness, seed), load_cores=0.3 * slowness + noise(seed, 180, 0.01)).steady

    assert told >= 36
    assert blind <= 20


@pytest.mark.parametrize("trend", [0.0, 0.0005])
def test_growth_is_found_on_such_a_machine_too_and_also_beside_a_load_that_gets_dearer(trend):
    for seed in range(20):
        slowness = slow_spells(seed)
        cores = 0.3 * (slowness + trend * np.arange(180)) + noise(seed, 180, 0.01)

        found = judge(**on(slowness, seed, growth=0.003), load_cores=cores)

        assert not found.steady
        assert "the median latency grew by" in found.sentence
        assert "apart from what follows the machine's own speed" in found.sentence


def test_what_slices_cost_while_the_rate_rises_is_no_slow_machine():
    """A cold engine and dear events come together there, and must not be taken for each other."""
    for seed in range(20):
        offered = OFFERED * np.minimum(1, np.linspace(0.1, 8.1, 180))  # 20 s to its value
        slowness = slow_spells(seed)
        cores = 0.1 * slowness + 0.2 * slowness * offered / OFFERED + noise(seed, 180, 0.005)
        series = on(slowness, seed)
        series["latency"][:25] += np.linspace(5000, 500, 25)

        found = judge(**series, load_cores=cores, offered=offered)

        assert found.from_s >= 20


def test_a_load_whose_cost_has_nothing_to_do_with_it_explains_nothing():
    """Neither growth near the limit nor its doubt changes much."""
    for seed in range(20):
        latency = 500 * (1 + 0.0015 * np.arange(180)) + noise(seed, 180, 10)
        wander = np.convolve(noise(500 + seed, 200, 0.05), np.ones(21) / 4.6, mode="valid")
        series = {"backlog": noise(seed, 180, 300), "latency": latency}

        alone, beside = judge(**series), judge(**series, load_cores=0.3 + wander)

        assert not beside.steady
        assert beside.slopes["latency"] == pytest.approx(alone.slopes["latency"], abs=0.003)


def test_latency_that_grows_with_the_load_s_own_cost_can_t_be_told_and_is_not_called_steady_where_they_part():
    for seed in range(20):
        trend = 1 + 0.003 * np.arange(180)
        latency = 500 * trend + noise(seed, 180, 25)
        cores = 0.3 * trend + noise(500 + seed, 180, 0.03)

        assert not judge(backlog=noise(seed, 180, 300), latency=latency, load_cores=cores).steady


def test_a_state_that_is_written_down_seldom_is_not_judged():
    """Real-Time Mode commits with its trigger: with 60 s, a folder that grows at two moments of the load."""
    steps = np.repeat([628.0, 75036.0, 171912.0], 60)
    found = judge(backlog=np.zeros(180), latency=np.full(180, 500.0), state=steps)
    assert found.steady
    assert "too little was seen of the state" in found.sentence


def test_a_load_of_just_the_seconds_that_are_needed_is_judged():
    assert "are needed to tell" not in judge(backlog=np.zeros(20)).sentence
    assert "only 19 s of load are left, and 20 s are needed" in judge(backlog=np.zeros(19)).sentence


def test_a_short_run_is_said_to_take_two_minutes():
    assert foretold(10, 20, 10).endswith("about 2 minutes.")


def test_what_did_not_change_at_all_is_said_to_have_grown_by_nothing():
    assert "the backlog grew by 0.0%" in steady._complaint(steady._Bound("backlog", 0.0, 0.02))


def test_a_load_that_pauses_for_half_of_its_time_still_shows_how_slow_the_machine_was():
    def known(pause_s):
        offered = np.where(np.arange(180) < pause_s, 0.0, OFFERED)
        table = timeline(load_cores=np.ones(180), count=180, offered=offered)
        return steady._slowness(table, np.ones(180, dtype=np.bool_))

    assert known(90) is not None
    assert known(91) is None
