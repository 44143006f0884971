"""The shared part of all jobs in Flink SQL: the topic as a source, and totals that are written to Redis."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from pyflink.common import Configuration, JobClient
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment, TableEnvironment
from redis import Redis

from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import connect, updated_key
from workloads.jobs.redis_sinks import by_key
from workloads.jobs.run_config import Config

Column = Any  # a pandas.Series

# The Kafka client inside the connector's jar has another package name, also in settings that name a class.
KAFKA, KAFKA_INSIDE = "org.apache.kafka.", "org.apache.flink.kafka.shaded.org.apache.kafka."
AS_JSON = {"format": "json", "json.ignore-parse-errors": "true"}
# The key of a record as text, and its place in the topic.
RECORD = """
            record_key STRING,
            source_partition INT METADATA FROM 'partition' VIRTUAL,
            source_offset BIGINT METADATA FROM 'offset' VIRTUAL,"""
BY_KEY = {"key.format": "raw", "key.fields": "record_key", "value.fields-include": "EXCEPT_KEY"}
DIGITS = 12  # of a key: a number in hexadecimal digits
HAS_NUMBER = f"REGEXP(record_key, '^[0-9a-f]{{{DIGITS}}}$')"
WRITTEN = "CREATE TEMPORARY TABLE written (total BIGINT) WITH ('connector' = 'blackhole')"


def make_environment(mode: Any, settings: dict[str, str]) -> TableEnvironment:
    """Return an environment with `written`, the table for totals that a function has written to Redis."""
    tables = TableEnvironment.create(mode.with_configuration(configuration_of(settings)).build())
    tables.execute_sql(WRITTEN)
    return tables


def make_stream_environment(settings: dict[str, str]) -> StreamTableEnvironment:
    """Return one whose tables can become streams and back."""
    streams = StreamExecutionEnvironment.get_execution_environment(configuration_of(settings))
    tables = StreamTableEnvironment.create(streams)
    tables.execute_sql(WRITTEN)
    return tables


def configuration_of(settings: dict[str, str]) -> Configuration:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    return configuration


def source_options(config: Config) -> dict[str, str]:
    return {
        "connector": "kafka",
        "topic": config["topic"],
        "scan.startup.mode": "earliest-offset",
        **AS_JSON,
        **{f"properties.{key}": value for key, value in client_settings(config).items()},
    }


def event_time(column: str, watermark_ms: int) -> str:
    """Return the columns for the event time and its watermark, of a column in milliseconds."""
    return f"""
        happened_at AS TO_TIMESTAMP_LTZ({column}, 3),
        WATERMARK FOR happened_at AS TO_TIMESTAMP_LTZ({column} - {watermark_ms}, 3)
    """


def event_time_of_windows(column: str, config: Config) -> str:
    """Return the same for windows. Flink closes a window when the watermark is its last millisecond, and the run's
    `watermark_ms` means its end. So the watermark is one less.
    """
    return event_time(column, config["watermark_ms"] + 1)


def insert_together(tables: TableEnvironment, *statements: str) -> JobClient:
    """Run these statements as one job."""
    together = tables.create_statement_set()
    for statement in statements:
        together.add_insert_sql(statement)
    return together.execute().get_job_client()


def number_of(key: str) -> str:
    """Return the number of a key as SQL, which knows no hexadecimal numbers."""
    digits = (f"POSITION(SUBSTRING({key} FROM {at + 1} FOR 1) IN '123456789abcdef')" for at in range(DIGITS))
    powers = (16 ** (DIGITS - 1 - at) for at in range(DIGITS))
    return " + ".join(f"{digit} * CAST({power} AS BIGINT)" for digit, power in zip(digits, powers, strict=True))


def source(name: str, config: Config, columns: str) -> str:
    """Return the statement for a table of records."""
    return f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ({options_of(source_options(config))})"


def keyed_source(name: str, config: Config, columns: str) -> str:
    """Return the statement for a table of records with their keys and places."""
    return f"CREATE TEMPORARY TABLE {name} ({RECORD}{columns}) WITH ({options_of(source_options(config) | BY_KEY)})"


def output_topic(name: str, config: Config, output: str) -> str:
    """Return the statement for the table of outputs of events."""
    return results_table(name, config, f"campaign STRING, `window` BIGINT, {output}")


def results_table(name: str, config: Config, columns: str) -> str:
    """Return the statement for the table of results: a topic, in transactions that end with a checkpoint."""
    sink = {
        "connector": "kafka",
        "topic": config["results_topic"],
        "format": "json",
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": f"streamgauge-{config['run']}",
        "properties.transaction.timeout.ms": "600000",
        **{f"properties.{key}": value for key, value in client_settings(config).items()},
    }
    return f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ({options_of(sink)})"


def options_of(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(key)} = {quoted(value)}" for key, value in pairs.items())


def client_settings(config: Config) -> dict[str, str]:
    security = {key: value.replace(KAFKA, KAFKA_INSIDE) for key, value in config["kafka"]["java"].items()}
    return {"bootstrap.servers": config["kafka"]["bootstrap"], **security}


# KEYS: totals, times of update. ARGV: time, then window and total in turns. A script is atomic.
WRITE_LARGER = """
for i = 2, #ARGV, 2 do
  if tonumber(ARGV[i + 1]) > tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or '-1') then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[1])
  end
end
"""


def write_larger(pipeline: Any, rows: Iterable[tuple[str, int, int]]) -> None:
    """Write the newest total of each key and window among these rows, unless Redis has a larger one."""
    for key, windows in by_key(rows).items():
        pairs = [value for pair in windows.items() for value in pair]
        pipeline.eval(WRITE_LARGER, 2, key, updated_key(key), now_ms(), *pairs)


@functools.cache
def connection(url: str, prefix: str) -> Redis:
    """Return the one connection of a worker."""
    return connect({"redis": url, "redis_prefix": prefix})


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
