"""What the ad servers of a process share: when they start, and which of their records failed."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

from generators import fleet
from generators.fleet import Fleet, LoadConfig
from generators.harness_files import GO
from generators.producers import Failures
from harness.model import INDEX_BITS
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
    columns = {"server": [0, 0, 1], "slot_lo": [0, 5, 0], "slot_hi": [5, 8, 4]}
    failed = {(0, 0): 1, (0, 5): 2, (0, 7): 1, (0, 8): 5, (1, 3): 1, (1, 4): 5}
    for (server, slot), count in failed.items():
        for _ in range(count):
            servers.producer.failures.add(b"%012x" % (server << INDEX_BITS | slot), "timed out")

    found: Any = servers._failed_per_slice({name: np.array(values) for name, values in columns.items()})
    assert found.tolist() == [1, 3, 1]


def test_a_load_raises_the_priority_of_its_own_thread_alone(monkeypatch):
    raised: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "setpriority", lambda *asked: raised.append(asked))
    fleet.go_first()

    assert raised == [(os.PRIO_PROCESS, 0, -10)]
