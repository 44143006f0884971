"""A job as the original benchmark has them: told by its YAML, counting by HINCRBY in its schema, a window's key made
when the first of its events comes. It knows nothing of streamgauge.

    python job.py benchmarkConf.yaml [HOW OFTEN [GROUP]]

With a group it begins where that has committed, and else at the end; without, at the beginning.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

FLUSH_S = 0.2


def conf(path):
    """As much YAML as that file has: `key: value`, and lists of one line each."""
    found: dict[str, Any] = {}
    key = ""
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("    - "):
            found[key] = [*(found[key] or []), line[6:].strip().strip('"')]
        else:
            key, _, value = line.partition(":")
            found[key] = value.strip().strip('"')
    return found


def main(path, group=""):
    told = conf(path)
    width_ms = int(told["time.divisor"])
    client = redis.Redis(told["redis.host"], decode_responses=True)
    brokers = ",".join(f"{host}:{told['kafka.port']}" for host in told["kafka.brokers"])
    group_id = group or str(uuid.uuid4())
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": group_id, "enable.auto.commit": False})
    if group:
        consumer.subscribe([told["kafka.topic"]])
    else:
        parts = range(int(told["kafka.partitions"]))
        consumer.assign([TopicPartition(told["kafka.topic"], part, OFFSET_BEGINNING) for part in parts])
    campaigns: dict[str, Any] = {}
    counts: Counter[Any] = Counter()
    due_s = time.monotonic()
    while True:
        for message in consumer.consume(2_000, 0.05):
            event = json.loads(message.value() or b"")
            if event["event_type"] == "view":
                ad = event["ad_id"]
                campaigns[ad] = campaigns.get(ad) or client.get(ad)
                counts[campaigns[ad], int(event["event_time"]) // width_ms * width_ms] += 1
        if counts and time.monotonic() >= due_s:
            for (campaign, window), count in counts.items():
                write(client, campaign, str(window), count)
            counts.clear()
            due_s = time.monotonic() + FLUSH_S


def write(client, campaign, window, count):
    key = str(uuid.uuid4())
    if client.hsetnx(campaign, window, key):
        client.hsetnx(campaign, "windows", str(uuid.uuid4()))
        client.lpush(client.hget(campaign, "windows"), window)
    else:
        key = client.hget(campaign, window)
    client.hincrby(key, "seen_count", count)
    client.hset(key, "time_updated", str(time.time_ns() // 1_000_000))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    others = [
        subprocess.Popen([sys.executable, __file__, sys.argv[1]]) for _ in range(int((sys.argv[2:] or ["1"])[0]) - 1)
    ]
    main(sys.argv[1], *sys.argv[3:])
