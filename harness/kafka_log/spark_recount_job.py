"""Reads a log by Spark in rounds, each with a task for each partition. It writes the records of each part to a file,
and adds the recounts of all parts.

python -m harness.kafka_log.spark_recount_job CONFIG.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec

from generators.schedule import Schedule
from harness.judging.recounted import PartialRecount
from harness.kafka_log.spark_recount import (
    ASKED,
    BEGIN,
    NAME,
    PARTITION,
    RECORDS,
    RECOUNT,
    SPANS,
    RecountSource,
    unpacked,
)
from harness.runner.world.recount_task import Recount, file_of, rounds
from workloads.jobs import spark_stream
from workloads.jobs.run_config import read_config


def main(config_path: str) -> int:
    config = read_config(config_path)
    asked, folder = Recount.of_text(config["asked"]), Path(config["folder"])
    ends = {int(partition): end for partition, end in config["ends"].items()}
    whole: PartialRecount | None = None
    session = spark_stream.make_session(config)
    try:
        session.dataSource.register(RecountSource)
        for spans in rounds(ends):
            source = session.read.format(NAME).option(ASKED, config["asked"]).option(SPANS, json.dumps(spans))
            for row in source.load().collect():
                (folder / file_of(row[PARTITION], row[BEGIN])).write_bytes(row[RECORDS])
                found = unpacked(row[RECOUNT])
                if whole:
                    whole.merge(found)
                whole = whole or found
    finally:
        session.stop()
    if whole is None:
        raise SystemExit("there is nothing to read")
    Path(config["answer"]).write_bytes(msgspec.json.encode(whole.whole(Schedule(asked.spec.tape))))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
