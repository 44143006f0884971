"""Sentinel records of a run: the opening ones prove that the engine answers, the closing ones close every window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.judging.lateness import watermarks_ms
from harness.model import RunSpec, Sentinel, SentinelKind
from harness.runner.engine_supervisor import Tell
from harness.runner.result_polling import ResultPoller
from harness.runner.world.base import World
from workloads.base import NEVER
from workloads.sentinels import mark

# Number of keys per partition of the events that close the last windows. A job that repartitions by key closes a window
# where a later event arrives: with this many keys, the chance that one of P partitions gets none is P / e^16.
KEYS_PER_PARTITION = 16


class Marking:
    """Sends the sentinel records.

    `final`: results come when a window is closed, so later events have to follow and close it. `earliest_ms`: the time
    of the load's first possible event, relative to now; it may be negative. `await_read`: waits until the engine has
    read the sent events. After a repartition, later events could otherwise overtake earlier ones and make them late.
    """

    def __init__(
        self,
        world: World,
        tell: Tell,
        poller: ResultPoller,
        spec: RunSpec,
        *,
        final: bool,
        earliest_ms: int = 0,
        await_read: Callable[[], None] = lambda: None,
    ) -> None:
        self.sent: list[Sentinel] = []
        self._log, self._clock = world.log, world.clock
        self._tell, self._answers, self._final = tell, poller, final
        self._partitions = spec.tape.partitions
        # Windows shorter than their step leave gaps without a cell: a sentinel lies at a window's beginning.
        part_ms = poller.part_ms
        self._window_ms = part_ms if spec.window_ms % part_ms else spec.window_ms
        self._lateness_ms = max(watermarks_ms(spec))
        self._earliest_ms, self._await_read = min(0, earliest_ms), await_read

    def open(self) -> tuple[Sentinel, ...]:
        """Send the events that must be counted before the load, in windows that end before its first event."""
        now_ms = self._clock.now_ms()
        last = self._groups("opening", self._window_of(now_ms) - self._window_ms)
        open_for_ms = self._open_for_ms(last)
        if not self._final:
            return self.open_at(self._window_of(now_ms + self._earliest_ms) - open_for_ms)
        apart_ms = open_for_ms + self._lateness_ms + self._window_ms
        counted = self._groups("opening", self._window_of(last[0].event_time_ms - apart_ms), turn=1)
        self._send(counted)
        self._await_read()
        self._send(last)
        return counted

    def open_at(self, time_ms: int) -> tuple[Sentinel, ...]:
        """Send opening events into the window of this moment."""
        opening = self._groups("opening", self._window_of(time_ms))
        self._send(opening)
        return opening

    def close_opening(self, opening: Sequence[Sentinel]) -> tuple[Sentinel, ...]:
        """Send events that close the window of the opening ones; none before their time has come, because they must not
        make an event of the load late."""
        closes_ms = self._answers.closes_ms_of(opening)
        if closes_ms == NEVER or (time_ms := self._behind(closes_ms)) > self._clock.now_ms():
            return ()
        later = self._groups("opening", time_ms, turn=1)
        self._send(later)
        return later

    def close(self, newest_ms: int) -> tuple[Sentinel, ...]:
        """Send events after the newest event that must be counted; none of its windows stays open."""
        opens_ms = self._window_of(newest_ms + self._lateness_ms) + self._window_ms
        open_for_ms = self._open_for_ms(self._groups("closing", opens_ms))
        closing = self._groups("closing", opens_ms + open_for_ms)
        self._send(closing)
        if self._final and (closes_ms := self._answers.closes_ms_of(closing)) != NEVER:
            self._await_read()
            self._send(self._of_many_keys(self._behind(closes_ms)))
        return closing

    def _open_for_ms(self, marks: Sequence[Sentinel]) -> int:
        """Return the time until their last window closes, in whole windows; one window if it never closes."""
        closes_ms = self._answers.closes_ms_of(marks)
        if closes_ms == NEVER:
            return self._window_ms
        return max(1, -(-(closes_ms - marks[0].event_time_ms) // self._window_ms)) * self._window_ms

    def _behind(self, closes_ms: int) -> int:
        """Return the start of a window after one that closed then, beyond every allowed lateness."""
        return -(-(closes_ms + self._lateness_ms) // self._window_ms) * self._window_ms + self._window_ms

    def _window_of(self, time_ms: int) -> int:
        return time_ms // self._window_ms * self._window_ms

    def _of_many_keys(self, time_ms: int) -> tuple[Sentinel, ...]:
        """Return the last closing events: each partition gets some, with different keys."""
        return self._groups("closing", time_ms, 1, self._answers.spread_keys(KEYS_PER_PARTITION * self._partitions))

    def _groups(
        self, kind: SentinelKind, time_ms: int, turn: int = 0, keys: Sequence[int] = (0,)
    ) -> tuple[Sentinel, ...]:
        """Return one per partition, and more if there are more keys, all with the same time. Numbers of opening and
        closing events alternate, in groups of one per partition, see `is_opening`."""
        partitions, size = self._partitions, self._answers.group_size

        def number(nth: int, part: int, p: int) -> int:
            return (2 * ((turn + nth) * size + part) + (kind == "closing")) * partitions + p

        return tuple(
            mark(
                number(nth, part, p),
                keys[(nth * partitions + p) % len(keys)],
                p,
                time_ms + part,
                kind,
                group=number(nth, 0, p),
                part=part,
            )
            for nth in range(-(-len(keys) // partitions))
            for part in range(size)
            for p in range(partitions)
        )

    def _send(self, marks: Sequence[Sentinel]) -> None:
        self.sent += marks
        self._tell("marks", marks=marks)
        self._log.send(marks)
