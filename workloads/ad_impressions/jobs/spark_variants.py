"""The Spark job with its stages done in other ways, for `streamgauge bench --spark`: what docs/tuning.md compares.

    python spark_variants.py CONFIG.json

The options streamgauge.parser and streamgauge.writer choose. These ways are tried and not used: they are slower than
those of the job, or (`substring`, `get_json_object`) wrong for some records.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.ad_impressions.jobs import spark
from workloads.ad_impressions.jobs.spark_parse import BEST, PARSERS, Parser
from workloads.ad_impressions.jobs.spark_record import EVENT, FIELDS
from workloads.jobs import spark_stream
from workloads.jobs.orders import OWN_OPTION, Config, read_orders
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import connect, updated_key
from workloads.jobs.redis_sinks import absolute, by_key

WRITER_OPTION = OWN_OPTION + "writer"
READ_ONLY = "read only"

# A view exactly as Yahoo writes it, with nothing in a value that means something in JSON, so that it can't be anything
# else. Possessive, so that another record is given up at once; the letters one by one, because Java looks up a list of
# letters in a table and asks for ranges one after the other.
_UUID, _WORD = "[0123456789abcdef-]{36}+", "[abcdefghijklmnopqrstuvwxyz-]++"
_VIEW = (
    rf'\A\{{"user_id": "{_UUID}", "page_id": "{_UUID}", "ad_id": "({_UUID})", "ad_type": "{_WORD}", '
    rf'"event_type": "view", "event_time": "([0123456789]++)", "ip_address": "[0123456789.]++"\}}\z'
)


def get_json_object(records: DataFrame) -> DataFrame:
    return _views(records.select(*[F.get_json_object(_text(), f"$.{name}").alias(name) for name in FIELDS]))


def substring(records: DataFrame) -> DataFrame:
    """What stands between the field's name and the next quote."""
    return _views(records.select(*[_after(name).alias(name) for name in FIELDS]))


def pattern(records: DataFrame) -> DataFrame:
    """A view of exactly Yahoo's shape is taken apart by one match, any other record that could be one is parsed."""
    maybe = records.where(_text().contains("view") | _text().contains("\\"))
    # JSON that matters begins with {, so that no record can be taken for a match.
    found = maybe.select("value", F.regexp_replace(_text(), _VIEW, '#$1"$2').alias("found"))
    matched = _text().startswith("{") & F.col("found").startswith("#")
    event = F.struct(
        F.substring("found", 2, 36).alias("ad_id"),
        F.lit("view").alias("event_type"),
        F.substring("found", 39, 20).alias("event_time"),
    )
    parsed = F.from_json(_text(), EVENT)
    return _views(found.select(F.inline(F.array(F.when(matched, event).otherwise(parsed)))))


def _text() -> Column:
    return F.col("value").cast("string")


def _after(name: str) -> Column:
    return F.substring_index(F.substring_index(_text(), f'"{name}": "', -1), '"', 1)


def _views(events: DataFrame) -> DataFrame:
    return events.where(F.col("event_type") == "view").select("ad_id", "event_time")


ALL_PARSERS: Mapping[str, Parser] = {
    **PARSERS,
    "get_json_object": get_json_object,
    "substring": substring,
    "pattern": pattern,
}


def arrow_writer(config: Config) -> spark_stream.Writer:
    """Cells come to the driver as one Arrow table."""
    client = connect(config["redis"])

    def write(counts: DataFrame, batch: int) -> None:
        table = counts.toArrow()
        absolute(client, batch, by_key(zip(*(column.to_pylist() for column in table.columns), strict=True)))

    return write


def partitions_writer(config: Config) -> spark_stream.Writer:
    """Each partition's worker writes its own cells: no way through the driver, but a Python worker and a connection."""
    write_partition = partial(_write_partition, config["redis"])
    return lambda counts, _batch: counts.foreachPartition(write_partition)


def _write_partition(url: str, rows: Iterable[Row]) -> None:
    with connect(url) as client:
        absolute(client, 0, by_key((row["campaign_id"], row["window_start_ms"], row["count"]) for row in rows))


def single_cells_writer(config: Config) -> spark_stream.Writer:
    """A command for each cell instead of one for each campaign, still in one pipeline."""
    client = connect(config["redis"])

    def write(counts: DataFrame, _batch: int) -> None:
        pipeline = client.pipeline(transaction=False)
        for campaign, window, count in spark.rows_of(counts):
            pipeline.hset(campaign, str(window), str(count))
            pipeline.hset(updated_key(campaign), str(window), str(now_ms()))
        pipeline.execute()

    return write


WRITERS: Mapping[str, Callable[[Config], spark_stream.Writer]] = {
    "collect": spark.make_writer,
    "arrow": arrow_writer,
    "partitions": partitions_writer,
    "single cells": single_cells_writer,
}


def read_only(session: SparkSession, config: Config) -> StreamingQuery:
    """The floor: every record is fetched and its length is looked at."""

    def write(records: DataFrame, _batch: int) -> None:
        records.agg(F.sum(F.length("value"))).collect()

    return spark_stream.start(spark_stream.read_records(session, config), config, write)


def main(config_path: str) -> int:
    config = read_orders(config_path)
    options = config["options"]
    name = options.get(spark.PARSER_OPTION, BEST)
    if name == READ_ONLY:
        return spark_stream.run(config, lambda session: read_only(session, config))
    writer = WRITERS[options.get(WRITER_OPTION, "collect")](config)
    return spark_stream.run(config, lambda session: spark.start_query(session, config, ALL_PARSERS[name], writer))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
