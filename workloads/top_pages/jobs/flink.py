"""The Flink job of top pages: the first five of each window, by SQL, into a Kafka topic.

    python flink.py CONFIG.json

A window aggregation, and a `ROW_NUMBER` of each window: Flink ranks a window once, when the watermark has passed it.
Views of windows that are over are filtered out before, and named.
"""

from __future__ import annotations

import sys

from pyflink.common import JobClient
from pyflink.table import EnvironmentSettings

from workloads.jobs.flink_late import late_table
from workloads.jobs.flink_process import run_embedded
from workloads.jobs.flink_sql import (
    event_time_of_windows,
    insert_together,
    keyed_source,
    make_environment,
    results_table,
)
from workloads.jobs.run_config import Config, read_config
from workloads.top_pages.jobs.ranked import LENGTH_MS, PLACES

# A record that is no event lacks a field. The last millisecond of a window decides whether it is over.
USABLE = f"""
CREATE TEMPORARY VIEW usable AS
SELECT
    page, happened_at, source_partition, source_offset,
    TO_TIMESTAMP_LTZ(viewed_at - MOD(viewed_at, {LENGTH_MS}) + {LENGTH_MS - 1}, 3) AS ends_at
FROM viewed WHERE page IS NOT NULL AND viewed_at IS NOT NULL
"""
IN_TIME = """
CREATE TEMPORARY VIEW in_time AS
SELECT page, happened_at FROM usable
WHERE CURRENT_WATERMARK(happened_at) IS NULL OR ends_at > CURRENT_WATERMARK(happened_at)
"""
LATE = """
INSERT INTO late SELECT source_partition, source_offset FROM usable WHERE ends_at <= CURRENT_WATERMARK(happened_at)
"""
RANKING = f"""
INSERT INTO ranked
SELECT
    page,
    1000 * CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_start) AS BIGINT),
    number,
    total
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC, page) AS number
    FROM (
        SELECT page, window_start, window_end, COUNT(*) AS total
        FROM TABLE(TUMBLE(TABLE in_time, DESCRIPTOR(happened_at), INTERVAL '{LENGTH_MS // 1000}' SECOND))
        GROUP BY page, window_start, window_end
    )
)
WHERE number <= {PLACES}
"""


def start_query(config: Config, settings: dict[str, str]) -> JobClient:
    tables = make_environment(EnvironmentSettings.new_instance().in_streaming_mode(), settings)
    ranked = results_table("ranked", config, "page STRING, `opens` BIGINT, `place` BIGINT, `views` BIGINT")
    for statement in (viewed(config), ranked, late_table(config), USABLE, IN_TIME):
        tables.execute_sql(statement)
    return insert_together(tables, RANKING, LATE)


def viewed(config: Config) -> str:
    columns = f"""
        page STRING,
        viewed_at BIGINT,{event_time_of_windows("viewed_at", config)}"""
    return keyed_source("viewed", config, columns)


if __name__ == "__main__":
    sys.exit(run_embedded(read_config(sys.argv[1]), start_query, names_late=True))
