"""Detects results that the manifest does not describe. An engine that writes these and no others will not answer."""

from __future__ import annotations

from collections.abc import Callable

from harness.runner.first_minute_diagnosis import Diagnosis

POLL_EVERY_MS = 2000
POLL_SHARE = 10  # the pause between two polls, in durations of one poll
SURE_S = 10.0


class Foreign:
    """Recognises results that the manifest does not describe. `diagnosed` reads all results. One poll is not enough: a
    job may write results first and rename them later."""

    def __init__(self, now_ms: Callable[[], int], diagnosed: Callable[[], Diagnosis], patience: float) -> None:
        self._now_ms, self._diagnosed, self._sure_ms = now_ms, diagnosed, SURE_S * 1000 * patience
        self._next_ms = now_ms() + POLL_EVERY_MS
        self._since_ms: int | None = None

    def are_all(self) -> bool:
        """Return whether there have been no other results for some time."""
        began_ms = self._now_ms()
        if began_ms < self._next_ms:
            return False
        is_sure = self._diagnosed().sure
        self._next_ms = self._now_ms() + max(POLL_EVERY_MS, POLL_SHARE * (self._now_ms() - began_ms))
        self._since_ms = (began_ms if self._since_ms is None else self._since_ms) if is_sure else None
        return self._since_ms is not None and self._now_ms() - self._since_ms >= self._sure_ms
