"""Which checkpoint of Flink is the newest one that is complete. Each start is a job of its own to Flink."""

from __future__ import annotations

from pathlib import Path


def newest_checkpoint(folder: Path) -> Path | None:
    """Of `<job>/chk-<number>`. Numbers go on from start to start, and what Flink writes last into one is _metadata."""
    complete = [metadata.parent for metadata in folder.glob("*/chk-*/_metadata")]
    return max(complete, key=number_of, default=None)


def number_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("chk-"))
