"""An engine that the machine does not let run is told from one that is idle."""

from __future__ import annotations

import os

import pytest

from harness.host import cgroup
from harness.host.cpu_starvation import (
    Books,
    Machine,
    Meters,
    Taken,
    Wanted,
    busy,
    in_words,
    machine,
    taken,
    threads_of,
)

S = 1_000_000_000


@pytest.mark.parametrize(
    ("wanted", "starved"),
    [
        (Wanted(180, 35, 400), True),  # a busy engine on a crowded machine
        (Wanted(180, 35, 36), True),
        (Wanted(10, 0.5, 1), False),  # one that starts, beside a load of 10, and does nothing
        (Wanted(34, 3, 7), True),  # a Spark that begins again, beside a load of 17
        (Wanted(180, 35, 30), False),  # it had most of what it wanted
        (Wanted(180, 2, 5), False),  # the noise of an idle one, on the same machine
        (Wanted(180, 200, 900), False),  # it had the machine itself
        (Wanted(180, 0, 0), False),
        (Wanted(0, 0, 0), False),
    ],
)
def test_starved_is_who_wants_to_run_and_mostly_waits(wanted, starved):
    assert wanted.starved(cores=2) is starved


def test_a_thread_that_has_ended_keeps_what_was_seen_of_it():
    books = Books()
    books.take(1000, {(1, 1): (5 * S, 1 * S), (1, 2): (1 * S, 0)})
    books.take(2000, {(1, 1): (6 * S, 3 * S), (1, 2): (2 * S, 1 * S)})
    books.take(3000, {(1, 1): (7 * S, 4 * S)})
    books.take(4000, {(1, 1): (7 * S, 4 * S), (9, 9): (1 * S, 2 * S)})

    assert books.since(1000) == Wanted(3.0, 4.0, 6.0)
    assert books.since(2500) == Wanted(2.0, 2.0, 3.0)


def test_a_number_that_another_thread_has_by_now_starts_anew():
    books = Books()
    books.take(1000, {(1, 1): (50 * S, 10 * S)})
    books.take(2000, {(1, 1): (2 * S, 1 * S)})

    assert books.since(1000) == Wanted(1.0, 2.0, 1.0)


def test_a_machine_is_busy_that_has_tasks_waiting_for_a_cpu():
    assert busy(Machine(2, 67.2, 82.0)) == "2 cores at load 67, tasks waited for a CPU 82 % of the time"
    assert busy(Machine(2, 25)) == "2 cores at load 25", "this system does not count how long tasks wait"
    assert busy(Machine(2, 3.9, 99.0)) == "", "two cores have two tasks, and few wait"
    assert busy(Machine(2, 30.0, 10.0)) == "", "these wait for a disk"


def test_the_figures_are_said():
    words = in_words(Wanted(180, 35.2, 410), Machine(2, 25.1, 94.0))

    assert "35 CPU-s in 180 s" in words
    assert "waiting for 410 s" in words
    assert "2 cores at load 25" in words
    assert "94 %" in words


def test_every_thread_of_a_process_is_in_the_books():
    own = threads_of([os.getpid(), 2**30])

    assert {pid for pid, _ in own} == {os.getpid()}
    assert (os.getpid(), os.getpid()) in own
    assert machine().cores >= 1


def test_the_cores_of_a_machine_are_those_that_are_granted(monkeypatch):
    """An engine that had all of its quota was not starved, however many cores the host has."""
    monkeypatch.setattr(cgroup, "cores", lambda: 1.5)

    assert machine().cores == 1.5
    assert not Wanted(100, 80, 200).starved(machine().cores)
    assert Wanted(100, 80, 200).starved(64)


def test_what_was_taken_is_what_grew_and_the_narrowest_quota_counts():
    before = Meters(((1000, 900), (50, 0)), (10_000, 500))
    after = Meters(((1100, 910), (150, 40)), (12_000, 700))

    assert taken(before, after) == Taken(0.4, 0.1)


def test_where_nobody_counts_nothing_is_known():
    assert taken(Meters((), None), Meters((), None)) == Taken(None, None)
    assert taken(Meters(((5, 5),), (1, 1)), Meters(((5, 5),), (1, 1))) == Taken(None, None)


def test_what_was_taken_is_said_from_one_per_cent_on():
    assert Taken(None, None).in_words(2) == ""
    assert Taken(0.009, 0.009).in_words(2) == ""
    assert Taken(0.3, None).in_words(1.5) == "the quota of 1.5 cores ran out in 30% of its periods"
    assert Taken(None, 0.08).in_words(2) == "the host gave 8% of the machine's CPU time to others (steal)"
    assert Taken(0.3, 0.08).in_words(2).count(";") == 1
