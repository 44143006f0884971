"""`parquet:TABLE`: a folder of Parquet files, which may be partitioned, in the folder that the job's run config names.

Spark's own file sink keeps a list of the files that belong to the table (`_spark_metadata`). Spark's readers obey it,
and so does this one. Without such a list every file counts.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

from harness.results.table_files import FileTable, TableFile, local

LIST, COMPACT = "_spark_metadata", ".compact"
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?")


class Parquet(FileTable):
    form = "parquet:TABLE"

    def version(self) -> object:
        return tuple(sorted(self._paths())) if self.path.is_dir() else None

    def files(self) -> Iterator[TableFile]:
        for path in self._paths():
            yield TableFile(path, tuple(partition_of(Path(path), self.path)))

    def _paths(self) -> list[str]:
        listed = self.path / LIST
        if listed.is_dir():
            return committed(listed)
        return [*visible(str(self.path))]


def visible(folder: str) -> Iterator[str]:
    """Yield the files that Spark and others read. They pass over names that begin with `_` or `.`: what Spark writes
    there vanishes when it is done."""
    for place, folders, files in os.walk(folder):  # which passes over a folder that has vanished
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (f"{place}/{name}" for name in files if name.endswith(".parquet") and not is_hidden(name))


def is_hidden(name: str) -> bool:
    """A column may begin with `_` too: `_day=1` is a partition."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def committed(folder: Path) -> list[str]:
    """Return the files in Spark's list: the newest compacted part, and all after it."""
    numbers = {int(path.name.removesuffix(COMPACT)): path for path in folder.iterdir() if _is_part(path)}
    compacted = [number for number, path in numbers.items() if path.name.endswith(COMPACT)]
    since = max(compacted, default=-1)
    lines = [
        line
        for number, path in sorted(numbers.items())
        if number >= since
        for line in path.read_text(encoding="utf-8").splitlines()[1:]
    ]
    return [unquote(local(json.loads(line)["path"])) for line in lines]  # a path is written as a URI


def _is_part(path: Path) -> bool:
    return path.name.removesuffix(COMPACT).isdecimal()


def partition_of(path: Path, below: Path) -> Iterator[tuple[str, str | datetime | None]]:
    """Yield the columns in the names of folders, such as `day=2026-11-27` and `hour=2026-11-27 10%3A00%3A00`."""
    for part in path.relative_to(below).parts[:-1]:
        name, equals, value = part.partition("=")
        if equals:
            text = unquote(value)
            moment = datetime.fromisoformat(text) if TIME.fullmatch(text) else text
            yield name, None if value == NO_VALUE else moment
