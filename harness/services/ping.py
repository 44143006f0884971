"""A plain connection to Redis or Kafka that measures the round-trip time of small and large requests.

It uses sockets and bytes without a client library, so nothing retries, reconnects or waits for us.
"""

from __future__ import annotations

import socket
import struct
import time
from types import TracebackType
from typing import NamedTuple

CONNECT_TIMEOUT_S = 5.0
API_VERSIONS = 18
KAFKA_PART_BYTES = 400  # least size of an ApiVersions reply, and the size of our request


class Question(NamedTuple):
    """A request, and the number of replies to it; the first bytes of each reply hold its size."""

    data: bytes
    answers: int


class Answered(NamedTuple):
    """The duration, and the bytes in each direction."""

    ms: float
    asked_bytes: int
    answered_bytes: int


class Ping:
    """One connection, kept open between requests."""

    def __init__(self, service: str, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._service = service
        self._socket = socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, size_bytes: int = 0) -> int:
        """Send a request at least as large as its reply; return its size in bytes. `hear` waits for the reply."""
        self._question = question(self._service, size_bytes)
        self._socket.sendall(self._question.data)
        return len(self._question.data)

    def hear(self, deadline_s: float) -> int | None:
        """Return the size of the whole reply to the last request; None if it did not come. A reset raises."""
        answer = b""
        end_s = time.monotonic() + deadline_s
        while not complete(self._service, answer, self._question.answers):
            self._socket.settimeout(max(0.001, end_s - time.monotonic()))
            try:
                more = self._socket.recv(65_536)
            except TimeoutError:
                return None
            if not more:
                raise ConnectionResetError("the other side closed the connection")
            answer += more
        return len(answer)

    def measure(self, size_bytes: int = 0, deadline_s: float = 10.0) -> Answered | None:
        """Send a request and wait for its reply; None after the deadline, after which replies no longer match."""
        start_s = time.perf_counter()
        asked = self.ask(size_bytes)
        heard = self.hear(deadline_s)
        return None if heard is None else Answered((time.perf_counter() - start_s) * 1000, asked, heard)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Ping:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()


def question(service: str, size_bytes: int) -> Question:
    """Build an ECHO for Redis, or ApiVersions requests for Kafka, which need no login."""
    if service == "redis":
        return Question(b"*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n" % (size_bytes, b"." * size_bytes), 1)
    count = max(1, -(-size_bytes // KAFKA_PART_BYTES))
    client = b"." * (KAFKA_PART_BYTES if size_bytes else 1)
    body = struct.pack(">hhih", API_VERSIONS, 0, 1, len(client)) + client
    return Question((struct.pack(">i", len(body)) + body) * count, count)


def complete(service: str, answer: bytes, answers: int) -> bool:
    """Return whether all replies are complete."""
    for _ in range(answers):
        size = _redis_size(answer) if service == "redis" else _kafka_size(answer)
        if size is None or len(answer) < size:
            return False
        answer = answer[size:]
    return True


def _redis_size(answer: bytes) -> int | None:
    line, end, _ = answer.partition(b"\r\n")
    return len(line) + 2 + int(line[1:]) + 2 if end and line.startswith(b"$") else None


def _kafka_size(answer: bytes) -> int | None:
    return 4 + int(struct.unpack(">i", answer[:4])[0]) if len(answer) >= 4 else None
