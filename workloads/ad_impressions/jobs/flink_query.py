"""The query of both Flink engines, in SQL: ad impressions from Kafka, counted per campaign and window, into Redis.

It is no window aggregation: that one would emit a count when the watermark passes, which is delayed by the allowed
lateness. To show counts while they grow, this query groups by the start of the window and emits each change. The other
effects of a window aggregation are written out: an event is dropped when the watermark has passed the end of its
window, and the state of a cell expires some time after its last event. Watermarks advance per partition, so that a
slower partition makes nothing late.

The changes go to a Python function that gets many rows at a time and writes them. A checkpoint is complete when it has
written all rows before the checkpoint, thus the offsets of a complete checkpoint describe the content of Redis. For an
unaligned checkpoint that holds if no record was on its way to that function.

Flink's own way of emitting less often, mini-batches, can't be used: its clock would replace the watermark in the
condition that drops late events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyflink.common import JobClient
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udf

from workloads.ad_impressions.jobs.question import AD, AD_KEY, FIELD, asked_key, chosen_more, counted
from workloads.jobs import flink_sql
from workloads.jobs.flink_late import is_named, late_table
from workloads.jobs.flink_sql import (
    Column,
    connection,
    insert_together,
    options_of,
    quoted,
    source_options,
    write_larger,
)
from workloads.jobs.run_config import Config


def start_query(config: Config, settings: dict[str, str]) -> JobClient:
    tables = make_environment(EnvironmentSettings.new_instance().in_streaming_mode(), settings)
    tables.create_temporary_function("to_redis", redis_writer(config))
    tables.execute_sql(table("impressions", config, source_options(config), PLACE if is_named(config) else ""))
    if not is_named(config):
        return insert_together(tables, counting(config, in_time(config)))
    tables.execute_sql(late_table(config))
    return insert_together(tables, counting(config, in_time(config)), naming(config))


def make_environment(mode: Any, settings: dict[str, str]) -> TableEnvironment:
    """Return an environment with everything that the query needs but its input and its sink."""
    tables = flink_sql.make_environment(mode, settings)
    tables.execute_sql("CREATE TEMPORARY FUNCTION campaign_of AS 'CampaignOf'")
    return tables


PLACE = """
            source_partition INT METADATA FROM 'partition' VIRTUAL,
            source_offset BIGINT METADATA FROM 'offset' VIRTUAL,"""


def table(name: str, config: Config, source: Mapping[str, str], more: str = "") -> str:
    """Return the statement for a table of events. Only events of known ads have a time, and advance the watermark."""
    time_ms = "CASE WHEN campaign_of(ad_id) IS NOT NULL THEN TRY_CAST(event_time AS BIGINT) END"
    return f"""
        CREATE TEMPORARY TABLE {name} (
            ad_id STRING,
            event_type STRING,
            event_time STRING,{more}
            campaign_id AS campaign_of(ad_id),
            event_time_ms AS {time_ms},
            happened_at AS TO_TIMESTAMP_LTZ({time_ms}, 3),
            WATERMARK FOR happened_at AS TO_TIMESTAMP_LTZ({time_ms} - {config["watermark_ms"]}, 3)
        ) WITH ({options_of(source)})
    """


def counting(config: Config, condition: str) -> str:
    counted_by = f"{quoted(AD_KEY)} || ad_id" if asked_key(config) == AD else "campaign_id"
    at = newest = used = ""
    if chosen_more(config, (FIELD,)) == FIELD:  # Flink leaves an unused field out of the state
        at, newest, used = ", event_time_ms", ", MAX(event_time_ms) AS newest", " WHERE newest >= 0"
    return f"""
        INSERT INTO written
        SELECT to_redis(counted_by, window_start_ms, total) FROM (
            SELECT counted_by, window_start_ms, COUNT(*) AS total{newest}
            FROM ({events(config, f"{counted_by} AS counted_by{at}")})
            WHERE {condition}
            GROUP BY counted_by, window_start_ms
        ){used}
    """


def in_time(config: Config) -> str:
    return f"""
                CURRENT_WATERMARK(happened_at) IS NULL
                OR TO_TIMESTAMP_LTZ(window_start_ms + {config["window_ms"]}, 3) > CURRENT_WATERMARK(happened_at)"""


def naming(config: Config) -> str:
    """Return the statement with the opposite condition, for late events."""
    return f"""
        INSERT INTO late
        SELECT source_partition, source_offset FROM ({events(config, "source_partition, source_offset")})
        WHERE TO_TIMESTAMP_LTZ(window_start_ms + {config["window_ms"]}, 3) <= CURRENT_WATERMARK(happened_at)
    """


def events(config: Config, columns: str) -> str:
    types = ", ".join(map(quoted, counted(config)))
    return f"""
        SELECT {columns}, happened_at, event_time_ms - MOD(event_time_ms, {config["window_ms"]}) AS window_start_ms
        FROM impressions
        WHERE event_type IN ({types}) AND event_time_ms >= 0 AND happened_at IS NOT NULL
    """


def redis_writer(config: Config) -> Any:
    """Return the function to_redis(campaign_id, window_start_ms, total), which writes the newest total of each cell
    among its rows.

    Totals only grow: a total below the one in Redis is an older one, emitted again after a crash, and is skipped.
    """
    place = config["redis"], config["redis_prefix"]

    def to_redis(campaigns: Column, window_starts_ms: Column, totals: Column) -> Column:
        rows = zip(campaigns.tolist(), window_starts_ms.tolist(), totals.tolist(), strict=True)
        pipeline = connection(*place).pipeline(transaction=False)
        write_larger(pipeline, rows)
        pipeline.execute()
        return totals

    return udf(to_redis, result_type=DataTypes.BIGINT(), func_type="pandas")
