"""Recovery, on runs made up by hand whose every quantity can be said, and on whole runs of the fake engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness import measure, recovery
from harness.exposure import Exposure, stretches
from harness.latency.visibility import Samples
from harness.measurement import Recovery
from harness.model import FaultReport, FaultSpec
from harness.recovery import Watched, recover
from harness.store import Store
from tests.quick.test_run import fake_run

LOAD_S, END_S = 60.0, 65.0
STRUCK_S, LANDED_S, BACK_S = 20.0, 20.5, 27.0
SECONDS = np.arange(1, 66, dtype=np.float64)
NEVER_WRONG = Exposure(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))


def report(struck_s=STRUCK_S, landed_s=LANDED_S, text="kill@t>=20s") -> FaultReport:
    at_ms, landed_ms = int(struck_s * 1000), int(landed_s * 1000)
    return FaultReport(FaultSpec(text, "kill"), True, True, "seen", at_ms=at_ms, landed_ms=landed_ms)


def every(seconds: float, *, but: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    moments = np.arange(seconds, LOAD_S, seconds)
    return np.asarray(moments[(moments <= but[0]) | (moments >= but[1])])


def backlog(struck_s=STRUCK_S, back_s=BACK_S) -> np.ndarray:
    """100 events wait as a rule; from the strike on 1,000 more each second until it is back, then 500 fewer."""
    rising = np.clip(SECONDS - struck_s, 0, back_s - struck_s) * 1000
    falling = np.clip(SECONDS - back_s, 0, None) * 500
    return np.array(100 + np.maximum(0, rising - falling))


KILLED = Watched(
    faults=(report(),),
    epoch_ms=0,
    load_s=LOAD_S,
    end_s=END_S,
    drained=True,
    progress_s=every(0.5, but=(STRUCK_S, BACK_S)),
    changes_s=every(0.5, but=(STRUCK_S, BACK_S)) + 0.1,
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
            "restart_s": 1.0,
            "first_output_s": 7.1,
            "first_fresh_s": 10.6,
            "catch_up_s": 21.0,  # 7,000 too many, 500 fewer each second
            "peak_backlog": 7100.0,
            "backlog_area": float(backlog()[20:65].sum()),
            "longest_silence_s": 7.0,
            "wrong_value_s": 0.0,
            "disagreed_s": pytest.approx(0.2, abs=0.11),
        }
    )
    assert "no progress for more than 1.5 s" in found.quantities["detect_s"].note


def test_what_was_not_reached_has_no_value_and_says_within_what():
    gone = replace(
        KILLED,
        drained=False,
        progress_s=every(0.5, but=(STRUCK_S, LOAD_S)),
        changes_s=every(0.5, but=(STRUCK_S, LOAD_S)),
        windows={0.0: 0.6, 10.0: 10.6},
        backlog=backlog(back_s=65.0),
        starts_s=(-9.0,),
        stops_s=(22.0,),
        wrong=Exposure(np.array([1, 2]), np.array([25.0, 30.0]), np.array([np.inf, 31.0])),
    )

    found = only(gone).quantities

    for name in ("first_output_s", "first_fresh_s", "catch_up_s", "longest_silence_s", "loud_stop_s", "wrong_value_s"):
        assert found[name].value is None, name
    assert "not within 45.0 s" in found["first_output_s"].note
    assert "not within the 40.0 s in which events still came" in found["catch_up_s"].note
    assert "1 of 2 cells never corrected, held for at least 40.0 s" in found["wrong_value_s"].note
    assert "1 stop, and no output after the last" in found["loud_stop_s"].note
    assert "restart_s" not in found


def test_the_first_sign_detects_whatever_it_was():
    said = only(replace(KILLED, errors=((19.0, "ERROR: before"), (20.7, "ERROR: connection lost"))))
    stopped = only(replace(KILLED, stops_s=(20.2,)))

    assert said.quantities["detect_s"].note == "it said: ERROR: connection lost"
    assert values(said)["detect_s"] == 0.7
    assert (values(stopped)["detect_s"], stopped.quantities["detect_s"].note) == (0.2, "it ended by itself")
    assert values(stopped)["loud_stop_s"] == 6.9


def test_a_sign_that_comes_when_all_is_well_again_is_of_something_else():
    quiet = replace(KILLED, progress_s=every(0.5, but=(50.0, 55.0)), changes_s=every(0.5))
    found = only(quiet).quantities["detect_s"]

    assert found.value is None
    assert "before it had caught up, after 21.0 s" in found.note


def test_where_nobody_knows_what_is_usual_silence_detects_nothing():
    few = replace(KILLED, progress_s=np.array([1.0, 19.0, 40.0]), faults=(report(5.0, 5.1),))
    enough = replace(few, progress_s=np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 40.0]))

    assert only(few).quantities["detect_s"].note == recovery.UNUSUAL
    assert values(only(enough))["detect_s"] == 0.0, "silent already when it struck"
    assert "for more than 3.0 s" in only(enough).quantities["detect_s"].note


def test_a_small_hiccup_is_no_falling_behind():
    assert values(only(replace(KILLED, backlog=np.full(65, 100.0))))["catch_up_s"] == 0.0


def test_a_backlog_that_goes_away_with_the_load_is_not_caught_up():
    late = replace(KILLED, faults=(report(50.0, 50.5),), backlog=backlog(50.0, 57.0))

    assert only(late).quantities["catch_up_s"].value is None


def test_without_seconds_before_the_fault_the_twin_says_what_is_usual():
    early = replace(KILLED, faults=(report(2.0, 2.5),), backlog=backlog(2.0, 9.0))
    twin = replace(KILLED, faults=(), backlog=np.full(65, 100.0))

    assert "nothing to compare with: the first fault struck 2.0 s" in only(early).quantities["catch_up_s"].note
    assert values(only(early, twin=twin))["catch_up_s"] == 21.0


def test_a_twin_takes_off_what_would_have_been_anyway():
    steady = every(0.5)
    twin = replace(KILLED, faults=(), backlog=np.full(65, 100.0), progress_s=steady, changes_s=steady)
    found = only(KILLED, twin=twin).quantities

    assert found["peak_backlog"].over_twin == 7000.0
    assert found["backlog_area"].over_twin == float(backlog()[20:65].sum() - 45 * 100)
    assert found["longest_silence_s"].over_twin == pytest.approx(6.5)
    assert found["detect_s"].over_twin is None


def test_each_fault_of_a_plan_answers_until_the_next():
    twice = replace(KILLED, faults=(report(), report(30.0, 30.2, "kill@t>=30s")))

    first, second = recover(twice)

    assert (first.until_s, second.struck_s, second.until_s) == (30.0, 30.0, 65.0)
    assert first.quantities["catch_up_s"].value is None
    assert values(second)["longest_silence_s"] == 0.5
    assert values(second)["catch_up_s"] == 11.0  # to what was usual before the first of them


def test_speed_is_withheld_where_counts_are_wrong_and_damage_is_not():
    found = only(KILLED, withheld="no speed for a run that is FAIL").quantities

    for name in recovery.OF_SPEED:
        assert found[name].value is None
        assert "withheld" in found[name].note
    assert found["longest_silence_s"].value is not None
    assert found["wrong_value_s"].value == 0.0


def test_every_quantity_has_its_words():
    stopped = replace(KILLED, stops_s=(20.2,))

    assert list(only(stopped).quantities) == list(recovery.WORDS)


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
        ([(4.5, 4), (5, 0), (6, 1), (7, 4)], (), [(5.0, 6.0), (6.0, 7.0)]),
        ([(4.5, 4), (5, 7), (8, 4)], (), [(5.0, 8.0)]),  # counted twice and corrected, which is no dip
        ([(4.5, 4), (5, 7)], (0,), [(5.0, np.inf)]),
        ([(4.5, 3)], (0,), [(4.5, np.inf)]),  # lost
        ([(1.98, 2)], (), []),  # sooner than any look: clocks
    ],
)
def test_how_long_a_wrong_count_was_there(seen, wrong_in_the_end, stretch):
    assert exposed(seen, [1, 2, 3, 4], wrong_in_the_end) == stretch


def test_exposures_of_a_cell_add_up_and_are_cut_to_the_fault():
    found = Exposure(np.array([1, 1, 2]), np.array([5.0, 8.0, 1.0]), np.array([6.0, 10.0, 4.0])).within(5.5, 9.0)

    assert found.of_cells_s(9.0).tolist() == [1.5]
    assert found.wrong_at(np.array([5.7, 7.0, 8.5])).tolist() == [1, 0, 1]


@pytest.mark.parametrize(("sink", "wrong"), [("absolute", False), ("increment", True)])
def test_a_whole_run_keeps_its_recovery(tmp_path, sink, wrong):
    verdict, store, _ = fake_run(tmp_path, sink=sink, fault="kill@c3:batch=5")
    _, twin, _ = fake_run(tmp_path, sink=sink, fault="none")
    recovery.link_twin(store, twin.path)
    measure.save(store, verdict)

    kept: tuple[Recovery, ...] = Store(store.path).read_as(measure.RECOVERY, tuple[Recovery, ...])
    (found,) = kept
    assert found.fault == "kill@c3:batch=5"
    assert 0 < found.struck_s <= found.landed_s
    told = values(found)
    assert told["longest_silence_s"]
    assert found.quantities["longest_silence_s"].over_twin is not None
    if wrong:
        assert told["wrong_value_s"] is None
        assert "never corrected" in found.quantities["wrong_value_s"].note
        assert "withheld" in found.quantities["first_output_s"].note
    else:
        assert told["wrong_value_s"] == 0.0
        assert told["restart_s"] is not None
        assert told["first_output_s"]


def test_a_run_without_a_fault_has_none(tmp_path):
    verdict, store, _ = fake_run(tmp_path, fault="none")
    measure.save(store, verdict)

    assert store.read_json(measure.RECOVERY) == []
