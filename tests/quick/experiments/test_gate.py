"""Three answers: what is slower is found, what is not is let through, and what can't be told is said to be so."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from generators.tape import Tape
from harness.experiments.gating import calibrate, gate, rounds
from harness.experiments.gating.conditions import Conditions
from harness.experiments.gating.gate import BASE, HEAD, SIDES, Answer, Effect, Gated, Judged
from harness.experiments.gating.rounds import COST, Round, Settings
from harness.load.burst_load import Bursts
from harness.measuring.stats import Ratio
from harness.model import Outcome, Progress
from reports import gated as reports_gated
from reports.gated import advice
from tests.quick.cases import SPEC

RIGHT = Judged(Outcome.PASS, "all counted", "runs/x")
THRESHOLD = 0.05


ROUND = Round(BASE, 0, 100_000, 1.5, 0.0, 3.0, 0.0, 900.0, 1000.0, 2**30, 0.0)


def measured(starts=8, seed=1, noise=0.01, apart=0.008, each=6, fall=0.0, **slower):
    """Rounds that all sides did at the same time; what is named is slower by so much. What others do on the machine
    falls on all sides alike and makes a round cost up to twice as much. `apart`: how far starts of one job differ."""
    draws = np.random.default_rng(seed)
    made = []
    for start in range(1, starts + 1):
        own = {side: float(np.exp(apart * draws.standard_normal())) for side in SIDES}
        for number in range(1, each + 1):
            machine = (1 + draws.random()) * (1 - fall) ** (number / each)
            for side in SIDES:
                slow = 1 + slower.get(side.replace(" ", "_"), 0.0)
                cost = 15.0 * machine * own[side] * slow * (1 + noise * draws.exponential())
                made.append(replace(ROUND, side=side, number=number, start=start, cpu_s=cost / 10))
    return made


def cost_of(made, threshold=THRESHOLD, look=2):
    return gate.effects(made, threshold, look)[0]


def gated(*effects, **sides):
    judged = {name: sides.get(name.replace(" ", "_"), RIGHT) for name in SIDES}
    return Gated(judged, effects, 8)


def test_rounds_go_forth_and_back_so_that_a_slowing_machine_slows_all_alike():
    places: dict[str, list[int]] = {side: [] for side in SIDES}
    for place, side in enumerate(side for names in rounds.order(SIDES, 10) for side in names):
        places[side].append(place)

    assert len({sum(each) for each in places.values()}) == 1


def test_a_tape_of_fewer_stretches_is_the_beginning_of_one_of_more():
    settings = Settings(stretch_events=1000)
    few, many = (Tape(rounds.tape(SPEC.tape, stretches, settings)) for stretches in (3, 7))

    assert (few.total, many.total) == (3000, 7000)
    for server in range(few.spec.senders):
        slots = np.arange(few.server_total(server), dtype=np.int64)
        for mine, other in zip(few.events(server, slots).columns(), many.events(server, slots).columns(), strict=True):
            assert np.array_equal(mine, other)


def test_a_round_costs_each_side_a_second_or_more():
    assert rounds.fitting(0.4, 1.6) == 5, "a fifth of a second a stretch"
    assert rounds.fitting(12.0, 48.0) == 1
    assert rounds.fitting(0.01, 0.02) == rounds.MOST, "all that is sent is judged"
    assert rounds.fitting(1.7, 2.0) == 40, "a batch costs 1.6 s, and a stretch a twentieth"
    assert rounds.fitting(1.3, 2.2) == 27, "four fifths of a round are events"


def test_a_start_with_slow_rounds_gets_fewer_of_them_so_that_more_starts_fit():
    assert [count for count in range(7) if rounds.are_enough(count, took_s=20.0 * count)] == [4, 5, 6]
    assert not any(rounds.are_enough(count, took_s=9.0 * count) for count in range(7)), "all six fit"
    assert not rounds.are_enough(2, took_s=1000.0), "a median needs three"


@pytest.mark.parametrize("events", [100, 2000, 25_000, 60_000, 1_000_000])
def test_a_burst_that_was_asked_for_is_as_large_as_that(events):
    settings = rounds.of_burst(events)

    assert settings.stretch_events * settings.round_stretches == pytest.approx(events, rel=0.001)
    assert settings.stretch_events <= rounds.STRETCH_EVENTS


def test_what_an_idle_engine_takes_is_not_billed():
    """After its own round an engine still compiles: a pause right behind one is not believed."""
    pauses = [(4.0, 0.4), (0.2, 0.2), (4.0, 0.4), (4.0, 0.5)]
    seen = [replace(ROUND, cpu_s=1.6, idle_s=idle_s, idle_cpu_s=used_s) for idle_s, used_s in pauses]

    assert rounds.idle_cores(seen) == pytest.approx(0.1)
    assert COST.of(replace(seen[0], took_ms=900.0, billed_ms=1900.0), 0.1) == pytest.approx(15.0)
    assert COST.of(replace(seen[0], cpu_s=0.1, billed_ms=1900.0), 0.1) is None
    quiet = replace(seen[0], took_ms=900.0, billed_ms=1900.0, quiet_ms=500.0)
    assert COST.of(quiet, 0.1) == pytest.approx(15.5), "it committed for the other half second"


@pytest.mark.parametrize(
    ("cost", "allocated", "known"),
    [
        (Answer.OK, Answer.OK, True),
        (Answer.OK, Answer.INCONCLUSIVE, False),
        (Answer.OK, Answer.REGRESSED, True),
        (Answer.REGRESSED, Answer.INCONCLUSIVE, True),
        (Answer.INCONCLUSIVE, Answer.OK, False),
        (Answer.OK, None, True),
        (None, None, False),
    ],
)
def test_a_gate_goes_on_until_cost_and_allocated_bytes_are_known(cost, allocated, known):
    given = (("cost", cost), ("allocated", allocated), ("Kafka traffic", Answer.INCONCLUSIVE if cost else None))
    found = [cast(Effect, SimpleNamespace(metric=metric, answer=answer)) for metric, answer in given if answer]

    assert gate.is_known(found) is known


def test_each_figure_of_a_round_is_in_its_unit():
    seen = replace(
        ROUND,
        events=2_000_000,
        memory_bytes=512 << 20,
        allocated_bytes=6 << 20,
        kafka_bytes=10 << 20,
        checkpoint_bytes=14 << 20,
        redis_commands=4000,
        state_updates=8000,
        took_ms=3000.0,
    )

    assert {
        each.name: each.of(seen, 0.0) for each in rounds.METRICS if each != COST and "latency" not in each.name
    } == {
        "allocated": 3.0,
        "Kafka traffic": 5.0,
        "checkpoint": 7.0,
        "Redis writes": 2.0,
        "state rows": 4.0,
        "memory": 512.0,
        "catch-up": 1500.0,
    }


def test_no_gate_is_ok_whose_engines_take_as_much_when_they_are_idle():
    """All costs would be zero, and so would be the difference of a head that costs twice as much."""
    made = [replace(each, idle_s=4.0, idle_cpu_s=80.0, allocated_bytes=10**9) for each in measured(head=1.0)]
    found = gate.effects(made, THRESHOLD, 2)
    answer = gated(*found)

    assert found == ()
    assert answer.outcome is Outcome.UNKNOWN
    assert "with nothing to do" in answer.sentence


def test_latency_is_that_of_the_events_of_a_burst():
    """All of a burst is due when it begins, whatever the tape says."""
    made = [replace(ROUND, at_ms=1000.4), replace(ROUND, at_ms=9000.0), replace(ROUND, at_ms=20_000.0)]
    due_us = np.array([1_000_400] * 3 + [9_000_000] * 2)
    seen = rounds.with_latency(made, due_us, np.array([100.0, 200.0, 300.0, 50.0, np.inf]))

    assert seen[0].p50_ms == 200.0
    assert seen[0].p99_ms == 300.0, "nearest rank: a latency that was seen"
    assert seen[1:] == made[1:], "one was never seen, and of the last nothing is known"


def batch(offset, updates, rows=0, at_ms=0):
    """Of a topic with two partitions, the second of which is empty but for an opening event."""
    return Progress(at_ms, 1, rows, {0: offset, 1: 1}, state_updates=updates)


def test_state_rows_are_those_of_the_batches_that_took_a_rounds_records():
    """Neither what came before the rounds nor the closing events are theirs, and no line is where its time is."""
    made = [replace(ROUND, events=100, at_ms=5000.0), replace(ROUND, events=100, at_ms=6000.0)]
    lines = [
        batch(10, 7000, rows=10, at_ms=5100),
        batch(70, 200, rows=60, at_ms=6100),
        batch(110, 100, rows=40, at_ms=6200),
        batch(110, 20, at_ms=6300),  # a batch without data evicts
        batch(210, 4000, rows=100, at_ms=9000),
        batch(212, 2, rows=2, at_ms=9000),
    ]
    seen = rounds.with_state_updates(made, [111, 211], lines)

    assert [each.state_updates for each in seen] == [320, 4000]
    assert seen[0] == replace(made[0], state_updates=320)


def test_state_rows_of_a_round_of_which_a_batch_is_missing_are_not_known():
    made = [replace(ROUND, events=100)]

    assert rounds.with_state_updates(made, [101], [batch(100, 300, rows=40)]) == made, "the line of 60 events is lost"
    assert rounds.with_state_updates(made, [101], []) == made
    assert rounds.with_state_updates(made, [101], [batch(100, 0, rows=100)]) == made, "an engine that does not say"


def test_a_round_of_an_earlier_version_is_read(tmp_path):
    """It has none of the fields that were added since."""
    newer = (
        b'"allocated_bytes":null,"kafka_bytes":null,"redis_commands":null,"checkpoint_bytes":null,"state_updates":null'
    )
    (tmp_path / rounds.ROUNDS).write_bytes(rounds.encoded([ROUND]).replace(b"," + newer, b""))

    assert list(rounds.kept(tmp_path / rounds.ROUNDS)) == [ROUND]
    assert [metric.name for metric in rounds.METRICS if metric.of(ROUND, 0.0) is None] == [
        "allocated",
        "Kafka traffic",
        "Redis writes",
        "checkpoint",
        "state rows",
        "latency p50",
        "latency p99",
    ]


def test_counted_work_is_told_by_events():
    seen = replace(ROUND, checkpoint_bytes=5 * 2**20, state_updates=2000)
    told = {metric.name: metric.of(seen, 0.0) for metric in rounds.METRICS}

    assert ROUND.events == 100_000
    assert (told["checkpoint"], told["state rows"]) == (50.0, 20.0)


def test_what_a_jvm_compiles_is_no_cost_of_events():
    assert COST.of(replace(ROUND, cpu_s=2.5, compiling_s=1.0), 0.0) == pytest.approx(15.0)


@pytest.mark.parametrize("seed", range(20))
def test_ten_percent_more_is_found(seed):
    assert cost_of(measured(seed=seed, head=0.10)).answer is Answer.REGRESSED


@pytest.mark.parametrize("seed", range(20))
def test_no_change_is_let_through_and_a_cheaper_head_is_told(seed):
    assert cost_of(measured(seed=seed)).answer is Answer.OK
    assert cost_of(measured(seed=seed, head=-0.10)).answer is Answer.IMPROVED


def test_an_improvement_passes_by_its_own_word():
    found = gated(cost_of(measured(head=-0.10)))

    assert (found.outcome, found.answer) == (Outcome.PASS, Answer.IMPROVED)
    assert found.sentence.startswith("cost -9.6% [")


def test_what_falls_on_all_sides_alike_hides_nothing():
    """Spark's JVM compiled for 25 rounds, and got cheaper by a third; the neighbours of a core came and went."""
    level, falling = (cost_of(measured(head=0.10, fall=fall)) for fall in (0.0, 0.35))

    assert falling.answer is Answer.REGRESSED
    assert falling.detectable == pytest.approx(level.detectable, rel=0.2)
    assert level.spread.correlation > 0.9
    assert cost_of(measured(fall=0.35)).answer is Answer.OK


