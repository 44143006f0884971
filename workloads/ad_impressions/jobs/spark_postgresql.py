"""The Spark job whose counts go to a table in PostgreSQL, in four ways.

    python spark_postgresql.py CONFIG.json

`append` inserts the counts of each batch by Spark's JDBC writer, and readers add them up. `upsert-add` adds them to a
row for each window. `upsert-totals` writes the totals of each window. `upsert-fenced` adds, and writes the batch's
number in the same transaction: a batch that is there already is not written again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from typing import Any

import psycopg
from pyspark.sql import DataFrame, SparkSession

from workloads.ad_impressions.jobs.spark_tables import CAMPAIGN, OPENS, TABLE, VIEWS, Batches, Sink, main
from workloads.jobs.run_config import Config

BATCHES = "ad_batches"  # the last batch that was written
CREATE = f"""
CREATE TABLE IF NOT EXISTS {TABLE} ({CAMPAIGN} text NOT NULL, {OPENS} timestamptz NOT NULL, {VIEWS} bigint NOT NULL);
CREATE TABLE IF NOT EXISTS {BATCHES} (query text PRIMARY KEY, batch bigint NOT NULL);
"""
ONE_ROW_A_CELL = f"CREATE UNIQUE INDEX IF NOT EXISTS {TABLE}_cell ON {TABLE} ({CAMPAIGN}, {OPENS})"
INSERT = f"INSERT INTO {TABLE} VALUES (%s, %s, %s) ON CONFLICT ({CAMPAIGN}, {OPENS}) DO UPDATE SET {VIEWS} ="
ADD, SET = f"{INSERT} {TABLE}.{VIEWS} + excluded.{VIEWS}", f"{INSERT} excluded.{VIEWS}"
# No row comes back for a batch that is there already.
FENCE = f"""
INSERT INTO {BATCHES} VALUES (%s, %s) ON CONFLICT (query) DO UPDATE SET batch = excluded.batch
WHERE {BATCHES}.batch < excluded.batch RETURNING batch
"""


def create(_: SparkSession, config: Config) -> None:
    with transaction(config) as cursor:
        cursor.execute(CREATE)
        if config["sink"] != "append":
            cursor.execute(ONE_ROW_A_CELL)


def append(batch: DataFrame, _: int, config: Config) -> None:
    batch.write.jdbc(config["sql"]["jdbc"], TABLE, "append", {"driver": "org.postgresql.Driver"})


def upsert_add(batch: DataFrame, _: int, config: Config) -> None:
    with transaction(config) as cursor:
        cursor.executemany(ADD, rows_of(batch))


def upsert_totals(batch: DataFrame, _: int, config: Config) -> None:
    with transaction(config) as cursor:
        cursor.executemany(SET, rows_of(batch))


def upsert_fenced(batch: DataFrame, number: int, config: Config) -> None:
    with transaction(config) as cursor:
        if cursor.execute(FENCE, (config["run"], number)).fetchone():
            cursor.executemany(ADD, rows_of(batch))


@contextmanager
def transaction(config: Config) -> Iterator[psycopg.Cursor[Any]]:
    with psycopg.connect(config["sql"]["url"]) as connection, connection.cursor() as cursor:
        yield cursor


def rows_of(batch: DataFrame) -> list[tuple[Any, ...]]:
    return [(row[CAMPAIGN], row[OPENS].replace(tzinfo=UTC), row[VIEWS]) for row in batch.collect()]


SINKS: dict[str, Sink] = {
    "append": Batches(append),
    "upsert-add": Batches(upsert_add),
    "upsert-totals": Batches(upsert_totals, totals=True),
    "upsert-fenced": Batches(upsert_fenced),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], SINKS, create))
