"""The Flink job of patterns: each match of a small payment and a large one, by `MATCH_RECOGNIZE`, into a Kafka topic.

    python flink.py CONFIG.json

Payments that are neither small nor large are filtered out, so that a match is two neighbours in order of time, then of
the number. Payments behind the watermark are filtered out before, and named. Flink's own sink writes the matches of a
checkpoint in transactions of Kafka.
"""

from __future__ import annotations

import sys

from pyflink.common import JobClient
from pyflink.table import EnvironmentSettings

from workloads.jobs.flink_late import late_table
from workloads.jobs.flink_process import run_embedded
from workloads.jobs.flink_sql import (
    HAS_NUMBER,
    event_time,
    insert_together,
    keyed_source,
    make_environment,
    number_of,
    output_topic,
)
from workloads.jobs.run_config import Config, read_config
from workloads.pattern.jobs.matched import FIRST, LARGE_FROM, SMALL_BELOW, WITHIN_MS

# What is not named here lacks a field, or is neither small nor large.
ASKED = f"""
CREATE TEMPORARY VIEW asked AS
SELECT record_key, card, amount < {SMALL_BELOW} AS is_small, happened_at, source_partition, source_offset FROM payments
WHERE {HAS_NUMBER} AND card IS NOT NULL AND happened_at IS NOT NULL
    AND (amount < {SMALL_BELOW} OR amount >= {LARGE_FROM})
"""
IN_TIME = """
CREATE TEMPORARY VIEW in_time AS
SELECT record_key, card, is_small, happened_at FROM asked
WHERE CURRENT_WATERMARK(happened_at) IS NULL OR happened_at > CURRENT_WATERMARK(happened_at)
"""
LATE = """
INSERT INTO late
SELECT source_partition, source_offset FROM asked WHERE happened_at <= CURRENT_WATERMARK(happened_at)
"""


MATCHING = f"""
INSERT INTO pairs
SELECT card, {number_of("last_key")}, ROW({number_of("first_key")})
FROM in_time MATCH_RECOGNIZE (
    PARTITION BY card
    ORDER BY happened_at, record_key
    MEASURES LITTLE.record_key AS first_key, BIG.record_key AS last_key
    ONE ROW PER MATCH
    AFTER MATCH SKIP PAST LAST ROW
    PATTERN (LITTLE BIG) WITHIN INTERVAL '{WITHIN_MS / 1000:.3f}' SECOND
    DEFINE LITTLE AS LITTLE.is_small, BIG AS NOT BIG.is_small
)
"""


def start_query(config: Config, settings: dict[str, str]) -> JobClient:
    tables = make_environment(EnvironmentSettings.new_instance().in_streaming_mode(), settings)
    pairs = output_topic("pairs", config, f"`output` ROW<`{FIRST}` BIGINT>")
    for statement in (payments(config), pairs, late_table(config), ASKED, IN_TIME):
        tables.execute_sql(statement)
    return insert_together(tables, MATCHING, LATE)


def payments(config: Config) -> str:
    columns = f"""
        card STRING,
        amount DOUBLE,
        paid_at BIGINT,{event_time("paid_at", config["watermark_ms"])}"""
    return keyed_source("payments", config, columns)


if __name__ == "__main__":
    sys.exit(run_embedded(read_config(sys.argv[1]), start_query, names_late=True))
