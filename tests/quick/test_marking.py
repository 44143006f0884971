"""The events of ours that open and close a run."""

from __future__ import annotations

from typing import Any, cast

import pytest

from generators.disorder import PRESETS
from generators.marks import is_opening
from generators.profiles import steady
from harness.model import INDEX_MASK, FaultSpec, RunSpec, TapeSpec
from harness.running.marking import Marking

NOW_MS = 1_767_225_612_345
WINDOW_MS, LATENESS_MS, PARTITIONS = 10_000, 4_000, 3


class World:
    """One in which events are sent, and closed when their windows are."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def now_ms(self) -> int:
        return NOW_MS

    def send_marks(self, marks: Any) -> None:
        self.sent.append(marks)

    def closes_ms_of(self, marks: Any) -> int:
        return int(marks[0].event_time_ms // WINDOW_MS * WINDOW_MS + WINDOW_MS)


def marking(*, final):
    world, told = World(), []
    tape = TapeSpec(11, steady(500, 2000), 3, 20, PARTITIONS, 10, 10, PRESETS["none"])
    spec = RunSpec("", "", "", tape, WINDOW_MS, LATENESS_MS, "", None, FaultSpec("none"))
    tell = cast(Any, lambda kind, marks: told.append(marks))
    return world, told, Marking(cast(Any, world), tell, cast(Any, world), spec, final=final)


@pytest.mark.parametrize("final", [False, True])
def test_all_that_is_sent_is_told_and_has_a_number_of_its_own(final):
    world, told, marks = marking(final=final)

    opening, closing = marks.open(), marks.close(NOW_MS)

    assert world.sent == told
    assert opening in told
    assert closing in told
    ids = [each.id for group in told for each in group]
    assert len(ids) == len(set(ids)) == PARTITIONS * (4 if final else 2)
    for group in told:
        assert [each.partition for each in group] == list(range(PARTITIONS))
        assert {is_opening(each.id & INDEX_MASK, PARTITIONS).item() for each in group} == {group[0].kind == "opening"}


def test_opening_events_lie_in_a_window_that_is_over():
    world, _, marks = marking(final=False)

    assert world.closes_ms_of(marks.open()) <= NOW_MS


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
