"""Where Kafka and Redis are, and what of that may be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HIDDEN = "***"  # stands for what is never saved or shown
VARIABLE = re.compile(r"\$\{env:([^}]*)\}")


@dataclass(frozen=True)
class KafkaAddress:
    """Where Kafka is, and how each client has to be told so. The mappings may hold secrets: never saved in a run."""

    bootstrap: str
    external: bool = False
    librdkafka: Mapping[str, str] = field(default_factory=dict, repr=False)  # confluent-kafka
    kafka_python: Mapping[str, Any] = field(default_factory=dict, repr=False)  # keyword arguments
    # Spark (prefixed with `kafka.` there), Flink, Kafka Streams
    java: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class RedisAddress:
    """Where Redis is. The address may hold a password: never saved in a run."""

    url: str = field(repr=False)
    external: bool = False
    prefix: str = ""  # of all keys


def redacted(address: str) -> str:
    """An address of Redis as it may be saved and shown: without its login and its options, which may hold a password
    too. What is taken from the environment is no secret and stays, so that such an address can be used again."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return HIDDEN if "@" in address or ":" in address else address
    login, at, place = rest.rpartition("@")
    place, mark, options = place.partition("?")
    if "?" in login:  # nobody can tell where its password ends
        return f"{scheme}://{HIDDEN}"
    login = _unless_secret(login, r"([^:]*:)?\0")
    options = _unless_secret(options, r"\w+=\0(&\w+=\0)*")
    return f"{scheme}://{login}{at}{place}{mark}{options}"


def _unless_secret(text: str, allowed: str) -> str:
    """Hidden unless it has this form, in which a zero byte stands for a variable of the environment."""
    return text if not text or re.fullmatch(allowed, VARIABLE.sub("\0", text)) else HIDDEN
