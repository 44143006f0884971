"""Reads of one reader and the windows that hold them: the pure part of the jobs of all questions about readers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

READS, ARTICLES = "reads", "articles"


class Sliding(NamedTuple):
    """Sliding windows. The slide divides the length."""

    length_ms: int
    slide_ms: int

    def pane_of(self, read_at: int) -> int:
        """Return the start of the newest window that holds this time. All reads of a pane are in the same windows."""
        return read_at - read_at % self.slide_ms

    def holding(self, pane: int) -> Iterable[int]:
        """Return the starts of the windows that hold a pane."""
        return range(pane - self.length_ms + self.slide_ms, pane + self.slide_ms, self.slide_ms)


MINUTE = Sliding(60_000, 1_000)
WEEK = Sliding(84_000, 3_000)  # a day is 12 s, and the slide is 6 hours


class Reads:
    """The reads of one reader. Distinct counts of panes can't be added up, so the panes of each article are kept."""

    def __init__(self, windows: Sliding) -> None:
        self._windows = windows
        self.panes: dict[str, list[int]] = {}  # article -> panes in order, each once
        self.reads: Counter[int] = Counter()  # by the start of the window
        self.articles: Counter[int] = Counter()

    def add(self, article: str, pane: int) -> bool:
        """Add a read. Return False if the article was read in this pane before."""
        self.reads.update(self._windows.holding(pane))
        panes = self.panes.setdefault(article, [])
        at = bisect_left(panes, pane)
        if panes[at : at + 1] == [pane]:
            return False
        # Only the windows that hold neither the pane before nor the pane after gain an article.
        length_ms, slide_ms = self._windows
        first, last = pane - length_ms + slide_ms, pane
        if at > 0:
            first = max(first, panes[at - 1] + slide_ms)
        if at < len(panes):
            last = min(last, panes[at] - length_ms)
        self.articles.update(range(first, last + slide_ms, slide_ms))
        panes.insert(at, pane)
        return True

    def forget(self, watermark_ms: int) -> None:
        """Drop the windows that are over by this time, and the panes of no other window."""
        length_ms = self._windows.length_ms
        self.reads, self.articles = (
            Counter({opens: count for opens, count in counts.items() if opens + length_ms > watermark_ms})
            for counts in (self.reads, self.articles)
        )
        left = {article: [each for each in panes if each + length_ms > watermark_ms] for article, panes in self}
        self.panes = {article: panes for article, panes in left.items() if panes}

    def __iter__(self) -> Iterator[tuple[str, list[int]]]:
        return iter(self.panes.items())
