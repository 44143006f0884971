"""A CSV file of cells: the columns campaign, window (its start in ms) and count, and optionally updated (ms)."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

from harness.audit.left import Cells, Left, Offered, unreadable
from harness.model import UsageError

NEEDED = ("campaign", "window", "count")


def is_one(file: Path) -> bool:
    """Check if the first line names the needed columns. An unreadable file may be one."""
    try:
        with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            return set(NEEDED) <= set(next(csv.reader(lines), ()))
    except csv.Error:
        return False
    except OSError:
        return True


def read(path: Path, offered: Offered) -> Left:
    try:
        content = path.read_bytes()
    except OSError as error:
        return unreadable(str(path), f"it can't be read: {error.strerror}")
    try:
        return _read(path, content, offered)
    except csv.Error as error:
        return unreadable(str(path), f"it is not a CSV file: {error}")


def _read(path: Path, content: bytes, offered: Offered) -> Left:
    rows = csv.DictReader(content.decode("utf-8-sig", errors="replace").splitlines())
    missing = [name for name in NEEDED if name not in (rows.fieldnames or ())]
    if missing:
        raise UsageError(
            f"{path} has no column {missing[0]!r}: its first line must name {', '.join(NEEDED)}, and optionally "
            f"updated; it names {', '.join(rows.fieldnames or ())[:200] or 'nothing'}."
        )
    cells, faults = Cells(), []
    for number, row in enumerate(rows, 2):
        try:
            updated = int(row["updated"]) if row.get("updated") else None
            cells.add(str(row["campaign"]), int(row["window"]), int(row["count"]), updated)
        except (TypeError, ValueError, OverflowError):
            faults.append(f"line {number} is not a cell: {', '.join(str(value) for value in row.values())[:60]!r}")
    return cells.left(str(path), offered.window_ms, faults, digest=hashlib.sha256(content).hexdigest())
