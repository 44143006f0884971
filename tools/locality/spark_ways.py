"""Counts records in a query of Spark, with a shuffle between making and counting them, or without one.

    python -m tools.locality.spark_ways PORT FOLDER

All is done by Spark's own expressions in its JVM: one task makes the records, and one counts them.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

LOOPBACK = "127.0.0.1"
DIGITS = 20  # of a record's number, which is its end
FIRST_RECORDS, GROWTH = 20_000, 8.0


def make_session(folder: str) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    settings = {
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": folder,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}",
        # Records of equal bytes would be compressed to nothing.
        "spark.shuffle.compress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("streamgauge-locality")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def query(session: SparkSession, *, shuffled: bool, size: int, count: int) -> DataFrame:
    """Return the query whose one row has the number of records, their bytes, and the sum of their numbers."""
    number = f.lpad(f.col("id").cast("string"), DIGITS, "0")
    records = session.range(0, count, 1, 1).select("id", f.concat(f.lit("x" * (size - DIGITS)), number).alias("record"))
    if shuffled:
        records = records.repartition(1)
    return records.agg(f.count("*"), f.sum(f.octet_length("record")), f.sum("id"))


def is_shuffled(answer: DataFrame) -> bool:
    plan = answer._jdf.queryExecution().executedPlan().toString()
    return "Exchange" in plan


def larger(count: int, took_s: float, time_s: float) -> int:
    """Return how many records to take next. Never fewer: a slow query may have been slow for other reasons."""
    return int(count * min(GROWTH, max(1.0, time_s / took_s)))


class Queries:
    """Runs the queries, each with so many records that it takes about the time that was asked for."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._counts: dict[tuple[str, int], int] = {}

    def answer(self, way: str, size: int, time_ms: int) -> dict[str, Any]:
        time_s = time_ms / 1000
        if (way, size) not in self._counts:
            self._counts[way, size] = self._find_count(way, size, time_s)
        count = self._counts[way, size]
        found = self._run(way, size, count)
        self._counts[way, size] = larger(count, found["took_s"], time_s)
        return found

    def _find_count(self, way: str, size: int, time_s: float) -> int:
        """The first query is slow, whatever its size, because it is compiled."""
        self._run(way, size, FIRST_RECORDS)
        count = FIRST_RECORDS
        while (took_s := self._run(way, size, count)["took_s"]) < time_s / 2:
            count = larger(count, took_s, time_s)
        return count

    def _run(self, way: str, size: int, count: int) -> dict[str, Any]:
        asked = query(self._session, shuffled=way == "shuffle", size=size, count=count)
        begin = time.monotonic()
        received = list(asked.collect()[0])
        took_s = time.monotonic() - begin
        sent = [count, count * size, count * (count - 1) // 2]
        place = "two stages" if is_shuffled(asked) else "one stage"
        return {"sent": sent, "received": received, "took_s": took_s, "place": place}


def main(port: str, folder: str) -> None:
    queries = Queries(make_session(folder))
    with socket.create_connection((LOOPBACK, int(port))) as connection, connection.makefile("rw") as lines:
        for line in lines:
            way, size, time_ms = line.split()
            lines.write(json.dumps(queries.answer(way, int(size), int(time_ms))) + "\n")
            lines.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
