"""Copies Spark checkpoints while the job runs; they are read after it has ended.

A copy holds the whole checkpoint at that moment. Spark purges a version of the state a hundred batches later, and
writes each file under a temporary name first, so the files of a committed batch are present and complete. Only copies
leave the job unchanged: retaining all versions would change the job, and a fault may edit a checkpoint afterwards.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from harness.engines.spark import checkpoint
from harness.model import KeptState


def keep(live: Path, number: int, batch: int, into: Path) -> KeptState | None:
    """Copy it as state number `number`, in a folder of that name; None if the batch is not in the copy."""
    copy = folder_of(into, number, batch)
    for folder, _, names in os.walk(live):
        target = copy / Path(folder).relative_to(live)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            with suppress(FileNotFoundError):  # purged or renamed meanwhile
                shutil.copyfile(Path(folder) / name, target / name)
    try:
        plan = checkpoint.parse(copy / "offsets" / str(batch))
    except (OSError, ValueError):
        return None
    if not checkpoint.committed(copy, batch):
        return None
    size_bytes = sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())
    return KeptState(number, batch, checkpoint.in_order(plan.done), plan.watermark_ms, size_bytes)


def folder_of(into: Path, number: int, batch: int) -> Path:
    """The reader parses both numbers from this path (workloads/jobs/spark_states.py)."""
    return into / str(number) / str(batch)
