"""The Spark job with hand-written counting: `transformWithState`, with a state and a timer for each cell.

    python spark_tws.py CONFIG.json

It does in Python, row by row, what `count` does in the JVM in spark.py: this is the price of a query that no built-in
aggregation can express. Spark drops late events before they get here, as in spark.py: the event time of a row is the
end of its window, so that a row is late when its window is closed.

A batch counts older events in files, and its totals become the initial state of the stream. That has no watermark: an
event that is late by the files is in time for the stream.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.ad_impressions.jobs import spark
from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.spark_parse import PARSERS
from workloads.ad_impressions.jobs.spark_record import FIELDS
from workloads.jobs import history_files, spark_history, spark_stream
from workloads.jobs.progress_log import tell_settings
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config, read_config
from workloads.jobs.spark_history import Part
from workloads.jobs.spark_keyed import KeyedState
from workloads.jobs.spark_stream import Writer

Key = tuple[str, int]  # campaign, start of the window in epoch ms
KEY = ("campaign_id", "window_start_ms")


class CountViews(KeyedState):
    """The total of a cell, and a timer at its end, which clears it, because all its events are late from then on."""

    NAME, SCHEMA = "total", "total bigint"

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms

    def handleInitialState(self, key: Key, initialState: Row, timerValues: Any) -> None:  # noqa: ARG002, N802, N803
        """Set the state of a cell that the batch over files has counted. Spark calls this in batch 0."""
        _, window_start_ms = key
        self._state.update((initialState["count"],))
        self._handle.registerTimer(window_start_ms + self._window_ms)

    def rows_came(self, key: Key, rows: Iterator[Row], watermark_ms: int) -> Iterable[Row]:  # noqa: ARG002
        campaign, window_start_ms = key
        known = self._state.get()
        if known is None:
            self._handle.registerTimer(window_start_ms + self._window_ms)
        total = (known[0] if known else 0) + sum(1 for _ in rows)
        self._state.update((total,))
        yield Row(campaign_id=campaign, window_start_ms=window_start_ms, count=total)

    def timer_expired(self, key: Key, watermark_ms: int) -> Iterable[Row]:  # noqa: ARG002
        self._state.clear()
        return ()


def totals(views: DataFrame, config: Config, known: DataFrame | None = None) -> DataFrame:
    """Return the changed totals. `known` has the counts of cells before the stream begins."""
    window_ms = config["window_ms"]
    in_windows = views.withWatermark("event_time", f"{config['watermark_ms']} milliseconds").select(
        "campaign_id", F.window("event_time", f"{window_ms} milliseconds")
    )
    # `window_time` is the window's end minus a microsecond, and carries the watermark.
    cells = in_windows.select(
        "campaign_id",
        F.unix_millis("window.start").alias("window_start_ms"),
        F.window_time("window").alias("event_time"),
    )
    return cells.groupBy(*KEY).transformWithState(
        CountViews(window_ms),
        "campaign_id string, window_start_ms bigint, count bigint",
        "update",
        "eventTime",
        initialState=known.groupBy(*KEY) if known else None,
    )


def start_query(session: SparkSession, config: Config) -> StreamingQuery:
    parse, ads, write = (
        PARSERS[spark.chosen_parser(config)],
        read_ads(connect(config)),
        spark.make_writer(config),
    )
    if not config["history"]:
        views = spark.views_of([Part(spark_stream.read_records(session, config))], parse, ads)
        return spark_stream.start(totals(views, config), config, write)
    history_files.refuse(config, FIELDS)
    old = spark.views_of([spark_history.files(session.read, config)], parse, ads)
    new = spark_history.kafka(spark_stream.of_topic(session.readStream, config), config)
    known = spark.count_views(old, config["window_ms"])
    stream = totals(spark.views_of([new], parse, ads), config, known)
    return spark_stream.start(stream, config, with_known(known, write))


def with_known(known: DataFrame, write: Writer) -> Writer:
    """Return a writer that in batch 0 also writes the known cells: the stream emits nothing for a cell without new
    events. A repeated batch writes the same.
    """

    def write_all(counts: DataFrame, batch: int) -> None:
        if batch == 0:
            rows = [*known.collect(), *counts.collect()]
            cells = {(row["campaign_id"], row["window_start_ms"]): row for row in rows}
            counts = known.sparkSession.createDataFrame([*cells.values()], known.schema)
        write(counts, batch)

    return write_all


def main(config_path: str) -> int:
    config = read_config(config_path)
    tell_settings(config["progress_path"], spark.own_settings(config))
    return spark_stream.run(config, lambda session: start_query(session, config))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
