"""The query of the Flink job over bounded input: a range of the topic's offsets, and files with older events.

It is the query of flink_query.py without the condition on the watermark: a batch has all events before it counts the
first one, thus none is late, and each count is written once. The order of events does not matter either.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, TableEnvironment
from pyflink.table.udf import udf
from pyflink.util.java_utils import add_jars_to_context_class_loader

from workloads.ad_impressions.jobs.flink_query import counting, table
from workloads.ad_impressions.jobs.flink_range import ALL, conditions, range_options
from workloads.jobs.batches import Offsets
from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.flink_sql import AS_JSON, KAFKA_INSIDE, Column, client_settings, connection, source_options
from workloads.jobs.redis_sinks import absolute, write_batch
from workloads.jobs.run_config import Config

NEWER, OLDER = "newer", "older"
BYTES = f"{KAFKA_INSIDE}common.serialization.ByteArrayDeserializer"


class FlinkTopicEnd:
    """The current end of the topic, by the Kafka client in Flink's connector."""

    def __init__(self, config: Config) -> None:
        add_jars_to_context_class_loader([Path(jar).as_uri() for jar in config["jars"]])
        jvm = get_gateway().jvm
        properties = jvm.java.util.Properties()
        settings = {"key.deserializer": BYTES, "value.deserializer": BYTES, **client_settings(config)}
        for key, value in settings.items():
            properties.setProperty(key, value)
        self._name: str = config["topic"]
        self._consumer = getattr(jvm, f"{KAFKA_INSIDE}clients.consumer.KafkaConsumer")(properties)
        self._partition = getattr(jvm, f"{KAFKA_INSIDE}common.TopicPartition")

    def ends(self) -> Offsets:
        partitions = [
            self._partition(self._name, each.partition()) for each in self._consumer.partitionsFor(self._name)
        ]
        found = self._consumer.endOffsets(partitions)
        return {str(each.partition()): int(found[each]) for each in partitions}


def count(tables: TableEnvironment, config: Config, ends: Offsets, batch: int) -> None:
    """Count all records below these offsets."""
    for statement in input_of(config, ends):
        tables.execute_sql(statement)
    tables.create_temporary_function("to_redis", redis_writer(config, batch))
    tables.execute_sql(counting(config, ALL)).wait()
    tables.drop_temporary_function("to_redis")


def input_of(config: Config, ends: Offsets) -> list[str]:
    """Return the statements for the input table. Each batch makes it anew."""
    gone = [f"DROP TEMPORARY {kind} IF EXISTS {name}" for kind, name in (("VIEW", "impressions"), ("TABLE", NEWER))]
    newer = table(NEWER, config, {**source_options(config), **range_options(config, ends)})
    if not config["history"]:
        return [*gone, newer, f"CREATE TEMPORARY VIEW impressions AS SELECT * FROM {NEWER}"]
    options = {"connector": "filesystem", "path": Path(config["history"]["folder"]).as_uri(), **AS_JSON}
    older = [f"DROP TEMPORARY TABLE IF EXISTS {OLDER}", table(OLDER, config, options)]
    of_files, of_topic = conditions(config)
    union = f"SELECT * FROM {OLDER} WHERE {of_files} UNION ALL SELECT * FROM {NEWER} WHERE {of_topic}"
    return [*gone, newer, *older, f"CREATE TEMPORARY VIEW impressions AS {union}"]


def redis_writer(config: Config, batch: int) -> Any:
    """Return the function to_redis(campaign_id, window_start_ms, total), which writes totals."""
    place, crash_points = (config["redis"], config["redis_prefix"]), CrashPoints(Path(config["crash_path"]))

    def to_redis(campaigns: Column, window_starts_ms: Column, totals: Column) -> Column:
        rows = zip(campaigns.tolist(), window_starts_ms.tolist(), totals.tolist(), strict=True)
        write_batch(absolute, connection(*place), batch, rows, crash_points)
        return totals

    return udf(to_redis, result_type=DataTypes.BIGINT(), func_type="pandas")
