"""What a part used, over invented snapshots: deaths, reused pids, restarts, and children that nobody ever saw."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measuring import cost, measure
from harness.measuring.cost import cpu_share
from harness.measuring.measurement import Observer
from harness.metering.cpu_books import Books, Cpu, Seen
from harness.rundir.store import Store


def seen(pid, user_s, *, part="engine", start="a", parent=1, ended_s=0.0, rss=10):
    return Seen(pid, start, parent, part, Cpu(user_s, user_s / 10), Cpu(ended_s, ended_s / 10), rss)


def used(books, *snapshot, part="engine"):
    return books.take(snapshot)[part].cpu.user_s


def test_the_living_are_summed_up():
    books = Books()

    assert used(books, seen(10, 1.0), seen(11, 2.0), seen(20, 5.0, part="kafka")) == 3.0
    assert used(books, seen(10, 1.5), seen(11, 2.0), seen(20, 5.0, part="kafka")) == 3.5


def test_what_a_dead_process_had_used_is_not_lost_but_its_memory_is_free():
    books = Books()
    books.take([seen(10, 4.0), seen(11, 2.0)])

    usage = books.take([seen(10, 4.0)])["engine"]

    assert usage.cpu.user_s == 6.0
    assert usage.rss_bytes == 10


def test_a_child_that_is_still_its_parents_double_has_no_memory_of_its_own():
    books, jvm = Books(), seen(10, 4.0, rss=2_000)
    books.take([jvm])

    just_forked = books.take([jvm, seen(11, 0.0, parent=10, rss=2_000)])["engine"].rss_bytes
    a_look_later = books.take([jvm, seen(11, 0.1, parent=10, rss=30)])["engine"].rss_bytes

    assert (just_forked, a_look_later) == (2_000, 2_030)


def test_a_part_survives_a_kill_and_a_restart_of_all_of_it():
    books = Books()
    books.take([seen(10, 4.0), seen(11, 2.0, parent=10)])
    books.take([])

    assert used(books, seen(30, 1.0), seen(31, 0.5, parent=30)) == 7.5


def test_a_reused_pid_is_another_process():
    books = Books()
    books.take([seen(10, 4.0, start="a")])

    assert used(books, seen(10, 0.5, start="b")) == 4.5


def test_a_child_in_its_parents_account_is_not_counted_twice():
    books = Books()
    books.take([seen(10, 1.0), seen(11, 2.0, parent=10)])

    assert used(books, seen(10, 1.0, ended_s=2.0)) == 3.0


def test_its_last_moments_are_its_own_parts():
    """A parent of another part: the harness gets the account of the engine that it has buried."""
    books = Books()
    books.take([seen(1, 1.0, part="harness", parent=0), seen(10, 2.0, parent=1)])

    usage = books.take([seen(1, 1.0, part="harness", parent=0, ended_s=2.75)])

    assert usage["engine"].cpu.user_s == 2.75
    assert usage["harness"].cpu.user_s == 1.0


def test_children_that_nobody_saw_are_their_parents():
    books = Books()
    books.take([seen(10, 1.0)])

    assert used(books, seen(10, 1.0, ended_s=0.5)) == 1.5
    assert used(books, seen(10, 1.0, ended_s=0.75)) == 1.75


def test_a_dead_family_is_in_the_account_once():
    """Grandchild died and was buried by the child, the child by the parent: the kernel hands the whole sum up."""
    books = Books()
    books.take([seen(10, 1.0), seen(11, 2.0, parent=10), seen(12, 4.0, parent=11)])
    books.take([seen(10, 1.0), seen(11, 2.0, parent=10, ended_s=4.0)])

    assert used(books, seen(10, 1.0, ended_s=6.0)) == 7.0


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.floats(0.0, 3.0)), max_size=5), min_size=1, max_size=12))
def test_whatever_lives_and_dies_the_sum_is_that_of_all_last_sights_and_never_falls(script):
    books, clock, life, before = Books(), dict.fromkeys(range(5), 0.0), dict.fromkeys(range(5), 0), 0.0
    total = 0.0
    alive: set[int] = set()
    for look in script:
        now = {pid for pid, _ in look}
        for pid in now - alive:  # born, perhaps with the pid of a dead one
            clock[pid], life[pid] = 0.0, life[pid] + 1
        for pid, more in look:
            clock[pid] += more
            total += more
        alive = now
        sums = books.take([seen(pid, clock[pid], start=str(life[pid])) for pid in sorted(now)])
        whole = sum(usage.cpu.user_s for usage in sums.values())
        assert whole == pytest.approx(total)
        assert whole >= before - 1e-9
        before = whole


def test_a_part_s_share_of_a_core_is_its_cpu_time_by_the_time_from_the_first_sample_to_the_last():
    resources = pa.table(
        {
            "at_ms": [1000, 1000, 3000, 3000],
            "part": ["engine", "redis", "engine", "redis"],
            "cpu_user_s": [5.0, 1.0, 6.0, 1.5],
            "cpu_system_s": [2.0, 0.0, 2.2, 0.0],
        }
    )

    assert cpu_share(resources, "engine") == pytest.approx(0.6)
    assert cpu_share(resources, "redis") == pytest.approx(0.25)
    assert cpu_share(resources[:2], "engine") is None


def test_the_observer_s_own_figures_stand_beside_what_its_process_used(tmp_path):
    store = Store.create(tmp_path, "observed")
    table = pa.table(
        {"part": ["harness"] * 2, "at_ms": [0, 2000], "cpu_user_s": [0.0, 0.5], "cpu_system_s": [0.0, 0.1]}
    )
    figures: dict[str, Any] = {"period_ms": 20.0, "period_p99_ms": 30.0, "scans": 500, "cells_sampled_share": 1.0}
    assert measure._observer(store, table) is None
    store.tell("observer", **figures)

    share: Any = pytest.approx(0.3)
    assert measure._observer(store, table) == Observer(**figures, cpu_share=share)
    assert measure._observer(store, None) is None


def test_a_checkpoint_is_as_large_as_it_was_last_said_to_be(tmp_path):
    store = Store.create(tmp_path, "kept")
    store.write_table("state.parquet", {"at_ms": [0, 1000, 2000], "checkpoint_bytes": [5, 7, None]})
    run: Any = SimpleNamespace(store=store, epoch_ms=500)

    assert measure._checkpoint_bytes(run) == 7
    store.write_table("state.parquet", {"at_ms": [0, 1000], "checkpoint_bytes": pa.nulls(2, pa.int64())})
    assert measure._checkpoint_bytes(run) is None


def test_what_a_part_had_used_before_the_first_sample_does_not_count_and_a_later_part_begins_at_zero():
    table = pa.table(
        {
            "part": ["engine", "engine", "python workers", "python workers"],
            "at_ms": [0, 1000, 1000, 2000],
            "cpu_user_s": [3.0, 5.0, 4.0, 6.0],
        }
    )

    assert [cost._used(table, part, "user") for part in ("engine", "python workers", "kafka")] == [2.0, 6.0, 0.0]
