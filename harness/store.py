"""The run directory: one folder that holds all of a run, written before it is judged and enough to judge it again.

Everything is written whole (temp name, then rename) but the history, which only ever grows. A folder whose schema is
newer than this program is refused by name; a missing or torn file is named by whoever needs it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from harness.model import SCHEMA_VERSION, UsageError

T = TypeVar("T")


class MissingEvidence(Exception):  # noqa: N818  (it is what happened)
    """A file of the run is not there or can't be read; the text says which and what that means."""


@dataclass(frozen=True)
class Store:
    """One run directory."""

    path: Path
    _made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def create(cls, base: Path, name: str) -> Store:
        store = cls(new_folder(base, name))
        store.logs.mkdir()
        owner = {"schema": SCHEMA_VERSION, "pid": os.getpid(), "started": _started(os.getpid())}
        store.write_json("owner.json", owner)
        return store

    @classmethod
    def open(cls, path: Path) -> Store:
        """An existing run, refused when it is none or comes from a newer program."""
        if not (path / "owner.json").is_file():
            raise UsageError(
                f"{path} is not a run of streamgauge: it has no owner.json. `streamgauge ls` lists the runs here."
            )
        store = cls(path)
        try:
            schema = store.read_json("owner.json").get("schema")
        except MissingEvidence as error:
            raise UsageError(str(error)) from None
        if schema != SCHEMA_VERSION:
            raise UsageError(
                f"{path} was written in schema {schema}, this program reads schema {SCHEMA_VERSION}. "
                "Use the version of streamgauge that made it, named in its environment.json."
            )
        return store

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def alive(self) -> bool:
        """Whether the process that makes this run still lives."""
        owner = self.read_json("owner.json")
        return bool(abs(_started(owner["pid"]) - owner["started"]) < 1.0)

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def write_bytes(self, name: str, content: bytes) -> None:
        part = self.path / f".{name}.part"
        part.write_bytes(content)
        part.replace(self.path / name)

    def write_json(self, name: str, value: object) -> None:
        self.write_bytes(name, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")

    def read_json(self, name: str) -> Any:
        return self.read_as(name, Any)

    def read_as(self, name: str, kind: type[T] | Any) -> T:
        """A JSON file as the value it was written from."""
        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=kind)
        except OSError:
            raise MissingEvidence(f"{self.path / name} is missing") from None
        except msgspec.DecodeError as error:
            raise MissingEvidence(f"{self.path / name} is torn or not what it should be: {error}") from None

    def write_table(self, name: str, columns: Mapping[str, Any]) -> None:
        part = self.path / f".{name}.part"
        pq.write_table(pa.table(dict(columns)), part, compression="zstd")
        part.replace(self.path / name)

    def read_table(self, name: str) -> pa.Table:
        try:
            return pq.read_table(self.path / name)
        except FileNotFoundError:
            raise MissingEvidence(f"{self.path / name} is missing") from None
        except (OSError, pa.ArrowException) as error:
            raise MissingEvidence(f"{self.path / name} is torn: {error}") from None

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What is large, and made from files that are not written to any more: made once per Store."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def tell(self, kind: str, **facts: object) -> None:
        """Add one line to the history."""
        line = msgspec.json.encode({"at_ms": time.time_ns() // 1_000_000, "kind": kind, **facts})
        with (self.path / "history.jsonl").open("ab") as file:
            file.write(line + b"\n")

    def history(self, kind: str) -> Iterator[dict[str, Any]]:
        """The lines of one kind; a torn last line is passed over, for the run may have been killed in the middle."""
        path = self.path / "history.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry.get("kind") == kind:
                yield entry


def new_folder(base: Path, name: str) -> Path:
    """A folder of this second; what starts in the same second gets a name of its own."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        path = base / (f"{stamp}-{name}" + (f"-{number}" if number > 1 else ""))
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"{path} can't be made: {error.strerror}. Name another folder with --out.") from None
        return path
    raise UsageError(f"{base} holds a thousand folders of this second; name another one with --out.")


def runs(base: Path) -> list[Store]:
    """All runs below a folder, oldest first."""
    return [Store(path.parent) for path in sorted(base.glob("*/owner.json"))]


def _started(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return -1.0
