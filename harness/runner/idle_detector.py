"""Detects the end of an engine without progress: polls its results and applies the idle rule."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from harness.results.redis_scan import UnreadableError
from harness.runner.idle_rule import IdleRule, Step
from harness.runner.result_polling import POLL_EVERY_S, POLL_SHARE, ExpectedSentinels, ResultPoller
from harness.runner.world.base import World


class IdleDetector:
    """Active from the load start on. `rule` interprets the polls."""

    def __init__(self, world: World, poller: ResultPoller, rule: IdleRule, *, blind: bool = False) -> None:
        self._engine, self._results, self._clock = world.engine, world.results, world.clock
        self._answers, self.rule, self._blind = poller, rule, blind
        self._seen: object = None  # the results of the last poll since the newest start

    def started(self, at_ms: int) -> None:
        self._seen = None
        self.rule.started(at_ms)
        self.look_first()

    def look_first(self) -> None:
        """Poll once if there is no observer (`blind`): a difference at the end shows a change since then."""
        if self._blind:
            with suppress(UnreadableError):
                self._seen = self._answers.snapshot()

    def note_change(self) -> None:
        """Use the observer of the results, which polls more often."""
        if (seen := self._results.changed()) is not None:
            self.rule.changed(seen.at_ms, seen.since_ms)

    def never_comes(self, close: Callable[[], ExpectedSentinels], wait: Callable[[float], None]) -> str:
        """Wait for the end. Return "" at the end, or why it never comes. `close` sends the closing events."""
        self.rule.loaded(self._clock.now_ms())
        closing: ExpectedSentinels | None = None
        look_s = 0.0
        while (step := self.rule.step(self._clock.now_ms())) is not Step.DONE:
            if step is Step.STUCK:
                return self._why_stuck(closing)
            if step is Step.CLOSE:
                self.rule.closed(self._clock.now_ms())  # results of the first of them end no silence of the engine
                closing = close()
                self.rule.closed(self._clock.now_ms())
            wait(max(POLL_EVERY_S, look_s / POLL_SHARE))
            looked_ms = self._clock.now_ms()
            if self._poll() and closing is not None and self._answers.answered(closing) >= closing.marks:
                self.rule.counted(self._clock.now_ms())
            look_s = (self._clock.now_ms() - looked_ms) / 1000
            if self._answers.unreadable:
                self._seen = None  # unreadable results are read again
        return ""

    def _poll(self) -> bool:
        """Return whether the results have changed. Results that can't be read, or that a fault affects, do not count as
        unchanged. After that, and after a start, a change needs a second poll."""
        now_ms, last = self._clock.now_ms(), self._seen
        if not (self._answers.undisturbed() and self._engine.alive()):
            self._seen = None
            self.rule.unseen(now_ms)
            return False
        try:
            self._seen = self._answers.snapshot()
        except UnreadableError as error:
            self._answers.unreadable, self._seen = f"; {str(error).rstrip('.')}", None
            self.rule.unread(now_ms)
            return False
        self._answers.unreadable = ""
        if last is not None and self._seen != last:
            self.rule.changed(now_ms)
        return self._seen != last

    def _why_stuck(self, closing: ExpectedSentinels | None) -> str:
        if closing is None:
            return f"the results never became stable{self._answers.unreadable}"
        return f"nothing changes any more; {self._answers.counted(closing, 'closing')}"