def test_what_can_not_be_told_says_how_many_starts_it_takes():
    found = cost_of(measured(starts=4, apart=0.06))

    assert found.answer is Answer.INCONCLUSIVE
    assert found.detectable > THRESHOLD
    assert f"about {found.starts_needed} starts are needed" in found.reason
    assert found.starts_needed > 4
    assert gated(found).is_too_fine
    assert not gated(cost_of(measured(apart=0.001, head=0.26, base_again=0.26))).is_too_fine
    assert not gated(cost_of(measured())).is_too_fine


def test_so_many_starts_as_are_said_to_be_needed_are_enough_and_fewer_are_not():
    found = cost_of(measured(starts=4, apart=0.03))
    needed = found.starts_needed

    def of(starts):
        ratio = replace(found.head, error=found.head.error * np.sqrt(4 / starts))
        return replace(found, head=ratio, starts=(1.0,) * starts, freedom=2 * (starts - 1))

    assert needed > 4
    assert of(needed).detectable <= THRESHOLD < of(needed - 1).detectable


def test_a_base_that_differs_from_itself_makes_no_head_red():
    """Two runs of one commit were 26 % apart, each of them steady to 0.3 %, and a gate of others said: regressed."""
    found = cost_of(measured(noise=0.003, head=0.26, base_again=0.26))

    assert found.answer is Answer.INCONCLUSIVE
    assert "the base differs from itself by +26" in found.reason


