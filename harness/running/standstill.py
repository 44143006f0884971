"""An engine without progress is done when its results stand still: they are looked at, and the rule is asked."""

from __future__ import annotations

from collections.abc import Callable

from harness.observe import UnreadableError
from harness.running.answers import LOOK_EVERY_S, Answers, Awaited
from harness.watching.stillness import Step, Stillness
from harness.worlds.base import World


class Standstill:
    """From the load on. `rule` says what the looks mean."""

    def __init__(self, world: World, answers: Answers, rule: Stillness) -> None:
        self._world, self._answers, self.rule = world, answers, rule
        self._seen: object = None  # the results at the last look, of the newest start

    def started(self, at_ms: int) -> None:
        self._seen = None
        self.rule.started(at_ms)

    def note_change(self) -> None:
        """Whoever observes the results looks more often than this."""
        if (changed_ms := self._world.changed_ms()) is not None:
            self.rule.changed(changed_ms)

    def never_comes(self, close: Callable[[], Awaited], wait: Callable[[float], None]) -> str:
        """Looks until it is there: why it never will be; "" when it is. `close` sends the closing events."""
        self.rule.loaded(self._world.now_ms())
        closing: Awaited | None = None
        while (step := self.rule.step(self._world.now_ms())) is not Step.DONE:
            if step is Step.STUCK:
                return self._why_stuck(closing)
            if step is Step.CLOSE:
                closing = close()
                self.rule.closed(self._world.now_ms())
            wait(LOOK_EVERY_S)
            if self._look() and closing is not None and self._answers.answered(closing) >= closing.marks:
                self.rule.counted(self._world.now_ms())
            if self._answers.unreadable:
                self._seen = None  # what could not be read is read again
        return ""

    def _look(self) -> bool:
        """Whether there is anything new. What can't be looked at does not stand still, nor does what a fault is at work
        on. Afterwards, and after a start, another look is needed before a change can be seen."""
        now_ms, last = self._world.now_ms(), self._seen
        if not (self._world.reachable() and self._world.fault.settled() and self._world.engine.alive()):
            self._seen = None
            self.rule.unseen(now_ms)
            return False
        try:
            self._seen = self._answers.snapshot()
        except UnreadableError as error:
            self._answers.unreadable, self._seen = f"; {error}", None
            self.rule.unread(now_ms)
            return False
        self._answers.unreadable = ""
        if last is not None and self._seen != last:
            self.rule.changed(now_ms)
        return self._seen != last

    def _why_stuck(self, closing: Awaited | None) -> str:
        if closing is None:
            return f"the results never stood still{self._answers.unreadable}"
        return f"nothing has changed any more; {self._answers.counted(closing, 'closing')}"
