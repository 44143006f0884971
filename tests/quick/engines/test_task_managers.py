"""The file that says how many TaskManagers run, and what Flink's REST interface reports of them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from harness.engines.base import ClusterState, Member
from harness.engines.flink import task_managers
from harness.engines.flink.task_managers import TaskManagers
from workloads.ad_impressions.jobs.flink_cluster import Wanted, wanted

JOB_MANAGER = Member(10, 1, ("java", "StandaloneSessionClusterEntrypoint", "-D", "rest.port=1"))
WORKERS = (
    Member(20, 1, ("java", "TaskManagerRunner", "-D", "taskmanager.resource-id=worker-1-1")),
    Member(21, 20, ("python", "pyflink.fn_execution.beam.beam_boot")),
    Member(22, 21, ("python", "-m", "worker")),
    Member(30, 1, ("java", "TaskManagerRunner", "-D", "taskmanager.resource-id=worker-12-2")),
)


@pytest.fixture
def answers():
    """What the JobManager answers, by path."""
    return {
        "/overview": {"taskmanagers": 2},
        "/jobs/overview": {"jobs": [{"jid": "a"}, {"jid": "b"}]},
        "/jobs/a": {"state": "RUNNING", "vertices": [{"parallelism": 1}, {"parallelism": 2}]},
        "/jobs/b": {"state": "FAILED", "vertices": [{"parallelism": 4}]},
    }


@pytest.fixture
def managers(tmp_path, answers, monkeypatch):
    class Rest(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told: Any = answers.get(self.path)
            self.send_response(200 if told else 404)
            self.end_headers()
            self.wfile.write(json.dumps(told or {}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Rest) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(task_managers, "free_ports", lambda _: [server.server_address[1]])
        found = TaskManagers(2, tmp_path, lambda: (JOB_MANAGER, *WORKERS))
        found.prepare()
        yield found
        server.shutdown()
        thread.join()


def test_the_job_reads_how_many_run_and_where_rest_listens(tmp_path, managers):
    config = {"config_path": str(tmp_path / "engine.json")}
    before = wanted(config)
    assert before is not None
    assert (before.workers, managers.add_worker(), wanted(config)) == (2, 3, Wanted(3, before.rest_port))
    managers.remove_worker()
    managers.remove_worker()

    assert wanted(config) == Wanted(1, before.rest_port)
    assert wanted({"config_path": str(tmp_path / "elsewhere" / "engine.json")}) is None


def test_what_the_job_manager_reports(managers, answers):
    assert managers.seen() == ClusterState(serves=True, workers=2, applications=1, parallelism=2)
    answers["/jobs/a"] |= {"state": "CREATED"}
    assert managers.seen() == ClusterState(serves=True, workers=2, applications=0, parallelism=0)
    del answers["/jobs/overview"]
    assert managers.seen() is None


def test_a_worker_is_a_task_manager_with_its_python_processes(managers):
    assert [managers.worker_pids(number) for number in (1, 2, 12)] == [(20, 21, 22), (), (30,)]
    managers.size = 12
    assert "ends worker 12 in order (processes 30)" in managers.remove_worker()
