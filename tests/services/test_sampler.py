"""The observer on a real Redis."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from harness.model import Disorder, Segment, TapeSpec
from harness.results.glitches import LEAST_STAY_US
from harness.results.sampler import RedisObserver, Sampled
from harness.services.redis import EmbeddedRedis, connect
from harness.util.clock import Clock
from harness.util.wait import wait_until

TAPE = TapeSpec(1, (Segment(1000, 10.0, 10.0),), 1, 20, 2, campaigns=3, ads_per_campaign=1, disorder=Disorder())
WINDOW_MS = 10_000
NAMES = ["first", "second", "third"]


def looks(observer: RedisObserver) -> int:
    return len(observer._recorder._looks_us)


def some_looks(observer: RedisObserver, more: int = 2) -> None:
    wanted = looks(observer) + more
    wait_until(lambda: looks(observer) >= wanted, deadline_s=20, what=f"{more} more looks", every_s=0.01)


def rows_of(sampled: Sampled) -> list[tuple[int, ...]]:
    """Campaign, window and count of each change, in their order."""
    columns = (sampled.columns[name].tolist() for name in ("campaign", "window_ms", "count"))
    return list(zip(*columns, strict=True))


@pytest.fixture
def client(redis_address):
    with connect(redis_address) as client:
        yield client


def test_changes_are_seen_in_their_order_whatever_stands_beside_them(client):
    observer = RedisObserver(client, NAMES, TAPE, WINDOW_MS, 0, clock=Clock())
    client.hset("first", "0", "1")
    client.set("third", "no hash at all")
    observer.start()
    some_looks(observer)
    client.hset("first", mapping={"0": "2", "10000": "7", "word": "1"})
    client.hset("second", "0", "\u20ac")
    some_looks(observer)
    client.delete("first")
    sampled = observer.stop()

    seen = rows_of(sampled)
    assert seen[:1] == [(0, 0, 1)]
    assert sorted(seen[1:3]) == [(0, 0, 2), (0, 10_000, 7)]
    assert sorted(seen[3:]) == [(0, 0, 0), (0, 10_000, 0)], "the last look comes after stop"
    assert sampled.looks.garbage >= 3
    assert sampled.looks.errors == 0
    assert (sampled.columns["at_us"][1:] >= sampled.columns["at_us"][:-1]).all()
    assert (sampled.columns["since_us"] <= sampled.columns["at_us"]).all()


def test_an_answer_of_many_parts_is_one_look(client):
    tape = replace(TAPE, campaigns=400)
    names = [f"campaign-{number}" for number in range(400)]
    for name in names:
        client.hset(name, mapping={str(window * 10_000): window + 1 for window in range(60)})
    observer = RedisObserver(client, names, tape, WINDOW_MS, 0, clock=Clock())
    observer.start()
    some_looks(observer)
    sampled = observer.stop()

    assert len(sampled.columns["count"]) == 400 * 60
    assert sampled.looks.errors == 0


def test_of_many_windows_most_are_glanced_at_and_none_is_missed_in_the_end(client):
    """Sixty windows, the newest of them now; one of long ago changes, and one that may."""
    now_ms = time.time_ns() // 1_000_000 // WINDOW_MS * WINDOW_MS
    old_ms = now_ms - 59 * WINDOW_MS
    client.hset("first", mapping={str(now_ms - back * WINDOW_MS): 1 for back in range(60)})
    observer = RedisObserver(client, NAMES, TAPE, WINDOW_MS, 0, clock=Clock())
    observer.start()
    some_looks(observer, 5)
    client.hset("first", str(now_ms), "2")
    some_looks(observer)
    client.hset("first", str(old_ms), "2")
    sampled = observer.stop()

    told = rows_of(sampled)
    assert [(window_ms, count) for _, window_ms, count in told[60:]] == [(now_ms, 2), (old_ms, 2)]
    assert 1 < sampled.looks.whole < sampled.looks.scans
    assert sampled.looks.errors == 0


def test_redis_may_be_gone_for_a_moment(tmp_path):
    server = EmbeddedRedis(tmp_path)
    client = connect(server.start())
    try:
        client.hset("first", "0", "1")
        observer = RedisObserver(client, NAMES, TAPE, WINDOW_MS, 0, clock=Clock())
        observer.start()
        some_looks(observer)
        client.client_kill_filter(_type="normal", skipme=True)
        some_looks(observer)
        client.hset("first", "0", "2")
        sampled = observer.stop()
    finally:
        client.close()
        server.stop()

    assert sampled.columns["count"].tolist() == [1, 2]
    assert sampled.looks.errors >= 1
    assert sampled.looks.first_error


def test_redis_may_come_back_as_another_process_without_its_data(tmp_path):
    server = EmbeddedRedis(tmp_path)
    client = connect(server.start())
    try:
        client.hset("first", "0", "7")
        observer = RedisObserver(client, NAMES, TAPE, WINDOW_MS, 0, clock=Clock())
        observer.start()
        some_looks(observer)
        server.child.kill_group()
        wait_until(lambda: len(observer._recorder._errors) > 2, deadline_s=20, what="looks that see nothing")
        server.restart()
        some_looks(observer)
        client.hset("first", "0", "2")
        sampled = observer.stop()
    finally:
        client.close()
        server.stop()

    assert sampled.columns["count"].tolist() == [7, 0, 2]
    assert sampled.looks.errors > 2


def test_without_redis_there_is_nothing_to_see_and_a_reason(tmp_path):
    server = EmbeddedRedis(tmp_path)
    client = connect(server.start())
    observer = RedisObserver(client, NAMES, TAPE, WINDOW_MS, 0, clock=Clock())
    server.stop()
    observer.start()
    sampled = observer.stop()
    client.close()

    assert sampled.looks.scans == 0
    assert "ConnectionError" in sampled.looks.first_error


def test_what_a_reader_could_not_have_read_is_told_though_it_was_repaired(client):
    """A text for a count, a list for a hash, a hash that is no text, and one of a campaign that does not exist."""
    observer = RedisObserver(client, NAMES, TAPE, WINDOW_MS, 0, clock=Clock(), bookkeeping=("mine:*",))
    client.hset("first", "0", "1")
    observer.start()
    some_looks(observer)
    client.hset("first", "0", "soon")
    client.rpush("second", "1")
    for key in (b"\xff", b"mine:7", b"updated:first", b"sums:first"):
        client.hset(key, "0", "1")
    some_looks(observer)
    stays = observer._recorder._glitches._strangers
    wait_until(
        lambda: any(last - first >= LEAST_STAY_US for first, last in stays.values()),
        deadline_s=20,
        what="a stranger that stays",
    )
    client.hset("first", "0", "2")
    client.delete("second", b"\xff", b"mine:7")
    sampled = observer.stop()

    told = list(zip(*sampled.glitches.values(), strict=True))
    assert [row[:4] for row in told] == [
        ("unreadable", 0, "0", "soon"),
        ("unreadable", 1, "", "a key of another type"),
        ("stranger", -1, r"\xff", "a hash"),
    ]
    assert all(0 < from_us < until_us for *_, from_us, until_us in told)
    assert (sampled.looks.glitches, sampled.looks.errors) == (3, 0)
    assert sampled.columns["count"].tolist() == [1, 2]
