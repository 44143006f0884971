"""What Flink's REST interface says of checkpoints becomes lines, each once; what it does not answer costs nothing."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from workloads.jobs import flink_rest
from workloads.jobs.flink_rest import CheckpointLog

JOB = "f00d"


def checkpoint(number: int, status: str = "COMPLETED", *, savepoint: bool = False, kept: int = 0) -> dict[str, Any]:
    return {
        "id": number,
        "status": status,
        "is_savepoint": savepoint,
        "trigger_timestamp": 1_763_700_000_000 + 1000 * number,
        "end_to_end_duration": 10 * number,
        "state_size": 1000 + number,
        "persisted_data": kept,
        "checkpointed_size": 500 + number,
    }


@pytest.fixture
def history():
    """What a cluster answers, the newest first, as Flink does; `serve` says where."""
    return [checkpoint(3, "IN_PROGRESS"), checkpoint(2, kept=77), checkpoint(1)]


@pytest.fixture
def settings(history):
    class Rest(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == f"/jobs/{JOB}/checkpoints"
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"history": history} if known else {}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Rest) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield {"rest.address": "127.0.0.1", "rest.port": str(server.server_address[1])}
        server.shutdown()
        thread.join()


@pytest.fixture
def asked_each_time(monkeypatch):
    monkeypatch.setattr(flink_rest, "ASK_EVERY_S", 0.0)


def told(folder):
    return [json.loads(line) for line in (folder / "checkpoints.jsonl").read_text().split("\n") if line]


@pytest.mark.usefixtures("asked_each_time")
def test_each_checkpoint_is_told_once_and_when_it_is_over(tmp_path, settings, history):
    log = CheckpointLog({"progress_path": str(tmp_path / "progress.jsonl")}, settings)
    log.take(JOB)
    assert [
        (each["at"], each["took_ms"], each["in_flight_bytes"], each["written_bytes"]) for each in told(tmp_path)
    ] == [
        (1_763_700_001_000, 10, 0, 501),
        (1_763_700_002_000, 20, 77, 502),
    ]

    history[:] = [checkpoint(5, savepoint=True), checkpoint(4, "FAILED"), checkpoint(3), checkpoint(2, kept=77)]
    log.take(JOB)

    assert [(each["bytes"], each["failed"]) for each in told(tmp_path)[2:]] == [(1003, False), (1004, True)]


def test_it_is_asked_no_more_often_than_it_has_something_new(tmp_path, settings, history):
    log = CheckpointLog({"progress_path": str(tmp_path / "progress.jsonl")}, settings)
    log.take(JOB)
    history.insert(0, checkpoint(4))
    log.take(JOB)

    assert len(told(tmp_path)) == 2


@pytest.mark.usefixtures("asked_each_time")
def test_one_that_does_not_listen_or_does_not_know_the_job_yet_is_asked_again(tmp_path, settings):
    nowhere = {"rest.address": "127.0.0.1", "rest.port": str(flink_rest.free_port())}
    CheckpointLog({"progress_path": str(tmp_path / "progress.jsonl")}, nowhere).take(JOB)
    log = CheckpointLog({"progress_path": str(tmp_path / "progress.jsonl")}, settings)
    log.take("another")
    assert told(tmp_path) == []

    log.take(JOB)

    assert len(told(tmp_path)) == 2
