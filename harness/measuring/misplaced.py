"""Find events that another time than their own assigns to another window. Pure, except for reading the run's files.

The disorder of an event is the delay from its own time until the broker got it: a large delay misplaces it by every
later time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harness.evidence.observed import STAMPED, parts_of
from harness.evidence.send_index import column, send_rows
from harness.judging import times
from harness.judging.stored_run import StoredRun
from harness.model import INDEX_BITS, MARK_SERVER, Time
from workloads.base import COUNTS, Ints, Mask, Oracle
from workloads.registry import oracle_of


@dataclass(frozen=True)
class Misplaced:
    """The result for all events of the load that count."""

    delay_ms: Ints  # from each event's own time until it was in Kafka
    by: dict[Time, Mask]  # the events that each time misplaces; times without a record are missing

    def share(self, time: Time) -> float:
        return float(self.by[time].mean()) if len(self.delay_ms) else 0.0


def misplaced(run: StoredRun) -> Misplaced:
    log = pa.concat_tables(_of_load(pa.table(part)) for part in parts_of(run.log))
    oracle = oracle_of(run.spec)
    found = dict(_known(run, log))
    stamped_ms = found["append" if run.spec.time == "append" else "ingestion"]
    own_ms = _ints(log, times.OWN)
    own = _places(log, own_ms, oracle)
    by = {time: _differ(own, _places(log, at_ms, oracle), len(log)) for time, at_ms in found.items()}
    return Misplaced(stamped_ms - own_ms, by)


def _of_load(log: pa.Table) -> pa.Table:
    ours = pc.equal(pc.shift_right(log.column("event_id"), INDEX_BITS), MARK_SERVER)
    return log.filter(pc.and_(pc.equal(log.column("kind"), COUNTS), pc.invert(ours)))


def _known(run: StoredRun, log: pa.Table) -> Iterator[tuple[Time, Ints]]:
    """Yield the known times of each event. Ingestion times come from the send log if Kafka keeps another time."""
    stamped_ms = _ints(log, STAMPED)
    row = send_rows(run.sends, _ints(log, "event_id"))
    sent_us = np.append(column(run.sends, "sent_us"), 0)[row]
    if run.spec.time == "append":
        yield "ingestion", np.where(row >= 0, run.epoch_ms + sent_us // 1000, stamped_ms)
        yield "append", stamped_ms
    else:
        yield "ingestion", stamped_ms
    if run.batch_log and times.are_written_down("processing", run.batch_log):
        yield "processing", times.processed_ms(log, run.batch_log)


def _places(log: pa.Table, at_ms: Ints, oracle: Oracle) -> NDArray[np.int64]:
    """Return pairs of an event and its window, for the first value only, as rows of two columns."""
    columns = {name: np.asarray(log.column(name).to_numpy()) for name in log.column_names}
    row, cell, *_ = oracle.places({**columns, times.OWN: at_ms})
    first = oracle.codes.keys(cell) < oracle.groups
    return np.column_stack((row[first].astype(np.int64), cell[first]))


def _differ(own: NDArray[np.int64], other: NDArray[np.int64], events: int) -> Mask:
    """Select events with different sets of windows."""
    pairs, often = np.unique(np.concatenate((own, other)), axis=0, return_counts=True)
    differ = np.zeros(events, dtype=np.bool_)
    differ[pairs[often == 1, 0]] = True
    return differ


def _ints(log: pa.Table, name: str) -> Ints:
    return np.asarray(log.column(name).to_numpy(), dtype=np.int64)
