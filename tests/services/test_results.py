"""Results wherever an engine may leave them: what comes out is our own schema, and orphans keep their name."""

from __future__ import annotations

import json
import sys
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from harness.model import Disorder, Segment, TapeSpec
from harness.results import redis_scan
from harness.results.base import ResultLocation, by_key
from harness.results.redis_scan import HASH, STRING, Row, UnreadableError, interpret
from harness.results.registry import open_results
from harness.results.sampler import PlainObserver
from harness.services.redis import connect
from harness.util.clock import Clock
from harness.util.wait import wait_until
from tests.quick.cases import ANY
from workloads.cells import Codes

NAMES = [str(uuid.UUID(int=number)) for number in range(3)]
ADS = [str(uuid.UUID(int=number)) for number in range(100, 102)]
TABLES = dict.fromkeys(ADS, STRING) | {"shops": HASH}
MANIFEST = ANY
WINDOW_MS = LENGTH_MS = 10_000
TAPE = TapeSpec(1, (Segment(1000, 10.0, 10.0),), 1, 20, 2, campaigns=3, ads_per_campaign=1, disorder=Disorder())


@pytest.fixture
def client(redis_address):
    with connect(redis_address) as connected:
        connected.sadd("campaigns", *NAMES)
        yield connected


@pytest.fixture
def read(client, kafka_address, tmp_path):
    """Rows and counts from a source that a manifest describes so."""

    def rows(topic: str = "", **described):
        manifest = replace(MANIFEST, home=str(tmp_path), **described)
        orders, log = tmp_path / "engine.json", tmp_path / "log"
        location = ResultLocation(
            client, kafka_address, topic, NAMES, TABLES, WINDOW_MS, LENGTH_MS, 0, manifest, orders, log, Clock()
        )
        source = open_results(location)
        found = source.rows()
        assert source.snapshot() == source.snapshot()
        source.close()
        return found

    return rows


def counts(rows: list[Row]):
    codes = Codes()
    observed = interpret(rows, {name: index for index, name in enumerate(NAMES)}, codes, ())
    return {(codes.key(cell), codes.field(cell)): observed.counts[cell] for cell in observed.counts}, observed.strays


def test_what_is_no_text_has_an_escaped_name_and_is_a_finding(client, read):
    client.hset(b"\xff\xfe", b"0", b"1")
    client.hset(NAMES[0], b"\xff0", b"1")
    client.hset(NAMES[0], b"0", b"\xff1")
    found, strays = counts(read())

    assert found == {}
    assert {(stray.where, stray.value, stray.kind) for stray in strays} == {
        (r"\xff\xfe[0]", "1", "campaign"),
        (rf"{NAMES[0]}[\xff0]", "1", "number"),
        (f"{NAMES[0]}[0]", r"\xff1", "number"),
    }


def test_of_the_ad_table_only_its_own_strings_are_passed_over(client, read):
    client.set(ADS[0], NAMES[0])
    client.hset("shops", "a", "north")  # as the workload put it there
    client.hset(ADS[1], "0", "1")
    client.set(str(uuid.UUID(int=999)), "5")
    client.set(NAMES[0], "5")
    client.rpush(b"\xff", "5")
    strays = counts(read())[1]

    assert {(stray.where, stray.kind) for stray in strays} == {
        (f"{ADS[1]}[0]", "campaign"),
        (str(uuid.UUID(int=999)), "key"),
        (NAMES[0], "number"),
        (r"\xff", "key"),
    }


@pytest.fixture
def flicker(client, monkeypatch):
    """A key that is there when keys are named, and gone when its type is asked for; so often."""

    def flickers(times: int) -> None:
        asked, left = redis_scan._asked, [times]

        def gone(client, commands):
            commands = list(commands)
            if commands[0][0] == "TYPE" and left[0]:
                left[0] -= 1
                client.delete("flickers")
                found = asked(client, commands)
                client.hset("flickers", "0", "1")
                return found
            return asked(client, commands)

        client.hset("flickers", "0", "1")
        monkeypatch.setattr(redis_scan, "_asked", gone)

    return flickers


def test_a_key_that_vanished_is_read_again(client, flicker):
    flicker(times=2)

    assert Row("flickers", "0", "1", "hash") in redis_scan.scan(client)


def test_a_key_that_vanishes_at_each_look_is_a_finding(client, flicker):
    flicker(times=10 * redis_scan.MOST_POLLS)
    _, strays = counts(redis_scan.scan(client))

    assert [(stray.where, stray.kind) for stray in strays] == [("flickers", "number")]


