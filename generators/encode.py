"""Events as messages: the value as the workload's codec writes it, and as its key the event's id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generators.marks import as_events
from generators.tape import Events
from harness.model import Mark
from workloads.base import Codec, Columns, Ints
from workloads.keys import encode_keys

Message = dict[str, bytes | None]


@dataclass(frozen=True)
class _Marks:
    """A mark as a block of planned events."""

    id: NDArray[np.uint64]
    event_time_rel_ms: Ints
    content: Columns
    poison: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.id)


class Encoder:
    """Writes the events of one workload; relative times become absolute ones."""

    def __init__(self, codec: Codec, epoch_ms: int) -> None:
        self.codec, self.epoch_ms = codec, epoch_ms

    def batch(self, events: Events) -> list[Message]:
        """Messages for confluent's produce_batch, in the order of the slots."""
        values = self.codec.write(events, self.epoch_ms)
        return [{"value": value, "key": key} for value, key in zip(values, encode_keys(events.id), strict=True)]

    def mark(self, mark: Mark) -> Message:
        """One event of the harness' own; its time is absolute."""
        ids, columns = np.array([mark.id], dtype=np.uint64), as_events(self.codec, [mark])
        content = {name: columns[name] for name in self.codec.content}
        block = _Marks(ids, columns["event_time_ms"], content, np.zeros(1, dtype=np.int8))
        return {"value": self.codec.write(block, 0)[0], "key": encode_keys(ids)[0]}
