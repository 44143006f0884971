"""A data source of Spark that reads parts of a log and recounts them, a task for each part.

A row is one part: its records as Arrow's bytes, and their recount (harness/runner/world/recount_task.py). Nothing is
shuffled, and no pandas is needed. harness/kafka_log/spark_recount_job.py is the job.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from harness.judging.recounted import PartialRecount
from harness.kafka_log.recount import Columns, Span
from harness.runner.world.recount_task import Recount

NAME, ASKED, SPANS = "streamgauge-recount", "asked", "spans"
PARTITION, BEGIN, RECORDS, RECOUNT = "partition", "begin", "records", "recount"


class RecountSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return f"{PARTITION} int, {BEGIN} long, {RECORDS} binary, {RECOUNT} binary"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's own signature
        return RecountReader(self.options[ASKED], self.options[SPANS])


class RecountReader(DataSourceReader):
    def __init__(self, asked: str, spans: str) -> None:
        self._asked, self._spans = asked, spans

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(span) for span in json.loads(self._spans)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        span = Span(*partition.value)
        columns, recount = Recount.of_text(self._asked).read(span)
        row = {PARTITION: span.partition, BEGIN: span.begin, RECORDS: in_bytes(columns), RECOUNT: packed(recount)}
        types = {PARTITION: pa.int32(), BEGIN: pa.int64(), RECORDS: pa.binary(), RECOUNT: pa.binary()}
        yield pa.RecordBatch.from_pydict({name: pa.array([row[name]], type_) for name, type_ in types.items()})


def in_bytes(columns: Columns) -> bytes:
    table, sink = pa.table(dict(columns)), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(table)
    octets: bytes = sink.getvalue().to_pybytes()
    return octets


def packed(recount: PartialRecount) -> bytes:
    """Most of it is a bit for each event of the plan, and most bits are not set."""
    return zlib.compress(pickle.dumps(recount), 1)


def unpacked(octets: bytes) -> PartialRecount:
    found: PartialRecount = pickle.loads(zlib.decompress(octets))
    return found
