"""Parses just enough of PostgreSQL's protocol to find the replies that confirm a commit of rows. Pure.

Replies arrive in arbitrary pieces; `feed` returns what they complete. With TLS nothing can be read or found.
"""

from __future__ import annotations

import struct

HEAD_BYTES = 5  # a message's type and its length, which counts itself and not the type
COMPLETE, READY, LOGIN, REFUSES_TLS = b"C", b"Z", b"R", b"N"
IDLE = b"I"  # no transaction is open
COMMIT, BEGIN = "COMMIT", "BEGIN"
WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "COPY"})


class Commits:
    """The replies of a server on one connection."""

    def __init__(self) -> None:
        self._buffer = b""
        self._has_login = False  # before it, the answer to a question for TLS is a byte without a length
        self._in_block = self._has_rows = False
        self.quiet = True  # the server waits for the next request

    def feed(self, data: bytes) -> list[str]:
        """Return the commands that these bytes confirm: COMMIT, or a write that commits by itself."""
        self._buffer += data
        found = []
        while message := self._next():
            kind, body = message
            self.quiet = kind == READY
            if kind == READY:
                self._in_block = body != IDLE
                self._has_rows &= self._in_block
            elif kind == COMPLETE and (name := self._confirmed(body)):
                found.append(name)
        return found

    def _confirmed(self, body: bytes) -> str:
        name, *rest = body.rstrip(b"\0").decode(errors="replace").split(" ")
        if name == BEGIN:
            self._in_block = True
        wrote = name in WRITES and rest[-1:] != ["0"]
        self._has_rows |= wrote
        if name == COMMIT:
            return name if self._has_rows else ""
        return name if wrote and not self._in_block else ""

    def _next(self) -> tuple[bytes, bytes] | None:
        """Take the next complete message out of the buffer."""
        if not self._has_login:
            self._buffer = self._buffer.lstrip(REFUSES_TLS)
        if len(self._buffer) < HEAD_BYTES:
            return None
        kind, size = self._buffer[:1], 1 + int(struct.unpack(">i", self._buffer[1:HEAD_BYTES])[0])
        if len(self._buffer) < size:
            return None
        body, self._buffer = self._buffer[HEAD_BYTES:size], self._buffer[size:]
        self._has_login |= kind == LOGIN
        return kind, body
