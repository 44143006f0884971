"""Assign events to windows by another time than their own. Columns of a log in, the same with another time out.

The event's own time is in its record. Kafka keeps the time at which the record was produced or appended, by the topic's
setting. Only the engine can report its processing time: Spark records for each batch the value of
`current_timestamp()`, and uses it again if the batch is repeated. If no time is recorded, all windows are judged
together (workloads/totals.py).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.observed import STAMPED
from harness.model import EVENT_TIME, BatchLog, Time

OWN = "event_time_ms"  # the column of the time by which a log is judged


def are_written_down(time: Time, batch_log: BatchLog | None) -> bool:
    """Return True if the time at which each event counts is known."""
    if time != "processing":
        return True
    return bool(batch_log and batch_log.complete and all(batch.at_ms is not None for batch in batch_log.batches))


def retimed(log: pa.Table, time: Time, batch_log: BatchLog | None) -> pa.Table:
    """Return the log with this time for its events. A record that is no event stays none."""
    if time == EVENT_TIME:
        return log
    if time == "processing":
        assert batch_log, "see are_written_down"
        at_ms = processed_ms(log, batch_log)
    else:
        at_ms = np.asarray(log.column(STAMPED).to_numpy(), dtype=np.int64)
    return log.set_column(log.column_names.index(OWN), OWN, pa.array(at_ms))


def processed_ms(log: pa.Table, batch_log: BatchLog) -> NDArray[np.int64]:
    """Return the time that each record's batch recorded; for a record without a batch, the newest of all."""
    batches = sorted(batch_log.batches, key=lambda batch: batch.batch)
    at_ms = np.array([batch.at_ms or 0 for batch in batches], dtype=np.int64)
    partition, offset = (np.asarray(log.column(name).to_numpy()) for name in ("partition", "offset"))
    result = np.zeros(len(offset), dtype=np.int64)
    for each in np.unique(partition):
        rows = partition == each
        # A batch that does not mention a partition has the same end there as the batch before.
        ends = np.maximum.accumulate([batch.ends.get(int(each), 0) for batch in batches], dtype=np.int64)
        taken = np.searchsorted(ends, offset[rows], side="right")
        result[rows] = at_ms[np.minimum(taken, len(at_ms) - 1)]
    return result
