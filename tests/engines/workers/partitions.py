"""The Spark job, with the rows of each partition written by a Python worker of its own, which can be killed.

python partitions.py CONFIG.json
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial

from pyspark.sql import DataFrame, Row

from workloads.ad_impressions.jobs import spark
from workloads.ad_impressions.jobs.spark_parse import BEST, PARSERS
from workloads.jobs import spark_stream
from workloads.jobs.redis_results import connect
from workloads.jobs.redis_sinks import absolute, by_key
from workloads.jobs.run_config import Config, read_config


def partitions_writer(config: Config) -> spark_stream.Writer:
    write_partition = partial(_write_partition, config)

    def write(counts: DataFrame, _batch: int) -> None:
        counts.foreachPartition(write_partition)

    return write


def _write_partition(config: Config, rows: Iterable[Row]) -> None:
    with connect(config) as client:
        absolute(client, 0, by_key((row["campaign_id"], row["window_start_ms"], row["count"]) for row in rows))


def main(config_path: str) -> int:
    config = read_config(config_path)
    writer = partitions_writer(config)
    return spark_stream.run(config, lambda session: spark.start_query(session, config, PARSERS[BEST], writer))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
