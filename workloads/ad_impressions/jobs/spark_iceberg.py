"""The Spark job whose counts go to an Iceberg table, in three ways.

    python spark_iceberg.py CONFIG.json

`native` is Iceberg's own sink (`toTable`). `append` appends the counts of each batch, and readers add them up.
`merge-totals` replaces the row of each window by its total.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from workloads.ad_impressions.jobs.spark_tables import CAMPAIGN, OPENS, TABLE, VIEWS, Batches, Sink, main
from workloads.jobs.run_config import Config
from workloads.jobs.spark_table_sinks import Native

CATALOG, UPDATES = "spark.sql.catalog.lake", "updates"
NAME = f"lake.counts.{TABLE}"


def create(session: SparkSession, config: Config) -> None:
    """Spark sets up a catalog when it is used first, so its folder can be set now."""
    session.conf.set(f"{CATALOG}.type", "hadoop")
    session.conf.set(f"{CATALOG}.warehouse", config["folder"])
    columns = f"{CAMPAIGN} STRING, {OPENS} TIMESTAMP, {VIEWS} BIGINT"
    session.sql(f"CREATE TABLE IF NOT EXISTS {NAME} ({columns}) USING iceberg")


def native(writer: DataStreamWriter, _: Config) -> StreamingQuery:
    return writer.toTable(NAME)


def append(batch: DataFrame, _: int, config: Config) -> None:  # noqa: ARG001
    batch.writeTo(NAME).append()


def merge_totals(batch: DataFrame, _: int, config: Config) -> None:  # noqa: ARG001
    batch.createOrReplaceTempView(UPDATES)
    batch.sparkSession.sql(
        f"MERGE INTO {NAME} AS kept USING {UPDATES} AS updates "
        f"ON kept.{CAMPAIGN} = updates.{CAMPAIGN} AND kept.{OPENS} = updates.{OPENS} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


SINKS: dict[str, Sink] = {
    "native": Native(native),
    "append": Batches(append),
    "merge-totals": Batches(merge_totals, totals=True),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], SINKS, create))
