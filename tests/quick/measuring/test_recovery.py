"""Recovery, on runs made up by hand whose every quantity can be said."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.faults.registry import parse
from harness.measuring import exposure, recovery, rework, watched
from harness.measuring.exposure import NOT_LOOKED_AT, REPLACED, Exposure, stretches, unknowable
from harness.measuring.latency import evidence
from harness.measuring.latency.visibility import Samples
from harness.measuring.measurement import Lack, Quantity, Recovery
from harness.measuring.recovery import recover
from harness.measuring.rework import CpuUse, records_again
from harness.measuring.watched import Watched
from harness.model import Batch, BatchLog, FaultReport, FaultSpec
from harness.rundir.missing_evidence import MissingEvidence
from reports.sections.recovery import rows

LOAD_S, END_S = 60.0, 65.0
STRUCK_S, LANDED_S, BACK_S = 20.0, 20.5, 27.0
RATE = 1000.0
SECONDS = np.arange(1, 66, dtype=np.float64)
NEVER_WRONG = Exposure(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))


def report(struck_s=STRUCK_S, landed_s=LANDED_S, text="kill@t>=20s", over_s=28.0) -> FaultReport:
    at_ms, landed_ms, healed_ms = (int(seconds * 1000) for seconds in (struck_s, landed_s, over_s))
    spec = FaultSpec(text, "kill")
    return FaultReport(spec, True, healed_ms > 0, "seen", at_ms=at_ms, landed_ms=landed_ms, healed_ms=healed_ms)


def every(seconds: float, *, but: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    moments = np.arange(seconds, LOAD_S, seconds)
    return np.asarray(moments[(moments <= but[0]) | (moments >= but[1])])


def seen(changes_s: np.ndarray, took_s: float = 0.05) -> dict[str, Any]:
    """Looks that take so long follow one another without a pause."""
    return {"changes_s": changes_s, "since_s": changes_s - 2 * took_s}


def backlog(struck_s=STRUCK_S, back_s=BACK_S) -> np.ndarray:
    """100 events wait as a rule; from the strike on 1,000 more each second until it is back, then 500 fewer."""
    rising = np.clip(SECONDS - struck_s, 0, back_s - struck_s) * 1000
    falling = np.clip(SECONDS - back_s, 0, None) * 500
    return np.array(100 + np.maximum(0, rising - falling))


KILLED = Watched(
    faults=(report(),),
    epoch_ms=0,
    load_s=LOAD_S,
    offered_per_s=RATE,
    end_s=END_S,
    drained=True,
    progress_s=every(0.5, but=(STRUCK_S, BACK_S)),
    **seen(every(0.5, but=(STRUCK_S, BACK_S)) + 0.1),
    windows={0.0: 0.6, 10.0: 10.6, 20.0: 27.1, 30.0: 30.6},
    backlog=backlog(),
    wrong=NEVER_WRONG,
    starts_s=(-9.0, 21.0),
)


def values(found: Recovery) -> dict[str, float | None]:
    return {
        name: None if quantity.value is None else round(quantity.value, 1)
        for name, quantity in found.quantities.items()
    }


def only(run: Watched, **others) -> Recovery:
    (found,) = recover(run, **others)
    return found


def test_a_kill_that_heals_is_told_second_by_second():
    found = only(KILLED)

    assert (found.fault, found.struck_s, found.landed_s, found.until_s) == ("kill@t>=20s", 20.0, 20.5, 65.0)
    assert (
        values(found)
        == {
            "detect_s": 1.5,  # the last word came when it struck, and three pauses of half a second are silence
            "over_s": 8.0,
            "restart_s": 1.0,
            "first_output_s": 7.1,
            "first_fresh_s": 10.6,
            "catch_up_s": 19.0,  # 7,000 too many, 500 fewer each second; a second's worth of 1,000 is not behind
            "peak_backlog": 7100.0,
            "backlog_area": float(backlog()[20:65].sum()),
            "longest_silence_s": 7.0,
            "wrong_value_s": 0.0,
            "disagreed_s": pytest.approx(0.2, abs=0.11),
        }
    )
    shown = {label: (value, over) for label, value, over, _ in rows(found)}
    assert shown["started again"] == ("1.0 s", "")
    assert len(shown) == len(found.quantities)
    assert found.quantities["detect_s"].note == (
        "no progress for more than 1.5 s: the last came 0.0 s before it struck"
    )


def test_what_was_not_reached_has_no_value_and_says_within_what():
    gone = replace(
        KILLED,
        drained=False,
        progress_s=every(0.5, but=(STRUCK_S, LOAD_S)),
        **seen(every(0.5, but=(STRUCK_S, LOAD_S))),
        windows={0.0: 0.6, 10.0: 10.6},
        backlog=backlog(back_s=65.0),
        starts_s=(-9.0,),
        stops_s=(22.0,),
        wrong=Exposure(np.array([1, 2]), np.array([25.0, 30.0]), np.array([np.inf, 31.0])),
    )

    found = only(gone).quantities

    for name in ("first_output_s", "first_fresh_s", "catch_up_s", "longest_silence_s", "loud_stop_s", "wrong_value_s"):
        assert found[name].value is None, name
    lacks = {name: found[name].lack for name in found if found[name].lack}
    assert lacks == {
        "first_output_s": Lack.NEVER,
        "first_fresh_s": Lack.NEVER,
        "catch_up_s": Lack.NEVER,
        "longest_silence_s": Lack.NO_END,
        "loud_stop_s": Lack.NO_END,
        "wrong_value_s": Lack.NO_END,
    }
    assert found["first_output_s"].note == found["catch_up_s"].note == "not within 45.0 s"
    assert "1 of 2 cells never corrected, held for at least 40.0 s" in found["wrong_value_s"].note
    assert "1 stop, and no output after the last" in found["loud_stop_s"].note
    assert "restart_s" not in found


def test_the_first_sign_detects_whatever_it_was():
    said = only(replace(KILLED, errors=((19.0, "ERROR: before"), (20.7, "ERROR: connection lost"))))
    stopped = only(replace(KILLED, stops_s=(20.2,)))

    assert said.quantities["detect_s"].note == "it logged: ERROR: connection lost"
    assert values(said)["detect_s"] == 0.7
    assert (values(stopped)["detect_s"], stopped.quantities["detect_s"].note) == (0.2, "it ended by itself")
    assert values(stopped)["loud_stop_s"] == 6.9


@pytest.mark.parametrize(
    ("changed", "well_again"),
    [
        ({"progress_s": every(0.5, but=(50.0, 55.0))}, "its first output, after 7.1 s"),
        ({"progress_s": every(0.5), "errors": ((47.3, "ERROR: late"),)}, "its first output, after 7.1 s"),
        (
            {**seen(every(0.5)), "progress_s": every(0.5, but=(50.0, 55.0)), "starts_s": ()},
            "it had caught up, after 19.0 s",
        ),
        (
            {**seen(every(0.5)), "progress_s": every(0.5, but=(50.0, 55.0)), "starts_s": (), "backlog": None},
            "the fault was over, after 8.0 s",
        ),
        ({**seen(every(0.5, but=(STRUCK_S, 90.0))), "starts_s": ()}, "all was done, after 0.0 s"),
    ],
)
def test_a_sign_that_comes_when_all_is_well_again_is_of_something_else(changed, well_again):
    found = only(replace(KILLED, **changed)).quantities["detect_s"]

    assert (found.value, found.lack) == (None, Lack.NEVER)
    assert found.note == f"nothing was noticed before {well_again}"


def test_a_silence_that_began_before_the_fault_says_so():
    slow = replace(
        KILLED, progress_s=np.array([1.0, 5.0, 9.0, 12.0, 15.0, 18.0, 41.0]), **seen(every(0.5, but=(20, 40)))
    )
    found = only(slow).quantities["detect_s"]

    assert found.value == pytest.approx(7.0)
    assert found.note == "no progress for more than 9.0 s: the last came 2.0 s before it struck"


def test_where_nobody_knows_what_is_usual_silence_detects_nothing():
    few = replace(KILLED, progress_s=np.array([1.0, 19.0, 40.0]), faults=(report(5.0, 5.1),))
    enough = replace(few, progress_s=np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 40.0]))

    assert only(few).quantities["detect_s"].note == recovery.UNUSUAL
    assert values(only(enough))["detect_s"] == 0.0, "silent already when it struck"
    assert "for more than 3.0 s" in only(enough).quantities["detect_s"].note


def test_output_is_what_came_up_after_the_restart_and_not_what_a_slow_look_saw_then():
    """Looks of 2.6 s each: two that began before the kill end after the restart, and see what the old process wrote."""
    ends_s = np.arange(2.6, LOAD_S, 2.6)
    wrote_s = np.append(np.arange(0.5, STRUCK_S, 0.5), np.arange(42.0, LOAD_S, 0.5))
    saw = [bool(((wrote_s > end - 5.2) & (wrote_s <= end)).any()) for end in ends_s]
    windows = {0.0: 2.6, 10.0: 13.0, 40.0: 44.2}
    found = only(replace(KILLED, **seen(ends_s[saw], took_s=2.6), windows=windows, starts_s=(-9.0, 20.6)))

    assert 23.4 in ends_s[saw].round(1), "the old process wrote until 20 s, and a look began by then"
    assert values(found)["restart_s"] == 0.6
    assert values(found)["first_output_s"] == values(found)["first_fresh_s"] == 24.2


def test_what_an_engine_that_ended_by_itself_had_written_ends_no_outage():
    ends_s = np.array([*np.arange(2.6, 24.0, 2.6), 44.2, 46.8])
    found = only(replace(KILLED, **seen(ends_s, took_s=2.6), stops_s=(20.5,), starts_s=(-9.0, 20.6), windows={}))

    assert values(found)["loud_stop_s"] == pytest.approx(23.7)


def test_a_change_seen_by_a_poll_that_began_at_the_stop_came_after_it():
    changes_s = np.array([10.0, 21.0, 25.0])
    stopped = replace(KILLED, changes_s=changes_s, since_s=changes_s - 0.5, stops_s=(20.5,))

    assert values(only(stopped))["loud_stop_s"] == 0.5


def test_who_never_fell_behind_had_caught_up_with_its_first_output():
    """A second a little above the usual, long after, is noise of a small backlog and no falling behind."""
    noise = np.full(65, 700.0) + np.where(np.arange(65) == 42, 103.0, 0.0)
    killed = only(replace(KILLED, backlog=noise)).quantities["catch_up_s"]
    untouched = only(replace(KILLED, backlog=noise, **seen(every(0.5)), starts_s=())).quantities

    assert killed.value == pytest.approx(7.1)
    assert "never fell behind: at most 1,700 events behind" in killed.note
    assert untouched["catch_up_s"].value == 0.0
    assert untouched["first_output_s"].note == recovery.STEADY_OUTPUT


def test_a_backlog_of_long_after_the_fault_is_not_of_it():
    later = np.full(65, 100.0) + np.where(np.arange(65) >= 50, 9_000.0, 0.0)

    assert values(only(replace(KILLED, backlog=later)))["catch_up_s"] == 7.1


def test_nobody_has_caught_up_whose_output_is_not_back():
    seen_late: dict[str, Any] = {"windows": {0.0: 0.6, 20.0: 40.1}, **seen(every(0.5, but=(STRUCK_S, 40.0)) + 0.1)}
    ahead = replace(KILLED, backlog=backlog(back_s=21.0), **seen_late)

    assert values(only(ahead))["catch_up_s"] == values(only(ahead))["first_output_s"] == 20.1


def test_output_that_paused_while_the_fault_lasted_is_back_after_the_pause():
    """What was under way when it landed comes out all the same, and is no recovery."""
    paused = replace(KILLED, starts_s=(), **seen(np.sort([*every(0.5, but=(STRUCK_S, 33.0)), 20.7])))
    found = only(paused)

    assert values(found)["first_output_s"] == 13.0
    assert found.quantities["first_output_s"].note == ""


def test_a_backlog_that_goes_away_with_the_load_is_not_caught_up():
    """Nor is it never: the load ended first, and all came out right."""
    late = replace(KILLED, faults=(report(50.0, 50.5, over_s=58.0),), backlog=backlog(50.0, 57.0), starts_s=(51.0,))
    found = only(late).quantities["catch_up_s"]

    assert (found.value, found.lack) == (None, Lack.UNKNOWN)
    assert found.note == "the load ended 10.0 s after it struck, with 5,600 events to do"
    assert only(replace(late, drained=False)).quantities["catch_up_s"].lack is Lack.NEVER


def test_what_could_not_come_is_not_said_to_have_never_come():
    at_the_end = replace(KILLED, faults=(report(59.8, 60.2, over_s=60.3),), starts_s=(60.3,))
    found = only(at_the_end).quantities

    assert (found["first_output_s"].lack, found["first_output_s"].note) == (Lack.UNKNOWN, "all had come out already")
    assert (found["first_fresh_s"].lack, found["first_fresh_s"].note) == (
        Lack.UNKNOWN,
        "no window began after it had landed",
    )


def test_a_fault_that_was_not_seen_undone_says_so():
    found = only(replace(KILLED, faults=(report(over_s=0.0),))).quantities["over_s"]

    assert (found.value, found.lack) == (None, Lack.NEVER)


def test_without_seconds_before_the_fault_the_twin_says_what_is_usual():
    faults, changes_s = (report(2.0, 2.5, over_s=9.0),), every(0.5, but=(2.0, 9.0))
    early = replace(KILLED, faults=faults, backlog=backlog(2.0, 9.0), starts_s=(3.0,), **seen(changes_s))
    twin = replace(KILLED, faults=(), backlog=np.full(65, 100.0))

    assert "nothing to compare with: the first fault struck 2.0 s" in only(early).quantities["catch_up_s"].note
    assert values(only(early, twin=twin))["catch_up_s"] == 19.0


def test_a_twin_takes_off_what_would_have_been_anyway():
    steady = every(0.5)
    twin = replace(KILLED, faults=(), backlog=np.full(65, 100.0), progress_s=steady, **seen(steady))
    found = only(KILLED, twin=twin).quantities

    assert found["peak_backlog"].over_twin == 7000.0
    assert found["backlog_area"].over_twin == float(backlog()[20:65].sum() - 45 * 100)
    assert found["longest_silence_s"].over_twin == pytest.approx(6.5)
    assert found["detect_s"].over_twin is None


def test_each_fault_of_a_plan_answers_until_the_next():
    twice = replace(KILLED, faults=(report(), report(30.0, 30.2, "kill@t>=30s")))

    first, second = recover(twice)

    assert (first.until_s, second.struck_s, second.until_s) == (30.0, 30.0, 65.0)
    assert (first.quantities["catch_up_s"].value, first.quantities["catch_up_s"].lack) == (None, Lack.UNKNOWN)
    assert "when the next fault struck" in first.quantities["catch_up_s"].note
    assert values(second)["longest_silence_s"] == 0.5
    assert values(second)["catch_up_s"] == 9.0  # to what was usual before the first of them


STEADY_CPU = CpuUse(np.array([0.0, END_S]), np.array([0.0, END_S]))  # one core all the time
ADDED = replace(report(text="add-worker@t>=20s"), spec=FaultSpec("add-worker@t>=20s", "add-worker"))
COUNTED = replace(KILLED, faults=(ADDED,), stops_s=(20.2,), cpu=STEADY_CPU, tasks_lost=2, records_again=4_000)


def test_speed_is_withheld_where_counts_are_wrong_and_damage_is_not():
    found = only(COUNTED, withheld="no speed for a run that is FAIL", twin=COUNTED).quantities

    for name in recovery.OF_SPEED:
        assert found[name].value is None
        assert found[name].lack is Lack.WITHHELD
    assert found["longest_silence_s"].value is not None
    assert found["wrong_value_s"].value == 0.0


def test_every_quantity_has_its_words():
    assert list(only(COUNTED, twin=COUNTED).quantities) == list(recovery.WORDS)


SECONDS_S = st.floats(0.0, END_S, allow_nan=False).map(lambda seconds: round(seconds, 3))
MOMENTS = st.lists(SECONDS_S, max_size=40).map(lambda found: np.unique(np.array(found, dtype=np.float64)))


@st.composite
def runs(draw) -> Watched:
    """Whatever may be seen of a run, in whatever order things come."""
    struck_s = draw(st.lists(st.floats(0.0, LOAD_S), min_size=1, max_size=3).map(sorted))
    faults = [
        report(
            struck, struck + draw(st.floats(0.0, 3.0)), over_s=draw(st.sampled_from((0.0, struck + 3.0, struck + 30.0)))
        )
        for struck in struck_s
    ]
    return Watched(
        faults=tuple(faults),
        epoch_ms=0,
        load_s=LOAD_S,
        offered_per_s=RATE,
        end_s=END_S,
        drained=draw(st.booleans()),
        progress_s=draw(MOMENTS),
        **seen(changes := draw(MOMENTS), took_s=draw(st.sampled_from((0.0, 0.05, 2.6)))),
        windows={float(start): float(seen) for start, seen in zip(range(0, 60, 10), changes, strict=False)},
        backlog=draw(st.none() | st.lists(st.floats(0.0, 5_000.0), min_size=65, max_size=65).map(np.array)),
        wrong=NEVER_WRONG,
        starts_s=tuple(sorted(draw(st.lists(SECONDS_S, max_size=2)))),
        stops_s=tuple(sorted(draw(st.lists(SECONDS_S, max_size=2)))),
        errors=tuple((second, "ERROR") for second in draw(MOMENTS)[:3]),
    )


@given(runs())
def test_figures_of_one_fault_never_contradict_one_another(run):
    for found in recover(run):
        known = {name: quantity.value for name, quantity in found.quantities.items() if quantity.value is not None}
        output, steady = known.get("first_output_s"), found.quantities["first_output_s"].note == recovery.STEADY_OUTPUT
        pairs = [("restart_s", "first_output_s"), ("first_output_s", "first_fresh_s")]
        if not steady:
            pairs += [("first_output_s", "catch_up_s"), ("detect_s", "first_output_s")]
        for sooner, later in pairs:
            if sooner in known and later in known:
                assert known[sooner] <= known[later] + 1e-9, (sooner, later, found)
        if output is None:
            assert {"first_fresh_s", "catch_up_s"} & set(known) <= ({"catch_up_s"} if steady else set())
        if "over_s" in known:
            assert known["over_s"] >= found.landed_s - found.struck_s - 1e-3
        for name, quantity in found.quantities.items():
            assert (quantity.value is None) == (quantity.lack is not None), (name, quantity)
            assert quantity.value is None or quantity.value >= 0


@given(runs())
def test_a_drained_run_that_came_out_whole_was_never_said_to_have_not_come_back(run):
    """The last fault of a run that did all it had to do: what it lacks could not be known."""
    last = recover(replace(run, drained=True))[-1]

    for name in ("first_output_s", "catch_up_s"):
        assert name not in last.quantities or last.quantities[name].lack in (None, Lack.UNKNOWN), last.quantities[name]


def test_cpu_is_counted_from_the_strike_to_the_end_and_compared_with_the_baseline_from_the_same_second_on():
    used = CpuUse(np.array([0.0, STRUCK_S, END_S]), np.array([0.0, STRUCK_S, STRUCK_S + 2 * (END_S - STRUCK_S)]))
    found = only(replace(KILLED, cpu=used), twin=replace(KILLED, cpu=STEADY_CPU)).quantities["cpu_s"]

    assert found.value == pytest.approx(90.0)
    assert found.over_twin == pytest.approx(45.0)
    slow = replace(KILLED, cpu=CpuUse(np.array([0.0, 99.0]), np.array([0.0, 99.0])), end_s=99.0)
    assert only(replace(KILLED, cpu=used), twin=slow).quantities["cpu_s"].over_twin == pytest.approx(90.0 - 79.0)
    assert "cpu_s" not in only(replace(KILLED, cpu=used)).quantities  # nothing to compare with


def test_what_ran_again_is_told_of_a_run_with_one_fault_only():
    lost = replace(KILLED, tasks_lost=2, records_again=4_000)

    assert (values(only(lost))["tasks_again"], values(only(lost))["records_again"]) == (2, 4_000)
    assert values(only(replace(KILLED, tasks_lost=0)))["tasks_again"] == 0
    two = recover(replace(lost, faults=(report(), report(struck_s=40.0, landed_s=40.5, over_s=48.0))))
    assert all("tasks_again" not in each.quantities for each in two)


def of_growth(backlog: np.ndarray, action: str = "add-worker"):
    added = replace(report(text=f"{action}@t>=20s"), spec=FaultSpec(f"{action}@t>=20s", action))
    return only(replace(KILLED, faults=(added,), backlog=backlog)).quantities.get("benefit_s")


def test_the_time_to_benefit_is_that_until_less_is_due_than_before():
    falling_behind = np.where(SECONDS <= 30, SECONDS * 500, 15_000 - (SECONDS - 30) * 1_000)
    found = of_growth(np.maximum(falling_behind, 0.0))

    assert found.value == pytest.approx(16.0)  # 10,000 were due at 20 s, and fewer from the second after 35 s on
    assert "10,000 events" in found.note


def test_there_is_no_benefit_without_a_backlog_before_or_if_it_only_grows():
    idle, growing = of_growth(np.full(65, 100.0)), of_growth(SECONDS * 500)

    assert (idle.value, idle.lack) == (None, Lack.UNKNOWN)
    assert "nothing to gain" in idle.note
    assert (growing.value, growing.lack) == (None, Lack.NEVER)
    assert of_growth(SECONDS * 500, "kill") is None


def test_records_of_replayed_batches_are_counted_once_each():
    batches = tuple(Batch(n, {0: 100 * (n + 1), 1: 50 * (n + 1)}, 0, replayed=n in (1, 3)) for n in range(4))

    assert records_again(BatchLog(batches, True, True)) == 300
    assert records_again(BatchLog(batches, True, complete=False)) is None
    assert records_again(None) is None


def exposed(seen, sent, wrong_in_the_end=()):
    """Of one cell: looks as (second, count), and the seconds at which its events were sent."""
    at_s, count = (np.array(column, dtype=np.float64) for column in zip(*seen, strict=True))
    samples = Samples(np.zeros(len(seen), dtype=np.int64), (at_s * 1e6).astype(np.int64), count.astype(np.int64))
    sent_us = (np.array(sent) * 1e6).astype(np.int64)
    found = stretches(samples, np.zeros(len(sent), dtype=np.int64), sent_us, np.array(wrong_in_the_end, dtype=np.int64))
    return list(zip(found.from_s.tolist(), found.to_s.tolist(), strict=True))


@pytest.mark.parametrize(
    ("seen", "wrong_in_the_end", "stretch"),
    [
        ([(1.5, 1), (2.5, 2), (9, 4)], (), []),  # behind is not wrong
        ([(1.5, 2), (4, 3)], (), [(1.5, 2.0)]),  # more than were sent, until they were
        ([(4.5, 4), (5, 2), (7, 4)], (), [(5.0, 7.0)]),  # a dip
        ([(7, 4), (4.5, 4), (5, 2)], (), [(5.0, 7.0)]),  # polls in any order
        ([(4.5, 4), (5, 0), (6, 1), (7, 4)], (), [(5.0, 6.0), (6.0, 7.0)]),
        ([(4.5, 4), (5, 7), (8, 4)], (), [(5.0, 8.0)]),  # counted twice and corrected, which is no dip
        ([(4.5, 4), (5, 7)], (0,), [(5.0, np.inf)]),
        ([(4.5, 3)], (0,), [(4.5, np.inf)]),  # lost
        ([(3, 3)], (0,), [(3.0, np.inf)]),  # lost, and seen at the very moment at which an event was sent
        ([(1.98, 2)], (), []),  # sooner than any look: clocks
    ],
)
def test_how_long_a_wrong_count_was_there(seen, wrong_in_the_end, stretch):
    assert exposed(seen, [1, 2, 3, 4], wrong_in_the_end) == stretch


def test_the_longest_of_all_wrong_cells_is_told():
    wrong = Exposure(np.array([1, 2, 3]), np.array([25.0, 30.0, 31.0]), np.array([28.0, 31.0, 32.5]))

    found = only(replace(KILLED, wrong=wrong)).quantities["wrong_value_s"]

    assert found.value == 3.0
    assert found.note == "the longest of 3 cells, all corrected"


@pytest.mark.parametrize(("drained", "until_s"), [(False, 65.0), (True, 40.0), (False, 40.0)])
def test_the_last_silence_lasts_until_nobody_looks_any_more(drained, until_s):
    """Nothing came in the last ten seconds before the next fault, or before an end that was given up on."""
    last_s = until_s - 10.5
    second = report(struck_s=40.0, landed_s=40.0, over_s=41.0, text="kill@t>=40s")
    changed_s = every(0.5, but=(last_s, until_s + 5))
    run = replace(
        KILLED, drained=drained, faults=(report(), second) if until_s < END_S else (report(),), **seen(changed_s)
    )
    found = recover(run)[0].quantities["longest_silence_s"]

    if until_s < END_S:
        assert found.value == pytest.approx(10.5)
    else:
        assert (found.value, found.lack) == (None, Lack.NO_END)
        assert "in the last 10.5 s" in found.note


def test_what_drained_in_the_end_was_silent_for_no_longer_than_between_two_changes():
    quiet = replace(KILLED, **seen(every(0.5, but=(50.0, LOAD_S))))

    assert only(quiet).quantities["longest_silence_s"].value == 0.5


def test_exposures_of_a_cell_add_up_and_are_cut_to_the_fault():
    found = Exposure(np.array([1, 1, 2]), np.array([5.0, 8.0, 1.0]), np.array([6.0, 10.0, 4.0])).within(5.5, 9.0)

    assert found.of_cells_s(9.0).tolist() == [1.5]
    assert found.wrong_at(np.array([5.7, 7.0, 8.5])).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("options", "restored", "why"),
    [
        ("counts=click, means=carry", (3,), ""),
        ("counts=click, means=carry", (), "it is unknown which events are in the state with which the new job started"),
        ("counts=click, means=anew", (3,), REPLACED),
        ("counts=click, by=ad, means=fresh", (3,), NOT_LOOKED_AT),
        ("window=20s, means=carry", (3,), "windows of two lengths lie in the same cells of the store"),
        ("to=same", (), ""),
    ],
)
def test_what_was_right_at_each_moment_is_known_of_a_question_that_was_carried_on(options, restored, why):
    fault = parse(f"change-job({options})@now")

    assert unknowable(FaultReport(fault, True, True, "seen", restored=restored)) == why


def test_a_window_that_begins_when_the_fault_lands_is_fresh():
    found = only(replace(KILLED, faults=(report(landed_s=30.0, over_s=31.0),), starts_s=()))

    assert values(found)["first_fresh_s"] == 10.6


def test_a_backlog_that_is_just_as_large_as_usual_is_not_behind():
    """At most the p95 before the fault, and one second's worth of events."""
    usual = np.where(SECONDS <= STRUCK_S, 100.0, 1100.0)
    found = only(replace(KILLED, backlog=usual)).quantities["catch_up_s"]

    assert found.value == pytest.approx(7.1)
    assert found.note.startswith("never fell behind: at most 1,100 events behind")