@pytest.mark.parametrize("times", [0.875, 1.3])
def test_one_odd_start_has_no_say_and_is_shown(times):
    """One start in fourteen of a Python process cost 12.5 % less: its memory lay elsewhere."""
    made = measured(starts=6)
    odd = [replace(each, cpu_s=each.cpu_s * times) if (each.start, each.side) == (3, HEAD) else each for each in made]
    found = cost_of(odd)

    assert (found.aside, found.answer) == (2, Answer.OK)
    assert found.starts[2] == pytest.approx(times, rel=0.03)
    [said] = [line for line in reports_gated.notes(gated(found)) if "left out" in line]
    assert said.startswith(f"start 3 is left out of the cost: {times - 1:+.0%}"[:-3])


def test_a_head_that_is_slow_in_half_of_its_starts_has_no_odd_ones():
    made = measured(starts=8)
    odd = [replace(each, cpu_s=each.cpu_s * (1.3 if each.start % 2 and each.side == HEAD else 1)) for each in made]
    found = cost_of(odd)

    assert (found.aside, found.answer) == (None, Answer.INCONCLUSIVE)


def test_few_starts_have_no_odd_one():
    made = measured(starts=4)
    odd = [replace(each, cpu_s=each.cpu_s * (1.3 if (each.start, each.side) == (3, HEAD) else 1)) for each in made]

    assert cost_of(odd).aside is None


