"""The events that a run is judged by, in parts. A check that goes through the parts needs memory for what it finds, and
none for the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.evidence.ledger import Ledger
from harness.evidence.long_rows import Parts
from harness.evidence.observed import LogEvents, adds_up, folded, joined
from workloads.base import Ints, Mask, Oracle


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
    """All of these events, in parts. They are found in the first pass, and kept for the next ones, about 60 bytes each:
    in a file of this folder, if they are many.
    """

    def __init__(self, parts: Callable[[], Iterable[Judged]], folder: Path | None = None) -> None:
        self._parts, self._folder = parts, folder
        self._kept: Iterable[Judged] | None = None

    @classmethod
    def of(cls, part: Judged) -> JudgedLog:
        """Return a log that is one part."""
        log = cls(lambda: [part])
        log._kept = [part]
        return log

    def but(self, **columns: Any) -> JudgedLog:
        """Return a log with other columns."""
        return JudgedLog.of(replace(self.whole, **columns))

    def __iter__(self) -> Iterator[Judged]:
        return self._find() if self._kept is None else iter(self._kept)

    def _find(self) -> Iterator[Judged]:
        kept = Parts[Judged](self._folder)
        for part in self._parts():
            kept.add(part)
            yield part
        self._kept = kept

    @cached_property
    def whole(self) -> Judged:
        """All events at once, to search for the cause of an error."""
        whole = joined(self)
        self._kept = [whole]
        return whole

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
