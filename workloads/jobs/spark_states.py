"""Reads the state of a Spark job from copies of its checkpoint, by Spark's own state data source.

    python spark_states.py CONFIG.json COPIES TABLE

COPIES holds a folder for each copy, named by its number, and in that the checkpoint, named by the batch after which its
state is to be read. TABLE becomes a folder of Parquet files: a row for each cell, with the number of its copy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the usual name)
from pyspark.sql.types import IntegralType, StringType, StructField, StructType

from workloads.jobs import spark_stream
from workloads.jobs.run_config import read_config

INTERNAL = "$"  # prefix of timers, which Spark stores with the state of a processor


def read_state(session: SparkSession, checkpoint: Path, batch: int) -> DataFrame:
    """Read the state of the only stateful operator."""
    operators = {
        row["operatorId"]: row for row in session.read.format("state-metadata").load(str(checkpoint)).collect()
    }
    if len(operators) != 1:
        sys.exit(f"The query has {len(operators)} operators with a state; exactly one can be read.")
    [(number, operator)] = operators.items()
    reader = session.read.format("statestore").option("operatorId", number).option("batchId", batch)
    if variables := [*variables_of(operator)]:
        reader = reader.option("stateVarName", variables[0])
    return reader.load(str(checkpoint))


def variables_of(operator: Row) -> Iterator[str]:
    """Yield the names of a processor's states. An aggregate has none."""
    properties = json.loads(operator["operatorProperties"] or "{}")
    for variable in properties.get("stateVariables", ()):
        if not variable["stateName"].startswith(INTERNAL):
            yield variable["stateName"]


def cells(state: DataFrame) -> DataFrame:
    """Convert the state to rows like the results: the key, the start of the window in ms, and the count."""
    key, window, count = shape_of(state.schema)
    begins = F.unix_millis(window_of(window).getField("start")) if is_window(window) else window_of(window)
    return state.select(
        F.col("key").getField(key.name).alias("key"),
        begins.cast("string").alias("field"),
        F.col("value").getField(count.name).cast("string").alias("value"),
    )


def shape_of(schema: StructType) -> tuple[StructField, StructField, StructField]:
    """Find the fields of the key, the window and the count."""
    key, value = (schema[name].dataType for name in ("key", "value"))
    if isinstance(key, StructType) and isinstance(value, StructType):
        names = [field for field in key if isinstance(field.dataType, StringType)]
        windows = [field for field in key if is_window(field) or isinstance(field.dataType, IntegralType)]
        counts = [field for field in value if isinstance(field.dataType, IntegralType)]
        if len(names) == len(windows) == 1 and counts:
            return names[0], windows[0], counts[0]
    sys.exit(f"The state is not a count per name and window: its key is {key.simpleString()}, {value.simpleString()}.")


def is_window(field: StructField) -> bool:
    return isinstance(field.dataType, StructType) and "start" in field.dataType.names


def window_of(field: StructField) -> Column:
    return F.col("key").getField(field.name)


def main(config_path: str, copies: str, table: str) -> int:
    session = spark_stream.make_session(read_config(config_path))
    # RocksDB reports to the coordinator of state stores what it has loaded, even if it only reads. A session has a
    # coordinator once its streams were accessed.
    session.streams.resetTerminated()
    for checkpoint in sorted(Path(copies).glob("*/*/")):
        number, batch = int(checkpoint.parent.name), int(checkpoint.name)
        found = cells(read_state(session, checkpoint, batch)).withColumn("number", F.lit(number))
        found.write.mode("append").parquet(table)
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