def test_one_lone_round_is_not_a_regression():
    """Of 1,610 rows of others one was 11.6 % above, and was gone in the next run."""
    made = measured(noise=0.005)
    lone = next(at for at, each in enumerate(made) if (each.side, each.start, each.number) == (HEAD, 4, 3))
    made[lone] = replace(made[lone], cpu_s=made[lone].cpu_s * 1.116)

    assert cost_of(made).head.estimate == pytest.approx(cost_of(measured(noise=0.005)).head.estimate, abs=0.002)


def test_a_steady_breach_is_no_equality():
    """A test of equality of others never saw one of 5 %: it asked whether distributions differ in shape."""
    assert cost_of(measured(head=0.08)).answer is Answer.REGRESSED


def test_what_costs_less_than_the_threshold_more_is_ok_by_the_end_of_its_interval():
    found = cost_of(measured(head=0.02, apart=0.004))

    assert found.answer is Answer.OK
    assert found.head.low > 1, "it costs more, and that is told"
    assert cost_of(measured(head=0.045)).answer is Answer.INCONCLUSIVE


def test_too_few_starts_name_a_budget_that_suffices():
    few = replace(gated(), starts=1)

    assert few.answer is Answer.INCONCLUSIVE
    assert few.sentence == (
        "every side counts right, but 1 start is too few to compare the cost: 3 are needed, so raise --budget"
    )
    assert replace(few, starts=2, longest_s=100).sentence == (
        "every side counts right, but 2 starts are too few to compare the cost: 3 are needed, and one took 100 s here, "
        "so use --budget 7"
    )


def test_an_inconclusive_cost_says_what_would_decide_it():
    found = replace(gated(cost_of(measured(starts=5, apart=0.08))), starts=5, longest_s=120)
    needed, detectable = found.effects[0].starts_needed, found.effects[0].detectable

    assert found.answer is Answer.INCONCLUSIVE
    assert needed is not None
    assert needed > 5
    assert found.can_detect - 1 < 100 * detectable <= found.can_detect
    assert found.more_budget_s(600) >= 60 * found.budget_for(min(needed, 12)) >= 600
    assert list(advice(found, 600)) == [
        f"To decide it, use more starts (--budget {found.more_budget_s(600) / 60:g}), or a coarser threshold "
        f"(--threshold {found.can_detect}%)."
    ]
    assert replace(found, starts=12).more_budget_s(600) == 0, "a gate makes no more"
    assert not list(advice(replace(found, broken="Kafka ended"), 600))
    assert not list(advice(gated(), 600))


