"""The Flink job: reads, joined with the different articles of their reader in a sliding window, in SQL.

    python flink.py CONFIG.json

The input goes to `HOP` with `COUNT(DISTINCT ...)` and to a join with its result. By the sink a read is joined with the
window that ends with its second, by an interval of one slide, or with every window that holds it, by an interval of a
whole window: then it leaves 60 times.
"""

from __future__ import annotations

import sys

from pyflink.common import JobClient
from pyflink.table import EnvironmentSettings

from workloads.jobs.flink_late import late_table
from workloads.jobs.flink_process import run_embedded
from workloads.jobs.flink_sql import (
    HAS_NUMBER,
    event_time_of_windows,
    insert_together,
    keyed_source,
    make_environment,
    number_of,
    output_topic,
)
from workloads.jobs.reads import MINUTE
from workloads.jobs.run_config import Config, read_config

SIZE, SLIDE = MINUTE.length_ms // 1000, MINUTE.slide_ms // 1000
INTERVALS = {"newest": SLIDE, "each-window": SIZE}  # by sink, in seconds

# A record that is no event lacks a field.
WHOLE = f"""
CREATE TEMPORARY VIEW whole AS
SELECT *, read_at - MOD(read_at, 1000) + 1000 AS ends FROM events
WHERE {HAS_NUMBER} AND read_at IS NOT NULL AND reader IS NOT NULL AND article IS NOT NULL
"""
# The condition by which a window of one second would drop a read.
IN_TIME = "CURRENT_WATERMARK(happened_at) IS NULL OR TO_TIMESTAMP_LTZ(ends - 1, 3) > CURRENT_WATERMARK(happened_at)"
USABLE = f"CREATE TEMPORARY VIEW usable AS SELECT record_key, reader, article, happened_at FROM whole WHERE {IN_TIME}"
LATE = f"INSERT INTO late SELECT source_partition, source_offset FROM whole WHERE NOT ({IN_TIME})"
# `window_time` is the last millisecond of the window.
COUNTED = f"""
CREATE TEMPORARY VIEW counted AS
SELECT reader, COUNT(DISTINCT article) AS articles, window_time AS last_ms
FROM TABLE(HOP(TABLE usable, DESCRIPTOR(happened_at), INTERVAL '{SLIDE}' SECOND, INTERVAL '{SIZE}' SECOND))
GROUP BY reader, window_start, window_end, window_time
"""


def start_query(config: Config, settings: dict[str, str]) -> JobClient:
    tables = make_environment(EnvironmentSettings.new_instance().in_streaming_mode(), settings)
    outputs = output_topic("joined", config, "`output` ROW<articles BIGINT>")
    for statement in (events(config), outputs, late_table(config), WHOLE, USABLE, COUNTED):
        tables.execute_sql(statement)
    return insert_together(tables, joined(INTERVALS[config["sink"]]), LATE)


def events(config: Config) -> str:
    columns = f"""
        reader STRING,
        article STRING,
        read_at BIGINT,{event_time_of_windows("read_at", config)}"""
    return keyed_source("events", config, columns)


def joined(within_s: int) -> str:
    return f"""
        INSERT INTO joined
        SELECT usable.reader, {number_of("record_key")}, ROW(articles)
        FROM usable JOIN counted ON usable.reader = counted.reader
        AND happened_at BETWEEN last_ms - INTERVAL '{within_s - 1}.999' SECOND(2, 3) AND last_ms
    """


if __name__ == "__main__":
    sys.exit(run_embedded(read_config(sys.argv[1]), start_query, names_late=True))
