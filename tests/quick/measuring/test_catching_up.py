"""When an engine that started behind is as it is in the end of the load."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.judging.progress_curve import Curve
from harness.measuring import backlog_catch_up
from harness.measuring.backlog_catch_up import back, fresh
from harness.measuring.measurement import Lack, Quantity
from harness.rundir.store import Store
from tests.quick.cases import SPEC

SECONDS = 60


def falling(at: int, high: float = 1000.0, low: float = 10.0) -> np.ndarray:
    """High until then."""
    return np.where(np.arange(SECONDS) < at, high, low).astype(np.float64)


@pytest.mark.parametrize("at", [0, 1, 17, 39])
def test_it_is_back_at_the_end_of_the_first_second_that_is_as_in_the_end(at):
    assert back(falling(at), 1000.0, 0.5, SECONDS, what="events").value == at + 1 - 0.5


def test_a_second_that_is_good_by_chance_is_not_the_end_of_it():
    values = falling(30)
    values[10:14] = 10

    assert back(values, 1000.0, 0.0, SECONDS, what="events").value == 31


def test_what_comes_only_in_the_end_never_came():
    found = back(falling(45), 1000.0, 0.0, SECONDS, what="events")

    assert (found.value, found.lack) == (None, Lack.NEVER)
    assert "last 20 s" in found.note


@pytest.mark.parametrize(("low", "at_s"), [(500.0, 21.0), (501.0, None)])
def test_what_never_fell_to_half_was_never_back(low, at_s):
    assert back(falling(20, 5000.0, low), 1000.0, 0.0, SECONDS, what="events").value == at_s


def test_an_end_that_is_too_short_says_nothing():
    found = back(falling(3)[:20], 1000.0, 0.0, 20, what="events")

    assert (found.value, found.lack) == (None, Lack.UNKNOWN)


@pytest.mark.parametrize("values", [None, np.full(SECONDS, np.nan)])
def test_what_was_not_seen_is_not_known(values):
    assert back(values, 1000.0, 0.0, SECONDS, what="events").lack is Lack.UNKNOWN


def test_an_uneven_end_widens_the_band_and_no_more_than_to_what_it_shows():
    values = falling(30, high=100.0)
    values[40::4] = 30

    assert back(values, 1000.0, 0.0, SECONDS, what="events").value == 31
    assert "at most 30 events" in back(values, 1000.0, 0.0, SECONDS, what="events").note


@pytest.mark.parametrize("at", [50, 55, SECONDS])
def test_one_that_stays_behind_is_never_back(at):
    """However even it is."""
    found = back(falling(at), 1000.0, 0.0, SECONDS, what="events")

    assert (found.value, found.lack) == (None, Lack.NEVER)


@pytest.mark.parametrize("lack", [None, Lack.NEVER])
def test_one_that_never_caught_up_is_never_fresh_again_however_even_its_latency_is(lack):
    late_ms = np.full(SECONDS, 28_000.0)
    caught_up = Quantity(None, lack=lack) if lack else Quantity(20.0)

    assert fresh(late_ms, 60.0, 0.1, SECONDS, caught_up).lack is lack


def test_what_catching_up_cost_is_what_engine_and_workers_used_until_then(tmp_path):
    store = Store.create(tmp_path, "behind")
    run: Any = SimpleNamespace(store=store, epoch_ms=1000, spec=SPEC)
    processed = Curve(np.array([10.0, 20.0]), np.array([500_000.0, 900_000.0]), np.zeros(2))
    lines: Any = SimpleNamespace(processed=processed)
    assert backlog_catch_up._cpu_s_per_million(run, lines, 2.0, Quantity(8.0)) is None
    part, at_ms = (
        ["engine", "engine", "python workers", "python workers", "kafka"],
        [1000, 21_000, 1000, 21_000, 21_000],
    )
    used_s = {"cpu_user_s": [0.0, 8.0, 0.0, 2.0, 50.0], "cpu_system_s": [0.0, 2.0, 0.0, 0.0, 50.0]}
    store.write_table("resources.parquet", {"part": part, "at_ms": at_ms, **used_s})

    assert backlog_catch_up._cpu_s_per_million(run, lines, 2.0, Quantity(8.0)) == pytest.approx(12.0)
    assert backlog_catch_up._cpu_s_per_million(run, lines, 2.0, Quantity(None, lack=Lack.NEVER)) is None
    run.spec = replace(SPEC, master="spark://127.0.0.1:7077")  # the executors were not seen
    assert backlog_catch_up._cpu_s_per_million(run, lines, 2.0, Quantity(8.0)) is None
