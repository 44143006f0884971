"""The Spark job whose counts go to a folder of Parquet files, in two ways.

    python spark_parquet.py CONFIG.json

`native` is Spark's own file sink. `append` appends the counts of each batch, and readers add them up.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from workloads.ad_impressions.jobs.spark_tables import TABLE, Batches, Sink, main
from workloads.jobs.run_config import Config
from workloads.jobs.spark_table_sinks import Native


def path(config: Config) -> str:
    return str(Path(config["folder"]) / TABLE)


def create(_: SparkSession, config: Config) -> None:
    Path(path(config)).mkdir(exist_ok=True)


def native(writer: DataStreamWriter, config: Config) -> StreamingQuery:
    return writer.format("parquet").start(path(config))


def append(batch: DataFrame, _: int, config: Config) -> None:
    batch.write.mode("append").parquet(path(config))


SINKS: dict[str, Sink] = {"native": Native(native), "append": Batches(append)}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], SINKS, create))
