"""When each event of a log was due and sent, of tapes that send some events more than once."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from generators.disorder import PRESETS
from generators.profiles import steady
from generators.schedule import Schedule
from harness.evidence.observed import LogEvents
from harness.evidence.send_index import SentTimes
from harness.judging import facts
from harness.measuring.latency.sending import Sending
from harness.model import INDEX_BITS, MARK_SERVER, TapeSpec

EPOCH_MS = 1_763_700_000_000
STORM = TapeSpec(3, steady(2000, 3000), 3, 20, 2, 10, 10, replace(PRESETS["storm"], duplicate_share=0.1))
TWICE = replace(STORM, warm_up=steady(500, 1000))
ORDERLY = replace(STORM, disorder=PRESETS["none"])


def sent_views(schedule: Schedule) -> dict[str, np.ndarray]:
    """All views of a reel as they lie in the log, and when each was due and sent: a millisecond after the end of its
    slice."""
    rows = []
    for server in range(schedule.servers):
        for number, lo, hi in schedule.slices(server):
            block = schedule.events(server, np.arange(lo, hi))
            views = (block.content["event_type"] == 0) & (block.poison == 0)
            sent_us = np.full(len(block), schedule.slice_due_us(server, number) + 1000)
            columns = (block.partition, block.slot, block.id, block.intended_us, sent_us)
            rows.append(np.stack([column[views].astype(np.int64) for column in columns]))
    partition, _, ids, due_us, sent_us = np.concatenate(rows, axis=1)
    order = np.lexsort((sent_us, partition))  # what one server sends in one slice stays in its order
    return {"partition": partition[order], "id": ids[order], "due_us": due_us[order], "sent_us": sent_us[order]}


def books_of(schedule: Schedule) -> pa.Table:
    rows = [
        (server, number, lo, schedule.slice_due_us(server, number), schedule.slice_due_us(server, number) + 1000)
        for server in range(schedule.servers)
        for number, lo, _ in schedule.slices(server)
    ]
    names = ("server", "slice", "slot_lo", "intended_us", "sent_us")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def events_of(partition: np.ndarray, ids: np.ndarray) -> LogEvents:
    nothing = np.zeros(len(ids), dtype=np.int64)
    return LogEvents(partition.astype(np.int16), np.arange(len(ids)), ids, nothing, nothing, nothing)


@pytest.mark.parametrize("spec", [STORM, TWICE, ORDERLY])
def test_each_event_is_found_also_where_it_was_sent_more_than_once(spec):
    schedule = Schedule(spec)
    views = sent_views(schedule)
    known, due_us, sent_us = Sending(schedule, EPOCH_MS, books_of(schedule)).of(
        events_of(views["partition"], views["id"])
    )

    assert (len(np.unique(views["id"])) < len(views["id"])) == (spec is not ORDERLY)
    assert known.all()
    assert (due_us == views["due_us"] + EPOCH_MS * 1000).all()
    assert (sent_us == views["sent_us"] + EPOCH_MS * 1000).all()


def test_what_nobody_planned_was_never_due():
    schedule = Schedule(ORDERLY)
    views = sent_views(schedule)
    first, partition = int(views["id"][0]), int(views["partition"][0])
    odd = {
        "once more": (first, partition),
        "in another partition": (int(views["id"][1]), 1 - int(views["partition"][1])),
        "beyond the tape": (1 << 30, 0),
        "of a server that there is not": (schedule.servers << INDEX_BITS, 0),
        "a mark": (MARK_SERVER << INDEX_BITS, 0),
        "none of ours": (-1, 0),
    }
    ids, partitions = np.array([(first, partition), *odd.values()]).T
    known, due_us, _ = Sending(schedule, EPOCH_MS, books_of(schedule)).of(events_of(partitions, ids))

    assert known.tolist() == [True, *(name == "a mark" for name in odd)]
    assert due_us[0] == views["due_us"][0] + EPOCH_MS * 1000


def test_an_event_is_sent_late_by_us_if_it_took_more_than_two_seconds():
    schedule = Schedule(ORDERLY)
    views, books = sent_views(schedule), books_of(schedule)
    events = events_of(views["partition"], views["id"])
    ends = [hi for server in range(schedule.servers) for _, _, hi in schedule.slices(server)]
    for lag_us, late in ((2_000_000, False), (2_000_001, True)):
        sent_us = pc.add(books.column("intended_us"), lag_us)
        sends = books.set_column(books.column_names.index("sent_us"), "sent_us", sent_us)
        sends = sends.append_column("slot_hi", [ends])
        times = SentTimes(sends, EPOCH_MS)
        run: Any = SimpleNamespace(sends=sends, sent_times=times, spec=SimpleNamespace(tape=ORDERLY))

        part: Any = SimpleNamespace(events=events, dropped=np.arange(len(events)) % 2 == 0)

        assert facts._Lags(run).of_dropped(part).tolist() == (part.dropped & late).tolist()


def test_an_event_that_the_books_do_not_have_was_due_when_it_was_planned():
    """The client never got its slice, and a slice behind it was sent at another time than planned."""
    schedule = Schedule(ORDERLY)
    books = books_of(schedule)
    _, lo, _ = next(schedule.slices(0))
    first = schedule.events(0, np.array([lo]))
    known, due_us, _ = Sending(schedule, EPOCH_MS, books.slice(1)).of(
        events_of(first.partition, first.id.astype(np.int64))
    )

    assert known.tolist() == [True]
    assert due_us.tolist() == [EPOCH_MS * 1000 + int(first.intended_us[0])]
