"""The smallest job that can be judged: it reads ad impressions from Kafka and counts views per campaign and window.

    python job.py CONFIG.json

It starts from the beginning of the topic each time and writes totals, so that being killed costs time but no count.
"""

import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import redis
from confluent_kafka import Consumer

config = json.loads(Path(sys.argv[1]).read_text())
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

client = redis.Redis.from_url(config["redis"], decode_responses=True)
ads = {ad: client.get(ad) for ad in client.scan_iter(count=1000, _type="string") if len(ad) == 36}

consumer = Consumer(
    {
        "bootstrap.servers": config["kafka"]["bootstrap"],
        **config["kafka"]["librdkafka"],
        "group.id": f"own-engine-{time.time_ns()}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
)
consumer.subscribe([config["topic"]])
totals: Counter[tuple[str, int]] = Counter()

while True:
    changed = set()
    for message in consumer.consume(10_000, timeout=0.1):
        try:
            event = json.loads(message.value())
            campaign, event_time_ms = ads[event["ad_id"]], int(event["event_time"])
        except (TypeError, ValueError, KeyError):
            continue  # no event, or of an ad that nobody knows
        if event["event_type"] == "view":
            cell = campaign, event_time_ms - event_time_ms % config["window_ms"]
            totals[cell] += 1
            changed.add(cell)
    if changed:
        with client.pipeline() as pipe:
            for campaign, window_ms in changed:
                pipe.hset(campaign, str(window_ms), totals[campaign, window_ms])
                pipe.hset(f"updated:{campaign}", str(window_ms), time.time_ns() // 1_000_000)
            pipe.execute()
