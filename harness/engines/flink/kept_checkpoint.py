"""Copies Flink checkpoints while the job runs; they are read after it has ended.

A complete checkpoint never changes. Flink deletes it once enough newer ones exist, by its retention setting. References
into its own folder are relative, so the copy is complete if all of the state lies in that folder: with the state on the
heap, or in a savepoint.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.engines.spark.checkpoint import in_order
from harness.engines.spark.states import folder_of
from harness.model import KeptState, Progress

METADATA = "_metadata"


def keep(live: Path, number: int, told: Progress, into: Path) -> KeptState | None:
    """Copy the checkpoint of this progress as state number `number`; None if the checkpoint is gone."""
    found = [*live.glob(f"*/chk-{told.batch}/{METADATA}")]
    if not found:
        return None
    copy = folder_of(into, number, told.batch)
    try:
        shutil.copytree(found[0].parent, copy, copy_function=shutil.copyfile)
    except (OSError, shutil.Error):  # Flink deleted it meanwhile
        shutil.rmtree(copy, ignore_errors=True)
        return None
    size_bytes = sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())
    return KeptState(number, told.batch, in_order(told.offsets), told.watermark_ms, size_bytes)
