"""The Spark job whose rows go to a Delta table, in four ways.

    python spark_delta.py CONFIG.json

`native` is Delta's own sink. `append` appends each batch. `append-txn` gives Delta the batch's number with it.
`two-appends` does so too, but appends the views of a batch first, and then its clicks and purchases.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from workloads.etl.jobs.spark_rows import COLUMNS, HOUR, TABLE, TYPE, Batches, Sink, main
from workloads.jobs.run_config import Config
from workloads.jobs.spark_table_sinks import Native


def path(config: Config) -> str:
    return str(Path(config["folder"]) / TABLE)


def create(session: SparkSession, config: Config) -> None:
    session.sql(f"CREATE TABLE IF NOT EXISTS delta.`{path(config)}` ({COLUMNS}) USING delta PARTITIONED BY ({HOUR})")


def native(writer: DataStreamWriter, config: Config) -> StreamingQuery:
    return writer.format("delta").start(path(config))


def append(batch: DataFrame, _: int, config: Config) -> None:
    batch.write.format("delta").mode("append").save(path(config))


def append_txn(batch: DataFrame, number: int, config: Config, application: str = "") -> None:
    writer = batch.write.format("delta").option("txnAppId", config["run"] + application).option("txnVersion", number)
    writer.mode("append").save(path(config))


def append_views(batch: DataFrame, number: int, config: Config) -> None:
    append_txn(batch.where(f"{TYPE} = 'view'"), number, config, "-views")


def append_others(batch: DataFrame, number: int, config: Config) -> None:
    append_txn(batch.where(f"{TYPE} <> 'view'"), number, config, "-others")


SINKS: dict[str, Sink] = {
    "append-txn": Batches((append_txn,)),
    "native": Native(native),
    "append": Batches((append,)),
    "two-appends": Batches((append_views, append_others)),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], SINKS, create))