def test_wrong_counts_are_red_and_show_no_speed():
    wrong = Judged(Outcome.FAIL, "duplicated: 17 events too many", "runs/head")
    found = gated(head=wrong)

    assert (found.outcome, found.answer) == (Outcome.FAIL, Answer.REGRESSED)
    assert found.sentence == "the head counts wrong: duplicated: 17 events too many"


@pytest.mark.parametrize("side", SIDES)
def test_a_side_that_came_to_no_verdict_leaves_it_open(side):
    unknown = Judged(Outcome.UNKNOWN, "no evidence: log.parquet is missing", "runs/x")
    found = gated(cost_of(measured(head=0.5)), **{side.replace(" ", "_"): unknown})

    assert (found.outcome, found.answer) == (Outcome.UNKNOWN, Answer.INCONCLUSIVE)
    assert side in found.sentence


def test_a_wrong_base_makes_no_right_head_red():
    found = gated(base=Judged(Outcome.FAIL, "lost", "x"), base_again=Judged(Outcome.FAIL, "lost", "x"))

    assert found.answer is Answer.INCONCLUSIVE
    assert found.sentence == "the base is FAIL, so no speed is compared: lost"


def test_few_starts_compare_nothing():
    assert gate.effects(measured(starts=gate.FEWEST_STARTS - 1), THRESHOLD, 2) == ()
    assert gated().outcome is Outcome.UNKNOWN


def test_looks_are_at_most_three_and_the_last_is_at_the_end():
    for count in (3, 4, 7, 12):
        planned = gate.looks(count)

        assert len(planned) <= 3
        assert planned[-1] == count
        assert planned[0] >= gate.FEWEST_STARTS


@pytest.mark.parametrize(("left_s", "starts"), [(550, 12), (260, 6), (49, 1), (0, 1), (-100, 1)])
def test_as_many_starts_are_planned_as_fit(left_s, starts):
    assert gate.planned(left_s, 50.0, 12) == starts


def test_the_worst_start_of_a_side_is_told():
    unknown, wrong = (Judged(each, "", each.value) for each in (Outcome.UNKNOWN, Outcome.FAIL))

    assert gate.worse(None, RIGHT) == gate.worse(RIGHT, replace(RIGHT, run="later")) == RIGHT
    assert gate.worse(RIGHT, unknown) == gate.worse(unknown, RIGHT) == unknown
    assert gate.worse(unknown, wrong) == gate.worse(wrong, RIGHT) == gate.worse(wrong, unknown) == wrong


def test_a_line_of_letters_shows_the_interval_beside_the_threshold():
    found = replace(cost_of(measured()), head=Ratio(1.03, 1.01, 1.09, 0.01))

    assert reports_gated.line_of(found) == ".....:....|--o-:----."
    far = replace(found, head=Ratio(3.0, 2.0, 4.0, 0.1))
    assert reports_gated.line_of(far) == ".....:....|....:....o"


# ---------------------------------------------------------------- More than one metric


def slowed(metric, by, noise=0.002, **more):
    """Rounds of which the head differs in this."""
    draws = np.random.default_rng(1)
    made = measured(noise=noise, **more)
    return [
        replace(each, **{metric: getattr(each, metric) * (1 + by * (each.side == HEAD)) * (1 + noise * draws.random())})
        for each in made
    ]


def effect_of(made, name, declined=""):
    return next(each for each in gate.effects(made, THRESHOLD, 2, declined) if each.metric == name)


@pytest.mark.parametrize(("metric", "name"), [("memory_bytes", "memory"), ("took_ms", "catch-up")])
def test_a_head_that_needs_half_as_much_again_is_red_whatever_it_is(metric, name):
    made = slowed(metric, 0.5)

    assert effect_of(made, name).answer is Answer.REGRESSED
    assert gated(*gate.effects(made, THRESHOLD, 2)).answer is Answer.REGRESSED


def test_memory_that_differs_from_start_to_start_is_not_red():
    """Starts of one job, each side of each: a process of Python holds 102 MiB in one start, and 135 in the next."""
    draws = np.random.default_rng(1)
    mib = {(start, side): draws.choice([102, 135, 165]) for start in range(1, 9) for side in SIDES}
    made = [replace(each, memory_bytes=int(mib[each.start, each.side]) << 20) for each in measured()]

    assert effect_of(made, "memory").answer is Answer.INCONCLUSIVE
    thrice = [replace(each, memory_bytes=each.memory_bytes * (3 if each.side == HEAD else 1)) for each in made]
    assert effect_of(thrice, "memory").answer is Answer.REGRESSED


