"""When is an engine done that reports no progress? Only its results can tell: they stand still.

Standing still is no proof by itself. An engine that writes every 50 seconds stands still in between, and so does one
that was killed and is not back yet. So these rules hold (docs/run.md has them for users):

- Stillness begins with a change: results have to change after the load began, and again after each start.
- It has to last for 30 s, and for three times the longest silence between two changes since the load began.
- Where results come when windows close, none can come before the first window does: that is no silence.
- The closing events have to be counted, too. They lie behind all else in each partition, so that afterwards the results
  stand still for less: 15 s, and twice the longest silence. Where late events are dropped they are sent when the
  results stand still, so that they make nothing late; elsewhere at once.
- Where nothing changes within `ready_s` after a start, there may be nothing left to do: the closing events are sent all
  the same. The end is then `unsettled`: right counts are right, and what is missing is unseen rather than lost.

Pure: it is fed with moments and answers what to do.
"""

from __future__ import annotations

from enum import Enum

STILL_MS = 30_000
SILENCE_FACTOR = 3
COUNTED_STILL_MS = 15_000  # the same with the closing events counted
COUNTED_SILENCE_FACTOR = 2


class Step(Enum):
    GO_ON = "go on waiting"
    CLOSE = "send the closing events"
    DONE = "done"
    STUCK = "stuck"


class IdleRule:
    """One run, from the beginning of its load to its end. All moments are of one clock, in ms. `held_ms`: so long after
    an event its result may come, because a window has to close first."""

    def __init__(self, begun_ms: int, *, ready_ms: float, drain_ms: float, drops_late: bool, held_ms: int = 0) -> None:
        self._ready_ms, self._drain_ms, self._drops_late = ready_ms, drain_ms, drops_late
        self._held_ms = held_ms
        self._begun_ms = begun_ms  # the load, or the newest start
        self._quiet_from_ms = self._heard_ms = begun_ms  # since then it stands still; the newest sign of life
        self._changed = self._settled = False  # since it began
        self._restarted = False
        self._silence_ms = 0
        self._closing_ms: int | None = None
        self._counted = False
        self.unsettled = False

    def started(self, at_ms: int) -> None:
        """The engine was started again: whatever stood still before says nothing of it."""
        self._hear(at_ms)
        self._begun_ms, self._changed, self._restarted = at_ms, False, True

    def changed(self, at_ms: int, since_ms: int | None = None) -> None:
        """The results changed. How long a start takes is no rhythm of its writing. `since_ms`: the look before began
        then, so that an engine which ended later may have written it; None: after the newest start for sure."""
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
        """A fault is at work, or keeps the results from everybody: they do not stand still."""
        self._quiet_from_ms = max(self._quiet_from_ms, at_ms)
        self._heard_ms = max(self._heard_ms, at_ms)

    def unread(self, at_ms: int) -> None:
        """They can't be read, and no fault is the reason: no stillness, and no sign of life either."""
        self._quiet_from_ms = max(self._quiet_from_ms, at_ms)

    def loaded(self, at_ms: int) -> None:
        """The load has ended. A silence that goes on now was one under load."""
        self._note_silence(at_ms)

    def closed(self, at_ms: int) -> None:
        """The closing events were sent. How long we waited before was our doing."""
        self._closing_ms = at_ms
        self._quiet_from_ms = max(self._quiet_from_ms, at_ms)

    def counted(self, at_ms: int) -> None:
        """All closing events are in the results, which is a change."""
        if not self._counted:
            self._counted = True
            self.changed(at_ms)

    @property
    def moved_ms(self) -> int:
        """When something was last heard of it, or done to it."""
        return max(self._heard_ms, self._begun_ms, self._closing_ms or 0)

    @property
    def needed_ms(self) -> int:
        """How long the results have to stand still."""
        if self._counted:
            return max(COUNTED_STILL_MS, COUNTED_SILENCE_FACTOR * self._silence_ms)
        return max(STILL_MS, SILENCE_FACTOR * self._silence_ms)

    def step(self, now_ms: int) -> Step:
        """After the load."""
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
        """How long it takes until the first window can close is no rhythm of its writing."""
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
        """Nothing has changed since it began, for as long as a start may take."""
        nothing = not self._changed and now_ms - max(self._begun_ms, self._quiet_from_ms) >= self._ready_ms
        self.unsettled = self.unsettled or nothing
        return nothing
