"""An engine's own list of what it dropped as late: how it is read, and when it is believed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.engines import late, progress
from harness.evidence.observed import LogEvents, NamedLate
from harness.judging.judge import conclude
from harness.judging.lateness import Restart, named_among, named_elsewhere, read_again, restarts
from harness.judging.stored_run import StoredRun
from harness.model import Progress
from harness.rundir.store import Store
from harness.selftest.visits import named_by_window
from tests.quick.cases import SPEC
from workloads.cells import Codes


def read(tmp_path, text: bytes, *, dropped: int = 0) -> NamedLate:
    (tmp_path / late.FILE).write_bytes(text)
    return late.stored(tmp_path / late.FILE, dropped=dropped)


CODES = Codes()


def log(*places: tuple[int, ...]) -> LogEvents:
    """Partition, offset, and when the window opens."""
    partition, offset, opens = (np.array(column) for column in zip(*((*place, 0)[:3] for place in places), strict=True))
    number = np.arange(len(places), dtype=np.int64)
    cell = CODES.of(np.zeros(len(places), dtype=np.int64), opens)
    return LogEvents(partition.astype(np.int16), offset.astype(np.int64), number, number, cell, number)


def test_what_is_named_is_found_in_the_log_by_its_place(tmp_path):
    named = read(tmp_path, b"[1,5]\n\n[0,7]\n[1,5]\n", dropped=2)
    events = log((0, 5), (0, 7), (1, 5), (1, 7))

    assert not named.lacks
    assert named_among(events, named, CODES).tolist() == [False, True, True, False]


def test_a_window_may_be_named_by_its_end(tmp_path):
    (tmp_path / late.FILE).write_bytes(b"[1,5,60000]")
    named = late.stored(tmp_path / late.FILE, dropped=1, behind_ms=30_000)

    assert (named.windows[:, 1].tolist(), named.lacks) == ([30_000], "")


def test_one_that_dropped_nothing_names_nothing(tmp_path):
    named = read(tmp_path, b"")

    assert (len(named.record), named.lacks) == (0, "")


@pytest.mark.parametrize(
    "line",
    [
        b"[1",
        b"1,5",
        b"[1,5,6,7]",
        b"[1]",
        b"[1,5,1.5]",
        b"[1,5,9223372036854775808]",
        b'["1",5]',
        b"[-1,5]",
        b"[1,-5]",
        b"[70000,1]",
        b"[1,1e30]",
        b"\xff",
        b"null",
        b'{"partition": 1, "offset": 5}',
        b'{"partition": 1, "offset": 5, "watermark_ms": 1.5}',
        b'{"partition": 1, "offset": -5, "watermark_ms": 1}',
        b'{"partition": 1, "offset": 5, "watermark_ms": 1, "opens": 0}',
    ],
)
def test_a_line_that_names_no_place_costs_the_whole_list_its_word(tmp_path, line):
    named = read(tmp_path, b"[0,1]\n" + line + b"\n[0,2]\n")

    assert len(named.record) == 2
    assert (
        "late.jsonl has an invalid line; [partition, offset], [partition, offset, opens] or an object with partition, "
        "offset and watermark_ms is expected: line 2 is " in named.lacks
    )


def test_where_it_names_fewer_than_it_told_it_is_not_believed(tmp_path):
    assert (
        read(tmp_path, b"[0,1]\n", dropped=3).lacks == "late.jsonl names 1 event, but the engine reported 3 as dropped"
    )


def test_only_what_lay_before_a_restart_and_behind_its_progress_may_have_been_read_twice():
    def told(at_ms, **offsets):
        return Progress(at_ms, 0, 0, {int(name[1:]): offset for name, offset in offsets.items()})

    events, sent_us = log((0, 4), (0, 5), (0, 6), (1, 0), (1, 9)), np.array([1, 1, 9, 1, 9]) * 1_000_000
    lines = [told(2000, p0=5), told(6000, p0=7, p1=9)]

    assert restarts([4000], lines) == [Restart(4000, {0: 5, 1: 0})]
    assert read_again(events, sent_us, restarts([4000], lines)).tolist() == [False, True, False, True, False]
    assert restarts([4000], [*lines, told(7000, p0=3)])[0].done[0] == 3, "it went on from an older state"
    assert restarts([1000], lines) == [Restart(1000, {})], "it had told nothing"
    assert restarts([2000], lines) == [Restart(2000, {0: 5, 1: 0})], "it had told that in the same millisecond"


IN_THREE = ((0, 1, 10), (0, 1, 20), (0, 1, 30), (0, 2, 20))


def test_of_an_event_in_several_windows_a_line_names_all_of_them_or_one(tmp_path):
    events = log(*IN_THREE)

    assert named_among(events, read(tmp_path, b"[0,1]\n"), CODES).tolist() == [True, True, True, False]
    assert named_among(events, read(tmp_path, b"[0,1,20]\n"), CODES).tolist() == [False, True, False, False]
    assert named_among(events, read(tmp_path, b"[0,1,10]\n[0,2]\n"), CODES).tolist() == [True, False, False, True]


def test_a_window_names_all_values_that_an_event_has_there(tmp_path):
    events = log((0, 1, 10), (0, 1, 10), (0, 1, 20))

    assert named_among(events, read(tmp_path, b"[0,1,10]\n"), CODES).tolist() == [True, True, False]


def test_a_window_in_which_the_event_does_not_lie_names_nothing_and_is_found(tmp_path):
    events, named = log(*IN_THREE), read(tmp_path, b"[0,1,40]\n[0,1,10]\n[0,2,10]\n[5,5,10]\n")

    assert named_among(events, named, CODES).tolist() == [True, False, False, False]
    assert named_elsewhere(events, named, CODES) == 2, "one that is not in the log at all is none of them"


def test_a_watermark_names_the_cells_that_close_by_then(tmp_path):
    """Cells of `log` close at the number of their row."""
    events, line = log(*IN_THREE), '{{"partition": 0, "offset": 1, "watermark_ms": {}}}\n'.format

    def named(*watermarks_ms):
        found = read(tmp_path, "".join(map(line, watermarks_ms)).encode(), dropped=1)
        assert not found.lacks
        return named_among(events, found, CODES).tolist()

    assert named(1) == [True, True, False, False]
    assert named(2) == [True, True, True, False]
    assert named(-1) == [False] * 4
    assert named(1, 0) == [True, True, False, False], "it was read again after a restart: either may hold"


def test_of_windows_that_overlap_each_is_named_by_itself_and_nothing_could_be_missing_unnoticed():
    case = named_by_window()
    late = case.events.only(case.dropped)

    assert case.exact
    assert case.slack == 0
    assert 0 < late.records() < len(late), "some were late for several windows"
    assert np.isin(late.record, case.events.only(~case.dropped).record).all(), "and each of them in time for another"


def test_a_loss_says_that_the_wrong_windows_were_named():
    (sentence,) = [each.sentence for each in conclude(named_by_window(opens_ms=10_000)).checks if each.name == "lost"]

    assert "lines of late.jsonl name a window in which the event does not lie" in sentence


def test_an_engine_has_to_name_as_many_as_it_ever_reported(tmp_path):
    """After a restart its own count begins at zero."""
    store = Store.create(tmp_path, "late")
    (store.path / late.FILE).write_bytes(b"[1,5]\n")
    lines = [{"at": at, "batch": at, "rows": 1, "offsets": {"0": at}, "dropped": 3 - at} for at in (1, 2)]
    (store.path / progress.FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    claim, manifest = SimpleNamespace(late="drop"), SimpleNamespace(window_key="begin")
    run: Any = SimpleNamespace(store=store, claim=claim, manifest=manifest, spec=SPEC)

    found = vars(StoredRun)["named_late"].func(run)

    assert found.lacks == "late.jsonl names 1 event, but the engine reported 2 as dropped"
