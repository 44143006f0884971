"""The shared part of the jobs that clean events, enrich them, and write each as a row of a partitioned table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import number_of_key
from workloads.jobs.spark_stream import read_records, run_query, start
from workloads.jobs.spark_table_sinks import Native, Step, by_sink, by_steps

ADS = "ads"  # the hash in Redis with the campaign of each ad
TABLE = "events"
ID, HOUR, TIME, CAMPAIGN, TYPE = "event_id", "hour", "event_time", "campaign_id", "event_type"
COLUMNS = f"{ID} BIGINT, {TIME} TIMESTAMP, {CAMPAIGN} STRING, {TYPE} STRING, {HOUR} TIMESTAMP"
EVENT = "ad_id string, event_type string, event_time string"
YEAR_10000_MS = 253_402_300_800_000


class Batches(NamedTuple):
    """Writes each batch by functions of ours (`foreachBatch`), one after the other."""

    steps: tuple[Step, ...]


Sink = Batches | Native


def main(config_path: str, sinks: Mapping[str, Sink], create: Callable[[SparkSession, Config], None]) -> int:
    """Run the job. `create` makes the table if it does not exist."""

    def begin(session: SparkSession, config: Config) -> StreamingQuery:
        create(session, config)
        ads = cast(dict[str, str], connect(config).hgetall(ADS))
        rows = rows_of(read_records(session, config), ads, config["window_ms"])
        sink = sinks[config["sink"]]
        if isinstance(sink, Batches):
            return start(rows, config, by_steps(sink.steps, config), mode="append")
        return by_sink(rows, sink, config)

    return run_query(config_path, begin)


def rows_of(records: DataFrame, ads: Mapping[str, str], hour_ms: int) -> DataFrame:
    """Clean and enrich. A record is dropped if it is no JSON object with an ad of the table, a type and a time."""
    campaigns = pa.table({"ad_id": list(ads.keys()), CAMPAIGN: list(ads.values())})
    # Through a generator, so that the optimizer does not parse a record once for each condition.
    events = records.select(
        number_of_key().alias(ID), F.inline(F.array(F.from_json(F.col("value").cast("string"), EVENT)))
    )
    time_ms = F.col(TIME).try_cast("bigint").alias("time_ms")
    clean = events.select(ID, "ad_id", TYPE, time_ms).where(
        F.col(TYPE).isNotNull() & F.col("time_ms").between(0, YEAR_10000_MS - 1)
    )
    known = clean.join(F.broadcast(records.sparkSession.createDataFrame(campaigns)), "ad_id")
    begins_ms = F.col("time_ms") - F.col("time_ms") % hour_ms
    return known.select(
        ID, F.timestamp_millis("time_ms").alias(TIME), CAMPAIGN, TYPE, F.timestamp_millis(begins_ms).alias(HOUR)
    )
