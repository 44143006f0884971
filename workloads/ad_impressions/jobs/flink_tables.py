"""The shared part of the Flink jobs that write their counts into a table of campaign, window and count, in SQL.

A sink takes the totals of each window while they grow, the final total of each window, or a row for each view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyflink.common import JobClient
from pyflink.table import EnvironmentSettings, TableEnvironment

from workloads.ad_impressions.jobs.flink_ads import prepare_ads
from workloads.ad_impressions.jobs.flink_query import events, in_time, make_environment, table
from workloads.jobs.flink_process import run_embedded
from workloads.jobs.flink_sql import source_options
from workloads.jobs.run_config import Config, read_config

TABLE = "ad_counts"
CAMPAIGN, OPENS = "campaign_id", "window_start"
VIEWS = "`views`"  # a reserved word
COLUMNS = f"{CAMPAIGN} STRING, {OPENS} TIMESTAMP(6), {VIEWS} BIGINT"
# Times are written without a zone, in UTC.
START = f"CAST(TO_TIMESTAMP_LTZ(window_start_ms, 3) AS TIMESTAMP(6)) AS {OPENS}"

Query = Callable[[Config], str]


def main(config_path: str, sinks: Mapping[str, Query], create: Callable[[TableEnvironment, Config], str]) -> int:
    """Run the job. `create` makes the table if it does not exist, and returns its name in Flink."""
    config = read_config(config_path)
    prepare_ads(config)

    def start_query(config: Config, settings: dict[str, str]) -> JobClient:
        tables = make_environment(EnvironmentSettings.new_instance().in_streaming_mode(), settings)
        tables.execute_sql(table("impressions", config, source_options(config)))
        name = create(tables, config)
        return tables.execute_sql(f"INSERT INTO {name} {sinks[config['sink']](config)}").get_job_client()

    return run_embedded(config, start_query)


def each_view(config: Config) -> str:
    return f"""
        SELECT {CAMPAIGN}, {START}, CAST(1 AS BIGINT) AS {VIEWS}
        FROM ({events(config, CAMPAIGN)}) WHERE {in_time(config)}
    """


def totals(config: Config) -> str:
    """A total comes out with each change."""
    return (
        f"SELECT {CAMPAIGN}, {OPENS}, SUM({VIEWS}) AS {VIEWS} FROM ({each_view(config)}) GROUP BY {CAMPAIGN}, {OPENS}"
    )


def final_totals(config: Config) -> str:
    """A total comes out once, when the watermark has passed the end of its window."""
    length = f"INTERVAL '{config['window_ms'] / 1000:.3f}' SECOND(9, 3)"
    return f"""
        WITH counted AS ({events(config, CAMPAIGN)})
        SELECT {CAMPAIGN}, {OPENS}, COUNT(*) AS {VIEWS}
        FROM TUMBLE(TABLE counted, DESCRIPTOR(happened_at), {length})
        GROUP BY {CAMPAIGN}, {OPENS}, window_end
    """
