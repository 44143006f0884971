"""One of the Spark job's parsers in another Python: `python parse_in_python.py PARSER RECORDS.parquet ROWS.parquet`."""

from __future__ import annotations

import sys

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from workloads.ad_impressions.jobs.spark_parse import PARSERS


def make_session() -> SparkSession:
    quick_start = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    builder = SparkSession.builder.master("local[1]").config("spark.driver.extraJavaOptions", quick_start)
    for key, value in {"ui.enabled": "false", "ui.showConsoleProgress": "false", "log.level": "ERROR"}.items():
        builder = builder.config(f"spark.{key}", value)
    return builder.getOrCreate()


def main(parser: str, records: str, rows: str) -> None:
    session = make_session()
    pq.write_table(PARSERS[parser](session.createDataFrame(pq.read_table(records))).toArrow(), rows)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
