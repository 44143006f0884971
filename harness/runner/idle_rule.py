"""The rule by which an engine without progress is done: its results stop changing.

That alone is no proof. An engine that writes every 50 seconds is still in between, and so is one that was killed and is
not back yet. So these rules apply (docs/reference/run.md has them for users):

- Stillness begins with a change: results have to change after the load began, and again after each start.
- It has to last for 30 s, and for three times the longest silence between two changes since the load began.
- If results come when windows close, none can come before the first window closes: that is no silence.
- The closing events have to be counted, too. They are the last in each partition, so afterwards less stillness is
  enough: 15 s, and twice the longest silence. If late events are dropped, they are sent once the results are still, so
  that they make nothing late; otherwise at once.
- If nothing changes within `ready_s` after a start, there may be nothing left to do: the closing events are sent all
  the same. The end is then `unsettled`: right counts are right, and missing ones may only be unseen.

Pure: its input is times and events, its output the next step.
"""

from __future__ import annotations

from enum import Enum

STILL_MS = 30_000
SILENCE_FACTOR = 3
COUNTED_STILL_MS = 15_000  # once the closing events are counted
COUNTED_SILENCE_FACTOR = 2


class Step(Enum):
    GO_ON = "go on waiting"
    CLOSE = "send the closing events"
    DONE = "done"
    STUCK = "stuck"


class IdleRule:
    """One run, from the load start to its end. All moments are in ms of one clock. `held_ms` is the time from an event
    to its result if a window has to close first."""

    def __init__(self, begun_ms: int, *, ready_ms: float, drain_ms: float, drops_late: bool, held_ms: int = 0) -> None:
        self._ready_ms, self._drain_ms, self._drops_late = ready_ms, drain_ms, drops_late
        self._held_ms = held_ms
        self._begun_ms = begun_ms  # the load, or the newest start
        self._quiet_from_ms = self._heard_ms = begun_ms  # start of the stillness; the newest sign of life
        self._changed = self._settled = False  # since it began
        self._restarted = False
        self._silence_ms = 0
        self._closing_ms: int | None = None
        self._counted = False
        self.unsettled = False

    def started(self, at_ms: int) -> None:
        """Note a start of the engine: earlier stillness no longer counts."""
        self._hear(at_ms)
        self._begun_ms, self._changed, self._restarted = at_ms, False, True

    def changed(self, at_ms: int, since_ms: int | None = None) -> None:
        """Note a change of the results. The duration of a start is no writing rhythm. `since_ms` is the time of the
        previous poll: an engine that ended after it may have written the change; None: certainly written after the
        newest start."""
        if since_ms is not None and since_ms < self._begun_ms:
            self.unread(at_ms)
            return
        if at_ms <= self._quiet_from_ms:
            return
        if self._restarted and not self._changed:
            self._quiet_from_ms = at_ms
        self._hear(at_ms)
        self._changed = True

    def unseen(self, at_ms: int) -> None:
        """Note that a fault is active or blocks the results: they do not count as still."""
        self._quiet_from_ms = max(self._quiet_from_ms, at_ms)
        self._heard_ms = max(self._heard_ms, at_ms)

    def unread(self, at_ms: int) -> None:
        """Note that they can't be read, without a fault: neither stillness nor a sign of life."""
        self._quiet_from_ms = max(self._quiet_from_ms, at_ms)

    def loaded(self, at_ms: int) -> None:
        """Note the end of the load. A silence that continues now was one under load."""
        self._note_silence(at_ms)

    def closed(self, at_ms: int) -> None:
        """Note that the closing events were sent. The wait before was ours."""
        self._closing_ms = at_ms
        self._quiet_from_ms = max(self._quiet_from_ms, at_ms)

    def counted(self, at_ms: int) -> None:
        """Note that all closing events are in the results, which is a change."""
        if not self._counted:
            self._counted = True
            self.changed(at_ms)

    @property
    def moved_ms(self) -> int:
        """Return the time of its last sign of life, or of our last action on it."""
        return max(self._heard_ms, self._begun_ms, self._closing_ms or 0)

    @property
    def needed_ms(self) -> int:
        """Return the required stillness."""
        if self._counted:
            return max(COUNTED_STILL_MS, COUNTED_SILENCE_FACTOR * self._silence_ms)
        return max(STILL_MS, SILENCE_FACTOR * self._silence_ms)

    def step(self, now_ms: int) -> Step:
        """Return the next step after the load."""
        if self._closing_ms is None and not self._drops_late:
            return Step.CLOSE
        ended = self._stands_still(now_ms) or self._has_nothing_to_do(now_ms)
        if self._closing_ms is None and ended:
            return Step.CLOSE
        if self._counted and ended:
            return Step.DONE
        waits_ms = max(self._drain_ms, self._ready_ms, 2 * self.needed_ms)
        return Step.STUCK if now_ms - self.moved_ms > waits_ms else Step.GO_ON

    def _note_silence(self, at_ms: int) -> None:
        """The time until the first window can close is no writing rhythm."""
        since_ms = self._quiet_from_ms
        if not self._changed:
            since_ms = max(since_ms, self._begun_ms + self._held_ms)
        self._silence_ms = max(self._silence_ms, at_ms - since_ms)

    def _hear(self, at_ms: int) -> None:
        self._note_silence(at_ms)
        self._quiet_from_ms = self._heard_ms = max(self._quiet_from_ms, at_ms)

    def _stands_still(self, now_ms: int) -> bool:
        return self._changed and now_ms - self._quiet_from_ms >= self.needed_ms

    def _has_nothing_to_do(self, now_ms: int) -> bool:
        """Return whether nothing has changed since its start for as long as a start may take."""
        nothing = not self._changed and now_ms - max(self._begun_ms, self._quiet_from_ms) >= self._ready_ms
        self.unsettled = self.unsettled or nothing
        return nothing
