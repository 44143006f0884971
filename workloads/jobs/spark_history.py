"""Older events in files and newer ones in Kafka as one input of a Spark query.

The run config (`history`) has a folder of files, their ends by partition (`ends`), the offsets where Kafka begins
(`begins`), and for a seam by time the moment (`until_ms`) before which events count from files. There are four ways to
read both, and only the first is right for every sink; the harness has to find the errors of the others.
`streamgauge.history` selects one.

`handed-over`: one query on one checkpoint reads the files to their end, then Kafka. Batch numbers, watermark and state
continue. Spark does not support that: another source is another query to it. But a checkpoint identifies its sources
only by the newest plan (offsets/N). So when the files are done, the offsets of the seam replace the files in that plan.
Each step is atomic and can be repeated.

`fresh`: the same two queries with a checkpoint each, as in a naive first start "from files". Cells across the seam
begin anew in the second query, and its batches are numbered from 0 again.

`union`: both as one stream with one watermark. It follows the newest event, which is in Kafka, so that files of a later
batch are late.

`union-each`: both as one stream with a watermark each. The smaller one counts, and that of the files stops at their
end: nothing is late from then on, and no window is ever closed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the usual name)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import history_files
from workloads.jobs.run_config import OWN_OPTION, Config
from workloads.jobs.spark_stream import LOT, Reader, of_topic, read_records

WAY_OPTION = OWN_OPTION + "history"
HANDED_OVER, FRESH, UNION, UNION_EACH = WAYS = ("handed-over", "fresh", "union", "union-each")
TAKEN = "files"  # among the sources of a checkpoint, a copy of the log of the files


class Part(NamedTuple):
    """Records, and for a seam by time the condition for events that count."""

    records: DataFrame
    counts: Column | None = None  # of event_time


# Starts a query over some parts, each with its own watermark. The last argument: end once all is read.
Start = Callable[[Sequence[Part], Config, bool], StreamingQuery]


class Queries(NamedTuple):
    """Two queries that run one after the other."""

    before: Callable[[SparkSession], StreamingQuery | None]
    begin: Callable[[SparkSession], StreamingQuery]


def queries(config: Config, start: Start, fields: Sequence[str]) -> Queries:
    if not config["history"]:
        return Queries(lambda _: None, lambda session: start([Part(read_records(session, config))], config, False))
    history_files.refuse(config, fields)
    way = chosen_way(config)
    if way in (UNION, UNION_EACH):
        return Queries(lambda _: None, lambda session: start(_both(session, config, way), config, False))
    return Queries(
        lambda session: _files_first(session, config, start, way),
        lambda session: _then_kafka(session, config, start, way),
    )


def chosen_way(config: Config) -> str:
    way: str = config["options"].get(WAY_OPTION, HANDED_OVER)
    if way not in WAYS:
        sys.exit(f"{WAY_OPTION} is {way!r}; give one of {', '.join(WAYS)}.")
    if way in (UNION, UNION_EACH) and config["history"]["until_ms"] is not None:
        sys.exit(f"{WAY_OPTION} = {way!r} has its seam by offset; leave --seam out.")
    return way


def _files_first(session: SparkSession, config: Config, start: Start, way: str) -> StreamingQuery | None:
    if way == HANDED_OVER and is_handed_over(Path(config["checkpoint"])):
        return None
    own = config if way == HANDED_OVER else {**config, "checkpoint": f"{config['checkpoint']}-files"}
    return start([files(session.readStream, config)], own, True)


def _then_kafka(session: SparkSession, config: Config, start: Start, way: str) -> StreamingQuery:
    if way == HANDED_OVER:
        hand_over(Path(config["checkpoint"]), {config["topic"]: history_files.starting_offsets(config)})
    return start([kafka(of_topic(session.readStream, config), config)], config, False)


def _both(session: SparkSession, config: Config, way: str) -> list[Part]:
    """The files come first, because that order gives their source its number."""
    old, new = files(session.readStream, config), kafka(of_topic(session.readStream, config), config)
    if way == UNION_EACH:
        return [old, new]
    texts = new.records.select(F.col("value").cast("string").alias("value"))
    return [Part(old.records.select("value").union(texts))]


def files(reader: Reader, config: Config) -> Part:
    """Read the files. In a stream a batch has one file per partition, the oldest first."""
    records = (
        reader.format("text")
        .option("recursiveFileLookup", "true")
        .option("lineSep", "\n")
        .option("maxFilesPerTrigger", str(config["partitions"]))
        .load(config["history"]["folder"])
    )
    until_ms = config["history"]["until_ms"]
    return Part(records, None if until_ms is None else F.col("event_time") < F.timestamp_millis(F.lit(until_ms)))


def kafka(reader: Reader, config: Config) -> Part:
    """Read the topic from the seam on. `reader` reads the topic from its beginning."""
    begins = {config["topic"]: history_files.starting_offsets(config)}
    records = reader.option("startingOffsets", json.dumps(begins)).load()
    until_ms = config["history"]["until_ms"]
    return Part(records, None if until_ms is None else F.col("event_time") >= F.timestamp_millis(F.lit(until_ms)))


def is_handed_over(checkpoint: Path) -> bool:
    plan = _newest_plan(checkpoint)
    return plan is not None and LOT not in json.loads(_lines(plan)[-1])


def hand_over(checkpoint: Path, offsets: dict[str, dict[str, int]]) -> None:
    """Replace the files by Kafka in a checkpoint. No query may be running on it."""
    plan = _newest_plan(checkpoint)
    if plan is None:
        sys.exit(f"The files were read, but {checkpoint} holds no plan of a batch to continue from.")
    sources = checkpoint / "sources"
    lots, taken = sources / "0", sources / TAKEN
    if not taken.exists():  # a copy of the log of the files as evidence
        part = sources / f".{TAKEN}.part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(lots, part)
        part.replace(taken)
    if not is_handed_over(checkpoint):
        version, metadata, _ = _lines(plan)
        part = plan.with_name(f".{plan.name}.part")
        part.write_text("\n".join((version, metadata, json.dumps(offsets))), encoding="utf-8")
        plan.with_name(f".{plan.name}.crc").unlink(missing_ok=True)
        part.replace(plan)
    shutil.rmtree(lots, ignore_errors=True)  # Kafka's source would look for its own log there


def _newest_plan(checkpoint: Path) -> Path | None:
    folder = checkpoint / "offsets"
    plans = [path for path in folder.iterdir() if path.name.isdecimal()] if folder.exists() else []
    return max(plans, key=lambda path: int(path.name), default=None)


def _lines(plan: Path) -> list[str]:
    return plan.read_text(encoding="utf-8").rstrip("\n").split("\n")
