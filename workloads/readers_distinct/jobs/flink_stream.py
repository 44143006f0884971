"""The question on Flink's DataStream API: a process function that keeps the panes of each article, and one timer.

A timer stands for the end of the next window of a reader. When it fires, the window is counted, and what lies in no
later window is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

from workloads.jobs.reads import Sliding

LAST_MS = 1  # a window is over when the watermark is its last millisecond
COUNTED = Types.ROW_NAMED(
    ["reader", "opens", "reads", "articles"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()]
)


class Windows(KeyedProcessFunction):  # type: ignore[misc]  # PyFlink has no types here
    """The open windows of a reader."""

    def __init__(self, windows: Sliding) -> None:
        self._windows = windows

    def open(self, runtime_context: RuntimeContext) -> None:
        panes = MapStateDescriptor("articles", Types.STRING(), Types.PICKLED_BYTE_ARRAY())
        self._articles = runtime_context.get_map_state(panes)  # article -> panes in which it was read
        self._reads = runtime_context.get_map_state(MapStateDescriptor("reads", Types.LONG(), Types.LONG()))  # by pane
        self._next = runtime_context.get_state(ValueStateDescriptor("next", Types.LONG()))  # the end of a window

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        _, article, read_at, _ = value
        pane = self._windows.pane_of(read_at)
        now = self._windows.pane_of(max(0, ctx.timer_service().current_watermark() + 1))
        ends = max(pane, now) + self._windows.slide_ms
        if ends <= pane + self._windows.length_ms:
            self._reads.put(pane, (self._reads.get(pane) or 0) + 1)
            self._articles.put(article, (self._articles.get(article) or frozenset()) | {pane})
            self._wait_for(ends, ctx)
        yield from ()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        ends = timestamp + LAST_MS
        if self._next.value() != ends:  # a read came meanwhile whose first window ends earlier
            return
        opens = ends - self._windows.length_ms
        reads = sum(count for pane, count in self._reads.items() if opens <= pane < ends)
        articles = sum(any(opens <= pane < ends for pane in panes) for panes in self._articles.values())
        yield Row(ctx.get_current_key(), opens, reads, articles)
        self._forget(opens + self._windows.slide_ms)
        self._next.clear()
        if panes := [*self._reads.keys()]:  # is_empty() may still be False right after the last one was removed
            self._wait_for(max(ends, min(panes)) + self._windows.slide_ms, ctx)

    def _wait_for(self, ends: int, ctx: KeyedProcessFunction.Context) -> None:
        before = self._next.value()
        if before is None or ends < before:
            self._next.update(ends)
            ctx.timer_service().register_event_time_timer(ends - LAST_MS)

    def _forget(self, oldest: int) -> None:
        for pane in [each for each in self._reads.keys() if each < oldest]:  # noqa: SIM118  (a state of Flink)
            self._reads.remove(pane)
        for article, panes in [*self._articles.items()]:
            if left := frozenset(pane for pane in panes if pane >= oldest):
                self._articles.put(article, left)
            else:
                self._articles.remove(article)


def counted(reads: DataStream, windows: Sliding) -> DataStream:
    """Count windows of reads: rows of reader, article and time."""
    return reads.key_by(lambda read: read[0], Types.STRING()).process(Windows(windows), COUNTED)
