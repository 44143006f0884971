"""The events of ours that open and close a run."""

from __future__ import annotations

from typing import Any, cast

import pytest

from generators.disorder import PRESETS
from generators.profiles import steady
from harness.model import INDEX_MASK, FaultSpec, RunSpec, TapeSpec
from harness.runner.sentinels import Marking
from workloads.sentinels import is_opening

NOW_MS = 1_767_225_612_345
WINDOW_MS, LATENESS_MS, PARTITIONS = 10_000, 4_000, 3
KEYS = 20


class World:
    """One in which events are sent, and closed when their windows are."""

    def __init__(self, step_ms: int, open_for_ms: int) -> None:
        self.sent: list[Any] = []
        self.step_ms, self.open_for_ms = step_ms, open_for_ms
        self.log = self.clock = self

    def now_ms(self) -> int:
        return NOW_MS

    def send(self, marks: Any) -> None:
        self.sent.append(marks)

    def closes_ms_of(self, marks: Any) -> int:
        return int(marks[0].event_time_ms // self.step_ms * self.step_ms + self.open_for_ms)

    group_size = 1

    @property
    def part_ms(self) -> int:
        return self.step_ms

    def spread_keys(self, most: int) -> range:
        return range(min(most, KEYS))


def marking(*, final, step_ms=WINDOW_MS, open_for_ms=WINDOW_MS, window_ms=0, group_size=1, **more):
    world, told = World(step_ms, open_for_ms), []
    world.group_size = group_size
    tape = TapeSpec(11, steady(500, 2000), 3, 20, PARTITIONS, 10, 10, PRESETS["none"])
    spec = RunSpec("", "", "", tape, window_ms or step_ms, LATENESS_MS, "", None, FaultSpec("none"))
    tell = cast(Any, lambda kind, marks: told.append(marks))
    return world, told, Marking(cast(Any, world), tell, cast(Any, world), spec, final=final, **more)


@pytest.mark.parametrize("final", [False, True])
def test_all_that_is_sent_is_told_and_has_a_number_of_its_own(final):
    world, told, marks = marking(final=final)

    opening, closing = marks.open(), marks.close(NOW_MS)

    assert world.sent == told
    assert opening in told
    assert closing in told
    ids = [each.id for group in told for each in group]
    last = -(-KEYS // PARTITIONS) * PARTITIONS  # of many keys
    assert len(ids) == len(set(ids)) == (PARTITIONS * 3 + last if final else PARTITIONS * 2)
    for group in told:
        assert [each.partition for each in group] == list(range(PARTITIONS)) * (len(group) // PARTITIONS)
        assert {is_opening(each.id & INDEX_MASK, PARTITIONS).item() for each in group} == {group[0].kind == "opening"}


def test_opening_events_lie_in_a_window_that_is_over():
    world, _, marks = marking(final=False)

    assert world.closes_ms_of(marks.open()) <= NOW_MS


@pytest.mark.parametrize("waited_ms", [0, 3 * WINDOW_MS])
def test_what_closes_their_window_waits_until_it_makes_no_event_of_the_load_late(waited_ms, monkeypatch):
    world, _, marks = marking(final=False)
    opening = marks.open()
    monkeypatch.setattr(world, "now_ms", lambda: NOW_MS + waited_ms)
    later = marks.close_opening(opening)

    assert bool(later) is bool(waited_ms)
    for each in later:
        assert world.closes_ms_of(opening) + LATENESS_MS < each.event_time_ms <= NOW_MS + waited_ms


def test_opening_events_lie_in_the_window_of_a_moment():
    world, _, marks = marking(final=True)

    assert world.closes_ms_of(marks.open_at(NOW_MS)) - WINDOW_MS <= NOW_MS < world.closes_ms_of(marks.open_at(NOW_MS))
    assert len(world.sent) == 2, "what closes their window is the load"


def test_closing_events_close_the_window_of_the_newest_event_for_each_allowed_lateness():
    _, _, marks = marking(final=False)

    closing = marks.close(NOW_MS)

    newest_closes_ms = NOW_MS // WINDOW_MS * WINDOW_MS + WINDOW_MS
    assert closing[0].event_time_ms - LATENESS_MS >= newest_closes_ms


def test_where_results_come_with_the_end_of_a_window_others_follow_and_end_it():
    world, _, marks = marking(final=True)

    for counted in (marks.open(), marks.close(NOW_MS)):
        follows = world.sent[world.sent.index(counted) + 1]
        assert follows[0].event_time_ms - LATENESS_MS >= world.closes_ms_of(counted)


def test_what_closes_the_last_windows_comes_in_every_partition_and_under_every_key():
    world, _, marks = marking(final=True)

    marks.close(NOW_MS)

    assert {each.campaign for each in world.sent[-1]} == set(range(KEYS))
    assert len({each.event_time_ms for each in world.sent[-1]}) == 1


def test_what_closes_a_window_is_sent_when_the_engine_has_read_what_lies_in_it():
    steps: list[str] = []
    world, _, marks = marking(final=True, await_read=lambda: steps.append("read"))
    world.send = lambda marks: steps.append("sent")

    marks.open()
    marks.close(NOW_MS)

    assert steps == ["sent", "read", "sent"] * 2


@pytest.mark.parametrize("final", [False, True])
def test_no_window_of_the_load_holds_an_event_that_has_to_be_counted_before_or_after_it(final):
    earliest_ms, step_ms, open_for_ms = -7_000, 2_000, 30_000  # sliding windows, and late events
    world, _, marks = marking(final=final, step_ms=step_ms, open_for_ms=open_for_ms, earliest_ms=earliest_ms)

    opening, closing = marks.open(), marks.close(NOW_MS)

    assert world.closes_ms_of(opening) <= NOW_MS + earliest_ms
    assert closing[0].event_time_ms - open_for_ms >= NOW_MS


@pytest.mark.parametrize("final", [False, True])
def test_between_windows_that_are_shorter_than_their_step_nothing_is_sent(final):
    """The window of a run is ten seconds by default, and its question may have one every three and a half."""
    world, _, marks = marking(final=final, step_ms=3_500, open_for_ms=500, window_ms=10_000)

    marks.open()
    marks.close(NOW_MS)

    assert {each.event_time_ms % 3_500 for group in world.sent for each in group} == {0}


def test_events_that_lie_in_a_cell_together_go_to_one_partition_one_after_the_other():
    world, _, marks = marking(final=False, group_size=3)

    opening, closing = marks.open(), marks.close(NOW_MS)

    assert len({each.id for each in (*opening, *closing)}) == 2 * 3 * PARTITIONS
    for sent in world.sent:
        assert {is_opening(each.id & INDEX_MASK, PARTITIONS).item() for each in sent} == {sent[0].kind == "opening"}
        groups = [[each for each in sent if each.group == lead] for lead in {each.group for each in sent}]
        assert len(groups) == PARTITIONS
        for group in groups:
            assert [each.part for each in group] == [0, 1, 2]
            assert len({each.partition for each in group}) == 1
            assert [each.event_time_ms - group[0].event_time_ms for each in group] == [0, 1, 2]
