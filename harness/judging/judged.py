"""The events that a run is judged by, in parts. A check that goes through the parts needs memory for what it finds, and
none for the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.evidence.ledger import Ledger
from harness.evidence.observed import LogEvents, adds_up, folded, joined
from workloads.base import Ints, Mask, Oracle

MOST_HELD = 1 << 20  # events, of about 60 bytes: as many are kept after the first pass, more are read anew in each pass


@dataclass(frozen=True)
class Judged:
    """Some of the events that count, in the order of the log, with what is known of each."""

    events: LogEvents
    batch: NDArray[np.integer[Any]]
    dropped: Mask
    counted_before: Mask  # dropped, but another run of its batch had counted it, and may have written it
    permitted: Mask  # it may be late by the declared lateness
    sent_late: Mask  # dropped, and late because of the harness
    is_open: Mask  # of final results: its window was never closed
    sent_us: Ints  # when it was sent, at the earliest; 0: unknown

    @property
    def kept(self) -> Mask:
        return ~self.dropped


class JudgedLog:
    """All of these events, in parts."""

    def __init__(self, parts: Callable[[], Iterable[Judged]]) -> None:
        self._parts = parts
        self._held: list[Judged] | None = None

    @classmethod
    def of(cls, part: Judged) -> JudgedLog:
        """Return a log that is one part."""
        log = cls(lambda: [part])
        log._held = [part]
        return log

    def but(self, **columns: Any) -> JudgedLog:
        """Return a log with other columns."""
        return JudgedLog.of(replace(self.whole, **columns))

    def __iter__(self) -> Iterator[Judged]:
        return self._read() if self._held is None else iter(self._held)

    def _read(self) -> Iterator[Judged]:
        held, rows = list[Judged](), 0
        for part in self._parts():
            rows += len(part.events)
            held = [*held, part] if rows <= MOST_HELD else []
            yield part
        if rows <= MOST_HELD:
            self._held = held

    @cached_property
    def whole(self) -> Judged:
        """All events at once, to search for the cause of an error."""
        if self._held is None or len(self._held) > 1:
            self._held = [joined(self)]
        return self._held[0]

    def fold(self, oracle: Oracle, *chosen: Callable[[Judged], Mask]) -> list[Ledger]:
        """Compute the cells' values from the events that each of these functions selects."""
        if not adds_up(oracle):
            return [folded(oracle, self.whole.events, choose(self.whole)) for choose in chosen]
        counts: list[dict[int, int]] = [{} for _ in chosen]
        for part in self:
            for own, choose in zip(counts, chosen, strict=True):
                for cell, count in folded(oracle, part.events, choose(part)).items():
                    own[cell] = own.get(cell, 0) + count
        return [Ledger(sorted(own.items())) for own in counts]


def all_of(part: Judged) -> Mask:
    return np.ones(len(part.events), dtype=np.bool_)
