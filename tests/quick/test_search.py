"""The search for a sustainable rate, on engines whose limit is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness import plan
from harness.engines import fake
from harness.experiments.search import (
    QUICK,
    SPOILED_AT_MOST,
    Answer,
    Held,
    Settings,
    Stage,
    Step,
    Trial,
    answer,
    disturbed,
    estimate_per_s,
    judge_trial,
    next_step,
    remaining_s,
    search,
    spec_of,
)
from harness.measuring.measurement import Latency, Measurement, Quantiles, Steady
from harness.measuring.processed import Curve
from harness.model import Certificate, Outcome, Segment

VALID = Certificate(True, (), 1, 1, 1, 1, {}, 100.0)

ODD_CLOCK = "the machine's clock was set back by 3.0 s, noticed 9.0 s into the load"


def engine(
    limit_per_s: float, generator_per_s: float = float("inf"), estimate_error: float = 1.0
) -> Callable[[Step], Trial]:
    def run_trial(step: Step) -> Trial:
        if step.stage is Stage.RAMP:
            most_per_s = limit_per_s / QUICK.first_share
            return Trial(step.stage, most_per_s * estimate_error, Held.ESTIMATE, "", "", seconds=100.0)
        held = Held.LIMITED if step.rate_per_s > generator_per_s else Held.YES
        if step.rate_per_s > limit_per_s:
            held = Held.NO
        return Trial(step.stage, step.rate_per_s, held, "", "", seconds=60.0)

    return run_trial


def found(limit, settings=QUICK, generator=float("inf")):
    return search([], settings, engine(limit, generator), lambda _: None)


@given(st.floats(2_000, 3_000_000), st.floats(0.1, 10))
def test_the_interval_holds_the_limit_and_is_narrow(limit, error):
    settings = replace(QUICK, most_trials=100)
    trials = search([], settings, engine(limit, estimate_error=error), lambda _: None)
    interval = answer(trials)

    assert interval.held_per_s is not None
    assert interval.failed_per_s is not None
    assert interval.held_per_s <= limit < interval.failed_per_s
    assert interval.failed_per_s / interval.held_per_s <= 1.15
    assert interval.outcome is Outcome.PASS


@given(st.floats(1_000, 1_000_000), st.floats(0.89, 1.12))
def test_a_near_estimate_leaves_three_trials_and_the_ladder(limit, error):
    trials = search([], QUICK, engine(limit, estimate_error=error), lambda _: None)

    held_per_s = answer(trials).held_per_s
    assert held_per_s
    assert [t.stage for t in trials][:4] == [Stage.RAMP, Stage.BISECT, Stage.BISECT, Stage.CONFIRM]
    assert [round(t.rate_per_s / held_per_s, 1) for t in trials[4:]] == list(QUICK.ladder)


def test_no_rung_is_begun_that_would_end_after_the_time():
    slow = replace(QUICK, most_s=100.0 + 3 * 60.0 + 140.0)
    trials = search([], slow, engine(50_000, estimate_error=0.95), lambda _: None)

    assert sum(t.stage is Stage.LADDER for t in trials) == 1


def test_the_ladder_and_the_ramp_decide_nothing():
    trials = [Trial(Stage.RAMP, 1.0, Held.ESTIMATE, "", ""), Trial(Stage.LADDER, 5.0, Held.NO, "", "")]

    assert answer(trials) == Answer(None, None, limited=False)


def test_the_ladder_has_its_rungs_as_often_as_rounds():
    settings = Settings(rounds=3, most_trials=100)
    trials = found(50_000, settings)

    rungs = [t.rate_per_s for t in trials if t.stage is Stage.LADDER]
    assert len(rungs) == 33
    assert rungs[:11] == rungs[11:22] == rungs[22:]


def test_a_generator_that_is_the_limit_gives_at_least():
    trials = search([], QUICK, engine(10_000_000, 100_000, estimate_error=0.012), lambda _: None)
    interval = answer(trials)

    assert interval.failed_per_s is None
    assert interval.limited
    assert interval.held_per_s == pytest.approx(100_000, rel=0.2)
    assert interval.outcome is Outcome.UNKNOWN
    assert "at least" in interval.sentence


def test_nothing_holds():
    def run_trial(step: Step) -> Trial:
        held = Held.ESTIMATE if step.stage is Stage.RAMP else Held.NO
        return Trial(step.stage, 1000.0 if step.stage is Stage.RAMP else step.rate_per_s, held, "", "")

    interval = answer(search([], QUICK, run_trial, lambda _: None))

    assert interval == Answer(None, interval.failed_per_s, limited=False)
    assert interval.outcome is Outcome.UNKNOWN


def test_a_confirming_run_that_fails_moves_the_interval_down():
    flaky = iter([Held.NO])

    def run_trial(step: Step) -> Trial:
        trial = engine(100_000)(step)
        return replace(trial, held=next(flaky, Held.YES)) if step.stage is Stage.CONFIRM else trial

    settings = replace(QUICK, most_trials=100)
    trials = search([], settings, run_trial, lambda _: None)
    confirmed = [t for t in trials if t.stage is Stage.CONFIRM]

    assert [t.held for t in confirmed] == [Held.NO, Held.YES]
    assert answer(trials).held_per_s == confirmed[1].rate_per_s
    assert answer(trials).failed_per_s == confirmed[0].rate_per_s


def on_a_machine_with_moods(limit_per_s, moods):
    """A slow machine takes a third more CPU for the same load, and its engine only does two thirds."""
    times = iter(moods)

    def run_trial(step: Step) -> Trial:
        slow = step.stage is not Stage.RAMP and next(times, False)
        trial = engine(limit_per_s * 0.67 if slow else limit_per_s)(step)
        return replace(trial, load_cpu_s_per_million=4.0 if slow else 3.0)

    return run_trial


@given(
    st.floats(5_000, 500_000), st.lists(st.booleans(), max_size=4).filter(lambda moods: sum(moods) <= SPOILED_AT_MOST)
)
def test_what_a_slow_machine_spoiled_is_tried_again(limit, moods):
    moods = [False, *moods]  # some trial was undisturbed, or nobody could know
    trials = search([], replace(QUICK, most_trials=100), on_a_machine_with_moods(limit, moods), lambda _: None)
    interval = answer(trials)

    assert interval.held_per_s is not None
    assert interval.failed_per_s is not None
    assert interval.held_per_s <= limit < interval.failed_per_s
    assert all(trial.load_cpu_s_per_million == 4.0 for trial in disturbed(trials))


def test_a_machine_that_stays_slow_is_the_machine():
    trials = search([], QUICK, on_a_machine_with_moods(100_000, [False] + [True] * 20), lambda _: None)

    assert answer(trials).failed_per_s is not None
    assert max(sum(t.rate_per_s == rate for t in disturbed(trials)) for rate in {t.rate_per_s for t in trials}) <= 2


def test_a_confirmation_that_fails_leads_to_the_next_lower_rate():
    held, failed = (Trial(Stage.BISECT, rate, said, "", "") for rate, said in ((100.0, Held.YES), (114.0, Held.NO)))
    ramp = Trial(Stage.RAMP, 180.0, Held.ESTIMATE, "", "")
    step = next_step([ramp, held, failed, Trial(Stage.CONFIRM, 100.0, Held.NO, "", "")], QUICK)

    assert step == Step(Stage.BISECT, 87.5)


def growing(rate_per_s: float, slope: float, bound: float, stage: Stage = Stage.BISECT) -> Trial:
    held = Held.YES if bound < 0.01 else Held.OPEN if slope < 0.01 else Held.NO
    return Trial(stage, rate_per_s, held, "", "", slopes={"latency": slope}, bounds={"latency": bound})


def test_what_is_open_is_tried_again_and_settled_by_all_runs_of_its_rate():
    ramp, open_ = Trial(Stage.RAMP, 180.0, Held.ESTIMATE, "", ""), growing(100.0, 0.002, 0.013)

    assert answer([ramp, open_]) == Answer(None, None, limited=False)
    assert next_step([ramp, open_], QUICK) == Step(Stage.CONFIRM, 100.0)
    shown = [ramp, open_, growing(100.0, -0.004, 0.008, Stage.CONFIRM)]
    assert answer(shown).held_per_s == 100.0
    assert next_step(shown, QUICK) == Step(Stage.BISECT, 114.0)


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


def test_a_trial_in_which_the_clock_stepped_says_nothing_and_is_made_again():
    held, odd = growing(100.0, -0.01, 0.0), Trial(Stage.CONFIRM, 100.0, Held.LIMITED, ODD_CLOCK, "", clock=ODD_CLOCK)
    ramp = Trial(Stage.RAMP, 200.0, Held.ESTIMATE, "", "")

    assert answer([ramp, held, odd]) == answer([ramp, held])
    assert next_step([ramp, held, odd], QUICK) == next_step([ramp, held], QUICK)
    assert disturbed([odd, odd, odd]) == [odd, odd], "not for ever"


def test_a_wrong_count_fails_a_rate_whatever_the_clock_did():
    assert judge_trial(Outcome.PASS, VALID, None, 10_000, ODD_CLOCK) == (Held.LIMITED, ODD_CLOCK)
    assert judge_trial(Outcome.FAIL, VALID, None, 10_000, ODD_CLOCK)[0] is Held.NO


def noisy(limit_per_s, seed):
    """Growth sets in at the limit, and is seen through noise."""
    dice = np.random.default_rng(seed)

    def run_trial(step: Step) -> Trial:
        if step.stage is Stage.RAMP:
            return engine(limit_per_s)(step)
        slope = 0.05 * (step.rate_per_s / limit_per_s - 1) + dice.normal(0, 0.004)
        return growing(step.rate_per_s, slope, slope + 0.0066, step.stage)

    return run_trial


@given(st.floats(5_000, 500_000), st.integers(0, 10_000))
def test_a_search_through_noise_ends_and_each_step_follows_from_the_trials(limit, seed):
    settings = replace(QUICK, most_trials=200)
    trials = search([], settings, noisy(limit, seed), lambda _: None)
    tried = [trial for trial in trials if trial.stage in (Stage.BISECT, Stage.CONFIRM)]

    assert len(trials) < 60
    assert max(sum(each.rate_per_s == trial.rate_per_s for each in tried) for trial in tried) <= 5
    assert next_step(trials, settings) is None
    known = [next_step(trials[: n + 1], settings) for n in range(len(trials) - 1)]
    assert known == [Step(trial.stage, trial.rate_per_s) for trial in trials[1:]]


def test_what_stays_open_has_not_held():
    ramp = Trial(Stage.RAMP, 180.0, Held.ESTIMATE, "", "")
    trials = [ramp, *(growing(100.0, 0.008, 0.03) for _ in range(3))]

    assert next_step(trials[:3], QUICK) == Step(Stage.CONFIRM, 100.0)
    assert answer(trials) == Answer(None, 100.0, limited=False)
    assert next_step(trials, QUICK) == Step(Stage.BISECT, 87.5)


def test_runs_that_show_no_growth_do_not_outweigh_one_that_does():
    trials = [growing(100.0, -0.03, -0.02), growing(100.0, 0.015, 0.02, Stage.CONFIRM)]

    assert answer(trials) == Answer(None, 100.0, limited=False)


@given(st.floats(-0.01, 0.0099), st.floats(0.0, 0.05), st.integers(1, 3))
def test_runs_together_are_surer_than_one(slope, doubt, count):
    together = answer([growing(100.0, slope, slope + doubt)] * count).held_per_s

    bound = slope + doubt / count**0.5
    assume(abs(bound - 0.01) > 1e-9)
    assert (together is not None) == (bound < 0.01)


@given(st.floats(5_000, 500_000), st.integers(0, 12))
def test_a_search_that_was_broken_off_goes_on_where_it_was(limit, cut):
    whole = found(limit)
    resumed = search(whole[:cut], QUICK, engine(limit), lambda _: None)

    assert resumed == whole


def test_the_rest_is_foretold():
    trials = found(50_000)

    assert remaining_s([], QUICK) > 0
    assert remaining_s(trials, QUICK) == 0
    assert remaining_s(trials[:3], QUICK) > remaining_s(trials[:5], QUICK) > 0
    assert next_step(trials, QUICK) is None


def measured(steady=True, p99=100.0, slope=0.02):
    quantiles = Quantiles(1000, 0, 50.0, 50.0, 90.0, p99, 200.0, 300.0)
    latency = Latency("probes", quantiles, None, "exact")
    return Measurement(
        1,
        1.0,
        1.0,
        None,
        1.0,
        1.0,
        1.0,
        (latency,),
        0.0,
        0.0,
        (),
        None,
        None,
        Steady(steady, 0, 1, "rising", {"latency": 0.03}, {"latency": 0.01}, {"latency": slope}),
        None,
    )


@pytest.mark.parametrize(
    ("outcome", "certificate", "measurement", "held"),
    [
        (Outcome.PASS, VALID, measured(), Held.YES),
        (Outcome.FAIL, VALID, measured(), Held.NO),
        (Outcome.UNKNOWN, VALID, measured(), Held.NO),
        (Outcome.PASS, replace(VALID, valid=False, reasons=("slow",)), None, Held.LIMITED),
        (Outcome.FAIL, replace(VALID, valid=False, lag_ms={"p99.9": 500.0}), None, Held.LIMITED),
        (Outcome.FAIL, replace(VALID, valid=False, lag_ms={"p99.9": 5.0}), None, Held.NO),
        (Outcome.PASS, VALID, measured(steady=False), Held.NO),
        (Outcome.PASS, VALID, measured(steady=False, slope=0.002), Held.OPEN),
        (Outcome.PASS, VALID, measured(steady=False, slope=0.002, p99=10_001), Held.NO),
        (Outcome.FAIL, VALID, measured(steady=False, slope=0.002), Held.NO),
        (Outcome.PASS, VALID, measured(p99=10_001), Held.NO),
        (Outcome.PASS, VALID, measured(p99=None), Held.NO),
        (Outcome.PASS, VALID, None, Held.NO),
    ],
)
def test_a_rate_holds_only_with_everything_in_order(outcome, certificate, measurement, held):
    assert judge_trial(outcome, certificate, measurement, 10_000)[0] is held


def test_a_ramp_climbs_geometrically_and_is_given_up_sooner():
    base = plan.resolve("test", {"engine": "fake"}, {}, lambda *_: fake.MANIFEST)[0]
    ramp = spec_of(base, Step(Stage.RAMP, 20_000), QUICK)
    trial = spec_of(base, Step(Stage.BISECT, 60_000), QUICK)

    warm_up, *steps = ramp.tape.profile
    rates = [segment.start_per_s for segment in steps]
    assert (warm_up, rates[0]) == (Segment(45_000, 2_000, 20_000), 20_000)
    assert all(later == pytest.approx(QUICK.ramp_factor * earlier) for earlier, later in pairwise(rates))
    assert ramp.give_up_ms == 10_000
    assert (trial.give_up_ms, trial.tape.profile) == (
        20_000,
        (Segment(20_000, 6_000, 60_000), Segment(120_000, 60_000, 60_000)),
    )


def test_the_estimate_is_what_was_done_while_it_was_behind():
    at_s = np.arange(0.0, 61.0)
    processed = Curve(at_s, np.where(at_s < 40, 20_000 * at_s, 800_000 + 50_000 * (at_s - 40)), np.ones(61))

    assert estimate_per_s(processed, 60.0, QUICK) == pytest.approx(50_000)
    assert estimate_per_s(processed, None, QUICK) == QUICK.start_per_s * QUICK.ramp_factor ** (QUICK.ramp_steps - 1)
    assert estimate_per_s(None, 60.0, QUICK) is None
