"""Three answers: what is slower is found, what is not is let through, and what can't be told is said to be so."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from generators.tape import Tape
from harness.experiments.gating import calibrate, gate, rounds
from harness.experiments.gating.conditions import Conditions
from harness.experiments.gating.gate import BASE, HEAD, SIDES, Answer, Gated, Judged
from harness.experiments.gating.rounds import COST, Round, Settings
from harness.load.burst_load import Bursts
from harness.model import Outcome
from tests.quick.cases import SPEC

RIGHT = Judged(Outcome.PASS, "all counted", "runs/x")
THRESHOLD = 0.05


ROUND = Round(BASE, 0, 100_000, 1.5, 0.0, 3.0, 0.0, 900.0, 1000.0, 2**30, 0.0)


def measured(count=24, seed=1, noise=0.02, fall=0.0, **slower):
    """Of so many rounds a side; what is named is slower by so much. Noise only ever adds, as a machine's does."""
    draws = np.random.default_rng(seed)
    made = []
    for number, names in enumerate(rounds.order(SIDES, count)):
        for side in names:
            slow = 1 + slower.get(side.replace(" ", "_"), 0.0)
            cost = 15.0 * (1 - fall) ** (number / count) * slow * (1 + noise * draws.exponential())
            made.append(replace(ROUND, side=side, number=number, cpu_s=cost / 10))
    return made


def cost_of(made, threshold=THRESHOLD, look=2):
    return gate.effects(made, threshold, look, seed=1)[0]


def gated(*effects, **sides):
    judged = {name: sides.get(name.replace(" ", "_"), RIGHT) for name in SIDES}
    return Gated(judged, effects, 24)


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


def test_a_round_holds_what_the_base_does_in_a_few_seconds():
    assert rounds.fitting(8, 2.0, Settings()) == 16
    assert rounds.fitting(8, 80.0, Settings()) == 1
    assert rounds.fitting(8, 2.0, rounds.of_burst(60_000)) == 3


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
    assert COST.of(replace(seen[0], cpu_s=0.0), 0.1) == pytest.approx(1e6 * rounds.LEAST_S / ROUND.events)
    assert COST.of(seen[0], 0.1) == pytest.approx(15.0)


def test_latency_is_that_of_the_events_of_a_burst():
    """All of a burst is due when it begins, whatever the tape says."""
    made = [replace(ROUND, at_ms=1000.4), replace(ROUND, at_ms=9000.0), replace(ROUND, at_ms=20_000.0)]
    due_us = np.array([1_000_400] * 3 + [9_000_000] * 2)
    seen = rounds.with_latency(made, due_us, np.array([100.0, 200.0, 300.0, 50.0, np.inf]))

    assert seen[0].p50_ms == 200.0
    assert seen[0].p99_ms == pytest.approx(298.0)
    assert seen[1:] == made[1:], "one was never seen, and of the last nothing is known"


def test_what_a_jvm_compiles_is_no_cost_of_events():
    assert COST.of(replace(ROUND, cpu_s=2.5, compiling_s=1.0), 0.0) == pytest.approx(15.0)


@pytest.mark.parametrize("seed", range(20))
def test_ten_percent_more_is_found(seed):
    assert cost_of(measured(seed=seed, head=0.10)).answer is Answer.REGRESSED


@pytest.mark.parametrize("seed", range(20))
def test_no_change_and_a_faster_head_are_let_through(seed):
    assert cost_of(measured(seed=seed)).answer is Answer.OK
    assert cost_of(measured(seed=seed, head=-0.10)).answer is Answer.OK


def test_what_falls_on_all_sides_alike_hides_nothing():
    """Spark's JVM compiled for 25 rounds, and got cheaper by a third."""
    level, falling = (cost_of(measured(head=0.10, fall=fall)) for fall in (0.0, 0.35))

    assert falling.answer is Answer.REGRESSED
    assert falling.detectable == pytest.approx(level.detectable, rel=0.2)
    assert cost_of(measured(fall=0.35)).answer is Answer.OK


def test_what_can_not_be_told_says_how_many_rounds_it_takes():
    found = cost_of(measured(count=6, noise=0.8))

    assert found.answer is Answer.INCONCLUSIVE
    assert found.detectable > THRESHOLD
    assert f"about {found.rounds_needed} rounds are needed" in found.reason
    assert found.rounds_needed > 6
    assert gated(found).is_too_fine
    assert not gated(cost_of(measured(noise=0.003, head=0.26, base_again=0.26))).is_too_fine
    assert not gated(cost_of(measured())).is_too_fine


def test_a_base_that_differs_from_itself_makes_no_head_red():
    """Two runs of one commit were 26 % apart, each of them steady to 0.3 %, and a gate of others said: regressed."""
    found = cost_of(measured(noise=0.003, head=0.26, base_again=0.26))

    assert found.answer is Answer.INCONCLUSIVE
    assert "the base differs from itself by +26" in found.reason


def test_one_lone_row_is_not_a_regression():
    """Of 1,610 rows of others one was 11.6 % above, and was gone in the next run."""
    made = measured(count=40, noise=0.005)
    lone = next(at for at, each in enumerate(made) if each.side == HEAD and each.number == 17)
    made[lone] = replace(made[lone], cpu_s=made[lone].cpu_s * 1.116)

    assert cost_of(made).answer is Answer.OK


def test_a_steady_breach_is_no_equality():
    """A test of equality of others never saw one of 5 %: it asked whether distributions differ in shape."""
    assert cost_of(measured(count=40, noise=0.01, head=0.08)).answer is Answer.REGRESSED


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


