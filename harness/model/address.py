"""Addresses of Kafka, Redis and PostgreSQL, without secrets where they are saved or shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HIDDEN = "***"  # replaces a secret that must not be saved or shown
WITH_SECRETS = ("redis", "sql")  # keys of a scenario with addresses that may hold a password
VARIABLE = re.compile(r"\$\{env:([^}]*)\}")


@dataclass(frozen=True)
class KafkaAddress:
    """The address of Kafka, with settings for each client. The mappings may hold secrets: never save them in a run."""

    bootstrap: str
    external: bool = False
    librdkafka: Mapping[str, str] = field(default_factory=dict, repr=False)  # confluent-kafka
    kafka_python: Mapping[str, Any] = field(default_factory=dict, repr=False)  # keyword arguments
    # Spark (prefixed with `kafka.` there), Flink, Kafka Streams
    java: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class RedisAddress:
    """The address of Redis. It may hold a password: never save it in a run."""

    url: str = field(repr=False)
    external: bool = False
    prefix: str = ""  # of all keys


@dataclass(frozen=True)
class SqlAddress:
    """The address of a PostgreSQL database, and the run's schema in it. It may hold a password: never save it."""

    url: str = field(repr=False)
    schema: str
    external: bool = False


def redacted(address: str) -> str:
    """Remove login and options from an address of Redis or PostgreSQL, because both may hold a password.

    A reference to an environment variable is no secret and stays, so that the address can be used again.
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        return HIDDEN if "@" in address or ":" in address else address
    login, at, place = rest.rpartition("@")
    place, mark, options = place.partition("?")
    if "?" in login:  # the end of the password is ambiguous
        return f"{scheme}://{HIDDEN}"
    login = _unless_secret(login, r"([^:]*:)?\0")
    options = _unless_secret(options, r"\w+=\0(&\w+=\0)*")
    return f"{scheme}://{login}{at}{place}{mark}{options}"


def _unless_secret(text: str, allowed: str) -> str:
    """Return the text if it has the allowed form, else HIDDEN.

    A zero byte in `allowed` stands for an environment variable.
    """
    return text if not text or re.fullmatch(allowed, VARIABLE.sub("\0", text)) else HIDDEN
