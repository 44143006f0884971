"""The Spark job as a batch: it counts the topic from its beginning up to now, again whenever it has grown.

    python spark_batch.py CONFIG.json

The query is exactly that of spark.py, without watermark, state and checkpoint; see workloads/jobs/batches.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession

from workloads.ad_impressions.jobs import spark
from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.spark_parse import PARSERS, with_ids
from workloads.ad_impressions.jobs.spark_record import FIELDS
from workloads.jobs import batches, history_files, spark_history, spark_stream
from workloads.jobs.batches import Offsets
from workloads.jobs.progress_log import tell_settings
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config, read_config
from workloads.jobs.spark_history import Part

KAFKA_DEADLINE_S = 30


class TopicEnd:
    """The current end of the topic, by Kafka's client. Spark could find it only by reading everything."""

    def __init__(self, config: Config) -> None:
        self._name: str = config["topic"]
        self._consumer = Consumer(
            {
                "bootstrap.servers": config["kafka"]["bootstrap"],
                **config["kafka"]["librdkafka"],
                "group.id": f"streamgauge-{config['run']}-batch",  # the client requires it; nothing is ever committed
            }
        )

    def ends(self) -> Offsets:
        metadata = self._consumer.list_topics(self._name, timeout=KAFKA_DEADLINE_S).topics[self._name]
        if metadata.error:
            raise KafkaException(metadata.error)
        return {str(partition): self._end(partition) for partition in sorted(metadata.partitions)}

    def _end(self, partition: int) -> int:
        _, end = self._consumer.get_watermark_offsets(TopicPartition(self._name, partition), timeout=KAFKA_DEADLINE_S)
        return end


def parts_below(session: SparkSession, config: Config, ends: Offsets) -> Sequence[Part]:
    """Return the files, if there are any, and a range of the topic's offsets."""
    reader = spark_stream.of_topic(session.read, config).option("endingOffsets", json.dumps({config["topic"]: ends}))
    if not config["history"]:
        return [Part(reader.load())]
    return [spark_history.files(session.read, config), spark_history.kafka(reader, config)]


def main(config_path: str) -> None:
    told = batches.until_told()
    config: Config = read_config(config_path)
    tell_settings(config["progress_path"], spark.own_settings(config))
    parse = with_ids if config["checksum"] else PARSERS[spark.chosen_parser(config)]
    if config["history"]:
        history_files.refuse(config, FIELDS)
    ads, write = read_ads(connect(config)), spark.make_writer(config)
    session = spark_stream.make_session(config)

    def count(ends: Offsets, batch: int) -> None:
        views = spark.views_of(parts_below(session, config, ends), parse, ads)
        write(spark.count_views(views, config["window_ms"]), batch)

    batches.run(told, TopicEnd(config).ends, count, config["progress_path"])
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
