"""Writes a stream of Spark into a table: Spark's own sink of a format, or functions of ours for each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.run_config import Config
from workloads.jobs.spark_stream import Writer

Step = Callable[[DataFrame, int, Config], None]


class Native(NamedTuple):
    """Spark's own sink of the format. It gets each row once, when the query has finished with it."""

    begin: Callable[[DataStreamWriter, Config], StreamingQuery]


def by_sink(rows: DataFrame, sink: Native, config: Config) -> StreamingQuery:
    writer = rows.writeStream.outputMode("append").option("checkpointLocation", config["checkpoint"])
    return sink.begin(writer.trigger(processingTime=config["trigger"]), config)


def by_steps(steps: Sequence[Step], config: Config) -> Writer:
    """Return a writer with crash points before, between and after its steps."""
    points = CrashPoints(Path(config["crash_path"]))

    def write(batch: DataFrame, number: int) -> None:
        batch = batch.persist()
        if batch.isEmpty():  # no write, so no crash points
            return
        points.at("c1", number)
        for done, step in enumerate(steps):
            if done:
                points.at("c2", number)
            step(batch, number, config)
        points.at("c3", number)
        points.at("c4", number)
        batch.unpersist()

    return write
