"""External services: checks before a run that we may use them and that they permit what a run needs, before anything is
started or written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import redis

from harness.model import HarnessError, KafkaAddress, RunSpec, redacted
from harness.services import claim, kafka_security, made, redis_rights
from harness.services.redis import connect, external
from harness.util.server_errors import of_redis


class Wants(NamedTuple):
    """The needs of a run."""

    transactions: bool = False  # the engine uses Kafka's transactions
    bytes_per_s: float = 0.0  # written to Kafka
    redis_bytes: int = 0
    scripts: bool = False  # the engine uses Redis scripts


class Said(NamedTuple):
    """One finding, as a sentence. `needed`: no run can do without the refused right."""

    service: str
    sentence: str
    needed: bool = True


def kafka_of(spec: RunSpec) -> KafkaAddress:
    return kafka_security.external(spec.kafka, Path(spec.kafka_config) if spec.kafka_config else None)


def check_external(spec: RunSpec) -> None:
    """Make the checks that change nothing: a malformed address, a database that is not ours."""
    if spec.redis:
        with connect(external(spec.redis, spec.redis_prefix)) as client, _told_of(spec.redis):
            claim.keys_to_delete(client, reset=spec.reset)
    if spec.kafka:
        kafka_of(spec)


def claim_external(spec: RunSpec, wants: Wants) -> list[str]:
    """Prepare the external services for one run: check rights and limits, claim the database, and delete what a killed
    run left in the same Kafka. Return sentences about what was found and done."""
    found = list(checked(spec, wants))
    if needed := [each.sentence for each in found if each.needed]:
        raise HarnessError(" ".join(needed))
    if spec.redis:
        with connect(external(spec.redis, spec.redis_prefix)) as client, _told_of(spec.redis):
            claim.claim(client, reset=spec.reset)
    left = made.delete_left(kafka_of(spec)) if spec.kafka else []
    return [*(each.sentence for each in found), *left]


def checked(spec: RunSpec, wants: Wants) -> Iterator[Said]:
    """Yield findings about rights and limits of the named servers."""
    if spec.kafka:
        yield from kafka_says(kafka_of(spec), wants)
    if spec.redis:
        with connect(external(spec.redis, spec.redis_prefix)) as client:
            yield from redis_says(client, redacted(spec.redis), wants)


def kafka_says(address: KafkaAddress, wants: Wants) -> Iterator[Said]:
    from harness.services import kafka_rights  # its clients are slow to import

    kafka_rights.reach(address)
    for each in kafka_rights.refusals(address, kafka_rights.Wants(wants.transactions, wants.bytes_per_s)):
        yield Said("Kafka", each.sentence, each.name != kafka_rights.NO_DELETE)


def redis_says(client: redis.Redis, place: str, wants: Wants) -> Iterator[Said]:
    for each in redis_rights.refusals(client, place, redis_rights.Wants(wants.redis_bytes, wants.scripts)):
        yield Said("Redis", each.sentence)


@contextmanager
def _told_of(url: str) -> Iterator[None]:
    """Turn a refusal of the server into one sentence with the redacted address."""
    try:
        yield
    except redis.RedisError as error:
        raise HarnessError(f"Redis at {redacted(url)} refused a command: {of_redis(error)}.") from error
