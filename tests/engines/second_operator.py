"""Which events a second stateful operator of Spark drops as late, seen by runs: every event has a number, and those
that do not come out at the end were dropped by the first operator or by the second.

    python -m tests.engines.second_operator

Files of events are read one a batch. Each batch's watermark is read from the checkpoint, so that for every event it is
known by which batches' watermarks it was late.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)

from harness.engines.spark.checkpoint import numbers
from tests.engines.parse_in_python import make_session

BATCHES, EVENTS, USERS = 12, 60, 3
STEP_MS, LATE_MS, WATERMARK_MS, SMALL_MS, LARGE_MS, APART_MS = 4_000, 30_000, 5_000, 10_000, 30_000, 20_000


@dataclass(frozen=True)
class Event:
    number: int
    batch: int
    user: int
    at_ms: int


@dataclass(frozen=True)
class Seen:
    """Numbers of the events that came out, and the watermark in the checkpoint of each batch."""

    rows: list[tuple[int, ...]]
    watermarks_ms: list[int]

    @property
    def events(self) -> set[int]:
        return {number for row in self.rows for number in row}

    def before(self, event: Event) -> int:
        """The watermark of the batch before the event's own: what its batch drops by, with one operator."""
        return self.watermarks_ms[event.batch - 1] if event.batch else 0


def events(seed: int) -> list[Event]:
    """The last one closes all that is open."""
    draw = random.Random(seed)
    found = [
        Event(
            batch * EVENTS + number, batch, draw.randrange(USERS), LATE_MS + batch * STEP_MS - draw.randrange(LATE_MS)
        )
        for batch in range(BATCHES)
        for number in range(EVENTS)
    ]
    return [*found, Event(len(found), BATCHES, USERS, 10 * BATCHES * LATE_MS)]


def aggregates_twice(given: DataFrame) -> DataFrame:
    small = given.groupBy("user", F.window("at", f"{SMALL_MS} milliseconds"))
    counted = small.agg(F.collect_list("number").alias("numbers"))
    large = counted.groupBy("user", F.window(F.window_time("window"), f"{LARGE_MS} milliseconds"))
    return large.agg(F.flatten(F.collect_list("numbers")).alias("numbers"))


def joins_an_aggregate(given: DataFrame) -> DataFrame:
    """Each event with the windows of its user that were over by then."""
    windows = given.groupBy(F.col("user").alias("of"), F.window("at", f"{SMALL_MS} milliseconds")).count()
    over = windows.select("of", F.window_time("window").alias("over"))
    near = F.expr(f"user = of AND over < at AND over >= at - INTERVAL {APART_MS} MILLISECONDS")
    return given.join(over, near, "leftOuter").select(F.array("number").alias("numbers"))


def aggregates_a_join(given: DataFrame) -> DataFrame:
    """Pairs of a user's events that are not far apart, by the time of the earlier one."""
    later = given.select(F.col("user").alias("of"), F.col("at").alias("then"), F.col("number").alias("second"))
    near = F.expr(f"user = of AND then > at AND then <= at + INTERVAL {APART_MS} MILLISECONDS")
    pairs = given.join(later, near)
    windows = pairs.groupBy("user", F.window("at", f"{SMALL_MS} milliseconds"))
    pair = F.struct("number", "second")
    return (
        windows.agg(F.collect_list(pair).alias("pairs"))
        .select(F.explode("pairs").alias("pair"))
        .select(F.array("pair.number", "pair.second").alias("numbers"))
    )


PLANS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "an aggregate of an aggregate": aggregates_twice,
    "a join with an aggregate": joins_an_aggregate,
    "an aggregate of a join": aggregates_a_join,
}


def see(session: SparkSession, folder: Path, plan: str, given: list[Event]) -> Seen:
    """Run a plan over all events, a batch at a time."""
    source, checkpoint, name = folder / "source", folder / "checkpoint", plan.replace(" ", "_")
    source.mkdir(parents=True)
    for batch in range(BATCHES + 1):
        path = source / f"{batch:03}.json"
        rows = [
            {"number": each.number, "user": each.user, "at_ms": each.at_ms} for each in given if each.batch == batch
        ]
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        os.utime(path, (batch, batch))  # the oldest is read first
    session.conf.set("spark.sql.shuffle.partitions", 1)
    read = session.readStream.schema("number bigint, user bigint, at_ms bigint").option("maxFilesPerTrigger", 1)
    timed = read.json(str(source)).withColumn("at", F.timestamp_millis("at_ms"))
    asked = PLANS[plan](timed.withWatermark("at", f"{WATERMARK_MS} milliseconds"))
    writer = asked.writeStream.format("memory").queryName(name).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    rows_seen = [tuple(row["numbers"]) for row in session.table(name).collect()]
    return Seen(
        rows_seen, [_watermark_ms(checkpoint / "offsets" / str(each)) for each in numbers(checkpoint / "offsets")]
    )


def _watermark_ms(plan: Path) -> int:
    return int(json.loads(plan.read_text().splitlines()[1])["batchWatermarkMs"])


def ends_ms(event: Event) -> int:
    return (event.at_ms // SMALL_MS + 1) * SMALL_MS


def in_time_for_its_window(seen: Seen, event: Event) -> bool:
    return ends_ms(event) > seen.before(event)


def in_time_itself(seen: Seen, event: Event) -> bool:
    return event.at_ms > seen.before(event)


def pairs(seen: Seen, given: list[Event]) -> dict[tuple[int, ...], bool]:
    """Those that a join makes of events in time, and whether the watermark in the checkpoint had passed the window of
    the earlier one when the pair was made."""
    here = [each for each in given if in_time_itself(seen, each)]
    return {
        (one.number, other.number): ends_ms(one) <= max(seen.before(one), seen.before(other))
        for one in here
        for other in here
        if one.user == other.user and one.at_ms < other.at_ms <= one.at_ms + APART_MS
    }


def said(plan: str, seen: Seen, given: list[Event]) -> str:
    sent = {each.number for each in given[:-1]}
    for_window = {each.number for each in given[:-1] if in_time_for_its_window(seen, each)}
    itself = {each.number for each in given[:-1] if in_time_itself(seen, each)}
    if plan == "an aggregate of a join":
        made, rows = pairs(seen, given), set(seen.rows)
        late = {pair for pair, is_late in made.items() if is_late}
        return f"{len(made)} pairs of events in time, {len(rows)} came out, {len(late & rows)} of {len(late)} late ones"
    return (
        f"{len(sent)} events, {len(for_window)} in time for their window, {len(itself)} in time themselves; of these "
        f"{len(seen.events & for_window)} and {len(seen.events & itself)} came out, and {len(seen.events)} in all"
    )


def main() -> int:
    given, session = events(seed=1), make_session()
    for plan in PLANS:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{plan}: {said(plan, see(session, Path(folder), plan, given), given)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
