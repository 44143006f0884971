"""The Spark job: the reads of each section by three policies for late ones, into Redis.

    python spark_tws.py CONFIG.json

Spark itself has one policy: it drops what is late before a stateful operator sees it. So the event time that Spark is
given lies so far behind that it drops nothing too early, with a watermark that is larger by as much. One
`transformWithState` then compares each window with that watermark, and keeps what Spark has no word for: corrections,
and a side output. Both have to go by one watermark: see `allowMultiple` in spark_tws.toml.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import spark_stream
from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.redis_results import connect
from workloads.jobs.redis_sinks import absolute, write_batch
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import whole_events
from workloads.jobs.spark_keyed import KeyedState
from workloads.jobs.spark_stream import Writer
from workloads.readers_late.jobs.policies import ASIDE_MS, LENGTH_MS, Counts, Windows, results

EVENT = "section string, read_at long"
STATE = """
emitted_ms bigint, windows array<struct<opens: bigint, first: bigint, again: bigint, aside: bigint>>
"""
OUTPUT = "section string, opens bigint, first bigint, again bigint, aside bigint"


class CountReads(KeyedState):
    """The windows of a section. One timer stands for the earliest time at which one is emitted or dropped."""

    NAME, SCHEMA = "windows", STATE

    def rows_came(self, key: tuple[str], rows: Iterator[Row], watermark_ms: int) -> Iterable[Row]:
        windows = self._known()
        for row in rows:
            windows.add(row["read_at"], watermark_ms)
        return self._emitted(*key, windows, watermark_ms)

    def timer_expired(self, key: tuple[str], watermark_ms: int) -> Iterable[Row]:
        return self._emitted(*key, self._known(), watermark_ms)

    def _emitted(self, section: str, windows: Windows, watermark_ms: int) -> list[Row]:
        emitted = windows.emit(watermark_ms)
        windows.forget(watermark_ms)
        self._keep(windows, watermark_ms)
        return [Row(section=section, opens=opens, **counts._asdict()) for opens, counts in emitted.items()]

    def _known(self) -> Windows:
        emitted_ms, windows = self._state.get() or (0, ())
        return Windows({opens: Counts(*counts) for opens, *counts in windows}, emitted_ms)

    def _keep(self, windows: Windows, emitted_ms: int) -> None:
        if windows.next_ms is None:
            self._state.clear()
            return
        self._state.update((emitted_ms, [(opens, *counts) for opens, counts in windows.counts.items()]))
        self._handle.registerTimer(windows.next_ms)


def counted(records: DataFrame, watermark_ms: int) -> DataFrame:
    """Return the windows that are emitted. A read can be dropped when its window takes nothing any more."""
    kept_ms = LENGTH_MS + ASIDE_MS
    reads = whole_events(records, EVENT).withColumn("is_dropped_at", F.timestamp_millis(F.col("read_at") + kept_ms))
    timed = reads.withWatermark("is_dropped_at", f"{watermark_ms + kept_ms} milliseconds")
    return timed.groupBy("section").transformWithState(CountReads(), OUTPUT, "update", "eventTime")


def rows_of(emitted: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Return the results of a window by their keys in Redis."""
    counts = Counts(emitted["first"], emitted["again"], emitted["aside"])
    return [(key, emitted["opens"], count) for key, count in results(emitted["section"], counts).items()]


def make_writer(config: Config) -> Writer:
    """Return a writer of totals: a batch that comes again writes the same."""
    client, crash_points = connect(config), CrashPoints(Path(config["crash_path"]))

    def write(emitted: DataFrame, batch: int) -> None:
        rows = [row for each in emitted.collect() for row in rows_of(each.asDict())]
        write_batch(absolute, client, batch, rows, crash_points)

    return write


def start_query(session: SparkSession, config: Config) -> StreamingQuery:
    emitted = counted(spark_stream.read_records(session, config), config["watermark_ms"])
    return spark_stream.start(emitted, config, make_writer(config))


if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], start_query))
