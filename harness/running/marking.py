"""The events of ours in a run: the first ones prove that the engine answers, the last ones close every window."""

from __future__ import annotations

from collections.abc import Sequence

from generators.marks import mark
from harness.judging.lateness import watermarks_ms
from harness.model import Mark, MarkKind, RunSpec
from harness.running.answers import Answers
from harness.running.life import Tell
from harness.worlds.base import World


class Marking:
    """`final`: results come when a window is closed, so that other events have to follow and close it."""

    def __init__(self, world: World, tell: Tell, answers: Answers, spec: RunSpec, *, final: bool) -> None:
        self._world, self._tell, self._answers, self._final = world, tell, answers, final
        self._window_ms, self._partitions = spec.window_ms, spec.tape.partitions
        self._lateness_ms = max(watermarks_ms(spec))

    def open(self) -> tuple[Mark, ...]:
        """Sends those that have to be counted before the load, of a window that is over."""
        time_ms = self._window_of(self._world.now_ms()) - self._window_ms
        if not self._final:
            return self.open_at(time_ms)
        last = self._each("opening", time_ms, 0)
        open_for_ms = self._answers.closes_ms_of(last) - time_ms + self._lateness_ms
        counted = self._each("opening", time_ms - open_for_ms - self._window_ms, 2 * self._partitions)
        self._send(counted)
        self._send(last)
        return counted

    def open_at(self, time_ms: int) -> tuple[Mark, ...]:
        """Sends them into the window of this moment."""
        opening = self._each("opening", self._window_of(time_ms), 0)
        self._send(opening)
        return opening

    def close(self, newest_ms: int) -> tuple[Mark, ...]:
        """Sends those behind the newest event that has to be counted; no window of its stays open."""
        time_ms = self._window_of(newest_ms + self._lateness_ms) + 2 * self._window_ms
        closing = self._each("closing", time_ms, self._partitions)
        self._send(closing)
        if self._final:
            closes_ms = self._answers.closes_ms_of(closing)
            self._send(self._each("closing", closes_ms + self._lateness_ms + self._window_ms, 3 * self._partitions))
        return closing

    def _window_of(self, time_ms: int) -> int:
        return time_ms // self._window_ms * self._window_ms

    def _each(self, kind: MarkKind, time_ms: int, first: int) -> tuple[Mark, ...]:
        """One per partition, of one key and time."""
        return tuple(mark(first + p, 0, p, time_ms, kind) for p in range(self._partitions))

    def _send(self, marks: Sequence[Mark]) -> None:
        self._tell("marks", marks=marks)
        self._world.send_marks(marks)
