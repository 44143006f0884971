"""A data source of Spark that makes the records of a backlog: `spark.read.format("streamgauge-tape")`.

Its columns are those of Spark's Kafka sink (key, value, partition), and each task makes one partition of the topic, in
order. It needs no pandas. Register it with `spark.dataSource.register(TapeSource)`; the option `plan` is the JSON of a
`Plan` (generators/spark_plan.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from generators.by_partition import KEY, PARTITION, VALUE, Partition
from generators.spark_plan import Plan

NAME = "streamgauge-tape"
PLAN = "plan"


class TapeSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return f"{KEY} binary, {VALUE} binary, {PARTITION} int"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's own signature
        return TapeReader(self.options[PLAN])


class TapeReader(DataSourceReader):
    def __init__(self, plan: str) -> None:
        self._plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(Plan.of_text(self._plan).tape.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        plan = Plan.of_text(self._plan)
        yield from Partition(plan.tape, partition.value).batches(plan.epoch_ms)
