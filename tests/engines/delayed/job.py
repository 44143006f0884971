"""A job that adds the counts of views to a table, each half a second after the view came, and notes when it did.

    python job.py CONFIG.json

With the option `breaks` it damages its table, or what it writes there, after some commits.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter, deque
from pathlib import Path

import pyarrow as pa
import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

sys.path.append(str(Path(__file__).parents[3]))

from harness.model import SqlAddress
from tests.services.made_tables import Made, MadeDelta, MadeIceberg, MadeParquet, MadeSql

DELAY_S, EVERY_S, SOUND_COMMITS = 0.5, 0.25, 6
KINDS: dict[str, type[Made]] = {"delta": MadeDelta, "iceberg": MadeIceberg, "parquet": MadeParquet, "sql": MadeSql}

config = json.loads(Path(sys.argv[1]).read_text())
does = config["options"]
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
folder = Path(config["folder"])
table = KINDS[does["kind"]](folder)
if isinstance(table, MadeSql):
    table.address = SqlAddress(config["sql"]["url"], config["sql"]["schema"])

client, prefix = redis.Redis.from_url(config["redis"], decode_responses=True), config["redis_prefix"]
keys = [key for key in client.scan_iter(f"{prefix}*", count=1000, _type="string") if len(key) == len(prefix) + 36]
ads = {key.removeprefix(prefix): client.get(key) for key in keys}
consumer = Consumer(
    {
        "bootstrap.servers": config["kafka"]["bootstrap"],
        **config["kafka"]["librdkafka"],
        "group.id": f"{config['topic']}-delayed",
        "enable.auto.commit": False,
    }
)
consumer.assign([TopicPartition(config["topic"], part, OFFSET_BEGINNING) for part in range(config["partitions"])])
waiting: deque[tuple[float, tuple[str, int]]] = deque()
total: Counter[tuple[str, int]] = Counter()


def damage() -> None:
    """Do what the option says."""
    log = folder / "counts" / "_delta_log"
    newest = len([*log.glob("*.json")])
    after = log / f"{newest:020}.json"
    if does["breaks"] == "protocol":
        after.write_text('{"protocol":{"minReaderVersion":9,"minWriterVersion":9}}\n')
    elif does["breaks"] == "log":
        after.write_text("{ no log")
    time.sleep(3600)


def commit() -> None:
    """Add all that has waited long enough, and note when, with the totals from then on."""
    counts: Counter[tuple[str, int]] = Counter()
    now_s = time.monotonic()
    while waiting and waiting[0][0] + DELAY_S <= now_s:
        counts[waiting.popleft()[1]] += 1
    if not counts:
        return
    total.update(counts)
    rows = {"campaign": [c for c, _ in counts], "opens": [w for _, w in counts], "count": [*counts.values()]}
    began_us = time.time_ns() // 1000
    table.add(pa.table(rows))
    told = {"began_us": began_us, "ended_us": time.time_ns() // 1000, "cells": [[*c, total[c]] for c in counts]}
    print(json.dumps(told), flush=True)  # into the log of the run


due_s = time.monotonic()
commits = 0
while True:
    for message in consumer.consume(10_000, timeout=0.02):
        try:
            event = json.loads(message.value() or b"")
            campaign, event_time_ms = str(ads[event["ad_id"]]), int(event["event_time"])
        except (TypeError, ValueError, KeyError):
            continue
        if event["event_type"] == "view":
            waiting.append((time.monotonic(), (campaign, event_time_ms - event_time_ms % config["window_ms"])))
    if time.monotonic() >= due_s:
        due_s += EVERY_S
        commit()
        commits += 1
        if does.get("breaks") and commits > SOUND_COMMITS:
            damage()
