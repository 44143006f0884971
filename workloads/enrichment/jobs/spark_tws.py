"""The Spark job of enrichment: each order, with the earlier orders of its user, into a Kafka topic.

    python spark_tws.py CONFIG.json

One `transformWithState` holds the state of a user: the number of orders in each window, and the waiting orders. A timer
at the earliest waiting order answers it when the watermark has passed it. So there is one stateful operator, and the
rule by which Spark drops late events is known: an order whose time is not after the watermark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.enrichment.jobs.enriched import Windows
from workloads.jobs import spark_stream
from workloads.jobs.event_sinks import WRITERS
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import number_of_key, whole_events
from workloads.jobs.spark_keyed import KeyedState

EVENT = "user string, ordered_at long"
STATE = """
windows array<struct<ends: bigint, orders: bigint>>, waiting array<struct<ordered_at: bigint, event: bigint>>
"""
OUTPUT = "user string, event bigint, orders bigint"

Waiting = list[tuple[int, int]]  # event time and number


class Enrich(KeyedState):
    """The state of a user."""

    NAME, SCHEMA = "orders", STATE

    def rows_came(self, key: tuple[str], rows: Iterator[Row], watermark_ms: int) -> Iterable[Row]:  # noqa: ARG002
        windows, waiting = self._known()
        for row in rows:
            windows.add(row["ordered_at"])
            waiting.append((row["ordered_at"], row["event"]))
        self._keep(windows, waiting)
        return ()

    def timer_expired(self, key: tuple[str], watermark_ms: int) -> Iterable[Row]:
        """Answer all orders that the watermark has passed, in order of their times. Several timers of a user may expire
        at once: the first one answers for all of them.
        """
        windows, waiting = self._known()
        due = sorted(each for each in waiting if each[0] <= watermark_ms)
        (user,) = key
        outputs = [Row(user=user, event=event, orders=windows.answer(at_ms)) for at_ms, event in due]
        windows.forget(watermark_ms)
        self._keep(windows, [each for each in waiting if each[0] > watermark_ms])
        return outputs

    def _known(self) -> tuple[Windows, Waiting]:
        windows, waiting = self._state.get() or ((), ())
        return Windows(dict(windows)), [(at_ms, event) for at_ms, event in waiting]

    def _keep(self, windows: Windows, waiting: Waiting) -> None:
        self._state.update((list(windows.orders.items()), waiting))
        if waiting:
            self._handle.registerTimer(min(waiting)[0])


def orders_of(records: DataFrame) -> DataFrame:
    """Parse orders. A record that is no order lacks a user, a time or a number, and is left out."""
    return whole_events(records, EVENT, number_of_key().alias("event"))


def enriched(orders: DataFrame, watermark_ms: int) -> DataFrame:
    timed = orders.withColumn("at", F.timestamp_millis("ordered_at")).withWatermark(
        "at", f"{watermark_ms} milliseconds"
    )
    outputs = timed.groupBy("user").transformWithState(Enrich(), OUTPUT, "append", "eventTime")
    record = F.struct(
        F.col("user").alias("campaign"), F.col("event").alias("window"), F.struct("orders").alias("output")
    )
    return outputs.select(F.to_json(record, {"ignoreNullFields": "false"}).alias("value"))


def start_query(session: SparkSession, config: Config) -> StreamingQuery:
    outputs = enriched(orders_of(spark_stream.read_records(session, config)), config["watermark_ms"])
    return spark_stream.start(outputs, config, WRITERS[config["sink"]](config), mode="append")


if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], start_query))
