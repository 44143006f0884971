"""The reference job of streaming ETL: one plain process that writes Parquet files, and lists those that count.

    python reference.py CONFIG.json

The list has the form of Spark's file sink: a folder `_spark_metadata` with a file for each batch. Such a file appears
all at once, and it holds the offsets of its batch too. So a crash loses a batch with its offsets, or keeps both. Files
that a crash left behind are in no list.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import msgspec
import pyarrow as pa
from confluent_kafka import KafkaException
from pyarrow import parquet

from workloads.jobs.batches import until_told
from workloads.jobs.plain_process import CONSUME_MAX, open_consumer
from workloads.jobs.progress_log import ProgressLog
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config, read_config

TABLE, LIST, ADS = "events", "_spark_metadata", "ads"
WRITE_EVERY_S = 0.5
CONSUME_WAIT_S = 0.05
TIME = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema({"event_id": pa.int64(), "event_time": TIME, "campaign_id": pa.string(), "event_type": pa.string()})


class Event(msgspec.Struct):
    """The fields of an event that a row needs. A record without them is dropped."""

    ad_id: str
    event_type: str
    event_time: str


class CleanRow(NamedTuple):
    event_id: int
    event_time: int
    campaign_id: str
    event_type: str


decode = msgspec.json.Decoder(Event).decode


def cleaned(key: bytes | None, value: bytes | None, ads: Mapping[str, str]) -> CleanRow | None:
    """Return the row of a record; None if it is no JSON object with an ad of the table, a type and a time."""
    try:
        event = decode(value or b"")
        return CleanRow(int(key or b"", 16), int(event.event_time), ads[event.ad_id], event.event_type)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, KeyError):
        return None


class Table:
    """A folder of Parquet files that is partitioned by hour, and its list."""

    def __init__(self, folder: Path, hour_ms: int) -> None:
        self._path, self._list, self._hour_ms = folder, folder / LIST, hour_ms
        self._list.mkdir(parents=True, exist_ok=True)

    def done(self) -> tuple[int, dict[int, int]]:
        """Return the number of the next batch, and the offsets at which it begins."""
        numbers = [int(path.name) for path in self._list.iterdir() if path.name.isdecimal()]
        if not numbers:
            return 0, {}
        last = json.loads((self._list / str(max(numbers))).read_text(encoding="utf-8").splitlines()[0])
        return max(numbers) + 1, {int(partition): end for partition, end in last["offsets"].items()}

    def commit(self, number: int, rows: Iterable[CleanRow], offsets: Mapping[int, int]) -> None:
        by_hour: dict[int, list[CleanRow]] = defaultdict(list)
        for row in rows:
            by_hour[row.event_time - row.event_time % self._hour_ms].append(row)
        files = [self._write(number, hour_ms, some) for hour_ms, some in sorted(by_hour.items())]
        lines = [json.dumps({"offsets": offsets}), *(json.dumps({"path": file.as_uri()}) for file in files)]
        part = self._list / f".{number}.part"
        with part.open("w", encoding="utf-8") as file:
            file.write("\n".join(lines))
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._list / str(number))

    def _write(self, number: int, hour_ms: int, rows: Sequence[CleanRow]) -> Path:
        hour = datetime.fromtimestamp(hour_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        path = self._path / f"hour={quote(hour, safe=' ')}" / f"batch-{number:06d}.parquet"
        path.parent.mkdir(exist_ok=True)
        columns = dict(zip(CleanRow._fields, zip(*rows, strict=True), strict=True))
        parquet.write_table(
            pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in columns}), path
        )
        return path


def main(config_path: str) -> None:
    config = read_config(config_path)
    ads = cast(dict[str, str], connect(config).hgetall(ADS))
    run(config, ads, Table(Path(config["folder"]) / TABLE, config["window_ms"]))


def run(config: Config, ads: Mapping[str, str], table: Table) -> None:
    stopped, progress = until_told(), ProgressLog(config["progress_path"])
    batch, offsets = table.done()
    consumer = open_consumer(config, offsets)
    taken: list[Any] = []
    written_s = time.monotonic()
    while not stopped.is_set():
        taken += map(sound, consumer.consume(CONSUME_MAX, CONSUME_WAIT_S))
        if not taken or time.monotonic() - written_s < WRITE_EVERY_S:
            continue
        rows = [cleaned(message.key(), message.value(), ads) for message in taken]
        offsets |= {message.partition(): message.offset() + 1 for message in taken}
        table.commit(batch, [row for row in rows if row], offsets)
        progress.write(batch=batch, rows=len(rows), offsets=offsets, unusable=rows.count(None))
        batch, taken, written_s = batch + 1, [], time.monotonic()
    consumer.close()


def sound(message: Any) -> Any:
    if error := message.error():
        raise KafkaException(error)
    return message


if __name__ == "__main__":
    main(sys.argv[1])
