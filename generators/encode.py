"""Encode events as messages. The workload's codec writes the value, and the key is the event's id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from generators.tape import Events
from harness.model import Sentinel
from workloads.base import Codec, Mask, Values
from workloads.keys import encode_keys
from workloads.sentinels import MarkBlock

Message = dict[str, bytes | None]  # "value": bytes or None, "key": bytes


@dataclass(frozen=True)
class Batch(Sequence[Message]):
    """Messages in columns; a message becomes an object only on access."""

    values: Values
    keys: NDArray[np.uint8]  # a row of bytes each

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Batch:
        """Build a batch. All keys must have the same length."""
        keys = b"".join(message["key"] or b"" for message in messages)
        octets = np.frombuffer(keys, dtype=np.uint8)
        return cls(Values.of([message["value"] for message in messages]), octets.reshape(max(1, len(messages)), -1))

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, rows: int) -> Message: ...
    @overload
    def __getitem__(self, rows: slice) -> Batch: ...
    def __getitem__(self, rows: int | slice) -> Message | Batch:
        if isinstance(rows, slice):
            return self.only(rows)
        if not -len(self) <= rows < len(self):
            raise IndexError(rows)
        return {"value": self.values[rows], "key": self.keys[rows].tobytes()}

    def __iter__(self) -> Iterator[Message]:
        octets, length = self.keys.tobytes(), self.keys.shape[1]
        for row, value in enumerate(self.values):
            yield {"value": value, "key": octets[row * length : (row + 1) * length]}

    def only(self, rows: slice | Mask) -> Batch:
        return Batch(self.values.only(rows), self.keys[rows])


class Encoder:
    """Encodes the events of one workload, and converts relative times to absolute ones."""

    def __init__(self, codec: Codec, epoch_ms: int) -> None:
        self.codec, self.epoch_ms = codec, epoch_ms

    def batch(self, events: Events) -> Batch:
        return Batch(self.codec.write(events, self.epoch_ms), encode_keys(events.id))

    def mark(self, mark: Sentinel) -> Message:
        """Encode one sentinel record, whose time is absolute."""
        block = MarkBlock.of(self.codec, [mark], 0)
        return Batch(self.codec.write(block, 0), encode_keys(block.id))[0]
