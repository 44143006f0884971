"""The Spark job of patterns: each match of a small payment and a large one, into a Kafka topic.

    python spark_tws.py CONFIG.json

One `transformWithState` holds the state of a card: its waiting payments, and the small one that a large one may follow.
One timer of Spark stands for the earliest time at which something is due. A payment whose time is not after the
watermark is late, and Spark drops it.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import spark_stream
from workloads.jobs.event_sinks import WRITERS
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import number_of_key, whole_events
from workloads.jobs.spark_timers import WaitingRows
from workloads.pattern.jobs.matched import FIRST, LARGE_FROM, SMALL_BELOW, Card

EVENT = "card string, amount double, paid_at long"
STATE = """
small_at bigint, small bigint, waiting array<struct<paid_at: bigint, event: bigint, is_small: boolean>>
"""
OUTPUT = "card string, last bigint, first bigint"


class Pattern(WaitingRows[Card]):
    """The state of a card."""

    SCHEMA = STATE

    def restored(self, name: str, stored: tuple[Any, ...] | None) -> Card:  # noqa: ARG002  (all cards are alike)
        small_at, small, waiting = stored or (0, 0, ())
        return Card(small_at, small, [(at_ms, event, is_small) for at_ms, event, is_small in waiting])

    def stored(self, state: Card) -> tuple[Any, ...]:
        return state.small_at, state.small, state.waiting

    def wait(self, state: Card, row: Row) -> None:
        state.pay((row["paid_at"], row["event"], row["is_small"]))

    def fired(self, name: str, state: Card, until_ms: int) -> list[Row]:
        return [Row(card=name, last=last, first=first) for first, last in state.fire(until_ms)]


def payments_of(records: DataFrame, watermark_ms: int) -> DataFrame:
    """Parse payments. A record that is no payment lacks a field or a number, and is left out. One that is neither small
    nor large moves the watermark, and does nothing else.
    """
    paid = whole_events(records, EVENT, number_of_key().alias("event"))
    timed = paid.withColumn("at", F.timestamp_millis("paid_at")).withWatermark("at", f"{watermark_ms} milliseconds")
    amount = F.col("amount")
    return timed.where((amount < SMALL_BELOW) | (amount >= LARGE_FROM)).withColumn("is_small", amount < SMALL_BELOW)


def start_query(session: SparkSession, config: Config) -> StreamingQuery:
    payments = payments_of(spark_stream.read_records(session, config), config["watermark_ms"])
    matches = payments.groupBy("card").transformWithState(Pattern(), OUTPUT, "append", "eventTime")
    record = F.struct(
        F.col("card").alias("campaign"),
        F.col("last").alias("window"),
        F.struct(F.col("first").alias(FIRST)).alias("output"),
    )
    outputs = matches.select(F.to_json(record).alias("value"))
    return spark_stream.start(outputs, config, WRITERS[config["sink"]](config), mode="append")


if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], start_query))
