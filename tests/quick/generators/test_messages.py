"""What travels between the master of a load and its workers."""

from __future__ import annotations

import msgpack  # type: ignore[import-untyped]
import pyarrow as pa

from generators import messages
from generators.clock_offset import Offset
from generators.fleet import Books, LoadConfig, done_of
from generators.sends import SENDS
from generators.versions import code_digest, differing
from generators.worker_files import Own
from tests.quick.cases import SPEC

SECRET = {"sasl.password": "hunter2"}
CONFIG = LoadConfig(SPEC.tape, "confluent", "broker:9092", "topic", SECRET, "/private/folder")


def travelled(told):
    """As Locust sends it."""
    return msgpack.loads(msgpack.dumps(told), strict_map_key=False)


def test_no_setting_of_the_client_travels():
    plan = messages.plan_of(CONFIG)

    assert b"hunter2" not in msgpack.dumps(plan)
    assert b"/private" not in msgpack.dumps(plan)
    assert plan["secured"]  # a worker without a file of its own is told
    got = messages.config_in(travelled(plan))
    assert (got.tape, got.client, got.bootstrap, got.topic) == (SPEC.tape, "confluent", "broker:9092", "topic")
    assert got.settings == {}


def test_books_arrive_as_they_were():
    rows = {name: [number, 7] for number, name in enumerate(SENDS)}
    sends = pa.table({name: pa.array(rows[name]).cast(kind) for name, kind in SENDS.items()})
    books = Books(sends, 14, 13, 1, 250, ["1 x timed out"])

    found, end = messages.unpack(travelled(messages.pack(books, Offset(-(2**60), 99))))
    assert (found, end) == (books, Offset(-(2**60), 99))
    assert messages.unpack(travelled(messages.pack(books, None)))[1] is None


def test_the_last_word_sums_up_all_workers():
    empty = pa.table({})
    told = done_of([Books(empty, 5, 4, 1, 30, ["a"]), Books(empty, 6, 6, 0, 70, [])], 12)
    assert told == {"intended": 12, "sent": 11, "acked": 10, "unresolved": 1, "errors": ["a"], "throttled_ms": 70}


def test_versions_are_compared_by_name():
    ours = {"streamgauge": "0.2.0", "code": code_digest()}
    assert differing(ours, dict(ours)) == ""
    assert differing(ours, {**ours, "code": "f00"}) == f"code f00 instead of {ours['code']}"
    assert "code none instead of" in differing(ours, {"streamgauge": "0.2.0"})


def test_a_worker_says_whole_lines(tmp_path):
    own = Own(tmp_path)
    assert list(own.said()) == []
    own.say("joined")
    own.say("started", servers=[1, 2])
    with (tmp_path / "said.jsonl").open("a") as file:
        file.write('{"kind": "hal')

    assert list(own.said()) == [{"kind": "joined"}, {"kind": "started", "servers": [1, 2]}]
