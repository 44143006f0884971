"""A CSV file of cells: the columns campaign, window (its start in ms) and count, and updated (ms) where it is known."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

from harness.audit.left import Cells, Left, Offered
from harness.model import UsageError

NEEDED = ("campaign", "window", "count")


def read(path: Path, offered: Offered) -> Left:
    content = path.read_bytes()
    rows = csv.DictReader(content.decode("utf-8", errors="replace").splitlines())
    missing = [name for name in NEEDED if name not in (rows.fieldnames or ())]
    if missing:
        raise UsageError(
            f"{path} has no column {missing[0]!r}: its first line has to name {', '.join(NEEDED)}, and updated where "
            f"it is known; it names {', '.join(rows.fieldnames or ()) or 'nothing'}."
        )
    cells, faults = Cells(), []
    for number, row in enumerate(rows, 2):
        try:
            updated = int(row["updated"]) if row.get("updated") else None
            cells.add(str(row["campaign"]), int(row["window"]), int(row["count"]), updated)
        except (TypeError, ValueError):
            faults.append(f"line {number} is no cell: {', '.join(str(value) for value in row.values())[:60]!r}")
    return cells.left(str(path), offered.window_ms, faults, digest=hashlib.sha256(content).hexdigest())
