"""The ways of `bench --locality` without an engine: all records arrive, and a receiver that loses one is found out."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

import pytest

from harness.model import HarnessError
from harness.services.kafka import end_offsets
from tools.locality import locality, programs, ways
from tools.locality.ways import JAVA, LOOPBACK

TIME_MS = 30
LOST = 7  # the number of the record that is not counted


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    with programs.java(tmp_path_factory.mktemp("pair")) as started:
        yield started


@pytest.mark.parametrize("way", JAVA[:4], ids=lambda way: way.name)
@pytest.mark.parametrize("size", [64, 4096])
def test_all_records_arrive(java, way, size):
    answer = ways.checked(way, size, java.measure(way, size, TIME_MS))

    assert answer.received.records >= 256
    assert answer.took_s > 0


def test_records_arrive_through_a_topic_of_their_own(java, tmp_path):
    with locality.broker(tmp_path) as broker:
        java.broker = broker

        found = [*ways.turns("Java", [512], 1, TIME_MS, java)]

        assert [turn.way for turn in found] == list(JAVA)
        assert all(turn.cpu_s_per_million > 0 for turn in found)
        with pytest.raises(HarnessError):
            end_offsets(broker.address, "hop-1")


@pytest.mark.parametrize("loses", [False, True])
def test_a_receiver_that_loses_one_record_is_found_out(tmp_path, loses):
    with counting(loses=loses) as port, programs.program("sender", command(tmp_path, port), tmp_path) as alone:
        answer = alone.measure(LOOPBACK, 64, TIME_MS)

    if loses:
        with pytest.raises(HarnessError, match="loopback socket, records of 64 bytes: what arrived is not what was"):
            ways.checked(LOOPBACK, 64, answer)
        assert answer.sent.number_sum - answer.received.number_sum == LOST
    else:
        assert ways.checked(LOOPBACK, 64, answer) == answer


def test_a_program_that_ends_is_quoted(tmp_path):
    with (
        programs.program("sender", command(tmp_path, 1), tmp_path) as alone,
        pytest.raises(HarnessError, match=r"(?s)sender.* ended with exit code 1\. .*no-such-way"),
    ):
        alone.ask("no-such-way", 64, TIME_MS)


def command(folder: Path, port: int) -> list[str]:
    return programs.sender_command(folder / "plug", str(port))


@contextmanager
def counting(*, loses: bool) -> Iterator[int]:
    """A receiver of our own, at this port."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        thread = threading.Thread(target=_count, args=(door, loses))
        thread.start()
        yield door.getsockname()[1]
        thread.join(60)


def _count(door: socket.socket, loses: bool) -> None:
    with door.accept()[0] as connection, connection.makefile("rb") as stream:
        _frame(stream)  # the topic: none
        connection.sendall(struct.pack(">i", 0))
        records = [record for record in iter(lambda: _frame(stream), None) if not (loses and _number(record) == LOST)]
        totals = len(records), sum(map(len, records)), sum(map(_number, records))
        connection.sendall(struct.pack(">5q", *totals, 0, 0))


def _frame(stream: BufferedReader) -> bytes | None:
    (length,) = struct.unpack(">i", stream.read(4))
    return None if length < 0 else stream.read(length)


def _number(record: bytes) -> int:
    return int.from_bytes(record[:8], "big")
