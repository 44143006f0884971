"""The shared part of the jobs that clean events, enrich them, and write each as a row of a partitioned table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import number_of_key
from workloads.jobs.spark_stream import read_records, run_query, start

ADS = "ads"  # the hash in Redis with the campaign of each ad
TABLE = "events"
ID, HOUR, TIME, CAMPAIGN, TYPE = "event_id", "hour", "event_time", "campaign_id", "event_type"
COLUMNS = f"{ID} BIGINT, {TIME} TIMESTAMP, {CAMPAIGN} STRING, {TYPE} STRING, {HOUR} TIMESTAMP"
EVENT = "ad_id string, event_type string, event_time string"
YEAR_10000_MS = 253_402_300_800_000

Step = Callable[[DataFrame, int, Config], None]


class Batches(NamedTuple):
    """Writes each batch by functions of ours (`foreachBatch`), one after the other."""

    steps: tuple[Step, ...]


class Native(NamedTuple):
    """Spark's own sink of the format."""

    begin: Callable[[DataStreamWriter, Config], StreamingQuery]


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
        writer = rows.writeStream.outputMode("append").option("checkpointLocation", config["checkpoint"])
        return sink.begin(writer.trigger(processingTime=config["trigger"]), config)

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


def by_steps(steps: tuple[Step, ...], config: Config) -> Callable[[DataFrame, int], None]:
    """Return a writer with crash points before, between and after its steps."""
    points = CrashPoints(Path(config["crash_path"]))

    def write(batch: DataFrame, number: int) -> None:
        batch = batch.persist()
        if batch.isEmpty():  # no write, so no crash points
            return
        points.at("c1", number)
        for done, step in enumerate(steps):
            if done:
                points.at("c2", number)
            step(batch, number, config)
        points.at("c3", number)
        points.at("c4", number)
        batch.unpersist()

    return write