def test_what_is_open_beside_the_cost_leaves_no_gate_open():
    made = slowed("took_ms", 0.0, noise=0.01)
    made = [replace(each, took_ms=each.took_ms * (3 if each.start % 2 and each.side == HEAD else 1)) for each in made]

    assert effect_of(made, "catch-up").answer is Answer.INCONCLUSIVE
    assert gated(*gate.effects(made, THRESHOLD, 2)).answer is Answer.OK


def test_on_a_busy_machine_nothing_is_said_of_what_goes_by_the_clock():
    busy = Conditions(others_cores=0.8, stolen_share=0.0, throttled_share=None)
    made = slowed("took_ms", 0.5, head=0.5)
    slow = effect_of(made, "catch-up", busy.declined)

    assert (slow.answer, slow.reason) == (Answer.INCONCLUSIVE, "others used 0.8 cores of this machine")
    assert effect_of(made, "cost", busy.declined).answer is Answer.REGRESSED, "what a process used is its own"


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (Conditions(0.3, 0.02, 0.02), ""),
        (Conditions(0.0, None, None), ""),
        (Conditions(0.0, 0.03, None), "the host gave 3% of the machine's CPU time to others (steal)"),
        (Conditions(0.0, None, 0.5), "the quota of its cores ran out in 50% of its periods"),
    ],
)
def test_what_else_goes_on_declines_the_clock_when_it_is_much(seen, told):
    assert seen.declined == told


def test_a_base_whose_own_clock_differs_says_nothing_of_the_heads():
    made = [
        replace(each, took_ms=each.took_ms * (1.2 if each.side == gate.AGAIN else 1.5 if each.side == HEAD else 1))
        for each in slowed("took_ms", 0.0)
    ]

    assert effect_of(made, "catch-up").reason == "the base differs from itself by +20.0%"


def test_an_engine_that_can_not_run_beside_itself_makes_no_head_red():
    crashed = Judged(Outcome.FAIL, "crashed: exit code 1", "x", crashed="OSError: Address already in use")

    clash = gated(base_again=crashed, head=crashed)
    both = gated(base=crashed, base_again=crashed, head=crashed)

    assert (clash.outcome, "Address already in use" in clash.sentence) == (Outcome.UNKNOWN, True)
    assert (gated(head=crashed).outcome, both.outcome) == (Outcome.FAIL, Outcome.FAIL)


# ---------------------------------------------------------------- A calibration


def recorded(starts=8, noise=0.01, apart=0.008):
    """Starts of all arms, as a calibration records them."""
    draws = np.random.default_rng(starts)
    return [
        [
            replace(
                ROUND,
                side=arm.name,
                number=number,
                start=start,
                events=round(100_000 * (1 + arm.more)),
                cpu_s=1.5 * (1 + arm.more) * own * (1 + noise * draws.exponential()),
            )
            for arm in calibrate.ARMS
            for own in [np.exp(apart * draws.standard_normal())]
            for number in range(1, 7)
        ]
        for start in range(1, starts + 1)
    ]


def rates(starts, gates=10):
    return {(each.threshold, each.arm): each for each in calibrate.table(starts, 8, seed=1, gates=gates)}


def test_a_calibration_finds_what_it_slowed_down_and_nothing_else():
    found = rates(recorded())

    assert found[0.05, "10% dearer"].regressed == found[0.05, "10% dearer"].gates
    assert found[0.05, "10% more events"].regressed == found[0.05, "10% more events"].gates
    assert found[0.03, "5% dearer"].regressed > 0.8 * found[0.03, "5% dearer"].gates
    assert found[0.05, "no change"].regressed == 0
    assert found[0.05, "no change"].ok > 0.9 * found[0.05, "no change"].gates


def test_a_calibration_finds_a_hundredth_more_of_allocated_bytes():
    def allocates(each, start, page):
        """One round of ten holds a page more, which chance decides, and starts hardly differ."""
        own = 1 + 0.0005 * ((len(each.side) + start) % 3)
        return replace(each, allocated_bytes=round(each.events * (7000 * own + 170 * page)))

    draws = np.random.default_rng(3)
    starts = [[allocates(each, each.start, draws.random() < 0.1) for each in start] for start in recorded()]
    found = rates(starts)

    assert found[0.05, "1% more allocated"].regressed == found[0.05, "1% more allocated"].gates
    assert found[0.05, "no change"].regressed == 0
    assert "1% more allocated" not in {arm for _, arm in rates(recorded(), gates=1)}


