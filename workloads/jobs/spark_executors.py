"""Lets every executor of a cluster read a file that the driver wrote beside the checkpoint, and write one there.

    python spark_executors.py CONFIG.json ANSWER.json

It runs before a job with the same run config. A cluster whose executors do not share that folder loses the state of a
query as soon as an executor or the driver is lost. The answer has the executors, their versions of Spark, and which of
them failed. It uses the JVMs of the executors alone: their Python may be another one.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from workloads.jobs import spark_stream
from workloads.jobs.run_config import read_config

STILL_S, DEADLINE_S = 3.0, 60.0  # until no further executor registers, and until the first one has
TRIES = 5  # of jobs, until every executor had a task
PARTS_PER_CORE = 4
LONGEST = 1500  # characters of an error
SETTINGS = {
    "spark.task.maxFailures": "1",  # the first task that fails names its executor
    "spark.log.level": "WARN",  # the reason why a master refuses is a warning
    "spark.sql.files.maxPartitionBytes": "1",  # a file is a task
}
VERSION = "java_method('org.apache.spark.package', 'SPARK_VERSION')"
HOST = "java_method('java.net.InetAddress', 'getLocalHost')"


def main(config_path: str, answer: str) -> int:
    config = read_config(config_path)
    options = {**config["options"], **SETTINGS}
    session = spark_stream.make_session({**config, "options": options})
    told = proved(session, f"{config['checkpoint']}-seen")
    session.stop()
    part = Path(f"{answer}.part")
    part.write_text(json.dumps(told), encoding="utf-8")
    part.replace(answer)
    return 0


def proved(session: SparkSession, folder: str) -> dict[str, Any]:
    """Run the job until each executor had a task, or one has failed."""
    known, files = await_executors(session), Files(session, folder)
    versions: dict[str, str] = {}
    failed: list[str] = []
    why = ""
    cores = sum(cores for _, _, cores in executors(session))
    try:
        for number in range(TRIES if known else 0):
            written = files.write(f"in-{number}", cores * PARTS_PER_CORE)
            copy_by_executors(session, f"{folder}/in-{number}", f"{folder}/out-{number}")
            found = files.read(f"out-{number}")
            versions |= {host: version for _, version, host in found}
            if missing := len(written - {token for token, _, _ in found}):
                why = f"{missing} of {len(written)} files that executors wrote are not there for the driver"
            if why or all(done for done, _ in tasks(session).values()):
                break
    except (PySparkException, Py4JError) as error:
        failed = sorted(known.get(name, name) for name, (_, wrong) in tasks(session).items() if wrong)
        why = str(error)[:LONGEST]
    finally:
        files.delete()
    return {
        "driver": session.conf.get("spark.driver.host"),
        "version": session.version,
        "executors": sorted(known.values()),
        "versions": versions,
        "failed": failed,
        "why": why,
    }


def copy_by_executors(session: SparkSession, source: str, target: str) -> None:
    read = session.read.text(source, wholetext=True)
    read.selectExpr(f"concat_ws(' ', trim(value), {VERSION}, {HOST}) AS value").write.text(target)


def await_executors(session: SparkSession) -> dict[str, str]:
    """Return the address of each executor, when for a while no further one has registered."""
    begun_s = still_s = time.monotonic()
    known: dict[str, str] = {}
    while True:
        found = {name: host for name, host, _ in executors(session)}
        now_s = time.monotonic()
        still_s = still_s if set(found) == set(known) else now_s
        known = found
        if now_s - begun_s > DEADLINE_S or (known and now_s - still_s > STILL_S):
            return known
        time.sleep(0.1)


def executors(session: SparkSession) -> Iterator[tuple[str, str, int]]:
    """Yield name, host and cores of each live executor."""
    for each in _summaries(session):
        yield each.id(), each.hostPort(), each.totalCores()


def tasks(session: SparkSession) -> dict[str, tuple[int, int]]:
    """Return how many tasks each executor completed, and in how many it failed."""
    return {each.id(): (each.completedTasks(), each.failedTasks()) for each in _summaries(session)}


def _summaries(session: SparkSession) -> Iterator[Any]:
    context: Any = session.sparkContext._jsc.sc()
    found = context.statusStore().executorList(True)
    yield from (each for each in map(found.apply, range(found.size())) if each.id() != "driver")


class Files:
    """Files in the folder of the checkpoint as the driver sees them, on any file system."""

    def __init__(self, session: SparkSession, folder: str) -> None:
        self._jvm: Any = session._jvm
        self._folder = folder
        self._system = self._path("").getFileSystem(session.sparkContext._jsc.hadoopConfiguration())

    def write(self, name: str, count: int) -> set[str]:
        """Write so many files with a random text each, and return the texts."""
        texts = {secrets.token_hex(8) for _ in range(count)}
        for text in texts:
            stream = self._system.create(self._path(f"{name}/{text}"))
            stream.write(bytearray(text.encode()))
            stream.close()
        return texts

    def read(self, name: str) -> list[tuple[str, str, str]]:
        """Return the lines of the files: a text, a version and a host each."""
        lines: list[tuple[str, str, str]] = []
        for status in self._system.listStatus(self._path(name)):
            if status.getPath().getName().startswith("part-"):
                stream = self._system.open(status.getPath())
                text = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
                stream.close()
                for line in text.splitlines():
                    token, version, host = line.split(" ", 2)
                    lines.append((token, version, host))
        return lines

    def delete(self) -> None:
        self._system.delete(self._path(""), True)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._folder}/{name}" if name else self._folder)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
