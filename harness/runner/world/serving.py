"""Requests of a run to Kafka and Redis: every failure becomes one error with its symptom.

A read is retried for some seconds, because an engine may close our connections without harming the service.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import confluent_kafka
import redis

from harness.model import HarnessError
from harness.results.redis_scan import UnreadableError
from harness.runner.world.base import ServiceGone
from harness.services.children import Child
from harness.util.server_errors import answer_of_redis, of_kafka, of_redis
from harness.util.texts import shown
from harness.util.wait import DeadlinePassed, wait_until

T = TypeVar("T")
ASK_AGAIN_S = 5.0
LONGEST = 300  # characters of an error's own text
REFUSALS = (redis.RedisError, OSError, confluent_kafka.KafkaException, HarnessError)


class Serving:
    """One service: its address, and its process if that is our child."""

    def __init__(self, name: str, where: Callable[[], str], child: Callable[[], Child | None]) -> None:
        self._name, self._where, self._child = name, where, child

    def call(self, ask: Callable[[], T]) -> T:
        """Ask once. A failed request that changes something may have taken effect, so it is not retried."""
        try:
            return ask()
        except UnreadableError:  # the service answers, but its reader does not
            raise
        except REFUSALS as error:
            raise ServiceGone(self._seen(error)) from error

    def retry(self, ask: Callable[[], T], *, again: bool) -> T:
        """Ask with retries, for requests that change nothing. `again`: no fault is known to block the service now."""
        poller: list[T] = []
        refusals: list[ServiceGone] = []

        def is_settled() -> bool:
            try:
                poller.append(self.call(ask))
            except ServiceGone as refusal:
                refusals.append(refusal)
            return bool(poller) or not again or self._has_ended()

        with suppress(DeadlinePassed):
            wait_until(is_settled, deadline_s=ASK_AGAIN_S, what=f"{self._name} to answer", every_s=0.2)
        if not poller:
            raise refusals[-1]
        return poller[0]

    def _has_ended(self) -> bool:
        child = self._child()
        return child is not None and not child.alive()

    def _seen(self, error: Exception) -> str:
        child = self._child()
        if child is None:
            return f"{self._name} at {self._where()} no longer answers: {_words(error)}"
        log = f"its log is logs/{child.log.name}"
        if not child.alive():
            return f"{self._name} at {self._where()} is gone: its process ended {_how(child)} ({log})"
        return f"{self._name} at {self._where()} runs but does not answer: {_words(error)} ({log})"


def _how(child: Child) -> str:
    code = child.returncode() or 0
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def _words(error: Exception) -> str:
    """Return the error with the server's own error code, if it has one."""
    said = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, redis.RedisError) and answer_of_redis(error):
        return of_redis(error)
    if isinstance(error, confluent_kafka.KafkaException):
        return of_kafka(error)
    return shown(said if isinstance(error, HarnessError) else f"{type(error).__name__}: {said}", LONGEST)
