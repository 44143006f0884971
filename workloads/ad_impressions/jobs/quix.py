"""The Quix Streams job: ad impressions from Kafka, counted per campaign and window, into Redis.

    python quix.py CONFIG.json

It is exactly once as Quix Streams defines it: offsets, state and the records between its two halves are one
transaction. Redis is outside of it. Therefore totals are written only where they exceed the stored ones: after a crash
the state goes back to its last commit and counts up again, which must not be visible in the results.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import redis
from confluent_kafka import Consumer, KafkaException, TopicPartition
from quixstreams import Application
from quixstreams.kafka import ConnectionConfig
from quixstreams.sinks.base import BatchingSink, SinkBatch

from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.reference import is_time, parse
from workloads.jobs.progress_log import ProgressLog, now_ms, tell_settings
from workloads.jobs.redis_results import connect, updated_key
from workloads.jobs.run_config import Config, read_config

OWN_TOPICS = ".quix"  # the harness deletes topics that have the run's topic and a dot in their names
COMMIT_EVERY_S = 0.25
POLL_S = 0.05  # an idle consumer delays the commit by this
POLL_EVERY_S = 0.2
ANSWER_WITHIN_S = 5.0

WRITE_IF_HIGHER = """
if tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0) < tonumber(ARGV[2]) then
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
    redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
end
"""

Offsets = dict[int, int]  # by partition
View = tuple[str, int]  # campaign, event time in ms


class HighestTotals(BatchingSink):  # type: ignore[misc]
    """A sink that is called with the changes of a partition since the last checkpoint, just before the next one is
    committed.
    """

    def __init__(self, client: redis.Redis) -> None:
        super().__init__()
        self._client = client
        self._write = client.register_script(WRITE_IF_HIGHER)

    def write(self, batch: SinkBatch) -> None:
        newest = {(item.key, item.value["start"]): item.value["value"] for item in batch}
        at_ms = now_ms()
        pipeline = self._client.pipeline(transaction=False)
        for (campaign, window_ms), total in newest.items():
            self._write([campaign, updated_key(campaign)], [window_ms, total, at_ms], pipeline)
        pipeline.execute()


class Late:
    """Counts the views that came after their window was closed, since this start."""

    count = 0

    def __call__(self, *_: object) -> bool:
        self.count += 1
        return False  # prevents a log line for each


def views_of(ads: Mapping[str, str], value: bytes | None) -> Iterator[View]:
    """Yield the view of a record, if it is one that counts."""
    event = parse(value)
    if event and event.event_type == "view" and event.ad_id in ads and is_time(event.event_time):
        yield ads[event.ad_id], int(event.event_time)


class Progress(threading.Thread):
    """Reports the job's progress by committed offsets.

    A committed offset of the run's topic only means that its views are in the topic between the two halves. Therefore
    such offsets are reported once everything that was in that topic by then is committed, too.
    """

    def __init__(self, config: Config, between: str, late: Late) -> None:
        super().__init__(name="progress", daemon=True)
        # They only read offsets, and never join the group. (The admin client of librdkafka 2.12 dies of a coordinator
        # that has moved.)
        asking = {**connection(config), "group.id": group_of(config)}
        self._all = Consumer({**asking, "isolation.level": "read_uncommitted"})
        self._stable = Consumer({**asking, "isolation.level": "read_committed"})
        self._source = [TopicPartition(config["topic"], each) for each in range(config["partitions"])]
        # A topic of one partition needs no second one.
        self._between = [TopicPartition(between, each) for each in range(config["partitions"] if between else 0)]
        self._late = late
        path = Path(config["progress_path"])
        self._batch = path.read_bytes().count(b'"at"') if path.exists() else 0
        self._log = ProgressLog(config["progress_path"])
        self._told: Offsets = {}
        self._wanted: Offsets = {}
        self._wanted_between: Offsets = {}

    def run(self) -> None:
        while True:
            with suppress(KafkaException):  # Kafka is down: there is nothing to report
                self._poll()
            time.sleep(POLL_EVERY_S)

    def _poll(self) -> None:
        source, done = self._committed(self._source), self._committed(self._between)
        stable, ends = self._ends(self._stable), self._ends(self._all)
        # If no transaction is open, the last record is the marker of the last one's end, which no consumer reads.
        last = {each: end - 1 if end == stable[each] else end for each, end in ends.items()}
        if any(done.get(each, 0) < min(last[each], self._wanted_between.get(each, 0)) for each in ends):
            return
        if self._wanted != self._told:
            self._tell(self._wanted)
        self._wanted, self._wanted_between = source, ends

    def _committed(self, places: list[TopicPartition]) -> Offsets:
        found = self._stable.committed(places, timeout=ANSWER_WITHIN_S) if places else []
        return {place.partition: place.offset for place in found if place.offset >= 0}

    def _ends(self, consumer: Consumer) -> Offsets:
        return {place.partition: _end(consumer, place) for place in self._between}

    def _tell(self, offsets: Offsets) -> None:
        rows = sum(offsets.values()) - sum(self._told.values())
        self._log.write(batch=self._batch, rows=rows, offsets=offsets, dropped=self._late.count)
        self._batch += 1
        self._told = offsets


def _end(consumer: Consumer, place: TopicPartition) -> int:
    answer = consumer.get_watermark_offsets(place, timeout=ANSWER_WITHIN_S)
    if answer is None:
        raise KafkaException(f"{place} has no answer within {ANSWER_WITHIN_S} s")
    return answer[1]


def connection(config: Config) -> dict[str, Any]:
    return {"bootstrap.servers": config["kafka"]["bootstrap"], **config["kafka"]["librdkafka"]}


def group_of(config: Config) -> str:
    return f"{config['topic']}{OWN_TOPICS}"


def application(config: Config) -> Application:
    group = group_of(config)
    settings: dict[str, Any] = {
        "consumer_group": group,
        "state_dir": config["checkpoint"],
        "processing_guarantee": "exactly-once",
        "auto_offset_reset": "earliest",
        "commit_interval": COMMIT_EVERY_S,
        "consumer_poll_timeout": POLL_S,
        "loglevel": "WARNING",
        # After a restart it is the same member and the same producer: the group does not wait for the session timeout
        # of the killed one, whose open transaction is aborted at once.
        "consumer_extra_config": {"group.instance.id": group},
        "producer_extra_config": {"transactional.id": group},
    }
    tell_settings(config["progress_path"], {key: str(value) for key, value in settings.items()})
    return Application(ConnectionConfig.from_librdkafka_dict(connection(config)), **settings)


def main(config_path: str) -> None:
    config = read_config(config_path)
    client = connect(config)
    ads, late = read_ads(client), Late()
    app = application(config)
    records = app.dataframe(app.topic(config["topic"], value_deserializer="bytes"))
    views = records.apply(lambda value: views_of(ads, value), expand=True)
    # The event time is set only here, because a broker refuses a record that is dated more than an hour ahead.
    by_campaign = views.group_by(lambda view: view[0], name="by-campaign", key_serializer="str", key_deserializer="str")
    timed = by_campaign.set_timestamp(lambda view, *_: view[1])
    windows = timed.tumbling_window(config["window_ms"], grace_ms=config["watermark_ms"], on_late=late)
    windows.count().current().sink(HighestTotals(client))
    between = [topic.name for topic in by_campaign.topics if topic.name != config["topic"]]
    Progress(config, next(iter(between), ""), late).start()
    app.run()


if __name__ == "__main__":
    main(sys.argv[1])
