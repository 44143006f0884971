"""A broker that has just started coordinates no group yet: asked for offsets it says so, and nothing breaks."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

# librdkafka's own admin client ends the process here, so that a process of its own asks.
ASK = """
import sys
from harness.engines.group_progress import committed_offsets
from harness.model import KafkaAddress
print(committed_offsets(KafkaAddress(sys.argv[1]), "group", "topic")())
"""
METADATA, OFFSET_FETCH, FIND_COORDINATOR, API_VERSIONS = 3, 9, 10, 18
VERSIONS = {1: (0, 4), METADATA: (0, 2), OFFSET_FETCH: (1, 2), FIND_COORDINATOR: (0, 1), API_VERSIONS: (0, 0)}
UNSUPPORTED_VERSION, NOT_COORDINATOR = 35, 16


def text(words: str) -> bytes:
    return struct.pack(">h", len(words)) + words.encode()


class Broker:
    """As much of Kafka's protocol as it takes to be asked for the offsets of a group."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.asked: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):  # until it is closed
            while True:
                threading.Thread(target=self._serve, args=(self._socket.accept()[0],), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as requests, suppress(OSError):
            while head := requests.read(4):
                request = requests.read(struct.unpack(">i", head)[0])
                key, version, number = struct.unpack(">hhi", request[:8])
                self.asked.append(key)
                answer = struct.pack(">i", number) + self._answer(key, version)
                connection.sendall(struct.pack(">i", len(answer)) + answer)

    def _answer(self, key: int, version: int) -> bytes:
        here = struct.pack(">i", 1) + text("127.0.0.1") + struct.pack(">i", self.port)
        if key == API_VERSIONS:
            apis = b"".join(struct.pack(">hhh", each, *versions) for each, versions in VERSIONS.items())
            return struct.pack(">hi", UNSUPPORTED_VERSION if version else 0, len(VERSIONS)) + apis
        if key == METADATA:
            partition = struct.pack(">ihiiiiii", 1, 0, 0, 1, 1, 1, 1, 1)
            topic = struct.pack(">ih", 1, 0) + text("topic") + b"\0" + partition
            return struct.pack(">i", 1) + here + struct.pack(">h", -1) + text("cluster") + struct.pack(">i", 1) + topic
        if key == FIND_COORDINATOR:
            return struct.pack(">ihh", 0, 0, -1) + here
        assert key == OFFSET_FETCH
        return struct.pack(">ih", 0, NOT_COORDINATOR)


@pytest.fixture
def broker():
    made = Broker()
    yield made
    made.close()


def test_a_broker_that_is_no_coordinator_yet_leaves_the_progress_of_a_group_unknown(broker):
    command = [sys.executable, "-c", ASK, f"127.0.0.1:{broker.port}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stdout) == (0, "{}\n"), done.stderr
    assert OFFSET_FETCH in broker.asked
