"""The pure part of this question's jobs: the windows of a section, and what each policy makes of its late reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

READS = "reads"
LENGTH_MS = 10_000
AGAIN_MS = 20_000  # after the end of a window: so long a late read corrects its result ...
ASIDE_MS = 600_000  # ... and so long the side output takes one

FIRST, AGAIN, ASIDE = "first", "again", "aside"  # where a count of a window comes from


class Counts(NamedTuple):
    """The reads of a window."""

    first: int = 0  # in time, and so in the first result
    again: int = 0  # late, and in a correction
    aside: int = 0  # late, and in the side output


class Windows:
    """The windows of a section.

    A window is emitted when the watermark has passed its end, and once more whenever a late read changes it.
    """

    def __init__(self, counts: Mapping[int, Counts], emitted_ms: int) -> None:
        """`counts`: by the start of the window. `emitted_ms`: the watermark up to which results were emitted."""
        self.counts, self._emitted_ms = dict(counts), emitted_ms
        self.changed: set[int] = set()  # since then

    def add(self, read_ms: int, watermark_ms: int) -> bool:
        """Add a read that is judged by this watermark. Return False if it is late."""
        opens = read_ms - read_ms % LENGTH_MS
        late_ms = watermark_ms - (opens + LENGTH_MS)
        if late_ms < ASIDE_MS:
            first, again, aside = self.counts.get(opens, Counts())
            in_time = late_ms < 0
            self.counts[opens] = Counts(first + in_time, again + (0 <= late_ms < AGAIN_MS), aside + (not in_time))
            self.changed.add(opens)
        return late_ms < 0

    def emit(self, watermark_ms: int) -> dict[int, Counts]:
        """Return the windows that are over by this watermark and were not emitted as they are."""
        over = {opens for opens in self.counts if self._emitted_ms < opens + LENGTH_MS <= watermark_ms}
        over |= {opens for opens in self.changed if opens + LENGTH_MS <= watermark_ms}
        self._emitted_ms = watermark_ms
        self.changed.clear()
        return {opens: self.counts[opens] for opens in sorted(over)}

    def forget(self, watermark_ms: int) -> list[int]:
        """Drop the windows for which any further read is too late. Return their starts."""
        gone = [opens for opens in self.counts if opens + LENGTH_MS + ASIDE_MS <= watermark_ms]
        for opens in gone:
            del self.counts[opens]
        return gone

    @property
    def next_ms(self) -> int | None:
        """The watermark at which a window is to be emitted or dropped next; None: there are no windows."""
        ends = (opens + LENGTH_MS for opens in self.counts)
        return min((end if end > self._emitted_ms else end + ASIDE_MS for end in ends), default=None)


def results(section: str, counts: Counts) -> dict[str, int]:
    """Return what each policy says of a window, by the keys of the results."""
    first, again, aside = counts
    parts = {
        "ignore:first": first,
        "again:first": first,
        "again:all": first + again,
        "aside:first": first,
        "aside:all": first + aside,
    }
    return {f"{READS}:{part}:{section}": count for part, count in parts.items()}


def emitted(known: tuple[int, int] | None, policy: str, count: int, source: str, *, keeps: bool) -> tuple[int, int]:
    """Return the first result of a window and all that is known of it, after a window of an engine has emitted a count.

    `known`: before it. `source`: a window that fires for the first time, one that fires again, or the side output.
    A window that fires for the first time although its result is known has forgotten it. If `keeps`, that result stays.
    """
    first, whole = known or (0, 0)
    if source == ASIDE:
        return first, whole + count
    if source == AGAIN:
        return first, count
    if known is None or not keeps:
        return count, count + (whole - first if policy == ASIDE else 0)
    return first, whole + (count if policy == ASIDE else 0)
