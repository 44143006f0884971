"""An honest job that leaves its counts somewhere else than in our own schema, as a manifest beside it says.

python job.py table|topic|hashes|strings CONFIG.json      counts events
python job.py print CONFIG.json                           prints what is in the table, as `campaign,window,count` lines
"""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

Cell = tuple[str, int]
Write = Callable[[dict[Cell, int]], None]


def table(config: dict[str, Any]) -> Write:
    """SQLite, in the job's own folder."""
    database = sqlite3.connect(place_of(config))
    database.execute("create table if not exists counts (campaign, window, count, primary key (campaign, window))")

    def write(counts: dict[Cell, int]) -> None:
        with database:
            rows = [(*cell, count) for cell, count in counts.items()]
            database.executemany("insert or replace into counts values (?, ?, ?)", rows)

    return write


def topic(config: dict[str, Any]) -> Write:
    producer = Producer({"bootstrap.servers": config["kafka"]["bootstrap"], "enable.idempotence": True})

    def write(counts: dict[Cell, int]) -> None:
        for (campaign, window), count in counts.items():
            value = {"campaign": campaign, "window": window, "count": count}
            producer.produce(config["results_topic"], json.dumps(value).encode())
        producer.flush()

    return write


def hashes(config: dict[str, Any]) -> Write:
    client = redis.Redis.from_url(config["redis"])

    def write(counts: dict[Cell, int]) -> None:
        with client.pipeline() as pipe:
            for (campaign, window), count in counts.items():
                pipe.hset(f"views/{campaign}", f"from {window}", count)
            pipe.execute()

    return write


def strings(config: dict[str, Any]) -> Write:
    client = redis.Redis.from_url(config["redis"])

    def write(counts: dict[Cell, int]) -> None:
        client.mset({f"views/{campaign}/{window}": count for (campaign, window), count in counts.items()})

    return write


def place_of(config: dict[str, Any]) -> Path:
    folder = Path(config["checkpoint"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "counts.db"


def views(config: dict[str, Any], ads: dict[str, str]) -> Iterator[list[Cell]]:
    settings = {"bootstrap.servers": config["kafka"]["bootstrap"], "group.id": str(time.time_ns())}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    parts = range(config["partitions"])
    consumer.assign([TopicPartition(config["topic"], part, OFFSET_BEGINNING) for part in parts])
    while True:
        found = []
        for message in consumer.consume(2_000, 0.1):
            event = json.loads(message.value() or b"")
            if event["event_type"] == "view":
                time_ms = int(event["event_time"])
                found.append((ads[event["ad_id"]], time_ms - time_ms % config["window_ms"]))
        yield found


def count(config: dict[str, Any], write: Write) -> None:
    client = redis.Redis.from_url(config["redis"], decode_responses=True)
    names = [name for name in client.scan_iter(count=1000, _type="string") if len(name) == 36]
    ads = dict(zip(names, client.mget(names), strict=True))
    totals: Counter[Cell] = Counter()
    for batch in views(config, ads):
        totals.update(batch)
        if batch:
            write({cell: totals[cell] for cell in batch})


def print_table(config: dict[str, Any]) -> None:
    """With no table there yet it fails, as any reader of a table would."""
    for row in sqlite3.connect(f"file:{place_of(config)}?mode=ro", uri=True).execute("select * from counts"):
        print(*row, sep=",")


if __name__ == "__main__":
    kind, told = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if kind == "print":
        print_table(told)
    else:
        count(told, {"table": table, "topic": topic, "hashes": hashes, "strings": strings}[kind](told))
