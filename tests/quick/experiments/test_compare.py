"""Engines side by side: what is run in which order, and what may be said of it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import plan
from harness.engines import manifest as manifests
from harness.experiments import compare
from harness.experiments.cases import pending
from harness.experiments.compare import BUSY_CPU, QUICK, Leg, LegRun, Ran, Settings
from harness.measuring.measurement import Quantity, Recovery
from harness.model import Outcome
from harness.terminal import console
from reports import compared

ENGINES = ("spark", "flink", "reference")


def ran(engine, leg, seed=1, outcome=Outcome.PASS, **figures):
    return Ran(LegRun(engine, leg, seed), outcome, f"{engine} said so", f"runs/{engine}-{leg}-{seed}", figures)


def row(table, engine):
    return next(each for each in table.rows if each.engine == engine)


@given(st.integers(1, 6), st.integers(0, 1000))
def test_every_engine_has_every_leg_in_every_round(rounds, seed):
    wanted = compare.runs_of(ENGINES, Settings(rounds=rounds), seed)

    assert len(set(wanted)) == len(wanted) == rounds * len(Leg) * len(ENGINES)
    for case in wanted:
        assert wanted.index(case.twin) <= wanted.index(case)
    assert wanted == compare.runs_of(ENGINES, Settings(rounds=rounds), seed)


def test_the_order_is_drawn_by_lot():
    orders = {tuple(c.engine for c in compare.runs_of(ENGINES, QUICK, seed)[:3]) for seed in range(50)}

    assert len(orders) == 6


def test_rounds_are_interleaved():
    wanted = compare.runs_of(ENGINES, Settings(rounds=2), 7)

    assert [case.seed for case in wanted] == [7] * 9 + [8] * 9


def test_the_reference_is_always_there_and_once():
    assert compare.with_reference(("spark",)) == ("spark", "reference")
    assert compare.with_reference(("reference", "spark", "spark")) == ("reference", "spark")


@pytest.mark.parametrize("leg", list(Leg))
def test_each_leg_is_a_run_that_can_be_resolved(leg):
    keys = plan.read_scenario(compare.SCENARIO)[1]
    own = compare.keys_of(LegRun("spark", leg, 3), QUICK)
    spec, _ = plan.resolve(compare.SCENARIO, {k: v for k, v in keys.items() if k not in own}, own, manifests.load)

    assert (spec.engine, spec.tape.seed) == ("spark", 3)
    assert (spec.fault.action == "none") == (leg is Leg.STEADY)
    if leg is Leg.CATCH_UP:
        load_ms = sum(segment.duration_ms for segment in spec.tape.profile)
        assert spec.watermark_ms >= load_ms  # else partitions that are ahead make others late


@pytest.mark.parametrize(("asked", "allowed"), [("0", "60s"), ("20s", "60s"), ("2m", "2m")])
def test_a_watermark_that_is_asked_for_is_never_made_smaller(asked, allowed):
    for leg in (Leg.CATCH_UP, Leg.KILL):
        assert compare.keys_of(LegRun("spark", leg, 3), QUICK, asked)["watermark"] == allowed
    assert "watermark" not in compare.keys_of(LegRun("spark", Leg.STEADY, 3), QUICK, asked)


def test_what_was_done_is_not_done_again():
    wanted = compare.runs_of(ENGINES, QUICK, 1)

    assert pending(wanted, [ran(c.engine, c.leg) for c in wanted[:4]]) == wanted[4:]


def test_medians_over_rounds_with_intervals():
    done = [ran("spark", Leg.STEADY, seed, p50_ms=value) for seed, value in enumerate((10.0, 30.0, 20.0))]
    found = row(compare.table(("spark",), done, 1), "spark").figures["p50_ms"]

    assert (found.median, found.rounds) == (20.0, 3)
    assert found.low is not None
    assert found.high is not None
    assert 10 <= found.low <= 20 <= found.high <= 30


def test_no_speed_for_wrong_answers_in_whichever_leg():
    done = [
        ran("spark", Leg.STEADY, p50_ms=1.0),
        ran("spark", Leg.KILL, outcome=Outcome.FAIL),
        ran("flink", Leg.STEADY),
    ]
    found = compare.table(("spark", "flink"), done, 1)

    assert row(found, "spark").figures == {}
    assert row(found, "spark").outcome is Outcome.FAIL
    assert "kill, seed 1" in row(found, "spark").sentence
    assert found.outcome is Outcome.FAIL
    assert "1 of 2 engines" in found.sentence
    assert compared.rows(found)[0][2:] == ["-"] * 6
    assert list(compared.endings(found)) == ["spark: kill, seed 1: spark said so"]


def test_a_missed_objective_is_about_speed_and_hides_none():
    slow = replace(ran("spark", Leg.STEADY, outcome=Outcome.FAIL, p50_ms=1.0), slow=True)
    found = compare.table(("spark",), [slow], 1)
    wrong = compare.table(("spark",), [slow, ran("spark", Leg.KILL, outcome=Outcome.FAIL)], 1)

    assert row(found, "spark").outcome is Outcome.FAIL
    assert row(found, "spark").figures["p50_ms"].median == 1.0
    assert found.sentence == "all 1 engines counted right in every run; spark misses the objective"
    assert row(wrong, "spark").figures == {}
    assert wrong.sentence == "0 of 1 engines counted right in every run; spark FAIL"


def test_a_run_that_could_not_be_measured_made_no_count_wrong():
    """A void certificate is the generator's fault: it withholds speed, and nothing else."""
    void = replace(ran("quix", Leg.STEADY, outcome=Outcome.UNKNOWN), unmeasured=True)
    found = compare.table(("spark", "quix"), [ran("spark", Leg.STEADY, p50_ms=1.0), void], 1)

    assert found.outcome is Outcome.UNKNOWN
    assert found.sentence == ("all 2 engines counted right in every run; quix could not be measured in every run")
    unknown = compare.table(("quix",), [replace(void, unmeasured=False)], 1)
    assert unknown.sentence == "0 of 1 engines counted right in every run; quix UNKNOWN"