def test_few_rounds_compare_nothing():
    assert gate.effects(measured(count=gate.FEWEST_ROUNDS - 1), THRESHOLD, 2, seed=1) == ()
    assert gated().outcome is Outcome.UNKNOWN


def test_looks_are_at_most_three_and_the_last_is_at_the_end():
    for count in (6, 7, 24, 40):
        planned = gate.looks(count)

        assert len(planned) <= 3
        assert planned[-1] == count
        assert planned[0] >= gate.FEWEST_ROUNDS


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
    return next(each for each in gate.effects(made, THRESHOLD, 2, 1, declined) if each.metric == name)


@pytest.mark.parametrize(("metric", "name"), [("memory_bytes", "memory"), ("took_ms", "catch-up")])
def test_a_head_that_needs_half_as_much_again_is_red_whatever_it_is(metric, name):
    made = slowed(metric, 0.5)

    assert effect_of(made, name).answer is Answer.REGRESSED
    assert gated(*gate.effects(made, THRESHOLD, 2, 1)).answer is Answer.REGRESSED


def test_memory_that_differs_as_two_starts_of_one_job_do_is_not_red():
    assert effect_of(slowed("memory_bytes", 0.06), "memory").answer is not Answer.REGRESSED


@pytest.mark.parametrize(("times", "answer"), [(1.3, Answer.INCONCLUSIVE), (3, Answer.REGRESSED)])
def test_a_small_process_has_some_mib_more_or_less_by_chance(times, answer):
    """The sides of a true gate of one job against itself: 102, 135 and 106 MiB, in all of their rounds."""
    mib = {BASE: 102, HEAD: 104 * times, gate.AGAIN: 106}
    made = [replace(each, memory_bytes=round(mib[each.side] * 2**20)) for each in measured()]

    assert effect_of(made, "memory").answer is answer


def test_what_is_open_beside_the_cost_leaves_no_gate_open():
    made = slowed("took_ms", 0.0, noise=0.01)
    made = [replace(each, took_ms=each.took_ms * (3 if number % 5 else 1)) for number, each in enumerate(made)]

    assert effect_of(made, "catch-up").answer is Answer.INCONCLUSIVE
    assert gated(*gate.effects(made, THRESHOLD, 2, 1)).answer is Answer.OK


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


def session(seed, noise=0.03, count=40):
    draws = np.random.default_rng(seed)
    return [
        replace(
            ROUND,
            side=arm.name,
            number=number,
            events=round(100_000 * (1 + arm.more)),
            cpu_s=1.5 * (1 + arm.more) * (1 + noise * draws.exponential()),
        )
        for number, names in enumerate(rounds.order([arm.name for arm in calibrate.ARMS], count), 1)
        for arm in (next(arm for arm in calibrate.ARMS if arm.name == name) for name in names)
    ]


def rates(sessions, gates=20):
    return {(each.threshold, each.arm): each for each in calibrate.table(sessions, 24, seed=1, gates=gates)}


def test_a_calibration_finds_what_it_slowed_down_and_nothing_else():
    found = rates([session(1), session(2), session(3)])

    assert found[0.05, "10% more"].regressed == found[0.05, "10% more"].gates
    assert found[0.03, "5% more"].regressed > 0.8 * found[0.03, "5% more"].gates
    assert found[0.05, "no change"].regressed == 0
    assert found[0.05, "no change"].ok > 0.9 * found[0.05, "no change"].gates


def test_a_calibration_measures_what_its_arms_cost_and_how_far_starts_differ():
    sessions = [session(seed) for seed in range(1, 9)]
    apart = [
        [replace(each, cpu_s=each.cpu_s * (1.1 if each.side == gate.AGAIN else 1)) for each in one] for one in sessions
    ]

    assert calibrate.costs(sessions, calibrate.Arm("no change")) == pytest.approx(1.0, abs=0.01)
    assert [calibrate.costs(sessions, arm) for arm in calibrate.SLOWED] == pytest.approx([1.05, 1.1, 1.25], abs=0.01)
    assert calibrate.starts_differ(sessions, seed=1) < 0.005
    assert calibrate.starts_differ(apart, seed=1) == pytest.approx(np.log(1.1) / np.sqrt(3), abs=0.01)


def test_a_calibration_counts_gates_that_any_metric_makes_red():
    heavy = [replace(each, memory_bytes=each.memory_bytes * (1 + (each.side == HEAD))) for each in session(1)]

    assert rates([heavy])[0.05, "no change"].regressed > 0.15 * 20, "one side in three has twice the memory"


def test_a_calibration_of_a_gate_that_can_not_tell_says_so():
    """The same gate on rounds that vary twenty times as much: whoever prints 95 % here prints it of anything."""
    found = rates([session(1, noise=0.6)])

    assert found[0.05, "10% more"].regressed < 0.5 * found[0.05, "10% more"].gates


def test_gates_of_a_calibration_hold_rounds_of_one_session_that_followed_each_other():
    sessions = [[replace(each, at_ms=1000.0 * n + each.number) for each in session(n)] for n in range(3)]
    drawn = calibrate.drawn(sessions, calibrate.SLOWED[1], 20, np.random.default_rng(1))
    heads = [each for each in drawn if each.side == HEAD]

    assert [sum(each.side == side for each in drawn) for side in SIDES] == [20, 20, 20]
    assert len({each.at_ms // 1000 for each in drawn}) == 1
    assert [each.at_ms for each in heads] == sorted(each.at_ms for each in heads) or len(heads) > len(set(heads))
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
