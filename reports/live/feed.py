"""Turns the files of a run or an experiment into frames for a reader, each with the changes since the one before.

A feed reads files only when a reader asks: a page that no one looks at costs nothing.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reports.live import cases
from reports.live.follow import Follower
from reports.live.state import Frame, RunState

EVERY_S = 0.8  # files are written once a second
KEPT_FRAMES = 600  # a reader that is further behind gets all of it anew


class RunFeed:
    """The frames of one run, for any number of readers."""

    def __init__(self, run: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._follower, self.state = Follower(run), RunState()
        self._clock, self._polled_s = clock, -EVERY_S
        self._lock = threading.Lock()
        self._frames: dict[int, bytes] = {}
        self._count = 0
        self._use: list[Any] = []

    def after(self, number: int | None) -> tuple[list[bytes], int]:
        """Return the frames behind the one with this number, and the number of the last one. None: all in one."""
        with self._lock:
            self._poll()
            if number is None or (number < self._count and number + 1 not in self._frames):
                return [encoded({**self.state.whole(self._use), "reset": True})], self._count
            return [self._frames[each] for each in range(number + 1, self._count + 1)], self._count

    def poll(self) -> None:
        """Read what is new at once."""
        with self._lock:
            self._polled_s = -EVERY_S
            self._poll()

    def _poll(self) -> None:
        now_s = self._clock()
        if now_s - self._polled_s < EVERY_S:
            return
        self._polled_s = now_s
        for entry in self._follower.entries():
            self.state.take(entry)
        if frame := self.state.frame():
            self._count += 1
            self._frames[self._count] = encoded(frame)
            self._frames.pop(self._count - KEPT_FRAMES, None)
            self._use += frame.get("use", ())


class ExperimentFeed:
    """The grid of an experiment, and the feeds of its runs. `path` may also be a run: then there is no grid."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_run = not (path / cases.FILE).exists()
        self._runs, self._read = cases.Runs(path), cases.Grid(path).read
        self._feeds: dict[str, RunFeed] = {}
        self._lock = threading.Lock()
        self._polled_s = -EVERY_S
        self._newest = ""
        self._grid: dict[str, Any] = {}

    def run_feed(self, name: str) -> RunFeed:
        with self._lock:
            if name not in self._feeds:
                self._feeds[name] = RunFeed(self.path / name if name else self.path)
            return self._feeds[name]

    def grid(self) -> tuple[dict[str, Any], str]:
        """Return the grid and the run to show; no grid for a run."""
        if self.is_run:
            return {}, ""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._polled_s >= EVERY_S:
                self._polled_s = now_s
                self._grid, self._newest = self._read()
            return self._grid, self._newest

    def runs(self) -> frozenset[str]:
        """Return the runs that a reader may ask for."""
        return frozenset({""} if self.is_run else {run.path for run in self._runs.seen()})


def frames_for(feed: ExperimentFeed, wanted: str, pause: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the frames for one reader until `pause` returns False, and then those that are left. b"": none for now.

    `wanted` is the run to show; "": the one that goes on.
    """
    shown: str | None = None
    grid: dict[str, Any] = {}
    number: int | None = None
    goes_on = True
    while True:
        now, newest = feed.grid()
        if now != grid:
            grid = now
            yield encoded({"set": {"experiment": grid}})
        run = wanted or newest
        if run != shown:
            shown, number = run, None
        if feed.is_run or run:
            frames, number = feed.run_feed(run).after(number)
            yield from (_named(frame, run) for frame in frames)
        yield b""  # a moment without news
        if not goes_on:
            return
        goes_on = pause()


def _named(frame: bytes, run: str) -> bytes:
    return b'{"run":' + json.dumps(run).encode() + b"," + frame[1:]


def encoded(frame: Frame) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode()
