"""Checks the options of an engine and its job, and their values.

An option that nothing reads changes nothing, and an invalid value ends a job after a minute: both are refused before
the start. A manifest lists the options as patterns: `settings` are the engine's, and `understands` are the job's, which
begin with `streamgauge.`. The allowed values follow an equals sign, separated by bars; N, COUNT, SIZE, MEMORY, TIME,
BOOL and >=5s stand for any such value. Words joined by a plus may be combined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from harness.model import EngineManifest
from harness.util.suggest import nearest, short

CONFIG_KEYS = ("trigger", "master")
PREFIX = "streamgauge."
SOURCE = "streamgauge.source."
NUMBER, COUNT, SIZE, MEMORY, TIME, BOOL, AT_LEAST = "N", "COUNT", "SIZE", "MEMORY", "TIME", "BOOL", ">="
SHAPES = {
    NUMBER: (r"[1-9][0-9]{0,8}", "a whole number from 1 to 999,999,999"),
    COUNT: (r"[0-9]{1,18}", "a whole number from 0 to 10^18 - 1"),
    SIZE: (r"[1-9][0-9]{0,8}([kmgtp]b?|b)?", "a size such as 512m or 2g"),
    MEMORY: (r"[0-9]{1,9} ?([kmgt]?b|[kmgt]|bytes)?", "a size of Flink's such as 512m or 2 gb"),
    TIME: (
        r"[0-9]{1,9} ?((d|day|h|hour|min|minute|sec|second|milli|millisecond|micro|microsecond|nano|nanosecond)s?|"
        r"m|s|ms|us|ns)?",
        "a time of Flink's such as 500 ms, 5s or 1 min",
    ),
    BOOL: ("true|false", "true or false"),
}
# Spark settings that our scenarios or documents set.
SPARK = {
    "spark.driver.memory": SIZE,
    "spark.executor.memory": SIZE,
    "spark.executor.cores": NUMBER,
    "spark.sql.shuffle.partitions": NUMBER,
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "1|2",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": BOOL,
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": NUMBER,
}
# Flink settings that affect a job's counts, speed or state.
FLINK = {
    **dict.fromkeys(("parallelism.default", "pipeline.max-parallelism", "taskmanager.numberOfTaskSlots"), NUMBER),
    **dict.fromkeys(
        (
            "execution.checkpointing.interval",
            "execution.checkpointing.timeout",
            "execution.checkpointing.min-pause",
            "pipeline.auto-watermark-interval",
            "table.exec.state.ttl",
            "table.exec.source.idle-timeout",
            "table.exec.mini-batch.allow-latency",
        ),
        TIME,
    ),
    "execution.checkpointing.mode": "EXACTLY_ONCE|AT_LEAST_ONCE",
    "execution.checkpointing.max-concurrent-checkpoints": NUMBER,
    "execution.checkpointing.tolerable-failed-checkpoints": COUNT,
    "state.backend.type": "hashmap|rocksdb|forst",
    "table.exec.mini-batch.size": COUNT,
    "table.optimizer.agg-phase-strategy": "AUTO|ONE_PHASE|TWO_PHASE",
    **dict.fromkeys(
        (
            "execution.checkpointing.unaligned.enabled",
            "execution.checkpointing.incremental",
            "pipeline.object-reuse",
            "pipeline.operator-chaining.enabled",
            "table.exec.mini-batch.enabled",
        ),
        BOOL,
    ),
    **dict.fromkeys(
        (
            "taskmanager.memory.process.size",
            "taskmanager.memory.flink.size",
            "taskmanager.memory.managed.size",
            "jobmanager.memory.process.size",
        ),
        MEMORY,
    ),
}
KAFKA_STREAMS = {
    "processing.guarantee": "at_least_once|exactly_once_v2",
    "num.stream.threads": NUMBER,
    **dict.fromkeys(
        (
            "commit.interval.ms",
            "poll.ms",
            "statestore.cache.max.bytes",
            "num.standby.replicas",
            "acceptable.recovery.lag",
        ),
        COUNT,
    ),
}
# Keyed by the set of jars.
OF_ENGINES = {"spark": SPARK, "flink": FLINK, "flink-java": FLINK, "kafka-streams": KAFKA_STREAMS}
# All options of Spark's Kafka source, which ignores unknown ones.
OF_SPARKS_SOURCE = {
    **dict.fromkeys(
        ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "minPartitions", "maxRecordsPerPartition"), NUMBER
    ),
    **dict.fromkeys(("kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"), NUMBER),
    **dict.fromkeys(("failOnDataLoss", "includeHeaders"), BOOL),
    **dict.fromkeys(("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp"), ""),
    **dict.fromkeys(("startingOffsetsByTimestampStrategy", "maxTriggerDelay", "groupIdPrefix", "kafka.*"), ""),
}
SPARKS_SOURCE = {f"{SOURCE}{name}": domain for name, domain in OF_SPARKS_SOURCE.items()}


def mistake(manifest: EngineManifest, options: Mapping[str, str]) -> str:
    """Return a sentence about the first `--conf` option that is unknown or has an invalid value; "" if all are valid,
    or if the manifest lists none."""
    return _first(_mistake(manifest, name, value, _listed(manifest, name)) for name, value in options.items())


def mistake_of_config(manifest: EngineManifest, changed: Mapping[str, str]) -> str:
    """Check the scenario's keys that belong to the engine in the same way."""
    listed = None if manifest.settings is None else [each for each in manifest.settings if _name(each) in CONFIG_KEYS]
    return _first(_mistake(manifest, name, value, listed) for name, value in changed.items())


