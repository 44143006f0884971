"""By which time an event belongs to a window. Columns of a log in, the same with another time out.

The event's own stands in its record. When it was handed to Kafka, or appended by the broker, is the time that Kafka
keeps of it, by the topic's setting. When it was processed only the engine can say: Spark writes down with each batch
what `current_timestamp()` is in it, also when it is run again. What counts at no time that anybody wrote down is
judged in all windows together (workloads/totals.py).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.observed import STAMPED
from harness.model import EVENT_TIME, BatchLog, Time

OWN = "event_time_ms"  # the column of the time by which a log is judged


def are_written_down(time: Time, batch_log: BatchLog | None) -> bool:
    """Whether it is known of each event at which time it counts."""
    if time != "processing":
        return True
    return bool(batch_log and batch_log.complete and all(batch.at_ms is not None for batch in batch_log.batches))


def retimed(log: pa.Table, time: Time, batch_log: BatchLog | None) -> pa.Table:
    """The log, its events at this time. What is no event stays none."""
    if time == EVENT_TIME:
        return log
    if time == "processing":
        assert batch_log, "see are_written_down"
        at_ms = processed_ms(log, batch_log)
    else:
        at_ms = np.asarray(log.column(STAMPED).to_numpy(), dtype=np.int64)
    return log.set_column(log.column_names.index(OWN), OWN, pa.array(at_ms))


def processed_ms(log: pa.Table, batch_log: BatchLog) -> NDArray[np.int64]:
    """What the batch that took each record said of the time; of one that no batch took, the newest of all."""
    batches = sorted(batch_log.batches, key=lambda batch: batch.batch)
    at_ms = np.array([batch.at_ms or 0 for batch in batches], dtype=np.int64)
    partition, offset = (np.asarray(log.column(name).to_numpy()) for name in ("partition", "offset"))
    result = np.zeros(len(offset), dtype=np.int64)
    for each in np.unique(partition):
        rows = partition == each
        # A batch that says nothing of a partition has come no further in it than the one before.
        ends = np.maximum.accumulate([batch.ends.get(int(each), 0) for batch in batches], dtype=np.int64)
        taken = np.searchsorted(ends, offset[rows], side="right")
        result[rows] = at_ms[np.minimum(taken, len(at_ms) - 1)]
    return result
