"""The Spark job: ad impressions from Kafka, counted per campaign and window, into Redis.

    python spark.py CONFIG.json

The query has two shapes, and the sink implies which. `totals` is the usual one: an event-time window with a watermark
in Spark's state, whose totals are written as they change. `deltas` has no state: each batch counts its own events and
adds them to Redis, and no event is ever too late. With the same checkpoint the job continues where it was.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.id_sums import ID_RANGE, PRIME
from workloads.ad_impressions.jobs.question import (
    AD,
    AD_KEY,
    CAMPAIGN,
    FIELD,
    NOTHING,
    VIEW,
    asked_key,
    chosen_more,
    counted,
)
from workloads.ad_impressions.jobs.spark_parse import BEST, ID, PARSERS, Parser, of_types, with_ids
from workloads.ad_impressions.jobs.spark_record import FIELDS
from workloads.ad_impressions.jobs.spark_summed_sinks import SUMMED_SINKS, Summed
from workloads.jobs import spark_history, spark_stream
from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.progress_log import tell_settings
from workloads.jobs.redis_results import connect
from workloads.jobs.redis_sinks import RETRYING, SINKS, write_batch
from workloads.jobs.run_config import OWN_OPTION, Config, read_config
from workloads.jobs.spark_history import Part
from workloads.jobs.spark_stream import Writer, read_records, start

YEAR_10000_MS = 253_402_300_800_000
PARSER_OPTION = OWN_OPTION + "parser"

# Additions of a later version: operators before the counting, without and with a state, and one after it.
SHUFFLE, DISTINCT, FILTER = "shuffle", "distinct", "filter"
SHUFFLED_INTO = 3
MORE = (FIELD, SHUFFLE, DISTINCT, FILTER)


def known_views(views: DataFrame, ads: dict[str, str], by: str = CAMPAIGN) -> DataFrame:
    """Return views of known ads as (campaign_id, event_time), with their ids if present. A record that is no event
    becomes null and is filtered out.
    """
    ids = [ID] if ID in views.columns else []
    rows = pa.table({"ad_id": list(ads.keys()), "campaign_id": list(ads.values())})
    campaigns = views.sparkSession.createDataFrame(rows)
    key = F.concat(F.lit(AD_KEY), "ad_id").alias("campaign_id") if by == AD else F.col("campaign_id")
    return (
        views.select("ad_id", F.col("event_time").try_cast("long").alias("event_time_ms"), *ids)
        .where(F.col("event_time_ms").between(0, YEAR_10000_MS - 1))
        .join(F.broadcast(campaigns), "ad_id")
        .select(key, F.timestamp_millis("event_time_ms").alias("event_time"), *ids)
    )


def views_of(
    parts: Sequence[Part], parse: Parser, ads: dict[str, str], by: str = CAMPAIGN, watermark: str = ""
) -> DataFrame:
    """Return the union of all parts of the input, each with its own watermark, if there is one."""
    found = []
    for records, counts in parts:
        views = known_views(parse(records), ads, by)
        views = views if counts is None else views.where(counts)
        found.append(views.withWatermark("event_time", watermark) if watermark else views)
    return reduce(DataFrame.union, found)


def count_views(views: DataFrame, window_ms: int, more: str = NOTHING) -> DataFrame:
    window = F.window("event_time", f"{window_ms} milliseconds")
    cells = views.groupBy("campaign_id", window)
    sums = sums_of_ids() if ID in views.columns else ()
    newest = (F.max("event_time").alias("newest"),) if more == FIELD else ()
    counts = cells.agg(F.count("*").alias("count"), *sums, *newest)
    beside = [name for name in ("s1", "s2", "newest") if name in counts.columns]
    found = counts.select("campaign_id", F.unix_millis("window.start").alias("window_start_ms"), "count", *beside)
    return found.where(F.col("count") > 0) if more == FILTER else found


def with_more(parse: Parser, more: str) -> Parser:
    """Add an operator before the counting. Records are unique, thus it does not change the result."""
    if more == SHUFFLE:
        return lambda records: parse(records).repartition(SHUFFLED_INTO)
    if more == DISTINCT:
        return lambda records: parse(records.dropDuplicates(["partition", "offset"]))
    return parse


def sums_of_ids() -> tuple[Column, Column]:
    """Return the sums without the final modulus: decimals have room for the ids, and the squares of the remainders are
    small.
    """
    rest = F.col(ID) % PRIME
    return F.sum(F.col(ID).cast("decimal(15,0)")).alias("s1"), F.sum(rest * rest % PRIME).alias("s2")


def make_writer(config: Config) -> Writer:
    """Return the writer of batches. It collects the cells to the driver and writes them to Redis in one pipeline,
    because they are few.
    """
    client = connect(config, retries=config["sink"] in RETRYING)
    crash_points = CrashPoints(Path(config["crash_path"]))

    def write(counts: DataFrame, batch: int) -> None:
        write_batch(SINKS[config["sink"]], client, batch, rows_of(counts), crash_points)

    def write_summed(counts: DataFrame, batch: int) -> None:
        write_batch(SUMMED_SINKS[config["sink"]], client, batch, summed_rows_of(counts), crash_points)

    return write_summed if config["checksum"] else write


def rows_of(counts: DataFrame) -> Iterable[tuple[str, int, int]]:
    return ((row["campaign_id"], row["window_start_ms"], row["count"]) for row in counts.collect())


def summed_rows_of(counts: DataFrame) -> Iterable[tuple[str, int, Summed]]:
    for row in counts.collect():
        summed = Summed(row["count"], int(row["s1"]) % ID_RANGE, row["s2"] % PRIME)
        yield row["campaign_id"], row["window_start_ms"], summed


def start_query(session: SparkSession, config: Config, parse: Parser, write: Writer) -> StreamingQuery:
    return start_over([Part(read_records(session, config))], config, parse, write)


def start_over(
    parts: Sequence[Part], config: Config, parse: Parser, write: Writer, *, ends: bool = False
) -> StreamingQuery:
    """Start the query. `totals` counts in the stream, over all batches; `deltas` counts within each batch."""
    window_ms, by, more = config["window_ms"], asked_key(config), chosen_more(config, MORE)
    watermark = f"{config['watermark_ms']} milliseconds" if config["sink"] == "absolute" else ""
    views = views_of(parts, with_more(parse, more), read_ads(connect(config)), by, watermark)
    if config["sink"] == "absolute":
        return start(count_views(views, window_ms, more), config, write, ends=ends)
    return start(views, config, lambda batch, number: write(count_views(batch, window_ms, more), number), ends=ends)


def chosen_parser(config: Config) -> str:
    name: str = config["options"].get(PARSER_OPTION, BEST)
    if name not in PARSERS:
        sys.exit(f"{PARSER_OPTION} is {name!r}; give one of {', '.join(PARSERS)}.")
    return name


def own_settings(config: Config) -> dict[str, str]:
    return {**spark_stream.own_settings(config), PARSER_OPTION: chosen_parser(config)}


def main(config_path: str) -> int:
    config = read_config(config_path)
    parse = with_ids if config["checksum"] else PARSERS[chosen_parser(config)]
    if (types := counted(config)) != (VIEW,):
        parse = of_types(types)
    tell_settings(config["progress_path"], own_settings(config))

    def start_both(parts: Sequence[Part], own: Config, ends: bool) -> StreamingQuery:
        return start_over(parts, own, parse, make_writer(own), ends=ends)

    before, begin = spark_history.queries(config, start_both, FIELDS)
    return spark_stream.run(config, begin, before=before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
