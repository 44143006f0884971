"""Read many hashes of Redis with one prepared request, and return the answer as bytes.

It reads the socket directly, because redis-py would make a call for each of hundreds of replies.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import redis

from workloads.prefixed import prefix_of

REPLY_TIMEOUT_S = 5.0
_RECEIVE_BYTES = 1 << 18


class Prepared:
    """A reader with its own connection, opened at the first request."""

    def __init__(self, client: redis.Redis, names: Sequence[str]) -> None:
        self._client, self._names = client, [f"{prefix_of(client)}{name}" for name in names]
        # The last reply is known in advance: an answer that ends with it is complete.
        self._token = uuid.uuid4().hex
        self._end = f"${len(self._token)}\r\n{self._token}\r\n".encode()
        self._connection: redis.Connection | None = None

    def request(self, command: str, *fields: str) -> bytes:
        """Build a request that sends the same command for each hash."""
        commands = [*((command, name, *fields) for name in self._names), ("PING", self._token)]
        return b"".join(_packed(each) for each in commands)

    def ask(self, request: bytes) -> bytes:
        connection = self.connected()
        connection.send_packed_command([request], check_health=False)  # type: ignore[no-untyped-call]
        plug = connection._get_socket()
        parts: list[bytes] = []
        tail = b""
        while not tail.endswith(self._end):
            part = plug.recv(_RECEIVE_BYTES) if plug else b""
            if not part:
                raise ConnectionError("Redis closed the connection of its reader")
            parts.append(part)
            tail = tail[-len(self._end) :] + part if len(part) < len(self._end) else part
        return b"".join(parts)

    def connected(self) -> redis.Connection:
        if self._connection is None:
            self._connection = _connection(self._client)
        return self._connection

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.disconnect()  # type: ignore[no-untyped-call]
            self._connection = None


def _connection(client: redis.Redis) -> redis.Connection:
    """Open a connection like the client's, TLS and password included, with protocol 2, whose hashes are flat lists."""
    pool = client.connection_pool
    settings = {**pool.connection_kwargs, "protocol": 2, "socket_timeout": REPLY_TIMEOUT_S}
    connection: redis.Connection = pool.connection_class(**settings)
    connection.connect()  # type: ignore[no-untyped-call]
    return connection


def _packed(command: Sequence[str]) -> bytes:
    parts = [f"*{len(command)}\r\n".encode()]
    for word in command:
        octets = word.encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(octets), octets))
    return b"".join(parts)
