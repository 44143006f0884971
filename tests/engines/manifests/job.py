"""A right job of the question `rides` that does what its options say, as a manifest may say it of a job.

It plans a batch before it counts it, and keeps its state when the batch is written: after a kill it counts the same
batch again, with the same watermark.
"""

from __future__ import annotations

import json
import pickle
import signal
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import redis
from confluent_kafka import Consumer, Producer, TopicPartition

SIZE_MS, STEP_MS, AT_ONCE = 30_000, 10_000, 2000
Cell = tuple[str, int]

config = json.loads(Path(sys.argv[1]).read_text())
does = config["options"]
KEY, FIELD = (does.get(each, "") for each in ("key", "field"))
IS_FINAL, DROPS = does["final"] == "True", does["late"] == "drop"
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
folder = Path(config["checkpoint"])
folder.mkdir(parents=True, exist_ok=True)


@dataclass
class State:
    batch: int = 0
    newest_ms: int = 0
    offsets: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(config["partitions"]), 0))
    trips: dict[Cell, int] = field(default_factory=lambda: defaultdict(int))
    largest: dict[Cell, int] = field(default_factory=lambda: defaultdict(int))
    drivers: dict[Cell, set[str]] = field(default_factory=lambda: defaultdict(set))
    unseen: set[Cell] = field(default_factory=set)  # of a job that writes a window when it closes

    @property
    def watermark_ms(self) -> int:
        return self.newest_ms - int(config["watermark_ms"])

    def values(self, cell: Cell) -> dict[str, int]:
        return {"trips": self.trips[cell], "largest": self.largest[cell], "drivers": len(self.drivers[cell])}


def replaced(path: Path, content: bytes) -> None:
    (new := path.with_suffix(".new")).write_bytes(content)
    new.replace(path)


def kept(name: str, otherwise: Any) -> Any:
    path = folder / name
    return pickle.loads(path.read_bytes()) if path.exists() else otherwise


consumer = Consumer(
    {
        "bootstrap.servers": config["kafka"]["bootstrap"],
        **config["kafka"]["librdkafka"],
        "group.id": f"counts-{config['run']}",
        "enable.auto.commit": False,
    }
)
state = kept("state", State())
consumer.assign([TopicPartition(config["topic"], part, offset) for part, offset in state.offsets.items()])


def planned() -> dict[int, int]:
    """Where the next batch ends, which does not change when it is counted again."""
    number, ends = kept("plan", (-1, {}))
    while number != state.batch:
        known = {
            part: consumer.get_watermark_offsets(TopicPartition(config["topic"], part), timeout=10)[1]
            for part in state.offsets
        }
        ends = {part: min(end, state.offsets[part] + AT_ONCE) for part, end in known.items()}
        if ends == state.offsets:
            time.sleep(0.1)
            continue
        number = state.batch
        replaced(folder / "plan", pickle.dumps((number, ends)))
    return dict(ends)


def read(ends: dict[int, int]) -> list[Any]:
    found: list[Any] = []
    message: Any
    wanted = sum(ends.values()) - sum(state.offsets.values())
    while len(found) < wanted:
        for message in consumer.consume(wanted, timeout=0.1):
            if (message.offset() or 0) < ends[message.partition() or 0]:
                found.append(message)
    for part, end in ends.items():
        consumer.seek(TopicPartition(config["topic"], part, end))
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def counted(messages: list[Any]) -> tuple[set[Cell], list[list[int]]]:
    """Which cells have changed, and what was dropped as late."""
    changed, dropped, newest_ms = set(), [], state.newest_ms
    for message in messages:
        try:
            ride = json.loads(message.value())
            if ride["state"] != "finished":
                continue
        except (TypeError, ValueError, KeyError):
            continue
        ended_ms = round(datetime.fromisoformat(ride["ended_at"]).timestamp() * 1000)
        newest_ms = max(newest_ms, ended_ms)
        last = ended_ms - ended_ms % STEP_MS
        for opens in range(last, last - SIZE_MS, -STEP_MS):
            if DROPS and opens + SIZE_MS <= state.watermark_ms:
                dropped.append([message.partition(), message.offset(), named_by(opens)])
                continue
            cell = ride["trip"]["city"], opens
            state.trips[cell] += 1
            state.largest[cell] = max(state.largest[cell], round(ride["fare"] * 100))
            state.drivers[cell].add(ride["driver"])
            changed.add(cell)
    state.newest_ms = newest_ms
    return changed, dropped


def named_by(opens: int) -> int:
    return opens + SIZE_MS if "{end}" in KEY + FIELD else opens


def shown(changed: set[Cell]) -> set[Cell]:
    if not IS_FINAL:
        return changed
    state.unseen |= changed
    closed = {cell for cell in state.unseen if cell[1] + SIZE_MS <= state.watermark_ms}
    state.unseen -= closed
    return closed


class InRedis:
    """By the pattern of the manifest; our own schema is one, too."""

    def __init__(self) -> None:
        self._client = redis.Redis.from_url(config["redis"], decode_responses=True)

    def write(self, cells: set[Cell]) -> None:
        with self._client.pipeline() as pipe:
            for city, opens in cells:
                for name, value in state.values((city, opens)).items():
                    names = {"city": city, "value": name, "opens": opens, "end": opens + SIZE_MS}
                    key, inner = KEY.format(**names), FIELD.format(**names)
                    pipe.hset(key, inner, value) if inner else pipe.set(key, value)
            pipe.execute()


class InTopic:
    def __init__(self) -> None:
        kafka = config["kafka"]
        self._producer = Producer({"bootstrap.servers": kafka["bootstrap"], **kafka["librdkafka"], "acks": "all"})

    def write(self, cells: set[Cell]) -> None:
        for city, opens in cells:
            record = {"city": city, "end": opens + SIZE_MS, **state.values((city, opens))}
            self._producer.produce(config["results_topic"], json.dumps(record).encode())
        if self._producer.flush(30):
            sys.exit("the results could not be written")


class InFile:
    """Which `printed.py` prints."""

    def __init__(self) -> None:
        self._path = Path(config["folder"]) / "cells.json"
        self._lines = json.loads(self._path.read_text()) if self._path.exists() else {}

    def write(self, cells: set[Cell]) -> None:
        for cell in cells:
            self._lines |= {f"{name}:{cell[0]},{cell[1]}": value for name, value in state.values(cell).items()}
        replaced(self._path, json.dumps(self._lines).encode())


SINKS: dict[str, type[InRedis | InTopic | InFile]] = {"redis": InRedis, "kafka": InTopic, "command": InFile}
sink = SINKS[does["results"].partition(":")[0]]()
while True:
    ends = planned()
    changed, dropped = counted(read(ends))
    sink.write(shown(changed))
    if does["evidence"] == "named":
        with Path(config["progress_path"]).with_name("late.jsonl").open("a") as lines:
            lines.writelines(f"{json.dumps(place)}\n" for place in dropped)
    state.offsets, state.batch = ends, state.batch + 1
    replaced(folder / "state", pickle.dumps(state))
    if does["progress"] == "file":
        line = {"at": time.time_ns() // 1_000_000, "batch": state.batch, "rows": len(changed), "offsets": ends}
        with Path(config["progress_path"]).open("a") as lines:
            lines.write(json.dumps(line) + "\n")
    elif does["progress"] == "group":
        consumer.commit(
            offsets=[TopicPartition(config["topic"], part, end) for part, end in ends.items()], asynchronous=False
        )
