"""Compares a topic with the plan of its backlog by Spark.

python -m harness.kafka_log.spark_check_job CONFIG.json
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from harness.kafka_log.against_plan import Compared
from harness.kafka_log.spark_check import ASKED, COLUMNS, NAME, CheckSource
from workloads.jobs import spark_stream
from workloads.jobs.run_config import read_config


def main(config_path: str) -> int:
    config = read_config(config_path)
    session = spark_stream.make_session(config)
    try:
        session.dataSource.register(CheckSource)
        rows = session.read.format(NAME).option(ASKED, config[ASKED]).load().collect()
    finally:
        session.stop()
    found = [Compared(*(row[name] for name in COLUMNS)) for row in rows]
    Path(config["answer"]).write_bytes(msgspec.json.encode(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
