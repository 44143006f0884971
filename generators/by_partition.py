"""One partition of a backlog, in its order, made without the other partitions.

So each partition can be made at another place, as by a task of Spark, and still has the bytes and the order that the ad
servers of generators/fleet.py give it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from generators.encode import Batch, Encoder
from generators.schedule import Schedule
from generators.tape import BLOCK
from harness.model import TapeSpec
from harness.util.seeded_draws import Ints
from workloads.base import NOTHING, Values
from workloads.registry import codec_of

MOST_SLICES = 4096  # at once, where few events are in a slice
MOST_OCTETS = 64 << 20  # of a table with a row for each value
KEY, VALUE, PARTITION = "key", "value", "partition"


class Partition:
    """A partition of the topic of a tape that has a backlog."""

    def __init__(self, spec: TapeSpec, number: int) -> None:
        self._schedule = Schedule(spec)
        if self._schedule.warm_up is None:
            raise ValueError("the tape has no backlog")
        self.number = number
        self._tape, self._codec = self._schedule.warm_up, codec_of(spec)
        self._servers = range(spec.senders)
        self._further = spec.senders  # the numbers under which the servers send a backlog begin here

    def __len__(self) -> int:
        """Return how many records it has."""
        end = self._tape.slice_count
        every = [(first, min(first + MOST_SLICES, end)) for first in range(0, end, MOST_SLICES)]
        return sum(self._tape.count_to(self.number, server, *each) for server in self._servers for each in every)

    def batches(self, epoch_ms: int) -> Iterator[pa.RecordBatch]:
        """Yield its records: the columns of Spark's Kafka sink."""
        encoder, at_once = Encoder(self._codec, epoch_ms), self._slices_at_once
        for first in range(0, self._tape.slice_count, at_once):
            slots = list(self._slots(first, at_once))
            parts = [
                encoder.batch(self._schedule.events(self._further + server, own))
                for server, (own, _) in zip(self._servers, slots, strict=True)
                if len(own)
            ]
            if parts:
                order = np.argsort(np.concatenate([numbers for _, numbers in slots]), kind="stable")
                yield _in_columns(parts, order, self.number)

    @property
    def _slices_at_once(self) -> int:
        """A block of events at once: numpy's overhead is per call, and memory per event."""
        per_slice = self._tape.total / self._tape.slice_count / self._schedule.spec.partitions
        return min(MOST_SLICES, max(1, int(BLOCK / per_slice)))

    def _slots(self, first: int, count: int) -> Iterator[tuple[Ints, Ints]]:
        until = min(first + count, self._tape.slice_count)
        return (self._tape.slots_to(self.number, server, first, until) for server in self._servers)


def _in_columns(parts: list[Batch], order: NDArray[np.intp], partition: int) -> pa.RecordBatch:
    keys = np.concatenate([part.keys for part in parts])[order]
    values = pa.concat_arrays([as_arrow(part.values) for part in parts]).take(pa.array(order))
    length = keys.shape[1]
    columns = {
        KEY: pa.Array.from_buffers(pa.binary(length), len(keys), [None, pa.py_buffer(keys)]).cast(pa.binary()),
        VALUE: values,
        PARTITION: pa.array(np.full(len(order), partition, dtype=np.int32)),
    }
    return pa.RecordBatch.from_pydict(columns)


def as_arrow(values: Values) -> pa.Array:
    """Convert values without an object for each. Those that a codec writes follow each other without a gap."""
    missing = values.lengths == NOTHING
    lengths = np.where(missing, 0, values.lengths)
    ends = np.cumsum(lengths)
    octets, begin = values.octets, int(values.begins[0]) if len(values) else 0
    if not np.array_equal(values.begins[~missing], (begin + ends - lengths)[~missing]):
        width = max(1, int(lengths.max()))
        if width * len(values) > MOST_OCTETS:
            return pa.array(list(values), pa.binary())
        rows = values.rows(width).view(np.uint8).reshape(-1, width)
        octets, begin = rows[np.arange(width) < lengths[:, None]], 0
    offsets = np.concatenate(([begin], begin + ends)).astype(np.int32)
    held = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes()) if missing.any() else None
    return pa.Array.from_buffers(
        pa.binary(), len(values), [held, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(octets))]
    )
