"""The Spark job of top pages: the first five of each window, into a Kafka topic.

    python spark_tws.py CONFIG.json

One `transformWithState` holds the views of a window, and a timer at its end. Spark drops a view when its window is
over, thus its event time here is the end of the window.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import spark_stream
from workloads.jobs.event_sinks import WRITERS
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import whole_events
from workloads.jobs.spark_keyed import KeyedState
from workloads.top_pages.jobs.ranked import LENGTH_MS, top

EVENT = "page string, viewed_at long"
STATE = "pages array<struct<page: string, views: bigint>>"
OUTPUT = "page string, opens bigint, place int, views bigint"


class TopPages(KeyedState):
    """The state of a window. A window that is over has none."""

    NAME, SCHEMA = "views", STATE

    def rows_came(self, key: tuple[int], rows: Iterator[Row], watermark_ms: int) -> Iterable[Row]:  # noqa: ARG002
        views = self._known()
        views.update(row["page"] for row in rows)
        self._state.update((list(views.items()),))
        (opens,) = key
        self._handle.registerTimer(opens + LENGTH_MS)
        return ()

    def timer_expired(self, key: tuple[int], watermark_ms: int) -> Iterable[Row]:  # noqa: ARG002
        (opens,) = key
        ranked = top(self._known())
        self._state.clear()
        return [Row(page=page, opens=opens, place=place, views=views) for page, place, views in ranked]

    def _known(self) -> Counter[str]:
        (pages,) = self._state.get() or ((),)
        return Counter(dict(pages))


def views_of(records: DataFrame, watermark_ms: int) -> DataFrame:
    """Parse views. The watermark is that of the views, as their event time here is later by a window."""
    opens = F.col("viewed_at") - F.pmod("viewed_at", F.lit(LENGTH_MS))
    views = whole_events(records, EVENT).select("page", opens.alias("opens"))
    timed = views.withColumn("ends", F.timestamp_millis(F.col("opens") + LENGTH_MS))
    return timed.withWatermark("ends", f"{watermark_ms + LENGTH_MS} milliseconds")


def start_query(session: SparkSession, config: Config) -> StreamingQuery:
    views = views_of(spark_stream.read_records(session, config), config["watermark_ms"])
    ranked = views.groupBy("opens").transformWithState(TopPages(), OUTPUT, "append", "eventTime")
    outputs = ranked.select(F.to_json(F.struct("page", "opens", "place", "views")).alias("value"))
    return spark_stream.start(outputs, config, WRITERS[config["sink"]](config), mode="append")


if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], start_query))
