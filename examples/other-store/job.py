"""Views of ads per campaign and window in SQLite: Kafka -> Python -> SQLite.

    python job.py RUN.json

Counts are added to rows. The offsets are written in the same transaction, so that a restart continues where the counts
are.
"""

import json
import signal
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

run = json.loads(Path(sys.argv[1]).read_text())
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

client, prefix = redis.Redis.from_url(run["redis"], decode_responses=True), run["redis_prefix"]
keys = list(client.scan_iter(f"{prefix}*", count=1000, _type="string"))
ads = dict(zip([key.removeprefix(prefix) for key in keys], client.mget(keys), strict=True))

database = sqlite3.connect(f"{run['folder']}/counts.db")
database.executescript(
    """
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS ad_counts (campaign TEXT, opens INTEGER, views INTEGER, PRIMARY KEY (campaign, opens));
    CREATE TABLE IF NOT EXISTS offsets (part INTEGER PRIMARY KEY, next INTEGER);
    """
)
ADD = "INSERT INTO ad_counts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET views = views + excluded.views"
SET = "INSERT INTO offsets VALUES (?, ?) ON CONFLICT DO UPDATE SET next = excluded.next"

done = dict(database.execute("SELECT part, next FROM offsets"))
kafka = {"bootstrap.servers": run["kafka"]["bootstrap"], **run["kafka"]["librdkafka"]}
consumer = Consumer({**kafka, "group.id": f"{run['topic']}-sqlite", "enable.auto.commit": False})
consumer.assign([TopicPartition(run["topic"], n, done.get(n, OFFSET_BEGINNING)) for n in range(run["partitions"])])

while True:
    counts: Counter[tuple[str, int]] = Counter()
    offsets = {}
    for message in consumer.consume(10_000, timeout=0.2):
        if message.error():
            continue
        offsets[message.partition()] = message.offset() + 1
        try:
            event = json.loads(message.value())
            campaign, time_ms = ads[event["ad_id"]], int(event["event_time"])
        except (TypeError, ValueError, KeyError):
            continue  # no event, or of an unknown ad
        if event["event_type"] == "view":
            counts[campaign, time_ms - time_ms % run["window_ms"]] += 1
    with database:
        database.executemany(ADD, [(*cell, views) for cell, views in counts.items()])
        database.executemany(SET, offsets.items())
