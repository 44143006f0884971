"""Cores against rates: the plan, COST on planted curves, what is refused, and the sentences."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, exp

import numpy as np
import pytest

from harness.experiments import scale
from harness.experiments.compare import BUSY_CPU, REFERENCE
from harness.experiments.scale import RATE, Cost, Numbers, Scaled, ScaleRan, ScaleRequest
from harness.experiments.scaling_law import Estimate
from harness.judging.progress_curve import Curve
from harness.model import Outcome, UsageError

CURVES = 300
ASKED = ScaleRequest("spark", (1, 2, 4, 6, 8), (), baseline=True, seed=7, settings=scale.WHOLE)


def usl(one, contention, coherency):
    return lambda cores: one * cores / (1 + contention * (cores - 1) + coherency * cores * (cores - 1))


def measured(truth, reference=0.0, asked=ASKED, noise=0.02, seed=1, rounds=3, **other):
    """All runs of an experiment whose engine obeys `truth`."""
    draws, asked = np.random.default_rng(seed), replace(asked, settings=replace(asked.settings, rounds=rounds), **other)
    asked = replace(asked, baseline=bool(reference))
    done: list[ScaleRan] = []
    for case in scale.runs_of(asked):
        rate = reference if case.engine == REFERENCE else truth(case.cores)
        figures = {RATE: rate * exp(noise * draws.standard_normal()), BUSY_CPU: 10.0 + case.cores}
        done.append(ScaleRan(case, Outcome.PASS, "counted right", f"runs/{len(done)}", figures))
    return Scaled(asked, tuple(done))


def test_each_round_has_every_number_of_cores_and_the_reference_in_its_own_order():
    runs = scale.runs_of(ASKED)
    rounds = [[(each.engine, each.cores) for each in runs if each.seed == seed] for seed in (7, 8, 9)]

    assert len(runs) == 18
    assert all(sorted(each) == sorted([*(("spark", n) for n in ASKED.cores), (REFERENCE, 1)]) for each in rounds)
    assert rounds[0] != rounds[1]
    assert runs == scale.runs_of(ASKED)
    assert not [each for each in scale.runs_of(replace(ASKED, baseline=False)) if each.engine == REFERENCE]


def test_a_run_is_pinned_and_its_engine_is_frozen():
    keys = scale.keys_of(scale.ScaleRun("spark", 2, 7), scale.WHOLE)

    assert (keys["cores"], keys["seed"], keys["fault"]) == (2, 7, "pause(for=30s)@t>=15s")


@pytest.mark.parametrize(
    ("cores", "wanted", "sentence"),
    [
        ((2,), (), "--cores 2 is one number of cores, which shows no scaling."),
        ((1, 9), (), "--cores 1,9 can't be measured: this process may use 8 cores."),
        ((1, 2), (4,), "--for 4 can't be answered: 1,2 cores say nothing about other numbers."),
        ((1, 2, 4), (2, 9), "--for 9 is more than 2 times 4, the largest number of cores that is measured."),
    ],
)
def test_what_can_t_be_answered_is_refused_in_a_sentence(cores, wanted, sentence):
    with pytest.raises(UsageError) as refused:
        scale.refuse_cores(Numbers(cores, wanted), 8)

    assert str(refused.value).startswith(sentence)


def test_what_can_be_answered_is_not_refused():
    scale.refuse_cores(Numbers((1, 2)), 2)
    scale.refuse_cores(Numbers((1, 2, 4), (8,)), 8)
    scale.refuse_cores(Numbers((0.5, 1, 2, 4), (8,)), 4)
    scale.refuse_idle_cores(Numbers((1, 4)), 4)
    with pytest.raises(UsageError, match="needs a topic of 4 partitions, and this one has 3"):
        scale.refuse_idle_cores(Numbers((1, 3.5)), 3)


def test_executors_are_refused_in_their_own_words():
    asked = Numbers((1, 4), unit="executor")
    with pytest.raises(UsageError, match="--executors 1,4 can't be measured: this process may use 2 cores, and each"):
        scale.refuse_cores(asked, 2)
    with pytest.raises(UsageError, match="--executors 1,4 needs a topic of 4 partitions"):
        scale.refuse_idle_cores(asked, 2)
    with pytest.raises(UsageError, match=r"and quix has none\. Give --cores instead"):
        scale.refuse_clusterless("quix", has_cluster=False, flags=())
    with pytest.raises(UsageError, match="for each number, and --cluster names another one"):
        scale.refuse_clusterless("spark", has_cluster=True, flags=("cluster", "sink"))
    scale.refuse_clusterless("spark", has_cluster=True, flags=("sink",))


@pytest.mark.parametrize("text", ["", ",", "1,x", "0,1", "-1", "1.5", "1;2", "5000", "²"])
def test_numbers_to_predict_are_whole_and_above_0(text):
    with pytest.raises(UsageError, match="whole numbers of cores are expected, such as 1,2,4"):
        scale.read_whole(text, "--for")


@pytest.mark.parametrize("text", ["", ",", "1,x", "0,1", "-1", "0.05", "1.234", "1.", ".5", "1;2", "5000", "²", "nan"])
def test_numbers_of_cores_are_at_least_a_tenth(text):
    with pytest.raises(UsageError, match=r"numbers of cores are expected, such as 1,2,4 or 0\.5,1,2"):
        scale.read_cores(text, "--cores")


def processed(*reports):
    at_s, total = np.array(reports, dtype=np.float64).T
    return Curve(at_s, total, np.zeros(len(at_s)))


def test_the_rate_is_that_of_the_backlog_whatever_the_engine_did_before():
    """Frozen at 15 s, thawed at 45 s: it worked off 1,000 events in 10 s, and the last one waited for its window."""
    each_second = [(float(second), 100.0 * second) for second in range(15)]
    after = [(45.5 + n, 1500.0 + 100 * n) for n in range(11)]

    assert scale.backlog_rate(processed(*each_second, *after, (75.0, 2501.0)), 45.0) == pytest.approx(100)


def test_a_batch_that_was_half_done_has_no_say_and_one_that_holds_the_backlog_has():
    frozen = (14.0, 500.0)

    assert scale.backlog_rate(processed(frozen, (46.0, 900.0), (56.0, 1900.0)), 45.0) == pytest.approx(100)
    assert scale.backlog_rate(processed(frozen, (55.0, 1500.0)), 45.0) == pytest.approx(100)
    assert scale.backlog_rate(processed(frozen, (46.5, 1500.0)), 45.0) is None
    assert scale.backlog_rate(processed(frozen), 45.0) is None


def test_numbers_of_cores_are_sorted_and_each_is_measured_once():
    assert scale.read_cores("4, 1,2,4", "--cores") == (1, 2, 4)
    found = scale.read_cores("2,0.50,1.0,0.5", "--cores")
    assert found == (0.5, 1, 2)
    assert [type(each) for each in found] == [float, int, int]


def sliced(cores):
    """A quota lets the same cores run for a part of the time."""
    return cores / ceil(cores) * usl(100_000, 0.1, 0.001)(ceil(cores))


def test_a_part_of_a_core_is_a_point_and_no_part_of_the_law():
    """Half a core, one and two: the law would need a third number of whole cores."""
    found = measured(sliced, 40_000, noise=0.005, cores=(0.5, 1, 2), rounds=5)

    assert [(each.cores, round(each.times.value, 1)) for each in found.points] == [(0.5, 1.0), (1, 2.0), (2, 3.6)]
    assert found.law is None
    assert found.cost is not None
    assert found.cost.sentence == "COST is 0.5 cores or fewer; no smaller number was measured"
    assert "spark on 2 cores does 3.6" in found.sentence
    assert [*found.notes()] == [
        "no law is fitted: it needs 3 different whole numbers of cores",
        "0.5, 1 and 2 cores say nothing about 8",
    ]


def test_the_law_is_that_of_the_whole_numbers_beside_a_quota():
    numbers = (0.5, 1, 1.5, 2, 4)
    found, without = (measured(sliced, 150_000, cores=each, rounds=5).law for each in (numbers, (1, 2, 4)))
    with_parts = measured(sliced, 150_000, cores=numbers, rounds=5)

    assert found is not None
    assert without is not None
    assert (found.contention.low or 0) <= 0.1 <= (found.contention.high or 0)
    assert found.at(8).value == pytest.approx(without.at(8).value, rel=0.2)
    assert (with_parts.furthest, [*with_parts.curve]) == (8, [0.5, 1, 1.5, 2, 3, 4, 5, 6, 7, 8])
    with pytest.raises(UsageError, match=r"--for 4 can't be answered: 0\.5,1,2 cores say nothing"):
        scale.refuse_cores(Numbers((0.5, 1, 2), (4,)), 2)


def test_executors_have_a_cluster_and_the_reference_a_core():
    asked = replace(ASKED, unit="executor")
    keys = [
        scale.keys_of(scale.ScaleRun(name, n, 7), scale.WHOLE, unit="executor")
        for name, n in (("spark", 2), (REFERENCE, 1))
    ]

    assert [(each.get("cluster"), each.get("cores")) for each in keys] == [(2, None), (None, 1)]
    found = measured(usl(100_000, 0.05, 0.002), 250_000, noise=0.01, asked=asked)
    assert found.sentence.startswith("spark on 8 executors does")
    assert found.sentence.endswith("COST is 3 executors")
    assert found.case_in_words(scale.ScaleRun(REFERENCE, 1, 1)) == "reference on 1 core"


def test_cost_is_found_on_planted_curves():
    """The number of cores from which the engine is faster lies in the interval of COST of nearly all curves."""
    draws, held, exact = np.random.default_rng(11), 0, 0
    for seed in range(CURVES):
        truth = usl(100_000, draws.uniform(0, 0.2), 10 ** draws.uniform(-4, -2.5))
        reference = 100_000 * draws.uniform(0.5, 5)
        true = next((n for n in range(1, 17) if truth(n) > reference), 99)
        cost = measured(truth, reference, noise=0.03, seed=seed).cost
        assert cost is not None
        held += (cost.low or 99) <= true <= (cost.high or 99)
        exact += cost.low == cost.high

    assert held >= 0.95 * CURVES
    assert exact >= 0.4 * CURVES  # the interval is no trick: it is often a single number


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        (50_000, "COST is 1 core"),
        (250_000, "COST is 3 cores"),
        (2_000_000, "COST is more than 16 cores: up to there the reference is faster"),
    ],
)
def test_cost_in_words(reference, sentence):
    found = measured(usl(100_000, 0.05, 0.002), reference, noise=0.01)

    assert found.cost is not None
    assert found.cost.sentence == sentence
    assert found.sentence.endswith(sentence)


@pytest.mark.parametrize(
    ("cost", "sentence"),
    [
        (Cost(2, 3, 1, 8), "COST is 2 to 3 cores"),
        (Cost(2, 5, 1, 8), "COST is not known: it lies between 2 and 5 cores, more than a factor of 2 apart"),
        (Cost(3, None, 1, 8), "COST is not known: 3 cores may be faster than the reference, and 8 are not for sure"),
        (Cost(2, 2, 2, 8), "COST is 2 cores or fewer; no smaller number was measured"),
        (Cost(None, None, 1, 2), "COST is more than 2 cores: up to there the reference is faster"),
    ],
)
def test_cost_that_is_not_one_number(cost, sentence):
    assert cost.sentence == sentence


def test_two_cores_say_nothing_about_eight():
    found = measured(usl(100_000, 0.1, 0), 150_000, cores=(1, 2), noise=0.01)

    assert (found.law, found.furthest, found.outcome) == (None, 2, Outcome.PASS)
    assert found.sentence.startswith("spark on 2 cores does 1.8")
    assert found.sentence.endswith("; COST is 2 cores")
    assert [*found.notes()] == [
        "no law is fitted: it needs 3 different numbers of cores",
        "1 and 2 cores say nothing about 8",
    ]


def test_a_prediction_goes_twice_as_far_and_has_its_interval():
    found = measured(usl(100_000, 0.05, 0.002), 250_000, wanted=(16,))

    assert found.outcome is Outcome.PASS
    assert found.furthest == 16
    rate = found.predicted[16]
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low < usl(100_000, 0.05, 0.002)(16) < rate.high
    said = [*found.notes()]
    assert said[0].startswith("contention ")
    assert said[1].startswith("16 cores: ")
    assert said[2] == "1, 2, 4, 6 and 8 cores say nothing about 32; nothing is said beyond 16"


def test_a_prediction_that_spans_more_than_a_factor_of_two_is_not_given():
    found = measured(usl(100_000, 0.05, 0.01), cores=(1, 2, 4), wanted=(8,), noise=0.15)

    assert found.predicted == {}
    assert found.outcome is Outcome.UNKNOWN
    assert any(each.startswith("8 cores: no rate is given, since its interval (") for each in found.notes())


def test_more_than_perfect_scaling_is_no_law():
    found = measured(lambda cores: 1000.0 * cores**1.5, cores=(1, 2, 4))

    assert found.law is None
    assert "More than perfect scaling is no matter of cores alone" in next(found.notes())


def test_one_round_has_no_interval_and_no_cost():
    found = measured(usl(100_000, 0.1, 0), 150_000, cores=(1, 2), rounds=1)

    assert found.points[1].rate.low is None
    assert found.cost is not None
    assert found.cost.sentence == "COST is not known: one run of each has no interval; give --repeat 2 or more"


def test_an_engine_that_counts_wrong_has_no_rates():
    found = measured(usl(100_000, 0.1, 0), 150_000)
    wrong = tuple(
        replace(each, outcome=Outcome.FAIL, sentence="3 events were lost.", figures={})
        if each.case == scale.ScaleRun("spark", 2, 8)
        else each
        for each in found.done
    )
    found = replace(found, done=wrong)

    assert (found.outcome, found.points, found.law) == (Outcome.FAIL, (), None)
    assert found.sentence == "no rates: spark on 2 cores, seed 8: 3 events were lost"
    assert found.reference is not None


def test_without_all_runs_it_is_unknown():
    found = measured(usl(100_000, 0.1, 0), 150_000)
    found = replace(found, done=found.done[:-4])

    assert found.outcome is Outcome.UNKNOWN
    assert found.sentence.endswith("; 4 runs are missing")
    assert Scaled(ASKED, ()).sentence == "no scaling can be shown: no run finished"
    assert [*Scaled(ASKED, ()).notes()] == []


def test_the_reference_itself_has_no_cost():
    found = measured(usl(100_000, 0.9, 0), engine=REFERENCE)

    assert (found.cost, found.reference) == (None, None)
    assert measured(usl(1.0, 0, 0)).cost == Cost(None, None, 1, 16, "the reference does not answer this workload")


def test_an_interval_from_0_is_wide():
    assert Estimate(1.0, 0.0, 1.0).is_wide
    assert not Estimate(1.5, 1.0, 2.0).is_wide
