"""The search for a sustainable rate, on engines whose limit is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.experiments.search import (
    QUICK,
    Answer,
    Held,
    Settings,
    Stage,
    Step,
    Trial,
    answer,
    judge_trial,
    next_step,
    remaining_s,
    search,
)
from harness.measurement import Latency, Measurement, Quantiles, Steady
from harness.model import Certificate, Outcome

VALID = Certificate(True, (), 1, 1, 1, 1, {}, 100.0)


def engine(limit_per_s: float, generator_per_s: float = float("inf")) -> Callable[[Step], Trial]:
    def run_trial(step: Step) -> Trial:
        held = Held.LIMITED if step.rate_per_s > generator_per_s else Held.YES
        if step.rate_per_s > limit_per_s:
            held = Held.NO
        return Trial(step.stage, step.rate_per_s, held, "", "", seconds=60.0)

    return run_trial


def found(limit, settings=QUICK, generator=float("inf")):
    return search([], settings, engine(limit, generator), lambda _: None)


@given(st.floats(2_000, 3_000_000))
def test_the_interval_holds_the_limit_and_is_narrow(limit):
    settings = replace(QUICK, most_trials=100)
    trials = found(limit, settings)
    interval = answer(trials)

    assert interval.held_per_s is not None
    assert interval.failed_per_s is not None
    assert interval.held_per_s <= limit < interval.failed_per_s
    assert interval.failed_per_s / interval.held_per_s <= 1.15
    assert interval.outcome is Outcome.PASS


@given(st.floats(15_000, 300_000))
def test_a_quick_search_keeps_within_its_trials(limit):
    trials = found(limit)

    assert len(trials) <= QUICK.most_trials
    assert any(t.stage is Stage.CONFIRM for t in trials)
    assert {round(t.rate_per_s / answer(trials).held_per_s, 1) for t in trials if t.stage is Stage.LADDER} >= {0.1, 0.5}


def test_the_ladder_has_its_rungs_as_often_as_rounds():
    settings = Settings(rounds=3, most_trials=100)
    trials = found(50_000, settings)

    rungs = [t.rate_per_s for t in trials if t.stage is Stage.LADDER]
    assert len(rungs) == 33
    assert rungs[:11] == rungs[11:22] == rungs[22:]


def test_a_generator_that_is_the_limit_gives_at_least():
    trials = found(10_000_000, generator=100_000)
    interval = answer(trials)

    assert interval.failed_per_s is None
    assert interval.limited
    assert interval.held_per_s == pytest.approx(100_000, rel=0.2)
    assert interval.outcome is Outcome.UNKNOWN
    assert "at least" in interval.sentence


def test_nothing_holds():
    interval = answer(found(1))

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


@given(st.floats(5_000, 500_000), st.integers(0, 12))
def test_a_search_that_was_broken_off_goes_on_where_it_was(limit, cut):
    whole = found(limit)
    resumed = search(whole[:cut], QUICK, engine(limit), lambda _: None)

    assert resumed == whole


def test_the_rest_is_foretold():
    trials = found(50_000)

    assert remaining_s([], QUICK) > 0
    assert remaining_s(trials, QUICK) == 0
    assert next_step(trials, QUICK) is None


def measured(steady=True, p99=100.0):
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
        Steady(steady, 0, 1, "rising", {}, {}),
        None,
    )


@pytest.mark.parametrize(
    ("outcome", "certificate", "measurement", "held"),
    [
        (Outcome.PASS, VALID, measured(), Held.YES),
        (Outcome.FAIL, VALID, measured(), Held.NO),
        (Outcome.UNKNOWN, VALID, measured(), Held.NO),
        (Outcome.PASS, replace(VALID, valid=False, reasons=("slow",)), None, Held.LIMITED),
        (Outcome.PASS, VALID, measured(steady=False), Held.NO),
        (Outcome.PASS, VALID, measured(p99=10_001), Held.NO),
        (Outcome.PASS, VALID, measured(p99=None), Held.NO),
        (Outcome.PASS, VALID, None, Held.NO),
    ],
)
def test_a_rate_holds_only_with_everything_in_order(outcome, certificate, measurement, held):
    assert judge_trial(outcome, certificate, measurement, 10_000)[0] is held
