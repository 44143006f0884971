"""The Spark job of page visits: visits and distinct visitors of each country and window, into Redis.

    python spark.py CONFIG.json

Spark refuses `count(DISTINCT ...)` of a stream. This job does the same in one exact state: it collects the visitors of
a cell as a set, whose size is the answer. Totals are written, so that a repeated batch changes nothing. (The sink
`increment` adds: the harness has to find its errors.)
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import spark_stream
from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.redis_results import connect, key_of
from workloads.jobs.redis_sinks import SINKS, write_batch
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import whole_events
from workloads.jobs.spark_stream import Writer, read_records, start
from workloads.page_visits.jobs.visits import LENGTH_MS, VISITORS, VISITS

EVENT = "visitor string, country string, seen_at long"


def visits_of(records: DataFrame, time: str) -> DataFrame:
    """Parse visits. A record that is no event lacks a field, and is left out."""
    visits = whole_events(records, EVENT, "timestamp")
    return visits.select("visitor", "country", time_of(time).alias("seen_at"))


def time_of(time: str) -> Column:
    """Return the time that decides a visit's windows. The topic decides if Kafka's timestamp is the client's or the
    broker's.
    """
    if time == "event":
        return F.timestamp_millis("seen_at")
    return F.current_timestamp() if time == "processing" else F.col("timestamp")


def counted(visits: DataFrame, step_ms: int) -> DataFrame:
    window = F.window("seen_at", f"{LENGTH_MS} milliseconds", f"{step_ms} milliseconds")
    cells = visits.groupBy("country", window)
    counts = cells.agg(F.count("*").alias(VISITS), F.size(F.collect_set("visitor")).alias(VISITORS))
    return counts.select("country", F.unix_millis("window.start").alias("opens"), VISITS, VISITORS)


def make_writer(config: Config, key: str, values: tuple[str, ...]) -> Writer:
    """Return the writer of these values of each row, below the key in that column."""
    client, crash_points = connect(config), CrashPoints(Path(config["crash_path"]))

    def write(cells: DataFrame, batch: int) -> None:
        rows = [(key_of(name, row[key]), row["opens"], row[name]) for row in cells.collect() for name in values]
        write_batch(SINKS[config["sink"]], client, batch, rows, crash_points)

    return write


def start_query(session: SparkSession, config: Config, step_ms: int) -> StreamingQuery:
    visits = visits_of(read_records(session, config), config["time"])
    write = make_writer(config, "country", (VISITS, VISITORS))
    if config["sink"] == "absolute":
        watermark = f"{config['watermark_ms']} milliseconds"
        return start(counted(visits.withWatermark("seen_at", watermark), step_ms), config, write)
    return start(visits, config, lambda batch, number: write(counted(batch, step_ms), number))


def main(config_path: str, step_ms: int = LENGTH_MS) -> int:
    return spark_stream.run_query(config_path, lambda session, config: start_query(session, config, step_ms))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
