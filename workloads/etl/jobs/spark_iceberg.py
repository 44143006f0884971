"""The Spark job whose rows go to an Iceberg table, in three ways.

    python spark_iceberg.py CONFIG.json

`merge` inserts the rows whose event the table does not have. `native` is Iceberg's own sink (`toTable`). `append`
appends each batch.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from workloads.etl.jobs.spark_rows import COLUMNS, HOUR, ID, TABLE, Batches, Sink, main
from workloads.jobs.run_config import Config
from workloads.jobs.spark_table_sinks import Native

CATALOG, NEW = "spark.sql.catalog.lake", "new_rows"
NAME = f"lake.clean.{TABLE}"


def create(session: SparkSession, config: Config) -> None:
    """Spark sets up a catalog when it is used first, so its folder can be set now."""
    session.conf.set(f"{CATALOG}.type", "hadoop")
    session.conf.set(f"{CATALOG}.warehouse", config["folder"])
    session.sql(f"CREATE TABLE IF NOT EXISTS {NAME} ({COLUMNS}) USING iceberg PARTITIONED BY ({HOUR})")


def native(writer: DataStreamWriter, _: Config) -> StreamingQuery:
    return writer.option("fanout-enabled", "true").toTable(NAME)  # rows of a batch are not sorted by their hours


def append(batch: DataFrame, _: int, config: Config) -> None:  # noqa: ARG001
    batch.writeTo(NAME).append()


def merge(batch: DataFrame, _: int, config: Config) -> None:  # noqa: ARG001
    batch.createOrReplaceTempView(NEW)
    batch.sparkSession.sql(
        f"MERGE INTO {NAME} AS kept USING {NEW} AS new ON kept.{ID} = new.{ID} AND kept.{HOUR} = new.{HOUR} "
        "WHEN NOT MATCHED THEN INSERT *"
    )


SINKS: dict[str, Sink] = {"merge": Batches((merge,)), "native": Native(native), "append": Batches((append,))}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], SINKS, create))
