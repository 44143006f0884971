"""What the trials of a search that was made of many runs say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.experiments.searching.older_search import Answer, Held, Stage, Trial, answer, disturbed

ODD_CLOCK = "the machine's clock was set back by 3.0 s, noticed 9.0 s into the load"


def test_the_ladder_and_the_ramp_decide_nothing():
    trials = [Trial(Stage.RAMP, 1.0, Held.ESTIMATE, "", ""), Trial(Stage.LADDER, 5.0, Held.NO, "", "")]

    assert answer(trials) == Answer(None, None, limited=False)


def growing(rate_per_s: float, slope: float, bound: float, stage: Stage = Stage.BISECT) -> Trial:
    held = Held.YES if bound < 0.01 else Held.OPEN if slope < 0.01 else Held.NO
    return Trial(stage, rate_per_s, held, "", "", slopes={"latency": slope}, bounds={"latency": bound})


def test_a_confirmation_that_is_open_takes_nothing_back_where_both_runs_together_show_it():
    trials = [growing(100.0, -0.026, -0.016), growing(114.0, 0.015, 0.023), growing(100.0, 0.001, 0.013, Stage.CONFIRM)]

    assert answer(trials) == Answer(100.0, 114.0, limited=False)


def test_a_void_certificate_takes_nothing_back():
    held, failed = growing(100.0, -0.01, 0.0), growing(114.0, 0.015, 0.023)
    void = Trial(Stage.CONFIRM, 100.0, Held.LIMITED, "", "")

    assert answer([held, failed, void]) == Answer(100.0, 114.0, limited=True)
    assert answer([void]) == Answer(None, None, limited=True)


@pytest.mark.parametrize("fall", [-0.01, -0.05, -0.5])
def test_however_far_it_fell_in_one_run_that_pays_for_little_growth_in_another(fall):
    assert answer([growing(100.0, fall, fall + 0.01), growing(100.0, 0.009, 0.019)]).held_per_s == 100.0
    assert answer([growing(100.0, fall, fall + 0.01), growing(100.0, 0.009, 0.039)]).held_per_s is None


def test_what_a_slow_machine_left_open_does_not_count():
    trials = [growing(100.0, 0.002, 0.03) for _ in range(2)]
    slow = [replace(trial, load_cpu_s_per_million=4.0) for trial in trials]
    quick = replace(growing(100.0, -0.002, 0.004), load_cpu_s_per_million=3.0)

    assert disturbed([*slow, quick]) == slow
    assert answer([*slow, quick]).held_per_s == 100.0


def test_runs_that_show_no_growth_do_not_outweigh_one_that_does():
    trials = [growing(100.0, -0.03, -0.02), growing(100.0, 0.015, 0.02, Stage.CONFIRM)]

    assert answer(trials) == Answer(None, 100.0, limited=False)


@given(st.floats(-0.01, 0.0099), st.floats(0.0, 0.05), st.integers(1, 3))
def test_runs_together_are_surer_than_one(slope, doubt, count):
    together = answer([growing(100.0, slope, slope + doubt)] * count).held_per_s

    bound = slope + doubt / count**0.5
    assume(abs(bound - 0.01) > 1e-9)
    assert (together is not None) == (bound < 0.01)


def test_a_trial_in_which_the_clock_stepped_says_nothing():
    held, odd = growing(100.0, -0.01, 0.0), Trial(Stage.CONFIRM, 100.0, Held.LIMITED, ODD_CLOCK, "", clock=ODD_CLOCK)

    assert answer([held, odd]) == answer([held])
    assert disturbed([odd, odd, odd]) == [odd, odd], "not for ever"


def test_what_stays_open_has_not_held():
    assert answer([growing(100.0, 0.008, 0.03)] * 3) == Answer(None, 100.0, limited=False)
