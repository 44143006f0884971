"""Reads of one reader and the windows that hold them: the pure part of the jobs of both questions about readers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator

LENGTH_MS, STEP_MS = 60_000, 1_000  # length of a window, and the slide
READS, ARTICLES = "reads", "articles"


def pane_of(read_at: int) -> int:
    """Return the start of the newest window that holds this time. All reads of a pane are in the same windows."""
    return read_at - read_at % STEP_MS


class Reads:
    """The reads of one reader. Distinct counts of panes can't be added up, so the panes of each article are kept."""

    def __init__(self) -> None:
        self.panes: dict[str, list[int]] = {}  # article -> panes in order, each once
        self.reads: Counter[int] = Counter()  # by the start of the window
        self.articles: Counter[int] = Counter()

    def add(self, article: str, pane: int) -> bool:
        """Add a read. Return False if the article was read in this pane before."""
        self.reads.update(windows_of(pane))
        panes = self.panes.setdefault(article, [])
        at = bisect_left(panes, pane)
        if panes[at : at + 1] == [pane]:
            return False
        # Only the windows that hold neither the pane before nor the pane after gain an article.
        first, last = pane - LENGTH_MS + STEP_MS, pane
        if at > 0:
            first = max(first, panes[at - 1] + STEP_MS)
        if at < len(panes):
            last = min(last, panes[at] - LENGTH_MS)
        self.articles.update(range(first, last + STEP_MS, STEP_MS))
        panes.insert(at, pane)
        return True

    def forget(self, watermark_ms: int) -> None:
        """Drop the windows that are over by this time, and the panes of no other window."""
        self.reads, self.articles = (
            Counter({opens: count for opens, count in counts.items() if opens + LENGTH_MS > watermark_ms})
            for counts in (self.reads, self.articles)
        )
        left = {article: [each for each in panes if each + LENGTH_MS > watermark_ms] for article, panes in self}
        self.panes = {article: panes for article, panes in left.items() if panes}

    def __iter__(self) -> Iterator[tuple[str, list[int]]]:
        return iter(self.panes.items())


def windows_of(pane: int) -> Iterable[int]:
    """Return the starts of the windows that hold a pane."""
    return range(pane - LENGTH_MS + STEP_MS, pane + STEP_MS, STEP_MS)