def test_a_pause_that_becomes_a_silence_when_the_fault_strikes_detects_it():
    found = only(replace(KILLED, progress_s=every(0.5, but=(18.5, BACK_S)))).quantities["detect_s"]

    assert (found.value, found.note) == (
        0.0,
        "no progress for more than 1.5 s: the last came 1.5 s before it struck",
    )


def test_a_pause_is_no_silence_before_it_is_longer_than_usual():
    moments_s = every(0.5, but=(18.5, BACK_S))

    alarmed = recovery._alarmed(moments_s, KILLED, recovery._stretch(KILLED, 0))
    assert alarmed is not None
    assert alarmed[:2].tolist() == [False, True]


def test_how_long_nothing_has_changed_is_said_of_each_second():
    run = replace(KILLED, end_s=4.2)

    assert recovery.silent_s(run, np.array([1.5, 3.0])).tolist() == [1.0, 0.5, 0.0, 1.0, 2.0]


def test_changes_are_dated_from_the_load_start_and_those_of_closing_events_left_out():
    looks = {"at_us": [3_000_000, 4_000_000, 5_000_000], "window_ms": [1000, 11_000, 22_000], "count": [1, 1, 1]}

    def seen(rows: int) -> Any:
        run: Any = SimpleNamespace(samples=pa.table(looks).slice(0, rows))
        changes_s, since_s, windows = watched._seen(run, 1000, 20.0)
        return changes_s.tolist(), since_s.tolist(), windows

    assert seen(3) == ([2.0, 3.0], [2.0, 3.0], {0.0: 2.0, 10.0: 3.0})
    assert seen(0) == ([], [], {})


