"""When did results last change, where a look is too dear to be taken twenty times a second?

A command that prints the results is run by a thread while the load goes on, with long pauses, so that the engine keeps
the machine. A moment of change is known to such a pause only; silences seem longer by that, which makes a run wait
longer for its end, and never shorter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from harness.model import Change, HarnessError
from harness.util.clock import Clock
from harness.util.wait import ends_within

LOOK_EVERY_S = 1.0
LOOK_SHARE = 0.05  # of all time may go into looks
JOIN_S = 15.0


class Changes:
    """A thread from `start` to `stop`. A look that fails is tried again, and sees no change."""

    def __init__(self, look: Callable[[], object], release: Callable[[], None], clock: Clock) -> None:
        self._look, self._release, self._clock = look, release, clock
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
                seen, asked_ms = self._look(), began_ms
            except HarnessError:
                seen = before
            if before is not _NOTHING and seen != before:
                self._changed = Change(self._clock.now_ms(), since_ms)
            pause_s = max(LOOK_EVERY_S, (time.monotonic() - began_s) / LOOK_SHARE)
        self._release()


_NOTHING = object()  # before the first look
