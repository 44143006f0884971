"""Engines in pairs: the ratio of their cost, what takes it away, and whether three ratios agree."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from harness.experiments import pairing
from harness.experiments.gating.gate import Judged
from harness.experiments.gating.rounds import Round
from harness.experiments.pairing import Pair, Paired, Progress, Which
from harness.measuring.stats import Ratio
from harness.model import Outcome, UsageError

RIGHT = Judged(Outcome.PASS, "counted right", "runs/a")
PAIR = Pair("spark", "quix")


def rounds(times=2.0, starts=6, pair=PAIR, apart=0.01, noise=0.02, seed=1, idle_cores=0.0):
    """Both share what each round meets; the first costs so many times as much."""
    draws = np.random.default_rng(seed)
    made = []
    for start in range(1, starts + 1):
        own = times * exp(apart * draws.standard_normal())
        for number in range(1, 7):
            shared_s = 2.0 * exp(0.2 * draws.standard_normal())
            for side, by in zip(pair.sides, (own, 1.0), strict=True):
                idle_s = 2.5 * idle_cores
                cpu_s = shared_s * by * exp(noise * draws.standard_normal()) + 2.1 * idle_cores
                made.append(Round(side, number, 100_000, cpu_s, 0.0, 2.5, idle_s, 900.0, 3000.0, 1, 0.0, start=start))
    return made


def progress(pair=PAIR, starts=6, **other):
    judged = dict.fromkeys(pair.sides, RIGHT)
    return Progress(pair, planned=starts, took_s=(50.0,) * starts, judged=judged, **other)


def test_it_finds_the_ratio_though_rounds_differ_by_a_fifth():
    found = pairing.measured(progress(), rounds())

    assert found.outcome is Outcome.PASS
    assert found.ratio is not None
    assert found.ratio.low < 2.0 < found.ratio.high
    assert found.ratio.high / found.ratio.low < 1.06
    assert found.costs == pytest.approx((40, 20), rel=0.2)
    assert found.sentence.startswith("spark costs 2")


def test_an_engine_by_itself_holds_one_as_often_as_it_says():
    pair = Pair("quix", "quix (2)")
    held = 0
    for seed in range(200):
        found = pairing.measured(progress(pair), rounds(1.0, pair=pair, seed=seed))
        held += found.ratio is not None and found.ratio.low <= 1 <= found.ratio.high

    assert held >= 190


def test_same_cost_is_said():
    found = pairing.measured(progress(), rounds(1.0))

    assert found.sentence.startswith("spark and quix cost the same")


def test_a_wide_interval_that_holds_1_is_not_called_the_same():
    found = pairing.in_words(Pair("spark", "flink"), Ratio(2.3, 0.1, 52.7, 0.5))

    assert found.startswith("spark and flink can't be distinguished")
    assert "--budget" in found


def test_a_wrong_count_has_no_cost():
    wrong = Judged(Outcome.FAIL, "lost: 3 events", "runs/b")
    found = pairing.measured(replace(progress(), judged={"spark": RIGHT, "quix": wrong}), rounds())

    assert (found.outcome, found.ratio) == (Outcome.FAIL, None)
    assert found.sentence == "quix is FAIL beside spark: lost: 3 events"


def test_what_ended_early_has_no_cost():
    found = pairing.measured(progress(broken="the quix ended"), rounds())

    assert (found.outcome, found.ratio) == (Outcome.UNKNOWN, None)
    assert "the quix ended" in found.sentence


def test_one_start_is_too_few():
    found = pairing.measured(progress(starts=1), rounds(starts=1))

    assert (found.outcome, found.ratio) == (Outcome.UNKNOWN, None)
    assert "--budget" in found.sentence


def test_what_an_engine_uses_with_nothing_to_do_is_subtracted_and_said():
    found = pairing.measured(progress(), rounds(idle_cores=0.5))

    assert found.ratio is not None
    assert found.ratio.low < 2.0 < found.ratio.high
    assert len([note for note in found.notes if "0.5 cores with nothing to do" in note]) == 2
    assert pairing.measured(progress(), rounds()).notes == ()


def test_no_ratio_of_what_is_as_busy_when_it_is_idle():
    made = [replace(each, idle_s=4.0, idle_cpu_s=80.0) for each in rounds()]
    found = pairing.measured(progress(), made)

    assert (found.outcome, found.ratio) == (Outcome.UNKNOWN, None)
    assert "known in 0 of 6 starts" in found.sentence


def paired(ab=2.0, bc=3.0, ac=6.0):
    pairs = [(Pair("a", "b"), ab), (Pair("b", "c"), bc), (Pair("a", "c"), ac)]
    measured = [pairing.measured(progress(pair), rounds(times, pair=pair, seed=9)) for pair, times in pairs]
    return Paired(("a", "b", "c"), tuple(measured))


def test_three_ratios_agree():
    (three,) = paired().triangles

    assert three.agrees
    assert three.closure.estimate == pytest.approx(1.0, abs=0.03)


def test_three_ratios_that_can_not_all_be_true_are_named():
    (three,) = paired(ac=7.0).triangles

    assert not three.agrees
    assert "a/b x b/c by a/c" in three.sentence
    assert "DISAGREE" in three.sentence


def test_two_ratios_make_no_triangle():
    whole = paired()

    assert list(replace(whole, pairs=whole.pairs[:2], missing=(Pair("a", "c"),)).triangles) == []
    assert replace(whole, pairs=whole.pairs[:2], missing=(Pair("a", "c"),)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("which", "pairs"),
    [
        (Which.ALL, [("a", "b"), ("a", "c"), ("b", "c")]),
        (Which.FIRST, [("a", "b"), ("a", "c")]),
    ],
)
def test_pairs_of(which, pairs):
    assert [each.sides for each in pairing.pairs_of(("a", "b", "c"), which)] == pairs


def test_labels_are_short_and_differ(tmp_path):
    job = tmp_path / "mine" / "manifest.toml"
    job.parent.mkdir()
    job.write_text("")

    assert pairing.labels_of(["quix", "quix", str(job), str(job.parent)]) == ("quix", "quix (2)", "mine", "mine (2)")


@pytest.mark.parametrize("count", [0, 1, 5])
def test_too_few_and_too_many_engines_are_refused(count):
    with pytest.raises(UsageError, match="2 to 4 engines"):
        pairing.refuse_count(["quix"] * count)


@pytest.mark.parametrize(
    ("now", "over"),
    [
        (Progress(PAIR), False),
        (progress(starts=3), True),
        (replace(progress(starts=3), planned=4), False),
        (replace(progress(starts=3), planned=9, took_s=(50.0, 50.0, 400.0)), True),  # another one would not fit
        (replace(progress(starts=1), planned=4, broken="it ended"), True),
        (replace(progress(starts=1), planned=4, judged={"quix": replace(RIGHT, outcome=Outcome.FAIL)}), True),
    ],
)
def test_when_a_pair_is_over(now, over):
    assert now.is_over(600.0) is over