def fill_as_yahoo(client, shift_ms: int = 0) -> None:
    for index, name in enumerate(NAMES):
        for window in range(2):
            key = str(uuid.uuid4())
            client.hset(name, str(window * WINDOW_MS + shift_ms), key)
            client.hset(key, mapping={"seen_count": 10 * (index + 1) + window, "time_updated": 12_345})
        client.hset(name, "windows", f"list {index}")
        client.lpush(f"list {index}", "0", str(WINDOW_MS))
    client.lpush("time_updated", "12345")


EXPECTED = {(index, window * WINDOW_MS): 10 * (index + 1) + window for index in range(3) for window in range(2)}


def test_the_schema_of_the_original(client, read):
    fill_as_yahoo(client)
    rows = read(results="redis:yahoo")

    assert counts(rows) == (EXPECTED, ())
    assert Row(f"updated:{NAMES[0]}", "0", "12345", "hash") in rows


def test_windows_that_are_called_by_their_end(client, read):
    fill_as_yahoo(client, shift_ms=WINDOW_MS)

    assert counts(read(results="redis:yahoo", window_key="end"))[0] == EXPECTED


def test_a_hash_of_counts_that_no_campaign_refers_to_stays_under_its_own_name(client, read):
    fill_as_yahoo(client)
    client.hset("nobody's", mapping={"seen_count": 7, "time_updated": 1})
    found, strays = counts(read(results="redis:yahoo"))

    assert found == EXPECTED
    assert [(stray.where, stray.value, stray.kind) for stray in strays] == [("nobody's[seen_count]", "7", "orphan")]


def test_a_window_without_a_count_is_no_zero(client, read):
    fill_as_yahoo(client)
    client.hset(NAMES[0], "20000", "a key that is not there")

    assert [stray.value for stray in counts(read(results="redis:yahoo"))[1]] == ["no seen_count"]


def test_our_own_schema_with_ends_of_windows(client, read):
    for (index, window), count in EXPECTED.items():
        client.hset(NAMES[index], str(window + WINDOW_MS), count)

    assert counts(read(window_key="end")) == (EXPECTED, ())


@pytest.mark.parametrize("field", ["w{window}", ""])
def test_keys_of_anybodys_pattern(client, read, field):
    client.set(ADS[0], NAMES[0])
    client.set("other", "5")
    for (index, window), count in EXPECTED.items():
        if field:
            client.hset(f"c/{NAMES[index]}", f"w{window}", count)
        else:
            client.set(f"c/{NAMES[index]}/{window}", count)
    key = "c/{campaign}" if field else "c/{campaign}/{window}"
    found, strays = counts(read(results="redis:template", key=key, field=field))

    assert found == EXPECTED
    assert [stray.where for stray in strays] == ["other"]


def test_the_last_record_of_a_cell_counts(read, kafka_address, topic):
    producer = Producer({"bootstrap.servers": kafka_address.bootstrap})
    for round_number in (5, 0):  # the later ones are right
        for (index, window), count in EXPECTED.items():
            value = {"campaign": NAMES[index], "window": window, "count": count + round_number}
            producer.produce(topic, json.dumps(value).encode(), partition=0)
    producer.produce(topic, b"no JSON", partition=1)
    assert producer.flush(30) == 0
    found, strays = counts(read(topic, results="kafka:counts"))

    assert found == EXPECTED
    assert [(stray.where, stray.value, stray.kind) for stray in strays] == [(f"{topic}[1@0]", "b'no JSON'", "number")]


