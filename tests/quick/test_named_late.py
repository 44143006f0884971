"""An engine's own list of what it dropped as late: how it is read, and when it is believed."""

from __future__ import annotations

import numpy as np
import pytest

from harness.engines import late
from harness.judging.lateness import named_among, tells_all
from harness.judging.readings import LogEvents, NamedLate


def read(tmp_path, text: bytes, *, restarts: int = 0, dropped: int = 0) -> NamedLate:
    (tmp_path / late.FILE).write_bytes(text)
    return late.stored(tmp_path / late.FILE, restarts=restarts, dropped=dropped)


def log(*places: tuple[int, int]) -> LogEvents:
    partition, offset = (np.array(column) for column in zip(*places, strict=True))
    number = np.arange(len(places), dtype=np.int64)
    return LogEvents(partition.astype(np.int16), offset.astype(np.int64), number, number, number, number)


def test_what_is_named_is_found_in_the_log_by_its_place(tmp_path):
    named = read(tmp_path, b"[1,5]\n\n[0,7]\n[1,5]\n", dropped=2)
    events = log((0, 5), (0, 7), (1, 5), (1, 7))

    assert not named.lacks
    assert tells_all(named, events)
    assert named_among(events, named).tolist() == [False, True, True, False]


def test_one_that_dropped_nothing_names_nothing(tmp_path):
    named = read(tmp_path, b"")

    assert (len(named.record), named.lacks) == (0, "")


@pytest.mark.parametrize(
    "line", [b"[1", b"1,5", b"[1,5,6]", b'["1",5]', b"[-1,5]", b"[1,-5]", b"[70000,1]", b"[1,1e30]", b"\xff", b"null"]
)
def test_a_line_that_names_no_place_costs_the_whole_list_its_word(tmp_path, line):
    named = read(tmp_path, b"[0,1]\n" + line + b"\n[0,2]\n")

    assert len(named.record) == 2
    assert "late.jsonl has a line that names no place, as [partition, offset]: line 2 is " in named.lacks
    assert not tells_all(named, log((0, 1)))


def test_after_a_restart_and_where_it_names_fewer_than_it_told_it_is_not_believed(tmp_path):
    assert "may have counted what late.jsonl had named" in read(tmp_path, b"[0,1]\n", restarts=1).lacks
    assert read(tmp_path, b"[0,1]\n", dropped=3).lacks == "late.jsonl names 1 event, and it told of 3 that it dropped"


def test_of_an_event_in_several_cells_a_name_says_too_little():
    events = log((0, 1), (0, 1), (0, 2))

    assert not tells_all(NamedLate(events.record), events)
