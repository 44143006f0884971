"""Copies of a Spark checkpoint, taken while its job goes on, to be read when that has ended.

A copy has all that there is at that moment. Spark purges a version of the state a hundred batches later, and writes
each file under another name first, so that what a committed batch needs is there and whole. Only a copy lets the job be
as it is: one that keeps its versions for ever is another job, and a fault may change a checkpoint afterwards.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from harness.engines.spark import checkpoint
from harness.model import KeptState


def keep(live: Path, number: int, batch: int, into: Path) -> KeptState | None:
    """As the state number `number`, in a folder of that name; None where the batch is not in the copy."""
    copy = folder_of(into, number, batch)
    for folder, _, names in os.walk(live):
        target = copy / Path(folder).relative_to(live)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            with suppress(FileNotFoundError):  # purged since, or it has got its name
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
    """Its reader takes both from its name (workloads/jobs/spark_states.py)."""
    return into / str(number) / str(batch)
