"""The run directory: one folder that holds a whole run, and suffices to judge it, now or later.

Every file is written whole (temporary name, then rename) except the history, which is only appended to. A folder with a
newer schema than this program's is refused. The reader of a missing or torn file raises an error that names it. pyarrow
is imported where it is used: the import is slow, and many commands read no table.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import RawIOBase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from harness.host import disk_space
from harness.model import READABLE_SCHEMAS, SCHEMA_VERSION, UsageError
from harness.rundir import markers
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.tables import TABLES, LongTable
from harness.services.owners import is_alive, owner_mark
from harness.util.clock import Clock

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
HISTORY = "history.jsonl"
OWNER = markers.RUN
MADE_LINE = "made"  # the first line of a history
ROWS_AT_ONCE = 1 << 18
YEAR_10000_MS = 253_402_300_800_000
READABLE = f"{READABLE_SCHEMAS[0]} to {READABLE_SCHEMAS[-1]}"


class Owner(msgspec.Struct, frozen=True):
    """The process that writes a run, and the schema of its files."""

    schema: int
    mark: str = ""  # of the process, see harness/services/owners.py; older versions wrote none


@dataclass(frozen=True)
class Store:
    """One run directory."""

    path: Path
    clock: Clock = field(default_factory=Clock, compare=False, repr=False)  # gives all timestamps of the run

    @classmethod
    def create(cls, base: Path, name: str) -> Store:
        store = cls(new_folder(base, name))
        store.logs.mkdir()
        store.write_json(OWNER, Owner(SCHEMA_VERSION, owner_mark()))
        return store

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open an existing run. Raise UsageError if the folder is none, or comes from a newer program."""
        if not markers.is_one(path, OWNER):
            raise markers.refusal(path, OWNER)
        store = cls(path)
        try:
            schema = store.owner.schema
        except MissingEvidence as error:
            raise UsageError(f"{error}. No file names the version of streamgauge that wrote this run.") from None
        if schema not in READABLE_SCHEMAS:
            raise UsageError(
                f"{path} was written in schema {schema}, but this program reads schemas {READABLE}. Use the version "
                f"of streamgauge in its environment.json."
            )
        return store

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def owner(self) -> Owner:
        owner: Owner = self.read_as(OWNER, Owner)
        return owner

    def schema(self) -> int | None:
        """Return the schema; None if it is not recorded."""
        try:
            return self.owner.schema
        except MissingEvidence:
            return None

    def alive(self) -> bool:
        """Return True while the process that makes this run is alive."""
        return is_alive(self.owner.mark)

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    @contextmanager
    def _atomic_file(self, name: str, size: int) -> Iterator[Path]:
        """Yield a temporary file that gets its name when it is complete, and is removed on an error."""
        part = self.path / f".{name}.part"
        try:
            with disk_space.writing(self.path / name, size):
                yield part
                part.replace(self.path / name)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def write_bytes(self, name: str, content: bytes) -> None:
        with self._atomic_file(name, len(content)) as part:
            part.write_bytes(content)

    def write_json(self, name: str, value: object) -> None:
        self.write_bytes(name, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")

    def read_json(self, name: str) -> Any:
        return self.read_as(name, Any)

    def read_as(self, name: str, kind: type[T] | Any) -> T:
        """Read a JSON file as the type that was written."""
        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=kind)
        except FileNotFoundError:
            raise MissingEvidence(f"{self.path / name} is missing") from None
        except OSError as error:
            raise MissingEvidence(f"{self.path / name} can't be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise MissingEvidence(f"{self.path / name} is incomplete or invalid: {error}") from None

    def write_table(self, name: str, columns: Mapping[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(dict(columns))
        with self._atomic_file(name, table.nbytes) as part:
            pq.write_table(table, part, **_encoding(table.schema))

    def write_parts(self, name: str, parts: Iterable[Mapping[str, Any]]) -> None:
        """Write a table that may be larger than memory from parts with the same columns.

        One row group is written while the next one is produced.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = (pa.table(dict(columns)) for columns in parts)
        first = next(tables)
        with (
            self._atomic_file(name, 0) as part,
            pq.ParquetWriter(part, first.schema, **_encoding(first.schema)) as writer,
            ThreadPoolExecutor(1) as beside,
        ):
            written = None
            for group in _groups(chain((first,), tables)):
                if written:
                    written.result()
                written = beside.submit(writer.write_table, group)
            if written:
                written.result()

    def read_table(self, name: str, numbers: Iterable[str] = ()) -> pa.Table:
        """Read a table and check the columns that its readers rely on, and these whole-number columns."""
        return self.open_table(name, numbers).table()

    def open_table(self, name: str, numbers: Iterable[str] = ()) -> LongTable:
        """Open a table to be read in parts, with the same checks."""
        path = self.path / name
        if not path.exists():
            raise MissingEvidence(f"{path} is missing")
        return LongTable(path, {**TABLES.get(name, {}), **dict.fromkeys(numbers, "int")})

    def tell(self, kind: str, **facts: object) -> None:
        """Append one line to the history."""
        line = msgspec.json.encode({"at_ms": self.clock.now_ms(), "kind": kind, **facts})
        with disk_space.writing(self.path / HISTORY, len(line)), (self.path / HISTORY).open("a+b", buffering=0) as file:
            append(file, line + b"\n")

    def history(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Yield the lines of some kinds, in the order of writing.

        Skip a torn line: the run may have been killed while writing it. A line without the name of a wanted kind is not
        decoded, since most readers want few of many lines.
        """
        path, names = self.path / HISTORY, [kind.encode() for kind in kinds]
        for line in path.read_bytes().split(b"\n") if path.is_file() else ():
            if not any(name in line for name in names):
                continue
            try:
                entry = msgspec.json.decode(line, type=dict[str, Any])
            except (ValueError, RecursionError):
                continue
            if entry.get("kind") in kinds:
                yield entry

    def values(self, kind: str, key: str, type_: type[T]) -> list[T]:
        """Return one value of each line of one kind."""
        try:
            return [msgspec.convert(entry.get(key), type_) for entry in self.history(kind)]
        except ValueError as error:
            raise MissingEvidence(f"{self.path / HISTORY} has an entry {kind!r} that can't be read: {error}") from None

    def last_value(self, kind: str, key: str, type_: type[T]) -> T:
        """Return the value of the last such line. Raise MissingEvidence if there is none."""
        found = self.values(kind, key, type_)
        if not found:
            raise MissingEvidence(
                f"{self.path / HISTORY} has no entry {kind!r}: the run was aborted before it wrote one"
            )
        return found[-1]


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    """Choose the encoding of a file.

    For numbers that mostly grow, deltas take half the size and time of a dictionary.
    """
    import pyarrow as pa

    wide = [field.name for field in schema if field.type in (pa.int64(), pa.uint64())]
    return {
        "compression": "zstd",
        "use_dictionary": [name for name in schema.names if name not in wide],
        "column_encoding": dict.fromkeys(wide, "DELTA_BINARY_PACKED"),
    }


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Regroup the rows into tables of about ROWS_AT_ONCE rows."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(each.num_rows for each in waiting) >= ROWS_AT_ONCE:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def append(file: RawIOBase, line: bytes) -> None:
    """Append a whole line or nothing, because the next line would continue one that a full disk cut off.

    If a killed process left an incomplete line, start a new one.
    """
    begin, written = file.seek(0, os.SEEK_END), 0
    if begin and not _ends_line(file):
        line = b"\n" + line
    try:
        while written < len(line):
            written += file.write(line[written:]) or 0
    except OSError:
        file.truncate(begin)
        raise


def _ends_line(file: RawIOBase) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def new_folder(base: Path, name: str) -> Path:
    """Create a folder named by the current second in UTC. A second folder of the same second gets a number."""
    now_ms = _now_ms()
    stamp = f"{datetime.fromtimestamp(now_ms / 1000, UTC):%Y%m%d-%H%M%S}"
    for number in range(1, 1000):
        path = base / (f"{stamp}-{name}" + (f"-{number}" if number > 1 else ""))
        try:
            path.mkdir(parents=True)
            Store(path).tell(MADE_LINE, at_ms=now_ms, schema=SCHEMA_VERSION)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"{path} can't be created: {error.strerror}. Name another folder with --out.") from None
        return path
    raise UsageError(f"{base} already has a thousand folders of this second. Name another one with --out.")


def made_ms(folder: Path) -> int | None:
    """Return when a run or experiment was made, from the first line of its history; None if that is not recorded."""
    try:
        with (folder / HISTORY).open("rb") as lines:
            first = msgspec.json.decode(next(lines, b""), type=dict[str, Any])
    except (OSError, ValueError, RecursionError):
        return None
    at_ms = first.get("at_ms")
    return at_ms if isinstance(at_ms, int) and 0 <= at_ms < YEAR_10000_MS else None


def oldest_first(places: Iterable[Path]) -> list[Path]:
    """Sort by the recorded time: names were local time once, and users rename folders.

    Those without a time come first.
    """
    return sorted(places, key=lambda folder: (made_ms(folder) or 0, folder.name))


def runs(base: Path) -> list[Store]:
    """List all runs in a folder, oldest first."""
    found = (path.parent for path in base.glob(f"*/{OWNER}"))
    return [Store(path) for path in oldest_first(path for path in found if markers.is_one(path, OWNER))]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
