"""Check before a load what must hold on a cluster of the user: its master answers, its executors have the driver's
version of Spark, and each of them sees the folder of the checkpoint.

A small Spark job proves it (workloads/jobs/spark_executors.py). What it lacks is said in one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.engines import complaint
from harness.model import HarnessError, servers_of_master
from harness.services.addresses import is_open
from harness.services.children import Child
from harness.util.texts import many, shown
from harness.util.wait import DeadlinePassed, wait_until

DEADLINE_S = 180.0
# A driver tries three times for 20 s each; its first warning has the reason.
UNREACHED = re.compile(r"Failed to connect to master")
ALL_UNREACHED = re.compile(r"All masters are unresponsive|Application has been killed")  # of several, one may be down
INCOMPATIBLE = re.compile(
    r"local class incompatible|InvalidClassException|Unsupported message|ClassNotFoundException: org\.apache\.spark"
)
LONGEST = 400


@dataclass(frozen=True)
class Told:
    """The answer of the job."""

    driver: str  # the address at which executors reach it
    version: str
    executors: tuple[str, ...]  # HOST:PORT
    versions: Mapping[str, str]  # of Spark, by host
    failed: tuple[str, ...]  # executors whose tasks failed
    why: str  # "" if every file was read and written


def reach(master: str) -> None:
    """Raise if no server of a standalone master listens. Nothing is started for that."""
    servers = servers_of_master(master)
    if servers and not any(map(is_open, servers)):
        raise HarnessError(
            f"No Spark master listens at {', '.join(servers)} (--master {master}). Start it, or correct the address; "
            f"`streamgauge run --cluster 2` starts one of its own."
        )


def answer_of(child: Child, answer: Path, master: str, log: str) -> Told:
    """Wait for the job. Raise as soon as its log shows that the master does not take it."""

    def over() -> bool:
        if why := refused(child.tail(complaint.REMEMBERED), len(servers_of_master(master))):
            raise HarnessError(f"The Spark master {master} did not take the driver: {why}. Its log is {log}.")
        return not child.alive()

    try:
        wait_until(over, deadline_s=DEADLINE_S, what=f"a first job on {master}")
    except DeadlinePassed as passed:
        raise HarnessError(f"{passed.missed} Its log is {log}.") from None
    finally:
        child.kill_group()
    if not answer.is_file():
        said = " ".join(complaint.reason(child.tail(complaint.REMEMBERED)))
        raise HarnessError(
            f"A first job on {master} ended with exit code {child.returncode()} and without an answer: "
            f"{shown(said, LONGEST)}. Its log is {log}."
        )
    return msgspec.json.decode(answer.read_bytes(), type=Told)


def refused(lines: Sequence[str], servers: int) -> str:
    """Return why the driver was not taken by a master with so many servers, as its log shows; "" if nothing does."""
    unreached = ALL_UNREACHED if servers > 1 else UNREACHED
    for line in lines:
        if INCOMPATIBLE.search(line):
            return f"it has another version of Spark ({shown(line.strip(), LONGEST)})"
        if unreached.search(line) or ALL_UNREACHED.search(line):
            return shown(line.strip(), LONGEST)
    return ""


def refuse_unfit(told: Told, master: str, checkpoint: str) -> None:
    """Raise if a load would be in vain, or its answer luck."""
    if not told.executors:
        raise HarnessError(
            f"{master} gave the driver no executor within a minute: all of its cores or memory are in use, or an "
            f"executor can't reach the driver at {told.driver}. Free some, or correct --conf spark.driver.host."
        )
    others = {host: version for host, version in told.versions.items() if version != told.version}
    if others:
        seen = ", ".join(f"{version} at {host}" for host, version in sorted(others.items()))
        raise HarnessError(
            f"The executors of {master} run another version of Spark ({seen}) than the driver ({told.version}). Use "
            f"the same on both, such as --engine spark@{next(iter(others.values()))}."
        )
    if told.why:
        whose = f"executor {', '.join(told.failed)}" if told.failed else f"{many(len(told.executors), 'executor')}"
        raise HarnessError(
            f"Not every executor of {master} sees the folder of the checkpoint, {checkpoint}: {whose} could not read "
            f"or write there what the driver wrote ({shown(_first(told.why), LONGEST)}). State would be lost with the "
            f"first executor. Mount the same storage at this path on all workers and on this machine (NFS, a "
            f"ReadWriteMany claim), or name a checkpoint on a shared file system, such as hdfs:// or s3a://."
        )


def in_words(told: Told) -> str:
    """Return a note on a cluster that is fit."""
    return (
        f"{many(len(told.executors), 'executor')} with Spark {told.version} read and wrote beside the checkpoint "
        f"before the load, and reached the driver at {told.driver}"
    )


def _first(why: str) -> str:
    """Return the cause within the error of a failed job."""
    lines = [line.strip(": ") for line in why.splitlines() if line.strip(": ")]
    return next(
        (line for line in lines if "FileNotFound" in line or "denied" in line or "does not exist" in line), lines[0]
    )
