"""A judged run put together by hand; the selftest, which ships with the program, plants its bugs in the same one. And
the least that an engine and its run config have to say."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.engines.config import EngineConfig
from harness.model import EngineManifest, KafkaAddress, RedisAddress, SinkClaim
from harness.selftest.by_hand import CAMPAIGNS, EPOCH_MS, SPEC, VALID, WINDOW_MS, case, events

__all__ = ["CAMPAIGNS", "EPOCH_MS", "SPEC", "VALID", "WINDOW_MS", "case", "events"]

ANY = EngineManifest("any", ("x",), ".", shipped=False, sinks=(SinkClaim("default", "keep", "none"),))
SCRIPTED = replace(ANY, id="scripted")
RUN_CONFIG = EngineConfig(
    run="r",
    kafka=KafkaAddress("k:1"),
    topic="t",
    redis=RedisAddress("redis://r/0"),
    window_ms=10_000,
    watermark_ms=10_000,
    checkpoint="",
    progress_path="p",
    crash_path="c",
    sink="default",
)


def placed(folder: Path, **changes: Any) -> EngineConfig:
    """Return the run config of an engine that keeps its files in this folder."""
    names = {"checkpoint": "checkpoint", "progress_path": "progress.jsonl", "crash_path": "crash"}
    return replace(RUN_CONFIG, **{name: str(folder / path) for name, path in names.items()} | changes)
