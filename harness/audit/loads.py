"""The load of an audited run: from flags, else from a file of loads, else from names of folders."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import Path, PurePath
from typing import Any

from harness.audit.left import Offered
from harness.model import UsageError
from harness.util.suggest import why

SAID = re.compile(r"(?:^|[/_,; -])(rate|load|producers|duration|campaigns)=(\d+)(k|m|s)?(?=$|[/_,; -])", re.IGNORECASE)
TIMES = {"": 1, "k": 1000, "m": 1_000_000, "s": 1}
TOTAL = re.compile(r"(\d{4,9})(?:_\d+)?")  # the original's `<engine>/<events a second>`, and a second run of it
COLUMNS = ("pattern", "load", "producers", "duration", "published_p99_ms")
FIELDS = {"load": "total_per_s", "duration": "duration_s"}


@dataclass(frozen=True)
class Line:
    """A line of a file of loads: the load of all results whose path below the root matches."""

    pattern: str
    known: Mapping[str, Any]


def read(path: Path) -> list[Line]:
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"--loads {path} can't be read: {why(error)}.") from None
    if not rows or not {"pattern", "load"} <= set(rows[0]) <= set(COLUMNS):
        raise UsageError(
            f"--loads {path}: expected a CSV file with the columns pattern and load, optionally "
            f"{', '.join(COLUMNS[2:])}, and a line for each group of results, such as FLINK/*,50000."
        )
    return [_line(path, number, row) for number, row in enumerate(rows, 2)]


def _line(path: Path, number: int, row: Mapping[str, Any]) -> Line:
    known: dict[str, Any] = {}
    for name in COLUMNS[1:]:
        text = row.get(name)
        if not text:
            continue
        try:
            value = int(text) if name == "producers" else float(text)
        except ValueError:
            value = 0
        if not (isfinite(value) and value > 0):
            raise UsageError(f"--loads {path}, line {number}: {name} is {text!r}, but must be a number above 0.")
        known[FIELDS.get(name, name)] = value
    if not row["pattern"] or None in row:
        raise UsageError(f"--loads {path}, line {number}: expected a pattern, and as many values as columns.")
    return Line(row["pattern"], known)


def offered(place: PurePath, flags: Mapping[str, Any], lines: Sequence[Line], source: str = "") -> Offered:
    """Return the load. `place` is relative to the root, `flags` include the total load, and `source` is the flag that
    gave it.
    """
    matching = next((each for each in lines if fnmatchcase(place.as_posix(), each.pattern)), None)
    known: dict[str, Any] = {}
    rate = None
    for part in (_of_names(place), matching.known if matching else {}, flags):
        if "total_per_s" in part:
            rate = None
        rate = part.get("rate_per_s", rate)
        known |= {name: value for name, value in part.items() if name != "rate_per_s"}
    if rate is not None:
        known["total_per_s"] = rate * known.get("producers", 1)
        source = source or "folder"
    elif "total_per_s" in flags:
        pass
    elif matching and "total_per_s" in matching.known:
        source = "--loads"
    elif "total_per_s" in known:
        source = "folder"
    return replace(Offered(**known), source=source)


def _of_names(place: PurePath) -> dict[str, Any]:
    """The inner one of two names counts. `rate` is per producer, and `load` is the total."""
    found: dict[str, Any] = {}
    for part in place.parts:
        if whole := TOTAL.fullmatch(part):
            found["total_per_s"] = int(whole[1])
    for name, number, unit in SAID.findall(place.as_posix()):
        value = int(number) * TIMES[unit.lower()]
        if 0 < value < 10**12:
            field = {"rate": "rate_per_s"}.get(name.lower(), FIELDS.get(name.lower(), name.lower()))
            found[field] = value
    return found


def engine(place: PurePath) -> str:
    """Return the name of the folder above the one with the load, or above the results if there is none."""
    parts = place.parts
    loads = [number for number, part in enumerate(parts) if TOTAL.fullmatch(part) or "=" in part]
    above = parts[: loads[0]] if loads else parts[:-1]
    return above[-1] if above else (parts[-1] if parts else "")
