"""A data source of Spark that compares a topic with the plan of its backlog, a task for each partition.

Each of its partitions reads one of the topic with harness/kafka_log/against_plan.py, and has one row. Nothing
is shuffled, and no pandas is needed. harness/kafka_log/spark_check_job.py is the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from generators.spark_plan import Plan
from harness.kafka_log.against_plan import Compared, of_partition
from harness.kafka_log.recount import Span
from harness.model import KafkaAddress

NAME, ASKED = "streamgauge-check", "asked"
COLUMNS = [field.name for field in fields(Compared)]


@dataclass(frozen=True)
class Asked:
    """A topic, where its partitions end, and its plan."""

    plan: Plan
    bootstrap: str
    librdkafka: dict[str, str]
    topic: str
    ends: dict[int, int]


class CheckSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return ", ".join(f"{name} long" for name in COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's own signature
        return CheckReader(self.options[ASKED])


class CheckReader(DataSourceReader):
    def __init__(self, asked: str) -> None:
        self._asked = asked

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in sorted(self._decoded().ends)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        asked, number = self._decoded(), partition.value
        address = KafkaAddress(asked.bootstrap, librdkafka=asked.librdkafka)
        found = of_partition(asked.plan, address, asked.topic, Span(number, 0, asked.ends[number]))
        yield pa.RecordBatch.from_pydict({name: [value] for name, value in zip(COLUMNS, astuple(found), strict=True)})

    def _decoded(self) -> Asked:
        return msgspec.json.decode(self._asked, type=Asked)
