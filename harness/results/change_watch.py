"""Date changes of the results when polling twenty times a second is too expensive.

A thread runs the command that prints the results during the load, with long pauses, so that the engine keeps the CPU. A
change is dated only to within a pause, so silences appear longer: a run may wait longer for its end, never shorter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from harness.model import Change, HarnessError
from harness.util.clock import Clock
from harness.util.wait import ends_within

POLL_EVERY_S = 1.0
POLL_SHARE = 0.05  # the largest share of the time for polls
JOIN_S = 15.0


class Changes:
    """A thread that polls from `start` until `stop`. A failed poll counts as unchanged and is repeated."""

    def __init__(self, poll: Callable[[], object], release: Callable[[], None], clock: Clock) -> None:
        self._poll, self._release, self._clock = poll, release, clock
        self._changed: Change | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="changes", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(JOIN_S)

    def changed(self) -> Change | None:
        return self._changed

    def _work(self) -> None:
        seen, pause_s, asked_ms = _NOTHING, 0.0, 0
        while not ends_within(pause_s, self._stopped):
            began_s, before, since_ms = time.monotonic(), seen, asked_ms
            began_ms = self._clock.now_ms()
            try:
                seen, asked_ms = self._poll(), began_ms
            except HarnessError:
                seen = before
            if before is not _NOTHING and seen != before:
                self._changed = Change(self._clock.now_ms(), since_ms)
            pause_s = max(POLL_EVERY_S, (time.monotonic() - began_s) / POLL_SHARE)
        self._release()


_NOTHING = object()  # before the first poll
