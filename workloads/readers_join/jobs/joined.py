"""The pure part of this question's reference: the reads that wait for the end of their second."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from typing import NamedTuple

from workloads.jobs.reads import MINUTE, Reads
from workloads.jobs.waiting_process import Place


class Read(NamedTuple):
    """A read, and its place in the topic."""

    reader: str
    article: str
    read_at: int
    event: int
    place: Place


class Joined:
    """All reads so far, and those that have not left. A read leaves when its second is over by the watermark."""

    def __init__(self) -> None:
        self._of: dict[str, Reads] = defaultdict(lambda: Reads(MINUTE))
        self._waiting: list[tuple[int, int, Read]] = []  # its time, the order of coming, the read
        self._came = 0
        self.watermark_ms = 0

    def is_over(self, read_at: int) -> bool:
        """Check if the second of this time is over by the watermark."""
        return ends_of(read_at) <= self.watermark_ms

    def add(self, read: Read, *, waits: bool = True) -> None:
        """Count a read. It has left before if it does not wait."""
        self._of[read.reader].add(read.article, MINUTE.pane_of(read.read_at))
        if waits:
            self._came += 1
            heappush(self._waiting, (read.read_at, self._came, read))

    def advance(self, watermark_ms: int) -> list[tuple[Read, int]]:
        """Move the watermark. Return the reads that leave, each with the articles of its reader."""
        before, self.watermark_ms = self.watermark_ms, max(self.watermark_ms, watermark_ms)
        if MINUTE.pane_of(before) == MINUTE.pane_of(self.watermark_ms):
            return []  # no second has ended
        left = []
        while self._waiting and self.is_over(self._waiting[0][0]):
            *_, read = heappop(self._waiting)
            left.append((read, self._of[read.reader].articles[ends_of(read.read_at) - MINUTE.length_ms]))
        for reads in self._of.values():
            reads.forget(self.watermark_ms)
        return left


def ends_of(read_at: int) -> int:
    """Return the end of the second of a read, which is the end of the first window that holds it."""
    return MINUTE.pane_of(read_at) + MINUTE.slide_ms
