"""The Spark job whose counts go to a Delta table, in five ways.

    python spark_delta.py CONFIG.json

`native` is Delta's own sink. `append` appends the counts of each batch, and readers add them up. `append-txn` gives
Delta the batch's number with it. `merge-add` adds the counts to a row for each window. `merge-totals` replaces that row
by the window's total.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from workloads.ad_impressions.jobs.spark_tables import CAMPAIGN, OPENS, TABLE, VIEWS, Batches, Sink, main
from workloads.jobs.run_config import Config
from workloads.jobs.spark_table_sinks import Native

UPDATES = "updates"


def path(config: Config) -> str:
    return str(Path(config["folder"]) / TABLE)


def create(session: SparkSession, config: Config) -> None:
    columns = f"{CAMPAIGN} STRING, {OPENS} TIMESTAMP, {VIEWS} BIGINT"
    session.sql(f"CREATE TABLE IF NOT EXISTS delta.`{path(config)}` ({columns}) USING delta")


def native(writer: DataStreamWriter, config: Config) -> StreamingQuery:
    return writer.format("delta").start(path(config))


def append(batch: DataFrame, _: int, config: Config) -> None:
    batch.write.format("delta").mode("append").save(path(config))


def append_txn(batch: DataFrame, number: int, config: Config) -> None:
    writer = batch.write.format("delta").option("txnAppId", config["run"]).option("txnVersion", number)
    writer.mode("append").save(path(config))


def merge_add(batch: DataFrame, _: int, config: Config) -> None:
    merge(batch, config, f"kept.{VIEWS} + updates.{VIEWS}")


def merge_totals(batch: DataFrame, _: int, config: Config) -> None:
    merge(batch, config, f"updates.{VIEWS}")


def merge(batch: DataFrame, config: Config, value: str) -> None:
    batch.createOrReplaceTempView(UPDATES)
    batch.sparkSession.sql(
        f"MERGE INTO delta.`{path(config)}` AS kept USING {UPDATES} AS updates "
        f"ON kept.{CAMPAIGN} = updates.{CAMPAIGN} AND kept.{OPENS} = updates.{OPENS} "
        f"WHEN MATCHED THEN UPDATE SET {VIEWS} = {value} WHEN NOT MATCHED THEN INSERT *"
    )


SINKS: dict[str, Sink] = {
    "native": Native(native),
    "append": Batches(append),
    "append-txn": Batches(append_txn),
    "merge-add": Batches(merge_add),
    "merge-totals": Batches(merge_totals, totals=True),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], SINKS, create))
