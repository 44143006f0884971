"""Let Spark read the log of a run: a task for each partition parses its records, and compares them with the plan by the
functions of the judge. Their recounts are added. The records come back as one log, and the verdict is made from it.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa

from generators.schedule import Schedule
from harness.engines import environments
from harness.engines import manifest as manifests
from harness.engines.spark.own_job import ENGINE, SparkJob
from harness.judging.recounted import Recounted
from harness.kafka_log import recount
from harness.kafka_log.recount import Columns
from harness.metering.job_cost import JobCost, Used
from harness.model import HarnessError, RunSpec, is_remote_master, workers_of_master
from harness.runner.world.recount_task import Recount
from harness.util.wait import wait_until
from workloads.registry import codec_of

MANY = 50_000_000  # records, a cluster reads more than these without being asked
JOB, RECORDS = "harness.kafka_log.spark_recount_job", "records"
POLL_S = 0.5


@dataclass(frozen=True)
class SparkAnswer:
    """The answer of Spark, and its cost."""

    recounted: Recounted
    used: Used


def is_wanted(spec: RunSpec) -> bool:
    """Return whether Spark is to read the log: if asked, or if there is a cluster, and the plan has many records."""
    if spec.recount != "auto":
        return spec.recount == "spark"
    has_cluster = is_remote_master(spec.master) or workers_of_master(spec.master) > 0
    return has_cluster and Schedule(spec.tape).total > MANY


def recounted(
    asked: Recount, ends: Mapping[int, int], conf: Mapping[str, str], private: Path, log: Path
) -> SparkAnswer:
    """Let Spark read the log, and leave its records in a private folder. Raise HarnessError if Spark fails."""
    surroundings = environments.prepare(manifests.load(ENGINE), lambda _: None)
    answer, cost = private / "answer.json", JobCost()
    (private / RECORDS).mkdir(parents=True)
    job = SparkJob(JOB, surroundings, private, log)
    config = {"run": asked.source.name, "asked": asked.as_text(), "ends": dict(ends)}
    places = {"folder": str(private / RECORDS), "answer": str(answer)}
    with job.running(asked.spec.master, conf, {**config, **places}):

        def over() -> bool:
            cost.take(job.pids())
            return not job.child.alive()

        wait_until(over, deadline_s=math.inf, what="the end of Spark", every_s=POLL_S)
    if job.child.returncode() or not answer.is_file():
        raise HarnessError(f"Spark could not read the log back: {job.reason()}. Its log is {log}.")
    return SparkAnswer(msgspec.json.decode(answer.read_bytes(), type=Recounted), cost.used())


def parts_in(private: Path, asked: Recount) -> Generator[Columns]:
    """Yield the records in the order of the log, and delete what was read. The first part is empty."""
    yield recount.no_records(codec_of(asked.source.tape), stamped=asked.source.stamped)
    for file in sorted((private / RECORDS).iterdir()):
        with pa.OSFile(str(file)) as octets:
            table = pa.ipc.open_stream(octets).read_all()
        file.unlink()
        yield {name: table.column(name).to_numpy() for name in table.column_names}
