"""Rides per city in overlapping windows, in plain Python: it reads all of the topic at each start and writes totals.

    python job.py CONFIG.json

An option `wrong` makes it a job with a mistake, for tests: see `WRONG`.
"""

import json
import signal
import sys
import time
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

SIZE_MS, STEP_MS = 30_000, 10_000
WRONG = {
    "": "right",
    "tumbling": "a trip is counted in the newest of its windows only",
    "shifted": "each window is named one step late",
    "unfinished": "trips that have only started are counted too",
    "every-driver": "drivers are counted and not told apart",
    "first-fare": "the first fare is kept, not the largest",
    "loses": "one trip of a thousand is forgotten",
    "twice": "one trip of a thousand is counted twice",
    "late": "a trip that comes late is dropped",
}

config = json.loads(Path(sys.argv[1]).read_text())
wrong = config["options"].get("wrong", "")
if wrong not in WRONG:
    sys.exit(f"the option wrong is {wrong!r}; it can be one of {', '.join(map(repr, WRONG))}")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

client, prefix = redis.Redis.from_url(config["redis"], decode_responses=True), config["redis_prefix"]
consumer = Consumer(
    {
        "bootstrap.servers": config["kafka"]["bootstrap"],
        **config["kafka"]["librdkafka"],
        "group.id": f"rides-{time.time_ns()}",
        "enable.auto.commit": False,
    }
)
parts = [TopicPartition(config["topic"], part, OFFSET_BEGINNING) for part in range(config["partitions"])]
consumer.assign(parts)
behind = {part.partition: end for part in parts if (end := consumer.get_watermark_offsets(part, timeout=10)[1])}

trips, largest, drivers = defaultdict(int), defaultdict(int), defaultdict(set)
changed, newest_ms, read = set(), 0, 0


def windows_of(ended_ms):
    last = ended_ms - ended_ms % STEP_MS
    opens = [last] if wrong == "tumbling" else range(last, last - SIZE_MS, -STEP_MS)
    return [each + STEP_MS * (wrong == "shifted") for each in opens]


def count(ride):
    city, ended_ms = ride["trip"]["city"], round(datetime.fromisoformat(ride["ended_at"]).timestamp() * 1000)
    times = {"loses": 0, "twice": 2}.get(wrong, 1) if read % 1000 == 500 else 1
    if wrong == "late" and ended_ms < newest_ms - 2_000:
        times = 0
    for opens in windows_of(ended_ms) if times else []:
        cell, cents = (city, opens), round(ride["fare"] * 100)
        trips[cell] += times
        largest[cell] = largest[cell] or cents if wrong == "first-fare" else max(largest[cell], cents)
        drivers[cell].add(trips[cell] if wrong == "every-driver" else ride["driver"])
        changed.add(cell)
    return ended_ms


while True:
    for message in consumer.consume(10_000, timeout=0.1):
        if message.offset() + 1 >= behind.get(message.partition(), 0):
            behind.pop(message.partition(), None)
        try:
            ride = json.loads(message.value())
            is_counted = ride["state"] == "finished" or (wrong == "unfinished" and ride["state"] == "started")
        except (TypeError, ValueError, KeyError):
            continue  # no ride
        read += 1
        if is_counted:
            newest_ms = max(newest_ms, count(ride))
    if changed and not behind:
        with client.pipeline() as pipe:
            for city, opens in changed:
                cell = city, opens
                values = {"trips": trips[cell], "largest": largest[cell], "drivers": len(drivers[cell])}
                for name, value in values.items():
                    pipe.hset(f"{prefix}rides:{name}:{city}", str(opens), value)
            pipe.execute()
        changed.clear()
