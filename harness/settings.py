"""Every key of a scenario, which is also a flag of the same name: how it is read, its default, its help.

A reader gets what TOML or the command line gives and returns the value as a RunSpec wants it, or raises `Wrong` with
what is allowed; harness/plan.py makes the sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from generators.disorder import PRESETS
from generators.profiles import PROFILES
from harness.explain import nearest
from harness.model import MAX_SERVERS

CLIENTS = ("confluent", "kafka-python")


class Wrong(Exception):  # noqa: N818  (it is what is said of a value)
    """A value that can't be; says what is allowed."""


Reader = Callable[[Any], Any]


@dataclass(frozen=True)
class Key:
    """One key of a scenario, the flag of the same name, and what it is when nobody says."""

    read: Reader
    default: Any
    help: str


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Wrong("a text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong("true or false")
    return value


def _whole(low: int, high: int) -> Reader:
    def read(value: Any) -> int:
        number = as_number(value)
        if number is None or number != int(number) or not low <= number <= high:
            raise Wrong(f"a whole number from {low:,} to {high:,}")
        return int(number)

    return read


def _above_zero(what: str, high: float) -> Reader:
    def read(value: Any) -> float:
        number = as_number(value)
        if number is None or not 0 < number <= high:
            raise Wrong(f"{what} above 0 and up to {high:,.0f}")
        return number

    return read


def _duration_ms(value: Any) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)", value.strip()) if isinstance(value, str) else None
    unit_ms = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
    ms = float(match[1]) * unit_ms[match[2]] if match else 0.0
    if not 1 <= ms <= 24 * 3_600_000:
        raise Wrong("a time with its unit, such as 500ms, 10s or 2m, up to 24h,")
    return round(ms)


def _lateness_ms(value: Any) -> int:
    """Also none at all: `0`, with or without a unit."""
    return 0 if re.fullmatch(r"0\s*(ms|s|m|h)?", str(value).strip()) else _duration_ms(value)


def as_number(value: Any) -> float | None:
    """A finite one, or none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _choice(words: tuple[str, ...]) -> Reader:
    def read(value: Any) -> str:
        if value not in words:
            raise Wrong(f"one of {', '.join(words)}{nearest(str(value), words)}")
        return str(value)

    return read


def _conf(value: Any) -> dict[str, str]:
    """A table in a file; `k=v` texts as flags."""
    if isinstance(value, Mapping):
        pairs = [(str(key), each) for key, each in value.items()]
    else:
        texts = value if isinstance(value, list | tuple) else [value]
        pairs = [(key, each) for key, _, each in (str(text).partition("=") for text in texts)]
    if any(not key or not isinstance(each, str | int | float) or each == "" for key, each in pairs):
        raise Wrong("k=v with a key and a value")
    return {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in pairs}


def _limit(value: Any) -> int | None:
    if value == "any":
        return None
    try:
        return int(_whole(0, 2**53)(value))
    except Wrong:
        raise Wrong('a whole number from 0, or "any",') from None


def _profile(value: Any) -> Any:
    kind = value.get("kind") if isinstance(value, Mapping) else value
    if not isinstance(kind, str) or kind not in PROFILES:
        raise Wrong(f"one of {', '.join(PROFILES)}, or a table with that as its `kind`{nearest(str(kind), PROFILES)}")
    return value


def _disorder(value: Any) -> Any:
    if not isinstance(value, str | Mapping):
        raise Wrong(f"a preset ({', '.join(PRESETS)}) or a table of dials")
    return value


KEYS: dict[str, Key] = {
    "engine": Key(_text, "spark", "engine id or path of a manifest.toml"),
    "sink": Key(_text, "", "sink of the engine; default: its first"),
    "rate": Key(_above_zero("a number of events per second", 10_000_000), 10_000.0, "offered events per second"),
    "duration": Key(_duration_ms, "30s", "how long events are offered"),
    "profile": Key(_profile, "steady", "how the rate goes over time"),
    "seed": Key(_whole(0, 2**63 - 1), 1, "decides all randomness"),
    "servers": Key(_whole(1, MAX_SERVERS), 10, "ad servers that send"),
    "campaigns": Key(_whole(1, 100_000), 100, "campaigns, each with 10 ads"),
    "probes": Key(_whole(0, 100_000), 300, "further campaigns with one view per window, for latency"),
    "partitions": Key(_whole(1, 1000), 4, "partitions of the topic"),
    "window": Key(_duration_ms, "10s", "length of a tumbling window"),
    "watermark": Key(_lateness_ms, "10s", "declared lateness"),
    "disorder": Key(_disorder, "mobile", "preset, dial=value list, or both"),
    "late_dropped_max": Key(_limit, None, "how many events may be dropped as late"),
    "fault": Key(_text, "", "a fault or a plan, such as kill@c3:batch=3, or none; chaos --list shows all"),
    "client": Key(_choice(CLIENTS), "confluent", "Kafka client of the generator"),
    "lag_budget_ms": Key(
        _above_zero("a number of ms", 3_600_000), 100.0, "p99.9 of sending late that voids the certificate"
    ),
    "objective_p99_ms": Key(_above_zero("a number of ms", 86_400_000), None, "p99 of latency that the run has to keep"),
    "trigger": Key(_text, "0 seconds", "trigger interval of the engine"),
    "master": Key(_text, "local[*]", "Spark master"),
    "checkpoint": Key(_text, "", "where the engine keeps its state"),
    "conf": Key(_conf, {}, "k=v passed to the engine"),
    "kafka": Key(_text, "", "bootstrap of an existing Kafka"),
    "kafka_config": Key(_text, "", "properties file with its security settings"),
    "redis": Key(_text, "", "redis:// or rediss:// of an existing Redis"),
    "reset": Key(_flag, False, "empty a Redis database that carries our marker"),
    "repeat": Key(_whole(1, 1000), 1, "so many fresh runs, each with the next seed"),
    "patience": Key(_above_zero("a factor", 100), 1.0, "all deadlines are so many times as long: for a slow machine"),
    "checksum": Key(_flag, False, "also sum the events' ids, to see a loss that a duplicate hides; gives no speed"),
    "web": Key(_flag, False, "show Locust's own web page while it sends"),
}
