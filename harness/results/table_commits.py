"""The commits of a table of files as they lie on the disk: which file is the newest one, and whether it has rows.

A look lists one folder, so that a fault can look a thousand times a second.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness.results.iceberg import NUMBER, newest_metadata
from harness.results.parquet import LIST

DELTA_LOG, TEMPORARY, SUCCESS = "_delta_log", "_temporary", "_SUCCESS"
VERSION = re.compile(r"(\d{20})\.json")
END = b"PAR1"  # the last bytes of a Parquet file


class Commit(NamedTuple):
    """One commit of a table: its name in a sentence, and the file that makes it one."""

    name: str
    file: Path
    at_ns: int = 0  # for a file that each commit writes anew


class TableLog(ABC):
    """The commits and the data files of one table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def newest(self) -> Commit | None:
        """Return the newest commit; None if there is none yet."""

    @abstractmethod
    def has_rows(self, commit: Commit) -> bool:
        """Return whether this commit, the newest one, adds rows."""

    def data_files(self) -> set[str]:
        """Return the paths of all data files, in the table or not."""
        return {*_parquet_files(self.folder)}


class DeltaLog(TableLog):
    def newest(self) -> Commit | None:
        folder = self.folder / DELTA_LOG
        name = max((name for name in _names(folder) if VERSION.fullmatch(name)), default="")
        return Commit(f"version {int(name[:20])}", folder / name) if name else None

    def has_rows(self, commit: Commit) -> bool:
        actions = map(json.loads, commit.file.read_text(encoding="utf-8").splitlines())
        return any(action.get("add", {}).get("dataChange") for action in actions)

    def data_files(self) -> set[str]:
        return {path for path in super().data_files() if f"/{DELTA_LOG}/" not in path}


class IcebergLog(TableLog):
    def newest(self) -> Commit | None:
        path = newest_metadata(self.folder / "metadata")
        found = NUMBER.fullmatch(path.name) if path else None
        return Commit(f"version {int(found[1] or found[2])}", path) if path and found else None

    def has_rows(self, commit: Commit) -> bool:
        table = json.loads(commit.file.read_text(encoding="utf-8"))
        newest = table.get("current-snapshot-id")
        added = (each["summary"] for each in table.get("snapshots", ()) if each["snapshot-id"] == newest)
        return any(int(said.get("added-records", 0)) and said.get("operation") != "replace" for said in added)


class ParquetLog(TableLog):
    """Spark's file sink writes a list for each batch; any other write of Spark ends with an empty file `_SUCCESS`."""

    def newest(self) -> Commit | None:
        listed = [int(name) for name in _names(self.folder / LIST) if name.isdecimal()]
        if listed:
            return Commit(f"{LIST}/{max(listed)}", self.folder / LIST / str(max(listed)))
        with suppress(FileNotFoundError):
            return Commit(SUCCESS, self.folder / SUCCESS, (self.folder / SUCCESS).stat().st_mtime_ns)
        return None

    def has_rows(self, commit: Commit) -> bool:
        return bool(commit.at_ns) or len(commit.file.read_text(encoding="utf-8").splitlines()) > 1

    def data_files(self) -> set[str]:
        """Without a list, a file belongs to the table as soon as it has left the temporary folder."""
        files = super().data_files()
        return files if (self.folder / LIST).is_dir() else {path for path in files if f"/{TEMPORARY}/" in path}


LOGS: Mapping[str, type[TableLog]] = {"delta": DeltaLog, "iceberg": IcebergLog, "parquet": ParquetLog}


def is_whole(path: str) -> bool:
    """Return whether a Parquet file has been written to its end."""
    with suppress(OSError), Path(path).open("rb") as file:
        file.seek(-len(END), os.SEEK_END)
        return file.read() == END
    return False


def _names(folder: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return [path.name for path in folder.iterdir()]
    return []


def _parquet_files(folder: Path) -> Iterator[str]:
    for place, _, files in os.walk(folder):
        yield from (f"{place}/{name}" for name in files if name.endswith(".parquet") and not name.startswith("."))