def test_a_transaction_that_is_open_holds_nothing_yet_and_keeps_nobody_waiting(read, kafka_address, topic):
    producer = Producer({"bootstrap.servers": kafka_address.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    (first, count), *others = EXPECTED.items()
    for cells in ([(first, count)], others):
        producer.begin_transaction()
        for (index, window), value in cells:
            told = {"campaign": NAMES[index], "window": window, "count": value}
            producer.produce(topic, json.dumps(told).encode(), partition=0)
        assert producer.flush(30) == 0
        if cells != others:
            producer.commit_transaction(30)
    meanwhile, _ = counts(read(topic, results="kafka:counts"))
    producer.commit_transaction(30)

    assert meanwhile == {first: count}
    assert counts(read(topic, results="kafka:counts")) == (EXPECTED, ())


def test_what_a_program_prints(read, tmp_path):
    lines = [f"{NAMES[index]}, {window}, {count}" for (index, window), count in EXPECTED.items()]
    (tmp_path / "cells").write_text("\n".join([*lines, "", "a line too many"]))
    found, strays = counts(read(results="command", read=("cat", "{home}/cells")))

    assert found == EXPECTED
    assert [stray.where for stray in strays] == ["line 8"]


def test_a_program_that_fails_is_quoted(read, tmp_path):
    (tmp_path / "fail.py").write_text("import sys; sys.exit('no table there')")

    with pytest.raises(UnreadableError, match="exit code 1: no table there"):
        read(results="command", read=(sys.executable, "{home}/fail.py"))


def test_of_a_program_that_fails_the_exception_is_quoted_whole_with_its_place(read, tmp_path):
    table = "warehouse." + "a_long_name_" * 40 + "impressions"
    (tmp_path / "fail.py").write_text(f"raise LookupError('no table {table}')")

    with pytest.raises(UnreadableError) as failed:
        read(results="command", read=(sys.executable, "{home}/fail.py"))

    where = f'File "{tmp_path / "fail.py"}", line 1, in <module>'
    assert str(failed.value).endswith(f"exit code 1: LookupError: no table {table}; {where}")


def test_a_look_is_a_hash_for_each_campaign():
    rows = [Row(NAMES[1], "0", "3", "hash"), Row(NAMES[1], "10000", "4", "hash"), Row("stray", "0", "1", "hash")]

    assert by_key(rows, NAMES) == [[], ["0", "3", "10000", "4"], []]


def shown_by_yahoo(client, value: str) -> None:
    client.hset("key of it", "seen_count", value)
    client.hset(NAMES[0], "0", "key of it")


def shown_by_template(client, value: str) -> None:
    client.hset(f"c/{NAMES[0]}", "0", value)


def shown_by_ourselves(client, value: str) -> None:
    client.hset(NAMES[0], str(WINDOW_MS), value)


@pytest.mark.parametrize(
    ("described", "show", "place_of_it"),
    [
        ({"results": "redis:yahoo"}, shown_by_yahoo, NAMES[0]),
        ({"results": "redis:template", "key": "c/{campaign}", "field": "{window}"}, shown_by_template, f"c/{NAMES[0]}"),
        ({"window_key": "end"}, shown_by_ourselves, NAMES[0]),
    ],
    ids=["yahoo", "template", "ends of windows"],
)
def test_what_was_no_count_for_a_while_is_seen_in_every_schema(
    client, kafka_address, tmp_path, described, show, place_of_it
):
    manifest = replace(MANIFEST, home=str(tmp_path), **described)
    orders, log = tmp_path / "engine.json", tmp_path / "log"
    observer = open_results(
        ResultLocation(
            client, kafka_address, "", NAMES, TABLES, WINDOW_MS, LENGTH_MS, 0, manifest, orders, log, Clock()
        )
    ).observer(TAPE)
    assert isinstance(observer, PlainObserver)
    observer.start()

    def until_seen(count: int) -> None:
        glitches = observer._recorder._glitches
        wait_until(
            lambda: len(glitches) + len(glitches._rows) == count, deadline_s=20, what=f"{count} signs of a glitch"
        )

    show(client, "1")
    show(client, "soon")
    until_seen(1)
    show(client, "2")
    until_seen(2)
    kept = client.hgetall(place_of_it)
    client.delete(place_of_it)
    client.rpush(place_of_it, "1")
    until_seen(3)
    client.delete(place_of_it)
    client.hset(place_of_it, mapping=kept)
    sampled = observer.stop()

    told = list(zip(*sampled.glitches.values(), strict=True))
    assert [row[:4] for row in told] == [
        ("unreadable", 0, "0", "soon"),
        ("unreadable", 0, "", "a key of another type"),
    ]
    assert sampled.columns["count"].tolist()[-1] == 2
    assert sampled.looks.errors == 0


def test_a_window_of_yahoos_whose_hash_is_not_there_yet_is_no_glitch(client, kafka_address, tmp_path):
    manifest = replace(MANIFEST, home=str(tmp_path), results="redis:yahoo")
    location = ResultLocation(
        client,
        kafka_address,
        "",
        NAMES,
        TABLES,
        WINDOW_MS,
        LENGTH_MS,
        0,
        manifest,
        tmp_path / "engine.json",
        tmp_path,
        Clock(),
    )
    observer = open_results(location).observer(TAPE)
    assert isinstance(observer, PlainObserver)
    client.hset(NAMES[0], "0", "not there yet")
    observer.start()
    looks = observer._recorder._looks_us
    wait_until(lambda: len(looks) > 2, deadline_s=20, what="some looks")
    client.hset("not there yet", "seen_count", "1")

    assert (sampled := observer.stop()).looks.glitches == 0
    assert sampled.columns["count"].tolist() == [1]
