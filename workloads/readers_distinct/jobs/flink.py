"""The Flink job: different articles of each reader in a sliding window, by SQL or by a process function.

    python flink.py CONFIG.json

In SQL it is `HOP` with `COUNT(DISTINCT ...)`: Flink keeps the articles of each pane once, and unites the panes of a
window when it is over. So a window is answered once, when the watermark has passed it. The sink `stream` does the same
by hand, on the DataStream API.
"""

from __future__ import annotations

import sys
from typing import Any

from pyflink.common import JobClient
from pyflink.table import DataTypes, EnvironmentSettings
from pyflink.table.udf import udf

from workloads.jobs.flink_process import run_embedded
from workloads.jobs.flink_sql import (
    Column,
    connection,
    event_time_of_windows,
    make_environment,
    make_stream_environment,
    source,
    write_larger,
)
from workloads.jobs.reads import ARTICLES, MINUTE, READS, Sliding
from workloads.jobs.redis_results import key_of
from workloads.jobs.run_config import Config, read_config
from workloads.readers_distinct.jobs import flink_stream

# A record that is no event lacks a field. `HOP` fails without a time.
USABLE = """
CREATE TEMPORARY VIEW usable AS
SELECT reader, article, read_at, happened_at FROM events
WHERE read_at IS NOT NULL AND reader IS NOT NULL AND article IS NOT NULL
"""
WRITTEN = "INSERT INTO written SELECT to_redis(reader, opens, `reads`, articles) FROM counted"
STREAM = "stream"  # a sink


def start_query(config: Config, settings: dict[str, str], windows: Sliding = MINUTE) -> JobClient:
    is_stream = config["sink"] == STREAM
    mode = EnvironmentSettings.new_instance().in_streaming_mode()
    tables = make_stream_environment(settings) if is_stream else make_environment(mode, settings)
    tables.create_temporary_function("to_redis", redis_writer(config))
    tables.execute_sql(events(config))
    tables.execute_sql(USABLE)
    if is_stream:
        reads = tables.to_data_stream(tables.from_path("usable"))
        tables.create_temporary_view("counted", flink_stream.counted(reads, windows))
    else:
        tables.execute_sql(counted(windows))
    return tables.execute_sql(WRITTEN).get_job_client()


def events(config: Config) -> str:
    columns = f"reader STRING, article STRING, read_at BIGINT, {event_time_of_windows('read_at', config)}"
    return source("events", config, columns)


def counted(windows: Sliding) -> str:
    """Return the statement for the view of the windows. `reads` is a reserved word."""
    size, slide = (f"INTERVAL '{ms // 1000}' SECOND" for ms in windows)
    return f"""
        CREATE TEMPORARY VIEW counted AS
        SELECT
            reader,
            1000 * CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_start) AS BIGINT) AS opens,
            COUNT(*) AS `reads`,
            COUNT(DISTINCT article) AS articles
        FROM TABLE(HOP(TABLE usable, DESCRIPTOR(happened_at), {slide}, {size}))
        GROUP BY reader, window_start, window_end
    """


def redis_writer(config: Config) -> Any:
    """Return the function to_redis(reader, opens, reads, articles). A window that is answered again after a crash has
    the same totals.
    """
    place = config["redis"], config["redis_prefix"]

    def to_redis(readers: Column, opens: Column, reads: Column, articles: Column) -> Column:
        pipeline = connection(*place).pipeline(transaction=False)
        for name, totals in ((READS, reads), (ARTICLES, articles)):
            keys = [key_of(name, reader) for reader in readers]
            write_larger(pipeline, zip(keys, opens.tolist(), totals.tolist(), strict=True))
        pipeline.execute()
        return reads

    return udf(to_redis, result_type=DataTypes.BIGINT(), func_type="pandas")


if __name__ == "__main__":
    sys.exit(run_embedded(read_config(sys.argv[1]), start_query))
