"""Spark on a standalone cluster: one that the run starts and strikes, and one of the user that it first has to prove.

The cluster of the user is made of the same class, so that a worker of it can see another folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from harness.drivers import scale as drive_scale
from harness.engines.spark.standalone import StandaloneCluster, home_of
from harness.experiments.compare import BUSY_CPU
from harness.model import Exit
from harness.rundir.store import Store
from harness.services import owners
from harness.util.wait import wait_until
from tests.engines.test_runs import check, run, start, told
from tests.engines.trial import SOON_UP, in_batches_of

BRIEF = ("--rate", "1000", "--duration", "20s", "--campaigns", "20", *SOON_UP, *in_batches_of(4000))
PATIENT = ("--patience", "3")  # two executors, a driver, a master and workers share two cores

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("fault", "proof"),
    [
        ("kill@c3:batch=3", "batch 3, which was replayed"),
        ("kill-worker(for=5s)@t>=5s", "the master counts 1 of 2 workers as alive"),
        ("kill-master(for=3s)@t>=5s", "it does not answer"),
        ("kill-task@t>=5s", "a later attempt of the same task succeeded"),
        ("add-worker@t>=5s", "the master counts 3 workers as alive"),
        ("remove-worker@t>=5s", "the master counts 1 worker as alive"),
        ("add-partitions(for=3s)@t>=5s", "events in them, the first of them"),
    ],
)
def test_a_cluster_that_loses_a_part_or_changes_its_size_counts_right(tmp_path, served, fault, proof):
    servers = () if fault.startswith("add-partitions") else served  # it strikes a Kafka of the run's own
    answer = run(tmp_path, *BRIEF, *PATIENT, *servers, "--cluster", "2", "--fault", fault)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert proof in check(answer, "fault")["sentence"]
    if fault.startswith(("kill-worker", "remove-worker")):
        assert any("Spark lost 1 executor" in note for note in _notes(answer))
    driver = (Path(answer["run"]) / "logs" / "engine-1.log").read_text(encoding="utf-8")
    assert "Unable to use shared archive" not in driver


def test_a_frozen_cluster_works_off_its_backlog_at_a_rate(tmp_path, served):
    """As in each run of `scale --executors`."""
    answer = run(tmp_path, *BRIEF, *PATIENT, *served, "--cluster", "2", "--fault", "pause(for=8s)@t>=6s")

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "no process is in state T any more" in check(answer, "fault")["sentence"]
    assert drive_scale.figures_of(Path(answer["run"])).get(BUSY_CPU, 0.0) > 0


def test_a_cluster_listens_on_loopback_alone_and_ends_with_a_killed_harness(tmp_path):
    arguments = ("--cluster", "2", "--rate", "500", "--duration", "60s", "--fault", "none", *PATIENT)
    harness = start(tmp_path, *arguments)
    mark = f"{harness.pid}:{owners.start_of(harness.pid)}:"
    wait_until(lambda: len(_executors(mark)) == 2, deadline_s=300, what="two executors of the cluster")
    ours = marked(mark)
    loopback = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    outside = {words_of(process)[-60:]: addresses - loopback for process in ours if (addresses := _listens_at(process))}
    os.kill(harness.pid, signal.SIGKILL)
    harness.communicate()

    wait_until(lambda: not alive(ours), deadline_s=60, what="the end of all of it", state=lambda: str(alive(ours)))
    assert {command: addresses for command, addresses in outside.items() if addresses} == {}


def test_a_cluster_of_the_user_is_proven_and_its_cost_is_withheld(tmp_path, served):
    with _of_user(tmp_path) as master:
        checkpoint = tmp_path / "shared"
        answer = run(tmp_path, *BRIEF, *PATIENT, *served, "--master", master, "--checkpoint", checkpoint)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert any("2 executors with Spark" in note for note in _notes(answer))
    measured = json.loads((Path(answer["run"]) / "measurement.json").read_bytes())
    if measured:  # a busy machine may have voided the load
        assert "engine" not in [cost["part"] for cost in measured["cost"]]
        assert "no processes of this run" in measured["cost_withheld"]


def test_a_checkpoint_that_a_worker_does_not_see_is_refused_before_the_load(tmp_path, served):
    checkpoint = tmp_path / "shared"
    checkpoint.mkdir()
    _skip_without_mounts(checkpoint)
    with _of_user(tmp_path, hidden=checkpoint) as master:
        answer = told(start(tmp_path, *BRIEF, *PATIENT, *served, "--master", master, "--checkpoint", checkpoint))

    assert answer["exit"] == Exit.BROKEN
    assert "Not every executor" in answer["error"]
    assert "Mount the same storage" in answer["error"]


def test_a_dead_master_is_told_before_anything_starts(tmp_path):
    answer = told(start(tmp_path, "--master", "spark://127.0.0.1:9"))

    assert answer["exit"] == Exit.BROKEN
    assert "No Spark master listens at 127.0.0.1:9" in answer["error"]
    assert not [*tmp_path.iterdir()]


@contextmanager
def _of_user(folder: Path, hidden: Path | None = None) -> Iterator[str]:
    """A master and two workers; `hidden` is a folder for which the second worker has another one in its place."""
    own, logs = folder / "cluster", folder / "cluster-logs"
    logs.mkdir()
    home = home_of(Path(sys.executable))
    if hidden:
        home = _with_hidden(home, own, hidden)
    cluster = StandaloneCluster(2, home, own, logs, os.environ)
    try:
        yield cluster.start()
    finally:
        cluster.stop()


def _with_hidden(home: Path, folder: Path, hidden: Path) -> Path:
    """Wrap Spark's program: the second worker gets mounts of its own."""
    spark = folder / "spark"
    (spark / "bin").mkdir(parents=True)
    for each in (*home.iterdir(), *(home / "bin").iterdir()):
        if each.name not in ("bin", "spark-class"):
            (spark / each.relative_to(home)).symlink_to(each)
    program = spark / "bin" / "spark-class"
    inner = f"mount -t tmpfs tmpfs {hidden} && exec {home}/bin/spark-class"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in\n*worker-2*) exec unshare -m sh -c \'{inner} "$@"\' sh "$@" ;;\n'
        f'*) exec {home}/bin/spark-class "$@" ;;\nesac\n'
    )
    program.chmod(0o700)
    return spark


def _skip_without_mounts(folder: Path) -> None:
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if shutil.which("unshare") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("NO HIDDEN CHECKPOINT IS TRIED: mounts of one's own take root, Linux and the program unshare")


def _notes(answer) -> list[str]:
    return [note for entry in Store.open(Path(answer["run"])).history("closed") for note in entry["notes"]]


def marked(mark: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter()
        if owners.environment_of(process).get(owners.OWNER_VARIABLE, "").startswith(mark)
    ]


def _executors(mark: str) -> list[psutil.Process]:
    return [each for each in marked(mark) if "CoarseGrainedExecutorBackend" in words_of(each)]


def words_of(process: psutil.Process) -> str:
    """Return its command line; "" if it has ended since."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def _listens_at(process: psutil.Process) -> set[str]:
    with suppress(psutil.NoSuchProcess):
        return {each.laddr.ip for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN}
    return set()


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if owners.is_running(process)]
