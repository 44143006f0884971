"""The Spark job of capping: an action for each request of a user, into a Kafka topic.

    python spark_tws.py CONFIG.json

One `transformWithState` holds the state of a user: its waiting requests, the ads of this hour, and when the hour and
the cool-down end. One timer of Spark stands for the earliest of these times. A request whose time is not after the
watermark is late, and Spark drops it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import cast

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from workloads.capping.jobs.capped import Cap, User, read_caps
from workloads.jobs import spark_stream
from workloads.jobs.event_sinks import WRITERS
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import number_of_key, whole_events

EVENT = "user string, asked_at long"
STATE = """
shown int, hour_ends bigint, cools_until bigint, waiting array<struct<asked_at: bigint, event: bigint>>
"""
OUTPUT = "user string, event bigint, action int, shown int"


class Capping(StatefulProcessor):
    """The state of a user. A user without waiting requests and timers has none."""

    def __init__(self, caps: Mapping[str, Cap]) -> None:
        self._caps = dict(caps)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("user", STATE)

    def handleInputRows(  # noqa: N802
        self,
        key: tuple[str],
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        user = self._known(*key)
        for row in rows:
            user.ask(row["asked_at"], row["event"])
        self._keep(user)
        return iter(())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[str],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        """Fire all timers up to the watermark, in order of their times. Several timers of Spark may expire at once: the
        first one does it for all of them.
        """
        (name,) = key
        user = self._known(name)
        answers = user.fire(timerValues.getCurrentWatermarkInMs())
        self._keep(user)
        return iter([Row(user=name, event=event, action=action, shown=shown) for event, action, shown in answers])

    def _known(self, name: str) -> User:
        shown, hour_ends, cools_until, waiting = self._state.get() or (0, 0, 0, ())
        requests = [(at_ms, event) for at_ms, event in waiting]
        return User(self._caps[name], shown, hour_ends, cools_until, requests)

    def _keep(self, user: User) -> None:
        if user.next_ms is None:
            self._state.clear()
            return
        self._state.update((user.shown, user.hour_ends, user.cools_until, user.waiting))
        self._handle.registerTimer(user.next_ms)


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