def test_a_run_whose_results_were_not_polled_has_no_changes():
    class Unpolled:
        @property
        def samples(self) -> Any:
            raise MissingEvidence("no samples")

    run: Any = Unpolled()
    changes_s, since_s, windows = watched._seen(run, 1000, 20.0)

    assert (len(changes_s), len(since_s), windows) == (0, 0, {})


def test_wrong_values_before_and_after_a_change_of_the_question_are_joined(monkeypatch):
    """Each until or from the moment of the change."""
    number = {"old": 1, "new": 2}

    def shown(found: str, from_us: float = 0, until_us: float = np.inf) -> Exposure:
        return Exposure(np.array([number[found]]), np.array([from_us]), np.array([until_us]))

    monkeypatch.setattr(exposure, "_shown", shown)
    monkeypatch.setattr(evidence, "collect", lambda _: "old")
    monkeypatch.setattr(evidence, "collect_by", lambda *_: "new")
    change = SimpleNamespace(landed_ms=7, restored=True)
    run: Any = SimpleNamespace(change=change, question=object(), countable=object(), countable_anew=object())
    joined = exposure.exposure(run)

    assert (joined.cell.tolist(), joined.from_s.tolist(), joined.to_s.tolist()) == ([1, 2], [0, 7000], [7000, np.inf])
    unchanged: Any = SimpleNamespace(change=None, question=None, countable_anew=None)
    assert exposure.exposure(unchanged).to_s.tolist() == [np.inf]


