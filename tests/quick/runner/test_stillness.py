"""When an engine without progress is done: by moments that are fed, and no clock."""

from __future__ import annotations

import pytest

from harness.runner.idle_rule import IdleRule, Step

READY_MS, DRAIN_MS = 120_000, 120_000
BEGUN_MS = 1_000_000


def begun(*, drops_late=True, held_s=0):
    return IdleRule(BEGUN_MS, ready_ms=READY_MS, drain_ms=DRAIN_MS, drops_late=drops_late, held_ms=round(held_s * 1000))


def at(seconds):
    return BEGUN_MS + round(seconds * 1000)


def changing(stillness, *seconds):
    for each in seconds:
        stillness.changed(at(each))


def first(stillness, step, since_s, until_s=2000):
    """The second at which this answer comes first, and no other but to go on before it."""
    for second in range(since_s, until_s):
        if (answer := stillness.step(at(second))) is not Step.GO_ON:
            assert answer is step, f"{answer} after {second} s"
            return second
    raise AssertionError(f"{step} never came")


def test_results_that_never_changed_under_load_do_not_stand_still():
    stillness = begun()
    stillness.loaded(at(30))

    assert first(stillness, Step.CLOSE, 30) == 120
    assert stillness.unsettled


def test_a_change_from_before_a_start_does_not_count_after_it():
    stillness = begun()
    changing(stillness, *range(1, 16))
    stillness.started(at(16))
    stillness.loaded(at(30))

    assert first(stillness, Step.CLOSE, 30) == 16 + 120
    assert stillness.unsettled


def test_what_a_look_saw_after_a_start_that_began_before_it_is_no_change_of_the_new_process():
    """A look of 2.6 s ends in the first moments of a JVM, and sees what the killed one wrote."""
    stillness = begun()
    changing(stillness, *range(1, 16))
    stillness.started(at(16))
    stillness.changed(at(16.02), at(13.4))
    stillness.loaded(at(30))

    assert first(stillness, Step.CLOSE, 30) == 137  # ready_s after the change that was no sign of the new process
    assert stillness.unsettled


def test_after_a_start_stillness_begins_with_the_first_change():
    stillness = begun()
    changing(stillness, *range(1, 16))
    stillness.started(at(16))
    stillness.loaded(at(30))
    changing(stillness, 81)

    assert first(stillness, Step.CLOSE, 81) == 81 + 42  # three times the silence at the load's end
    assert not stillness.unsettled


def test_how_long_a_start_takes_is_no_silence():
    stillness = begun()
    changing(stillness, *range(1, 30))
    stillness.loaded(at(30))
    stillness.started(at(30))
    changing(stillness, 95)

    assert first(stillness, Step.CLOSE, 95) == 95 + 30


@pytest.mark.parametrize(("silence_s", "needed_s"), [(1, 30), (10, 30), (11, 33), (25, 75)])
def test_the_longest_silence_under_load_counts_three_times(silence_s, needed_s):
    stillness = begun()
    changing(stillness, 1, 1 + silence_s, 29)
    stillness.loaded(at(30))
    changing(stillness, 30)

    assert first(stillness, Step.CLOSE, 30) == 30 + max(needed_s, 3 * (28 - silence_s))


def test_the_silence_that_goes_on_at_the_end_of_the_load_counts():
    stillness = begun()
    changing(stillness, 1)
    stillness.loaded(at(30))

    assert first(stillness, Step.CLOSE, 30) == 1 + 3 * 29


def test_until_the_first_window_can_close_it_is_not_silent():
    """20 s of lateness and windows of 10 s: the first result comes after 35 s, and one each ten seconds then."""
    stillness = begun(held_s=30)
    changing(stillness, 35, 45, 55)
    stillness.loaded(at(60))

    assert first(stillness, Step.CLOSE, 60) == 55 + 30


def test_a_first_result_that_comes_late_even_for_a_window_says_how_slow_it_is():
    stillness = begun(held_s=30)
    stillness.loaded(at(60))
    changing(stillness, 90)

    assert first(stillness, Step.CLOSE, 90) == 90 + 3 * 60


def test_where_late_events_are_kept_the_closing_events_go_at_once():
    assert begun(drops_late=False).step(at(30)) is Step.CLOSE


def test_it_is_not_done_before_the_closing_events_are_counted():
    stillness = begun(drops_late=False)
    changing(stillness, *range(1, 30))
    stillness.loaded(at(30))
    stillness.closed(at(30))
    changing(stillness, 31)
    assert all(stillness.step(at(second)) is Step.GO_ON for second in range(31, 140))
    stillness.counted(at(140))

    # From the closing events on it was silent for 109 s.
    assert first(stillness, Step.DONE, 140) == 140 + 2 * 109


def test_how_long_we_waited_ourselves_is_no_silence_of_the_engine():
    stillness = begun()
    changing(stillness, *range(1, 31))
    stillness.loaded(at(30))
    stillness.closed(at(first(stillness, Step.CLOSE, 30)))
    stillness.counted(at(61))

    assert first(stillness, Step.DONE, 61) == 61 + 15


def test_closing_events_that_are_never_counted_are_stuck():
    stillness = begun(drops_late=False)
    changing(stillness, *range(1, 31))
    stillness.loaded(at(30))
    stillness.closed(at(30))

    assert first(stillness, Step.STUCK, 30) == 30 + 121
    assert stillness.moved_ms == at(30)


def test_one_that_was_counted_before_its_last_start_may_have_nothing_left_to_do():
    stillness = begun(drops_late=False)
    changing(stillness, *range(1, 31))
    stillness.loaded(at(30))
    stillness.closed(at(30))
    stillness.counted(at(31))
    stillness.started(at(40))

    assert first(stillness, Step.DONE, 40) == 40 + 120
    assert stillness.unsettled


def test_what_can_not_be_seen_does_not_stand_still():
    stillness = begun()
    changing(stillness, *range(1, 31))
    stillness.loaded(at(30))
    stillness.unseen(at(50))

    assert first(stillness, Step.CLOSE, 50) == 50 + 30


def test_results_that_can_not_be_read_any_more_are_stuck():
    stillness = begun()
    changing(stillness, *range(1, 31))
    stillness.loaded(at(30))
    answers = []
    for second in range(31, 160):
        stillness.unread(at(second))
        answers.append(stillness.step(at(second)))

    assert set(answers[:-9]) == {Step.GO_ON}
    assert answers[-1] is Step.STUCK
