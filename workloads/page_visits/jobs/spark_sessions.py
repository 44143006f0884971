"""The Spark job of sessions.

    python spark_sessions.py CONFIG.json

Spark supports sessions in append mode only: each is emitted once, when the watermark has passed its end.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import spark_stream
from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.progress_log import tell_settings
from workloads.jobs.redis_results import connect
from workloads.jobs.redis_sinks import SINKS, write_batch
from workloads.jobs.run_config import Config, read_config
from workloads.jobs.spark_stream import Writer, read_records
from workloads.page_visits.jobs.visits import DIFFERENT, GAP_MS, PAGES, key_of

EVENT = "visitor string, page string, seen_at long"


def visits_of(records: DataFrame) -> DataFrame:
    """Parse visits. A record that is no event lacks a field, and is left out."""
    events = records.select(F.inline(F.array(F.from_json(F.col("value").cast("string"), EVENT))))
    usable = events.where(F.col("seen_at").isNotNull() & F.col("visitor").isNotNull() & F.col("page").isNotNull())
    return usable.select("visitor", "page", F.timestamp_millis("seen_at").alias("seen_at"))


def sessions_of(visits: DataFrame, watermark_ms: int) -> DataFrame:
    session = F.session_window("seen_at", f"{GAP_MS} milliseconds")
    late = visits.withWatermark("seen_at", f"{watermark_ms} milliseconds")
    sessions = late.groupBy("visitor", session)
    counts = sessions.agg(F.count("*").alias(PAGES), F.size(F.collect_set("page")).alias(DIFFERENT))
    return counts.select("visitor", F.unix_millis("session_window.start").alias("opens"), PAGES, DIFFERENT)


def make_writer(config: Config) -> Writer:
    client, crash_points = connect(config), CrashPoints(Path(config["crash_path"]))

    def write(sessions: DataFrame, batch: int) -> None:
        rows = [
            (key_of(name, row["visitor"]), row["opens"], row[name])
            for row in sessions.collect()
            for name in (PAGES, DIFFERENT)
        ]
        write_batch(SINKS[config["sink"]], client, batch, rows, crash_points)

    return write


def start_query(session: SparkSession, config: Config) -> StreamingQuery:
    sessions = sessions_of(visits_of(read_records(session, config)), config["watermark_ms"])
    return spark_stream.start(sessions, config, make_writer(config), mode="append")


def main(config_path: str) -> int:
    config = read_config(config_path)
    tell_settings(config["progress_path"], spark_stream.own_settings(config))
    return spark_stream.run(config, lambda session: start_query(session, config))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