PARTS = [("engine", 1000, 1.0), ("engine", 3000, 5.0), ("python workers", 3000, 2.0), ("kafka", 1000, 9.0)]


@pytest.mark.parametrize(
    ("parts", "used_s"), [(PARTS, [2.0, 14.0]), (PARTS[-1:], None), ([], None)], ids=["seen", "others", "none"]
)
def test_the_cpu_time_of_an_engine_is_that_of_all_of_its_parts(monkeypatch, parts, used_s):
    rows = [dict(zip(("part", "at_ms", "cpu_user_s"), each, strict=True)) for each in parts]
    columns = {"part": pa.string(), "at_ms": pa.int64(), "cpu_user_s": pa.float64(), "cpu_system_s": pa.float64()}
    table = pa.Table.from_pylist([{**row, "cpu_system_s": row["cpu_user_s"]} for row in rows], pa.schema(columns))
    monkeypatch.setattr(rework, "resources_of", lambda _: table)
    run: Any = None
    found = rework.cpu_use(run, 1000)

    assert (found and (found.at_s.tolist(), found.used_s.tolist())) == (used_s and ([0.0, 2.0], used_s))
    monkeypatch.setattr(rework, "resources_of", lambda _: None)
    assert rework.cpu_use(run, 1000) is None


@pytest.mark.parametrize(
    ("master", "on_spark", "logs", "lost"),
    [
        ("cluster[2]", True, 2, 2),
        ("cluster[2]", True, 0, None),
        ("cluster[2]", False, 2, None),
        ("local[*]", True, 2, None),
    ],
)
def test_lost_tasks_are_counted_in_the_logs_of_all_drivers_of_a_cluster(tmp_path, master, on_spark, logs, lost):
    for number in range(logs):
        line = "Lost task 1.0 in stage 9.0 (TID 31) (host executor 1): ExecutorLostFailure\n"
        (tmp_path / f"engine-{number}.log").write_text(line)
    run: Any = SimpleNamespace(
        store=SimpleNamespace(logs=tmp_path),
        spec=SimpleNamespace(master=master),
        manifest=SimpleNamespace(on_spark=on_spark),
    )

    assert rework.tasks_lost(run) == lost


