"""The Spark job of capping: an action for each request of a user, into a Kafka topic.

    python spark_tws.py CONFIG.json

One `transformWithState` holds the state of a user: its waiting requests, the ads of this hour, and when the hour and
the cool-down end. One timer of Spark stands for the earliest of these times. A request whose time is not after the
watermark is late, and Spark drops it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, cast

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.capping.jobs.capped import Cap, User, read_caps
from workloads.jobs import spark_stream
from workloads.jobs.event_sinks import WRITERS
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import number_of_key, whole_events
from workloads.jobs.spark_timers import WaitingRows

EVENT = "user string, asked_at long"
STATE = """
shown int, hour_ends bigint, cools_until bigint, waiting array<struct<asked_at: bigint, event: bigint>>
"""
OUTPUT = "user string, event bigint, action int, shown int"


class Capping(WaitingRows[User]):
    """The state of a user."""

    SCHEMA = STATE

    def __init__(self, caps: Mapping[str, Cap]) -> None:
        self._caps = dict(caps)

    def restored(self, name: str, stored: tuple[Any, ...] | None) -> User:
        shown, hour_ends, cools_until, waiting = stored or (0, 0, 0, ())
        return User(self._caps[name], shown, hour_ends, cools_until, [(at_ms, event) for at_ms, event in waiting])

    def stored(self, state: User) -> tuple[Any, ...]:
        return state.shown, state.hour_ends, state.cools_until, state.waiting

    def wait(self, state: User, row: Row) -> None:
        state.ask(row["asked_at"], row["event"])

    def fired(self, name: str, state: User, until_ms: int) -> list[Row]:
        return [
            Row(user=name, event=event, action=action, shown=shown) for event, action, shown in state.fire(until_ms)
        ]


def requests_of(records: DataFrame) -> DataFrame:
    """Parse requests. A record that is no request lacks a user, a time or a number, and is left out."""
    return whole_events(records, EVENT, number_of_key().alias("event"))


def capped(requests: DataFrame, caps: Mapping[str, Cap], watermark_ms: int) -> DataFrame:
    timed = requests.withColumn("at", F.timestamp_millis("asked_at")).withWatermark(
        "at", f"{watermark_ms} milliseconds"
    )
    outputs = timed.groupBy("user").transformWithState(Capping(caps), OUTPUT, "append", "eventTime")
    record = F.struct(
        F.col("user").alias("campaign"), F.col("event").alias("window"), F.struct("action", "shown").alias("output")
    )
    return outputs.select(F.to_json(record).alias("value"))


def start_query(session: SparkSession, config: Config) -> StreamingQuery:
    caps = read_caps(cast(dict[str, str], connect(config).hgetall("rules")))
    outputs = capped(requests_of(spark_stream.read_records(session, config)), caps, config["watermark_ms"])
    return spark_stream.start(outputs, config, WRITERS[config["sink"]](config), mode="append")


if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], start_query))