def test_one_that_was_broken_off_says_what_was_made():
    done = [ran("spark", Leg.STEADY, p50_ms=1.0)]
    missing = [LegRun("spark", Leg.KILL, 1), LegRun("flink", Leg.STEADY, 1)]
    found = compare.table(("spark", "flink"), done, 1, missing=missing)

    assert row(found, "spark").right
    assert found.sentence == (
        "1 of 2 engines counted right in every run that was made; 2 runs are missing; flink UNKNOWN"
    )


def test_cost_is_the_cores_until_it_beats_the_reference():
    done = [
        ran("reference", Leg.CATCH_UP, catch_up_per_s=500_000.0, **{BUSY_CPU: 2.0}),
        ran("spark", Leg.CATCH_UP, catch_up_per_s=200_000.0, **{BUSY_CPU: 10.0}),
    ]
    found = compare.table(("spark", "reference"), done, 1)

    assert row(found, "spark").cost_cores == pytest.approx(5.0)  # 10 us an event, 500,000 events a second
    assert row(found, "reference").cost_cores == pytest.approx(1.0)


def test_without_the_reference_there_is_no_cost():
    done = [ran("spark", Leg.CATCH_UP, catch_up_per_s=200_000.0, **{BUSY_CPU: 10.0})]

    assert row(compare.table(("spark",), done, 1), "spark").cost_cores is None


def test_busy_is_what_it_used_after_it_was_let_go():
    timeline = pa.table(
        {"second": [0, 1, 2, 3], "processed_per_s": [1e6, None, 3e5, 1e5], "cpu_engine": [9.0, 0.0, 1.5, 0.5]}
    )

    assert compare.busy_cpu_s_per_million(timeline, 2.0) == pytest.approx(5.0)
    assert compare.busy_cpu_s_per_million(timeline, 4.0) is None


def test_what_was_not_reached_after_a_kill_has_no_figure():
    quantities = {
        "first_output_s": Quantity(3.0),
        "catch_up_s": Quantity(None, "not reached"),
        "other_s": Quantity(1.0),
    }

    assert compare.of_kill([Recovery("kill", 1.0, 2.0, 9.0, quantities)]) == {"first_output_s": 3.0}


def test_the_table_in_markdown_says_command_and_machine():
    done = [ran("reference", Leg.STEADY, p50_ms=77.0, cpu_s_per_million=5.5, offered_per_s=10_000.0)]
    text = compared.markdown(
        compare.table(("reference",), done, 1), "./streamgauge compare reference", [("cores", "2")]
    )

    assert "./streamgauge compare reference" in text
    assert "| reference | PASS | 10,000/s | 77 ms |" in text
    assert "cores 2" in text


def test_a_run_that_said_nothing_of_speed_leaves_the_others():
    unknown = replace(ran("spark", Leg.CATCH_UP, outcome=Outcome.UNKNOWN), withheld="the load certificate is void")
    found = compare.table(("spark",), [ran("spark", Leg.STEADY, p50_ms=1.0), unknown], 1)

    assert found.outcome is Outcome.UNKNOWN
    assert row(found, "spark").figures["p50_ms"].median == 1.0


def test_what_a_million_events_cost_is_told_with_their_rate():
    done = [ran("spark", Leg.STEADY, outcome=Outcome.FAIL), ran("reference", Leg.STEADY, offered_per_s=10_000.0)]

    told = compared.at_rate(compare.table(("spark", "reference"), done, 1))

    assert list(told) == ["p50, p99 and CPU/M at 10,000 events/s"]
    assert list(compared.at_rate(compare.table(("spark",), done[:1], 1))) == []


def test_the_table_fits_a_terminal():
    figures = {"p50_ms": 12_345.0, "p99_ms": 12_345.0, "cpu_s_per_million": 123.0, "first_output_s": 123.4}
    done = [
        ran("flink-standalone", Leg.STEADY, **figures),
        ran("flink-standalone", Leg.CATCH_UP, catch_up_per_s=1_234_567.0, **{BUSY_CPU: 99.0}),
        ran("reference", Leg.CATCH_UP, catch_up_per_s=1_000_000.0),
    ]
    found = compare.table(("flink-standalone", "reference"), done, 1)
    shown = console.table(compared.rows(found), compared.HEADER)

    assert max(map(len, shown.splitlines())) <= 80