def test_what_happens_at_the_very_end_of_a_stretch_or_of_the_old_process_belongs_to_it():
    (fault,) = recover(KILLED)
    stopped = replace(KILLED, stops_s=(fault.until_s,))
    assert "loud_stop_s" in only(stopped).quantities
    assert "loud_stop_s" not in only(replace(KILLED, stops_s=(fault.until_s + 0.1,))).quantities

    stretch: Any = SimpleNamespace(landed_s=LANDED_S)
    stops = replace(KILLED, changes_s=np.array([26.0, 28.0]), since_s=np.array([26.0, 28.0]), windows={})
    assert recovery._of_the_new(replace(stops, stops_s=(BACK_S,)), stretch, BACK_S).tolist() == [28.0]
    run = replace(KILLED, changes_s=np.array([21.0, 22.0, 23.0]), since_s=np.array([20.4, LANDED_S, 22.5]), windows={})
    assert recovery._of_the_new(run, stretch, BACK_S).tolist() == [22.0, 23.0]
    whole = recovery._Stretch(STRUCK_S, LANDED_S, None, END_S, STRUCK_S, last=True)
    assert whole.inside(np.array([19.9, STRUCK_S, END_S, 65.1])).tolist() == [STRUCK_S, END_S]


@pytest.mark.parametrize("name", recovery.WORDS)
def test_each_quantity_is_a_row_with_its_label_and_unit(name):
    found = Recovery("kill@now", STRUCK_S, LANDED_S, END_S, {name: Quantity(2.0)})
    ((label, value, _, _),) = rows(found)

    assert label
    assert value.startswith("2")
    assert len(value.split()) == 2