def _first(mistakes: Iterable[str]) -> str:
    return next(filter(None, mistakes), "")


def _name(entry: str) -> str:
    return entry.partition("=")[0]


def _listed(manifest: EngineManifest, name: str) -> Sequence[str] | None:
    if name.startswith(PREFIX):
        return manifest.understands
    return None if manifest.settings is None else [each for each in manifest.settings if _name(each) not in CONFIG_KEYS]


def _mistake(manifest: EngineManifest, name: str, value: str, listed: Sequence[str] | None) -> str:
    if listed is None:
        return ""
    is_own = name.startswith(PREFIX)
    known = dict(entry.partition("=")[::2] for entry in listed)
    found = _matching(name, known)
    if found == f"{SOURCE}*" and manifest.on_spark:
        known, found = SPARKS_SOURCE, _matching(name, SPARKS_SOURCE)
    if found is None:
        names = ", ".join(known) or ("none that begins so" if is_own else "none such")
        return (
            f"{manifest.id} has no option {name}: {'its job' if is_own else 'it'} reads {names}{nearest(name, known)}"
        )
    domain = known[found] or of_engine(manifest).get(name, "")
    if domain and not _allowed(domain, value):
        return f"{name} = {short(value)} is not right: {_in_words(domain)} is expected"
    return ""


def of_engine(manifest: EngineManifest) -> Mapping[str, str]:
    """Return the allowed values of the engine's own settings."""
    return OF_ENGINES.get(manifest.ivy.partition("@")[0], {})


def _matching(name: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)


def _allowed(domain: str, value: str) -> bool:
    if "+" in domain:
        return set(value.split("+")) <= set(domain.split("+"))
    return any(_is(word, value) for word in domain.split("|"))


def _is(word: str, value: str) -> bool:
    if word.startswith(AT_LEAST):
        return _ms(value) >= _ms(word.removeprefix(AT_LEAST))
    return bool(re.fullmatch(SHAPES[word][0], value, re.IGNORECASE)) if word in SHAPES else word == value


def _ms(time: str) -> int:
    """Parse the two formats of a trigger, and the short one of a manifest."""
    number, unit = re.fullmatch(r"(\d+) ?(s|seconds|milliseconds)", time).groups()  # type: ignore[union-attr]
    return int(number) * (1 if unit == "milliseconds" else 1000)


def _in_words(domain: str) -> str:
    if "+" in domain:
        return f"some of {', '.join(domain.split('+'))}, with a plus between them,"
    words = [SHAPES[word][1] if word in SHAPES else word.replace(AT_LEAST, "at least ") for word in domain.split("|")]
    return words[0] if len(words) == 1 else f"one of {', '.join(words)}"
