"""Export a run's log for other tools: one row for each record in Kafka, with names and values in place of codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from harness.evidence.observed import parts_of
from harness.evidence.send_index import Slices, column
from harness.judging.stored_run import StoredRun
from harness.model import INDEX_BITS, MARK_SERVER, UsageError
from workloads.base import BESIDE, COUNTS, NO_EVENT, NOTHING, Columns

WRITERS: Mapping[str, Callable[[Path, pa.Schema], Any]] = {".parquet": pq.ParquetWriter, ".csv": csv.CSVWriter}
FIELD = "event."  # a prefix for the names of fields, which could be equal to those of other columns
KINDS = {COUNTS: "lies in a cell", BESIDE: "lies in no cell", NO_EVENT: "no event"}
HARNESS = "harness"  # the sender of the events that open and close a run


def write(run: StoredRun, path: Path) -> int:
    """Write the file and return the number of its records."""
    _refuse(path)
    books, codec, count = Slices(run.sends), run.codec, 0
    sent_us = np.append(column(run.sends, "sent_us") + run.epoch_ms * 1000, NOTHING)
    writer = None
    try:
        for part in parts_of(run.log):
            table = pa.table(
                _own(part, sent_us[books.of(part["event_id"])])
                | {FIELD + name: column for name, column in codec.texts(part).items()}
            )
            writer = writer or WRITERS[path.suffix](path, table.schema)
            writer.write_table(table)
            count += len(table)
    finally:
        if writer:
            writer.close()
    return count


def _refuse(path: Path) -> None:
    if path.suffix not in WRITERS:
        raise UsageError(f"--out {path} has an unknown file type. It must end in .parquet or .csv.")
    if not path.absolute().parent.is_dir():
        raise UsageError(
            f"--out {path} can't be written: the folder {path.absolute().parent} does not exist. Create it first."
        )


def _own(part: Columns, sent_us: NDArray[np.int64]) -> dict[str, pa.Array]:
    """Build the columns that do not come from the events' fields."""
    ids, kind = part["event_id"].tolist(), part["kind"].tolist()
    return {
        "partition": pa.array(part["partition"]),
        "offset": pa.array(part["offset"], pa.int64()),
        "event_id": pa.array([None if each == NOTHING else f"{each:012x}" for each in ids], pa.string()),
        "sender": pa.array(map(_sender, ids), pa.string()),
        "sent_at": _moments(sent_us, sent_us == NOTHING, "us"),
        "kind": pa.array([KINDS[each] for each in kind], pa.string()),
        "event_time": _moments(part["event_time_ms"], part["kind"] == NO_EVENT, "ms"),
    }


def _sender(event: int) -> str | None:
    server = event >> INDEX_BITS
    return None if event == NOTHING else HARNESS if server == MARK_SERVER else f"server {server}"


def _moments(times: NDArray[np.int64], unknown: NDArray[np.bool_], unit: str) -> pa.Array:
    return pa.array(times.astype(np.int64), mask=unknown).cast(pa.timestamp(unit, "UTC"))
