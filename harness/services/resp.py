"""Parses just enough RESP, Redis' protocol, to count commands and replies. Pure.

Both directions arrive in arbitrary pieces; each `feed` returns what it completed. RESP3's pushes are no replies.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterable

Parser = Generator[None, None, None]

# The commands that change or may change a key, including scripts and the end of a transaction.
_WRITES = (
    "APPEND BITFIELD BITOP COPY DECR DECRBY DEL EVAL EVALSHA EXEC EXPIRE FCALL GEOADD GETDEL GETSET HDEL HINCRBY "
    "HINCRBYFLOAT HMSET HSET HSETNX INCR INCRBY INCRBYFLOAT LINSERT LMOVE LPOP LPUSH LPUSHX LREM LSET LTRIM MSET "
    "MSETNX PEXPIRE PFADD PSETEX RENAME RPOP RPUSH RPUSHX SADD SET SETBIT SETEX SETNX SETRANGE SMOVE SPOP SREM UNLINK "
    "XADD XDEL ZADD ZINCRBY ZPOPMAX ZPOPMIN ZREM"
)
WRITES = frozenset(_WRITES.split())


class _Stream:
    """Bytes that arrive in pieces, and a parser that waits wherever they end."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inside = False  # an incomplete command or reply
        self._parser = self._parse()
        next(self._parser)

    @property
    def complete(self) -> bool:
        """Return whether the bytes so far end at the end of a command or reply."""
        return not self._inside and not self._buffer

    def _parse(self) -> Parser:
        raise NotImplementedError

    def _advance(self, data: bytes) -> None:
        self._buffer += data
        next(self._parser)

    def _line(self) -> Generator[None, None, bytes]:
        while (end := self._buffer.find(b"\r\n")) < 0:
            yield
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _take(self, count: int) -> Generator[None, None, bytes]:
        while len(self._buffer) < count:
            yield
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _skip(self, count: int) -> Parser:
        while count:
            gone = min(count, len(self._buffer))
            del self._buffer[:gone]
            count -= gone
            if count:
                yield


class Requests(_Stream):
    """The commands of a client."""

    def __init__(self) -> None:
        self._names: list[str] = []
        super().__init__()

    def feed(self, data: bytes) -> list[str]:
        """Return the names of the commands that these bytes complete."""
        self._advance(data)
        names, self._names = self._names, []
        return names

    def _parse(self) -> Parser:
        while True:
            line = yield from self._line()
            self._inside = True
            name = (yield from self._array(int(line[1:]))) if line.startswith(b"*") else line.partition(b" ")[0]
            self._inside = False
            if name:
                self._names.append(name.decode(errors="replace").upper())

    def _array(self, length: int) -> Generator[None, None, bytes]:
        name = b""
        for index in range(length):
            size = int((yield from self._line())[1:])
            if index:
                yield from self._skip(size)
            else:
                name = yield from self._take(size)
            yield from self._skip(2)
        return name


class Replies(_Stream):
    """The replies of a server, in RESP2 and RESP3."""

    def __init__(self) -> None:
        self._count = 0
        super().__init__()

    def feed(self, data: bytes) -> int:
        """Return how many replies these bytes complete."""
        self._advance(data)
        count, self._count = self._count, 0
        return count

    def _parse(self) -> Parser:
        while True:
            kind = yield from self._value()
            self._inside = False
            self._count += kind != b">"

    def _value(self) -> Generator[None, None, bytes]:
        line = yield from self._line()
        self._inside = True
        kind, rest = line[:1], line[1:]
        if kind in (b"$", b"!", b"=") and int(rest) >= 0:
            yield from self._skip(int(rest) + 2)
        elif kind in (b"*", b"~", b">", b"%", b"|"):
            for _ in range(int(rest) * (2 if kind in (b"%", b"|") else 1)):  # null has length -1: range(-1) is empty
                yield from self._value()
            if kind == b"|":  # attributes, followed by the reply itself
                return (yield from self._value())
        return kind


class Conversation:
    """The requests on one connection to Redis, and which of their replies reached the client."""

    def __init__(self, answered: Counter[str], unanswered: Counter[str]) -> None:
        """The counters, by command name, are shared by all connections."""
        self._requests, self._replies = Requests(), Replies()
        self._waiting: deque[str] = deque()
        self._answered, self._unanswered = answered, unanswered

    @property
    def quiet(self) -> bool:
        """Return whether all requests are complete and answered by Redis."""
        return self._requests.complete and self._replies.complete and not self._waiting

    def ask(self, data: bytes) -> list[str]:
        names = self._requests.feed(data)
        self._waiting.extend(names)
        return names

    def answer(self, data: bytes, *, delivered: bool) -> None:
        for _ in range(min(self._replies.feed(data), len(self._waiting))):
            (self._answered if delivered else self._unanswered)[self._waiting.popleft()] += 1

    def end(self) -> None:
        """Count the pending requests as unanswered."""
        self._unanswered.update(self._waiting)
        self._waiting.clear()


def writes(names: Iterable[str]) -> bool:
    return any(name in WRITES for name in names)
