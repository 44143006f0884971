"""What another config was worth to an engine that was behind: curves whose answers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.faults.registry import parse
from harness.judging.progress_curve import Curve
from harness.measuring.measurement import Lack, Quantity, Reconfiguration
from harness.measuring.worth import Behind, of_changes
from harness.model import FaultReport
from reports.sections import backlog as catch_up
from reports.sections.backlog import at_rate_before

EPOCH_MS = 1_750_000_000_000
LOAD_S, OFFERED_PER_S, WAITING = 60, 100.0, 6000.0
CHANGED = FaultReport(
    parse("change-slots(to=2)@batch>=3"), landed=True, healed=True, proof="seen", landed_ms=EPOCH_MS + 12_000
)


def behind(before_per_s: float = 200.0, after_per_s: float = 1000.0, back_s: int = 20) -> Behind:
    """A word a second: from 5 s on at the old rate; down from 10 s until `back_s`, and then at the new one."""
    old_s, new_s = np.arange(5.0, 11.0), np.arange(float(back_s), LOAD_S + 1.0)
    total = [*(before_per_s * (old_s - 4)), *(before_per_s * 6 + after_per_s * (new_s - back_s + 1))]
    due = WAITING + OFFERED_PER_S * np.arange(LOAD_S + 1.0)
    done = Curve(np.concatenate((old_s, new_s)), np.array(total), np.zeros(len(total)))
    return Behind(done, due, started_s=1.0, until_s=float(LOAD_S), end="the load ended")


def only(engine: Behind, *reports: FaultReport) -> Reconfiguration:
    (found,) = of_changes(reports or (CHANGED,), EPOCH_MS, engine)
    return found


def test_more_slots_cost_a_restart_and_pay_when_more_is_done_than_without():
    found = only(behind())

    assert (found.fault, found.at_s) == ("change-slots(to=2)@batch>=3", 9.0)
    assert found.to_do == WAITING + 10 * OFFERED_PER_S - 1200
    assert found.away.value == 10
    assert (found.before_per_s.value, found.after_per_s.value) == (200.0, 1000.0)
    # In 11 s the old ones would have done 2,200: by the second word 2,000 are done, and by the third, at 12 s, 3,000.
    assert found.paid.value == 12
    assert found.without.value == 9 + found.to_do / (200 - 100)


def test_a_change_without_effect_never_pays():
    """It was started with another config, and does not heed it: planted."""
    found = only(behind(after_per_s=200.0))

    assert (found.paid.value, found.paid.lack) == (None, Lack.NEVER)
    assert "not in the 50 s until the load ended" in found.paid.note


def test_one_that_did_not_land_is_told_of_as_nothing():
    assert list(of_changes((replace(CHANGED, landed=False, landed_ms=0),), EPOCH_MS, behind())) == []


def test_neither_is_a_kill_nor_what_came_when_it_had_caught_up():
    kill = replace(CHANGED, spec=parse("kill@batch>=3"))

    assert list(of_changes((kill,), EPOCH_MS, behind())) == []
    assert list(of_changes((CHANGED,), EPOCH_MS, replace(behind(), until_s=11.0))) == []


def test_an_old_rate_below_what_comes_would_never_have_caught_up():
    found = only(behind(before_per_s=90.0))

    assert (found.without.value, found.without.lack, found.without.note) == (None, Lack.NEVER, "100/s came")
    assert found.paid.value


def test_a_backlog_in_one_batch_shows_no_rate_and_is_not_guessed_from():
    whole = behind()
    one = Curve(whole.done.at_s[5:], whole.done.total[5:], whole.done.took_s[5:])
    found = only(replace(whole, done=one))

    assert found.away.value == 10
    assert {found.before_per_s.lack, found.paid.lack, found.without.lack} == {Lack.UNKNOWN}
    assert "1 word of its progress came before, and 3 are needed" in catch_up.worth_in_words(found, 7000)


def test_one_that_has_done_all_is_not_overtaken_by_what_the_old_ones_could_not_have_done():
    """All 12,000 events are done at 31 s. It still says so when the old rate, drawn on, would have passed that."""
    whole = behind()
    at_s, total = np.append(whole.done.at_s, 200.0), np.append(whole.done.total, 12_000.0)
    done = Curve(at_s, np.minimum(total, 12_000.0), np.zeros(len(at_s)))

    assert only(replace(whole, done=done, until_s=201.0)).paid.value == 12


def test_one_that_never_comes_back_says_so():
    whole = behind()
    found = only(replace(whole, done=Curve(whole.done.at_s[:6], whole.done.total[:6], whole.done.took_s[:6])))

    assert "not known (it reported no progress afterwards) away" in catch_up.worth_in_words(found, 7000)
    assert found.paid.lack is Lack.NEVER


def test_each_of_two_changes_is_held_against_the_one_before():
    second = replace(CHANGED, spec=parse("change-slots(to=4)@batch>=9"), landed_ms=EPOCH_MS + 30_500)
    first, later = of_changes((second, CHANGED), EPOCH_MS, behind())

    assert (first.fault, later.fault) == ("change-slots(to=2)@batch>=3", "change-slots(to=4)@batch>=9")
    assert later.before_per_s.value == first.after_per_s.value == 1000


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (
            behind(),
            "200 events/s before, 1,000 events/s after, paid: 12.0 s after it, would have caught up: 67.0 s after",
        ),
        (behind(after_per_s=200.0), "paid: never (not in the 50 s until the load ended), would have caught up: 67.0 s"),
    ],
)
def test_it_is_said_in_a_sentence(engine, words):
    told = catch_up.worth_in_words(only(engine), 7000)

    assert told.startswith(
        "change-slots(to=2)@batch>=3 9.0 s after its start with 5,800 events to do, of 7,000 at the most, 10.0 s away, "
    )
    assert words in told


def test_the_page_says_what_the_old_orders_would_have_done_meanwhile():
    rows = {what: (value, how) for what, value, how in catch_up.rows_of(only(behind()))}

    assert rows["away"] == ("10.0 s", "in which the old config would have processed 2,000 events")
    assert rows["paid"][0] == "12.0 s"


def test_the_page_draws_what_would_have_been_left_at_the_rate_before():
    """From the last word of the old config on, at 10 s: 5,800 events, and 100 less each second."""
    seconds = np.arange(LOAD_S, dtype=np.float64) + 0.5
    line = at_rate_before(only(behind()), 1.0, OFFERED_PER_S, seconds)

    assert line
    assert not np.isfinite(line.values[:10]).any()
    assert line.values[10] == 5800 - 50
    assert line.values[59] == 5800 - 4950
    unknown = replace(only(behind()), before_per_s=Quantity(None, "one batch", lack=Lack.UNKNOWN))
    assert at_rate_before(unknown, 1.0, OFFERED_PER_S, seconds) is None
