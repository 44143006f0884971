"""What the ad servers of a process share: when they start, and which of their records failed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from generators import fleet
from generators.fleet import Fleet, LoadConfig
from generators.harness_files import DONE, GO, READY, SENDS_FILE, STATUS
from generators.producers import Failures, Pauses
from generators.profiles import steady
from harness.model import INDEX_BITS, TapeSpec
from tests.quick.cases import SPEC


class Silent:
    """A producer that sends nothing."""

    def __init__(self, *_: object) -> None:
        self.failures = Failures()


@pytest.fixture
def servers(tmp_path, monkeypatch) -> Fleet:
    monkeypatch.setattr(fleet, "make_producer", Silent)
    return Fleet(LoadConfig(SPEC.tape, "silent", "nowhere", "topic", {}, str(tmp_path)))


def test_servers_wait_for_the_load_start_and_read_it_once(servers):
    assert not servers.started()
    (servers.folder / GO).write_text(json.dumps({"epoch_ms": 1_750_000_000_000, "zero_ns": 0}))
    assert servers.started()
    (servers.folder / GO).write_text("something else")
    assert servers.started()


def test_a_record_that_failed_is_missing_in_the_slice_that_holds_its_slot(servers):
    columns = {"server": [0, 1, 0], "slot_lo": [5, 0, 0], "slot_hi": [8, 4, 5]}
    failed = {(0, 0): 1, (0, 5): 2, (0, 7): 1, (0, 8): 5, (1, 3): 1, (1, 4): 5}
    for (server, slot), count in failed.items():
        for _ in range(count):
            servers.producer.failures.add(b"%012x" % (server << INDEX_BITS | slot), "timed out")

    found: Any = servers._failed_per_slice({name: np.array(values) for name, values in columns.items()})
    assert found.tolist() == [3, 1, 1]


def test_a_load_raises_the_priority_of_its_own_thread_alone(monkeypatch):
    raised: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "setpriority", lambda *asked: raised.append(asked))
    fleet.go_first()

    assert raised == [(os.PRIO_PROCESS, 0, -10)]


class Taking(Silent):
    """A producer that takes all, and of which Kafka confirms all."""

    def __init__(self, *_: object) -> None:
        super().__init__()
        self.pauses = Pauses()

    def await_topic(self, deadline_s: float) -> None:
        pass

    def waiting(self) -> int:
        return 0

    def finish(self, deadline_s: float) -> int:
        return 0


def loaded(folder: Path, monkeypatch, tape: TapeSpec) -> Fleet:
    monkeypatch.setattr(fleet, "make_producer", Taking)
    return Fleet(LoadConfig(tape, "taking", "nowhere", "topic", {}, str(folder)))


def test_a_load_ends_when_the_last_server_has_left_and_its_books_hold_all_of_the_tape(tmp_path, monkeypatch):
    load = loaded(tmp_path, monkeypatch, SPEC.tape)
    numbers = [load.join() for _ in range(SPEC.tape.senders)]
    assert (tmp_path / READY).exists()
    ended = [load.ended]
    load.begin(1_750_000_000_000, 0)
    for number in numbers:
        ended.append(load.ended)
        for part in load.slices(number):
            assert part
            load.book(part, part.due_us, part.due_us, len(part.messages))
        load.leave()
    assert not any(ended)
    assert load.ended
    assert load.close()

    done = json.loads((tmp_path / DONE).read_text())
    total = load.schedule.total
    assert (done["intended"], done["sent"], done["acked"], done["errors"]) == (total, total, total, [])
    assert json.loads((tmp_path / STATUS).read_text().splitlines()[-1])["acked"] == total
    sends = pq.read_table(tmp_path / SENDS_FILE)
    assert sum(sends.column("acked").to_pylist()) == total


def test_a_backlog_is_owed_until_all_of_it_is_sent_in_the_order_in_which_it_was_due(tmp_path, monkeypatch):
    load = loaded(tmp_path, monkeypatch, replace(SPEC.tape, servers=3, warm_up=steady(300, 2000), waits=True))
    load.begin(1_750_000_000_000, 0)
    owes = [load.owes_backlog]
    parts = [*load.backlog()]
    load.backlog_is_sent()
    owes.append(load.owes_backlog)

    assert owes == [True, False]
    assert [part.due_us for part in parts] == sorted(part.due_us for part in parts)
    mine = [part for server in range(3) for part in load.slices(server) if part]
    assert {part.server for part in parts}.isdisjoint(part.server for part in mine)
    assert sum(part.hi - part.lo for part in [*parts, *mine]) == load.schedule.total


@pytest.mark.parametrize(("ends", "most", "first"), [((5, 10, 15), 10, 2), ((5, 10, 15), 9, 1), ((5,), 4, 1)])
def test_slices_are_written_together_up_to_so_many_events(ends, most, first):
    group = [(number, lo, hi) for number, (lo, hi) in enumerate(zip((0, *ends), ends, strict=False))]

    assert fleet._as_many_as(group, most) == first


def test_a_load_waits_for_its_config(tmp_path, monkeypatch):
    config, waited = tmp_path / "config.json", []

    def wait(until, **_: object) -> None:
        waited.append(until())
        config.write_bytes(msgspec.json.encode(LoadConfig(SPEC.tape, "taking", "nowhere", "topic", {}, "here")))

    monkeypatch.setattr(fleet, "wait_until", wait)

    assert LoadConfig.read(config).folder == "here"
    assert waited == [False]
