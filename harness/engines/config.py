"""An engine's run config: one JSON file, whose path replaces `{config}` in its command.

The file may hold secrets (Kafka's and Redis' passwords): only its owner can read it, and it lies in a private folder,
never in the run's directory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.engines.job import History
from harness.model import EVENT_TIME, KafkaAddress, RedisAddress, SqlAddress, Time
from harness.services.postgresql import as_job_sees

FILE = "engine.json"


@dataclass(frozen=True)
class EngineConfig:
    """The run config of one engine. The same file serves the first start and every restart."""

    run: str
    kafka: KafkaAddress = field(repr=False)
    topic: str
    redis: RedisAddress = field(repr=False)
    window_ms: int
    watermark_ms: int
    checkpoint: str  # folder
    progress_path: str
    crash_path: str
    sink: str
    trigger: str = "0 seconds"
    master: str = "local[*]"
    options: Mapping[str, str] = field(default_factory=dict)  # --conf k=v
    jars: tuple[str, ...] = ()
    checksum: bool = False  # sum the ids of each cell's events beside counting them
    partitions: int = 1  # of the topic
    folder: str = ""  # private to the engine: for its results, and other files
    results_topic: str = ""  # topic of the counts, if the engine writes them to Kafka
    java_options: tuple[str, ...] = ()  # for its JVM, such as its archive of classes
    sql: SqlAddress | None = field(default=None, repr=False)
    time: Time = EVENT_TIME  # the notion of time that it counts by
    history: History | None = None  # the part of its input that lies in files

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "kafka": {
                "bootstrap": self.kafka.bootstrap,
                "java": dict(self.kafka.java),
                "librdkafka": dict(self.kafka.librdkafka),
            },
            "topic": self.topic,
            "redis": self.redis.url,
            "redis_prefix": self.redis.prefix,
            "sql": as_job_sees(self.sql) if self.sql else None,
            "window_ms": self.window_ms,
            "watermark_ms": self.watermark_ms,
            "checkpoint": self.checkpoint,
            "progress_path": self.progress_path,
            "crash_path": self.crash_path,
            "sink": self.sink,
            "trigger": self.trigger,
            "master": self.master,
            "options": dict(self.options),
            "jars": list(self.jars),
            "checksum": self.checksum,
            "partitions": self.partitions,
            "folder": self.folder,
            "results_topic": self.results_topic,
            "java_options": " ".join(self.java_options),
            "time": self.time,
            "history": self.history.as_json() if self.history else None,
        }

    def write(self, folder: Path) -> Path:
        return write_privately(folder / FILE, json.dumps(self.as_json(), indent=1))


def write_privately(path: Path, text: str) -> Path:
    """Write a file atomically and readable by its owner only, from the first byte on."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return part.replace(path)
