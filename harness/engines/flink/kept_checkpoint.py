"""Copies of a Flink checkpoint, taken while its job goes on, to be read when that has ended.

A checkpoint that is complete never changes, and Flink removes it when so many newer ones are complete as it was told to
retain. What lies in its own folder it names from there, so that the copy is whole where all of the state lies in that
folder: with the state on the heap, or in a savepoint.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.engines.spark.checkpoint import in_order
from harness.engines.spark.states import folder_of
from harness.model import KeptState, Progress

METADATA = "_metadata"


def keep(live: Path, number: int, told: Progress, into: Path) -> KeptState | None:
    """As the state number `number`; None where that checkpoint is gone. `told`: what its job said of it."""
    found = [*live.glob(f"*/chk-{told.batch}/{METADATA}")]
    if not found:
        return None
    copy = folder_of(into, number, told.batch)
    try:
        shutil.copytree(found[0].parent, copy, copy_function=shutil.copyfile)
    except (OSError, shutil.Error):  # it went meanwhile
        shutil.rmtree(copy, ignore_errors=True)
        return None
    size_bytes = sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())
    return KeptState(number, told.batch, in_order(told.offsets), told.watermark_ms, size_bytes)
