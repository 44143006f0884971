"""The Spark job with a state written by hand: a `transformWithState` that keeps the panes of each reader's articles.

    python spark_tws.py CONFIG.json

A read goes into the state once, and not into each of its windows: they are made from the panes. Spark drops a read
when its last window is over, thus its event time here is the end of that window. The windows that are over before then
are left out by the job. Both have to go by one watermark. Spark drops by the one of the batch before, unless the job is
said to have no second stateful operator (`allowMultiple` in spark_tws.toml): then it drops by the one that a job reads.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import spark_stream
from workloads.jobs.reads import MINUTE, Reads, Sliding
from workloads.jobs.run_config import Config
from workloads.jobs.spark_keyed import KeyedState
from workloads.readers_distinct.jobs.spark import make_writer, reads_of

STATE = """
panes array<struct<article: string, panes: array<bigint>>>,
windows array<struct<opens: bigint, reads: bigint, articles: bigint>>
"""
OUTPUT = "reader string, opens bigint, reads bigint, articles bigint"


class CountArticles(KeyedState):
    """The state of a reader, and a timer at the end of its last window, which clears it."""

    NAME, SCHEMA = "reads", STATE

    def __init__(self, windows: Sliding) -> None:
        self._windows = windows

    def rows_came(self, key: tuple[str], rows: Iterator[Row], watermark_ms: int) -> Iterable[Row]:
        reads = self._known()
        changed: set[int] = set()
        for row in rows:
            pane = self._windows.pane_of(row["read_ms"])
            reads.add(row["article"], pane)
            changed.update(self._windows.holding(pane))
        reads.forget(watermark_ms)
        self._keep(reads)
        (reader,) = key
        for opens in changed:
            if opens + self._windows.length_ms > watermark_ms:
                yield Row(reader=reader, opens=opens, reads=reads.reads[opens], articles=reads.articles[opens])

    def timer_expired(self, key: tuple[str], watermark_ms: int) -> Iterable[Row]:  # noqa: ARG002
        """Forget what is over. A read may have come since the timer was set: then the rest stays."""
        reads = self._known()
        reads.forget(watermark_ms)
        if reads.panes:
            self._keep(reads)
        else:
            self._state.clear()
        return ()

    def _known(self) -> Reads:
        panes, windows = self._state.get() or ((), ())
        reads = Reads(self._windows)
        reads.panes = {article: list(each) for article, each in panes}
        reads.reads = Counter({opens: count for opens, count, _ in windows})
        reads.articles = Counter({opens: count for opens, _, count in windows})
        return reads

    def _keep(self, reads: Reads) -> None:
        windows = [(opens, count, reads.articles[opens]) for opens, count in reads.reads.items()]
        self._state.update((list(reads), windows))
        self._handle.registerTimer(max(reads.reads, default=0) + self._windows.length_ms)


def counted(reads: DataFrame, watermark_ms: int, windows: Sliding) -> DataFrame:
    """Return the changed windows. The watermark is that of the reads, as their event time here is later by a window."""
    read_ms = F.unix_millis("read_at")
    ends = F.timestamp_millis(read_ms - F.pmod(read_ms, F.lit(windows.slide_ms)) + windows.length_ms)
    timed = reads.select("reader", "article", read_ms.alias("read_ms"), ends.alias("last_window_ends"))
    late = timed.withWatermark("last_window_ends", f"{watermark_ms + windows.length_ms} milliseconds")
    return late.groupBy("reader").transformWithState(CountArticles(windows), OUTPUT, "update", "eventTime")


def start_query(session: SparkSession, config: Config, windows: Sliding = MINUTE) -> StreamingQuery:
    cells = counted(reads_of(spark_stream.read_records(session, config)), config["watermark_ms"], windows)
    return spark_stream.start(cells, config, make_writer(config))


if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], start_query))
