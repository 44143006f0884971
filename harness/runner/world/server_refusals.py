"""Finds requests that an external Kafka or Redis has refused since the run began, and data it has deleted.

An engine that fails because of that is not to blame. Its log alone proves nothing: the same right is tested again, and
the server's own counters are compared with earlier ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

import redis

from harness.model import HarnessError, KafkaAddress
from harness.services import kafka, redis_rights
from harness.services.external import Wants, kafka_says, redis_says
from harness.services.redis_rights import Counters, counters

# The clients' log lines when the broker refuses a group or a transaction.
GROUP = re.compile(
    r"(?:GROUP_AUTHORIZATION_FAILED|GroupAuthorization|access group)[^\n]*?[:=]\s*'?([\w.-]+)'?\s*$", re.M
)
TRANSACTION = re.compile(r"TRANSACTIONAL_ID_AUTHORIZATION_FAILED|TransactionalIdAuthorization")


class Refusals:
    """Refusals and deletions by external servers. `kafka` and `client` are None for our own services."""

    def __init__(
        self, kafka: KafkaAddress | None, client: redis.Redis | None, place: str, topic: str, wants: Wants
    ) -> None:
        self._kafka, self._client, self._place, self._topic, self._wants = kafka, client, place, topic, wants
        self._before = counters(client) if client else Counters()
        self._starts: Mapping[int, int] = {}

    def moved(self) -> None:
        """Note that we have deleted records ourselves, so the log may begin where it does now."""
        if self._kafka:
            self._starts = kafka.beginning_offsets(self._kafka, self._topic)

    def evicted(self) -> str:
        """Report keys that Redis has evicted."""
        if not self._client:
            return ""
        with suppress(redis.RedisError):
            since = counters(self._client).since(self._before)
            if since.evicted > 0:
                return f"Redis at {self._place} has evicted keys since this run began (evicted_keys +{since.evicted:,})"
        return ""

    def cut(self) -> str:
        """Report records that are gone from the log, and not by us."""
        if not self._kafka:
            return ""
        with suppress(HarnessError):
            found = kafka.beginning_offsets(self._kafka, self._topic)
            cut = {part: at for part, at in found.items() if at > self._starts.get(part, 0)}
            if cut:
                where = ", ".join(f"{part} starts at offset {at:,}" for part, at in cut.items())
                return f"records of topic {self._topic} in Kafka were deleted, but not by this run: partition {where}"
        return ""

    def throttled(self, ms: int, allowed_ms: float) -> str:
        """Report a quota that throttled the load, for `ms` at most."""
        if not self._kafka or ms <= allowed_ms:
            return ""
        return (
            f"Kafka at {self._kafka.bootstrap} throttled the load of this run for up to {ms:,} ms "
            f"(throttle_time_ms); the limit is {allowed_ms:g} ms: raise the quotas of this user (producer_byte_rate, "
            "request_percentage), or lower --rate"
        )

    def of_failed(self, words: str) -> str:
        """Return why the servers may have refused a failed engine, as far as they confirm it now. `words` are its log,
        which may name its own group or transaction."""
        return "; ".join(filter(None, (self.evicted(), self.cut(), *self._by_kafka(words), *self._by_redis(words))))

    def _by_kafka(self, words: str) -> Iterator[str]:
        if not self._kafka:
            return
        transactions = self._wants.transactions or bool(TRANSACTION.search(words))
        try:
            found = list(kafka_says(self._kafka, Wants(transactions=transactions)))
        except HarnessError as error:
            yield str(error)
            return
        yield from (each.sentence for each in found if each.needed)
        from harness.services import kafka_rights

        for group in dict.fromkeys(GROUP.findall(words)):
            if why := kafka_rights.refuses_group(self._kafka, self._topic, group):
                yield why

    def _by_redis(self, words: str) -> Iterator[str]:
        if not self._client:
            return
        try:
            yield from (each.sentence for each in redis_says(self._client, self._place, Wants()))
            since = counters(self._client).since(self._before)
        except redis.RedisError:
            return
        if told := [name for name in since.refused if redis_rights.names(name, words)]:
            yield (
                f"Redis at {self._place} has refused commands since this run began ({since.in_words()}), and the "
                f"engine's log names {', '.join(told)}"
            )
