"""Flink's cluster, with scripts in the place of its JVMs: what is waited for, and what is said of an end."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.util.wait import wait_until
from workloads.ad_impressions.jobs import flink_cluster
from workloads.ad_impressions.jobs.flink_cluster import Cluster


class Rest(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"slots-available": 2}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port():
    """Of a JobManager that offers slots."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Rest) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@contextmanager
def cluster(home: Path, job_manager: str, port: int, workers: int = 1):
    (home / "bin").mkdir()
    (home / "bin" / "jobmanager.sh").write_text(job_manager)
    (home / "bin" / "taskmanager.sh").write_text(f"echo ${{@: -1}} >> {home}/started\nexec sleep 60\n")
    children = Cluster({"rest.address": "127.0.0.1", "rest.port": str(port)}, home, workers)
    try:
        yield children
    finally:
        children.stop()


def test_a_proxy_of_the_shell_is_not_asked_for_a_cluster_of_this_machine(tmp_path, port, monkeypatch):
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setattr(flink_cluster, "START_DEADLINE_S", 5.0)

    with cluster(tmp_path, "exec sleep 60\n", port) as children:
        children.wait_until_ready()
        assert children.keep()


def started(home: Path, count: int) -> list[str]:
    """The names of all TaskManagers so far, when there were so many."""
    found: list[str] = []

    def all_of_them() -> bool:
        with suppress(FileNotFoundError):
            found[:] = [line.rpartition("=")[2] for line in (home / "started").read_text().splitlines()]
        return len(found) == count

    wait_until(all_of_them, deadline_s=10, what=f"{count} TaskManagers to start")
    return sorted(found)


def test_as_many_task_managers_run_as_are_asked_for_and_a_dead_one_comes_back(tmp_path, port):
    with cluster(tmp_path, "exec sleep 60\n", port, workers=2) as children:
        children.wait_until_ready()
        assert started(tmp_path, 2) == ["worker-1-1", "worker-2-2"]
        assert children.keep(3)
        assert started(tmp_path, 3)[2] == "worker-3-3"
        first, *others = children._task_managers
        first.kill()
        first.wait()
        assert children.keep(3)
        assert started(tmp_path, 4)[1] == "worker-1-4"
        assert children.keep(1)

        assert [process.wait(10) for process in others] == [-15, -15]
        assert children.keep(1)
        assert len(started(tmp_path, 4)) == 4


def test_a_job_manager_that_dies_at_once_is_said_to_have_died(tmp_path):
    with (
        cluster(tmp_path, "exit 3\n", 1) as children,
        pytest.raises(SystemExit, match="The JobManager ended with exit code 3 before it offered a slot"),
    ):
        children.wait_until_ready()


def test_one_that_lives_and_offers_nothing_is_waited_for_so_long(tmp_path, monkeypatch):
    monkeypatch.setattr(flink_cluster, "START_DEADLINE_S", 0.0)

    with (
        cluster(tmp_path, "exec sleep 60\n", 1) as children,
        pytest.raises(SystemExit, match="no slots within 0 s"),
    ):
        children.wait_until_ready()
