"""Reads an engine's progress.jsonl, while it grows and from a stored run, with one parser for both.

The engine may be killed in the middle of a line, and a user's engine may write anything: bad lines are counted and the
first one is quoted, and none of them ends a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from harness.model import Progress
from harness.util.integers import parse_int64
from harness.util.texts import many, shown

FILE = "progress.jsonl"
# Optional keys about the state, once a batch is in the checkpoint.
OF_STATE = ("state_bytes", "state_cells", "state_updates", "memory_bytes", "commit_ms", "commit_bytes")
_INT64 = range(-(1 << 63), 1 << 63)


def parse(line: bytes) -> Progress:
    """Parse one line; ValueError says in a few words what is wrong with it."""
    try:
        value = msgspec.json.decode(line)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    missing = [key for key in ("at", "batch", "rows", "offsets") if key not in value]
    if missing:
        raise ValueError(f"the key {missing[0]!r} is missing")
    took_ms, end_ms, at_ms = value.get("took_ms"), value.get("end_ms"), _int64("at", value["at"])
    return Progress(
        at_ms=at_ms,
        batch=_int64("batch", value["batch"]),
        rows=_int64("rows", value["rows"]),
        offsets=_ends("offsets", value["offsets"]),
        watermark_ms=_int64("watermark_ms", value.get("watermark_ms", 0)),
        dropped=_int64("dropped", value.get("dropped", 0)),
        took_ms=None if took_ms is None else _int64("took_ms", took_ms),
        **{name: _int64(name, value.get(name, 0)) for name in OF_STATE},
        end_ms=None if end_ms is None else _end_ms(end_ms, at_ms),
        restored=_ends("restored", value.get("restored", {})),
    )


def _ends(name: str, value: object) -> dict[int, int]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no JSON object")
    return {_int64("a partition", partition): _int64("an offset", end) for partition, end in value.items()}


def _end_ms(value: object, at_ms: int) -> tuple[int, int]:
    """Parse [from, until]. It must be over when it is reported."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"end_ms is {shown(str(value), 40)!r}, and not [from, until]")
    begin_ms, until_ms = (_int64("end_ms", each) for each in value)
    if not 0 <= begin_ms <= until_ms <= at_ms:
        raise ValueError(f"end_ms is from {begin_ms} until {until_ms}, reported at {at_ms}")
    return begin_ms, until_ms


def _int64(name: str, value: object) -> int:
    """Parse a 64-bit number, without its fraction."""
    found = number(value)
    if found is None:
        raise ValueError(f"{name} is {shown(str(value), 40)!r}, which is not a number")
    if not _INT64.start <= found < _INT64.stop:
        raise ValueError(f"{name} is {shown(str(found), 24)}, which is not a 64-bit number")
    return int(found)


def number(value: object) -> int | float | None:
    """Return a number, also from a quoted integer, as some JSON writers produce; None if it is no number."""
    if isinstance(value, str):
        return parse_int64(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def stored(path: Path) -> Iterator[Progress]:
    """Yield the readable lines of a file; none if it does not exist."""
    try:
        content = path.read_bytes()
    except OSError:
        return
    for line in content.split(b"\n"):
        try:
            yield parse(line)
        except ValueError:
            continue


class ProgressFile:
    """The newest progress, and the unreadable lines before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._line_count = 0
        self._rest = b""  # an incomplete last line
        self._newest: Progress | None = None
        self._restored: Mapping[int, int] = {}
        self._bad_count = 0
        self._first_bad = ""

    def newest(self) -> Progress | None:
        for line in self._new_lines():
            self._line_count += 1
            if line.strip():
                self._take(line)
        return self._newest

    def begin(self) -> None:
        """Note that another start writes from here on."""
        self.newest()
        self._restored = {}

    def restored(self) -> Mapping[int, int]:
        """Return the offsets that the newest start reports as restored; empty until it does."""
        self.newest()
        return self._restored

    def notes(self) -> tuple[str, ...]:
        if not self._bad_count:
            return ()
        lines = many(self._bad_count, "line")
        return (f"{lines} of {self._path.name} could not be read and were ignored; the first one: {self._first_bad}",)

    def _new_lines(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                new = file.read()
        except OSError:  # it does not exist yet, or is no file
            return []
        self._position += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        return lines

    def _take(self, line: bytes) -> None:
        try:
            self._newest = parse(line)
            self._restored = self._newest.restored or self._restored
        except ValueError as error:
            self._bad_count += 1
            self._first_bad = self._first_bad or f"line {self._line_count}, {line[:80]!r}: {error}."
