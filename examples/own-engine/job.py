"""The smallest job that can be judged: it reads ad impressions from Kafka and counts views per campaign and window.

    python job.py CONFIG.json

It starts from the beginning of the topic each time and writes totals, the first ones when it is where the topic ended:
being killed costs time, but no count, and no count is ever seen to go back.
"""

import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

config = json.loads(Path(sys.argv[1]).read_text())
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

client, prefix = redis.Redis.from_url(config["redis"], decode_responses=True), config["redis_prefix"]
keys = [key for key in client.scan_iter(f"{prefix}*", count=1000, _type="string") if len(key) == len(prefix) + 36]
ads = {key.removeprefix(prefix): client.get(key) for key in keys}

consumer = Consumer(
    {
        "bootstrap.servers": config["kafka"]["bootstrap"],
        **config["kafka"]["librdkafka"],
        "group.id": f"{config['topic']}-own-engine",
        "enable.auto.commit": False,
    }
)
parts = [TopicPartition(config["topic"], part, OFFSET_BEGINNING) for part in range(config["partitions"])]
consumer.assign(parts)
ends = {part.partition: consumer.get_watermark_offsets(part, timeout=10)[1] for part in parts}
behind = {part for part, end in ends.items() if end > 0}
totals: Counter[tuple[str, int]] = Counter()
changed = set()

while True:
    for message in consumer.consume(10_000, timeout=0.1):
        if message.offset() + 1 >= ends.get(message.partition(), 0):
            behind.discard(message.partition())
        try:
            event = json.loads(message.value())
            campaign, event_time_ms = ads[event["ad_id"]], int(event["event_time"])
        except (TypeError, ValueError, KeyError):
            continue  # no event, or of an ad that nobody knows
        if event["event_type"] == "view":
            cell = campaign, event_time_ms - event_time_ms % config["window_ms"]
            totals[cell] += 1
            changed.add(cell)
    if changed and not behind:
        with client.pipeline() as pipe:
            for campaign, window_ms in changed:
                pipe.hset(f"{prefix}{campaign}", str(window_ms), totals[campaign, window_ms])
                pipe.hset(f"{prefix}updated:{campaign}", str(window_ms), time.time_ns() // 1_000_000)
            pipe.execute()
        changed.clear()