def test_a_calibration_measures_what_its_arms_cost_and_how_far_starts_differ():
    close, apart = recorded(40, apart=0.002), recorded(40, apart=0.03)

    assert calibrate.costs(close, calibrate.Arm("no change")) == pytest.approx(1.0, abs=0.005)
    assert calibrate.costs(close, calibrate.SLOWED) == pytest.approx(1.1, abs=0.005)
    dearer = [
        [replace(each, cpu_s=each.cpu_s * (1.44 if each.side == calibrate.UNCHANGED[1].name else 1)) for each in start]
        for start in close
    ]
    assert calibrate.costs(dearer, calibrate.Arm("no change")) == pytest.approx(1 / 1.2, abs=0.005)
    assert calibrate.differ(apart)[0] == pytest.approx(0.03 * np.sqrt(2), rel=0.25)
    assert calibrate.differ(close)[0] < 0.01
    assert calibrate.differ(close)[1] == pytest.approx(0.01 * np.sqrt(2), rel=0.25)


def test_a_calibration_counts_gates_that_any_metric_makes_red():
    heavy = [
        [replace(each, memory_bytes=each.memory_bytes * (1 + (each.side == calibrate.SLOWED.name))) for each in start]
        for start in recorded()
    ]

    assert rates(heavy)[0.05, "10% more events"].regressed == 10
    assert rates(heavy)[0.05, "no change"].regressed == 0


def test_a_calibration_of_a_gate_that_can_not_tell_says_so():
    """The same gate on starts that vary fifteen times as much: whoever prints 95 % here prints it of anything."""
    found = rates(recorded(apart=0.12))

    assert found[0.05, "3% dearer"].regressed < 0.5 * found[0.05, "3% dearer"].gates
    assert found[0.05, "no change"].ok < 0.5 * found[0.05, "no change"].gates


def test_gates_of_a_calibration_are_drawn_by_start():
    starts = [[replace(each, at_ms=1000.0 * n + each.number) for each in start] for n, start in enumerate(recorded())]
    drawn = calibrate.drawn(starts, calibrate.SLOWED, 5, np.random.default_rng(1))

    assert [sum(each.side == side for each in drawn) for side in SIDES] == [30, 30, 30]
    for start in range(1, 6):
        assert len({each.at_ms // 1000 for each in drawn if each.start == start}) == 1, "all sides of one start"
    assert all(each.events == 100_000 for each in drawn), "what was sent beyond is work, and not billed as events"


def test_books_of_bursts_are_written_once_when_both_threads_end_them(tmp_path, monkeypatch):
    """A gate that is stopped: the thread that measures says that no burst follows, and so does the run's."""
    closing, written = threading.Event(), []

    class Slow:
        def close(self) -> None:
            closing.set()
            written.append(1)
            other.join(0.2)  # it waits, unless it writes the same books too

    bursts = Bursts(SPEC, "topic", tmp_path, tmp_path)
    bursts.start()
    monkeypatch.setattr(bursts, "_fleet", Slow())

    def stop() -> None:
        closing.wait(10)
        bursts.stop()

    other = threading.Thread(target=stop)
    other.start()
    bursts.end()
    other.join()

    assert written == [1]


def test_rounds_are_alike_by_what_sets_them_apart_from_the_mean_of_their_own_start():
    head: Any = SimpleNamespace(starts_differ=0.1, rounds_differ=0.2)
    rising, falling = np.array([11.0, 12.0, 13.0]), np.array([23.0, 22.0, 21.0])

    spread = gate._spread(head, [(rising, falling), (rising + 5, falling)])
    assert (spread.starts, spread.rounds) == (0.1, 0.2)
    assert spread.correlation == pytest.approx(-1.0)
    assert gate._spread(head, [(rising, np.full(3, 5.0))]).correlation == 0.0


def test_sides_are_compared_by_equally_many_rounds():
    sides = {BASE: 3, gate.AGAIN: 4, HEAD: 2}
    made = [replace(ROUND, side=side, number=number) for side, count in sides.items() for number in range(count)]

    assert {side: len(own) for side, own in rounds.by_side(made, SIDES, COST, dict.fromkeys(SIDES, 0.0)).items()} == (
        dict.fromkeys(SIDES, 2)
    )
