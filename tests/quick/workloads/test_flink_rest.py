"""What Flink's REST interface says of checkpoints and restarts becomes lines, each once; what it does not answer costs
nothing.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from workloads.jobs import flink_rest
from workloads.jobs.flink_rest import CheckpointLog, RestartLog

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
def answers(history):
    """All answers, by path."""
    return {f"/jobs/{JOB}/checkpoints": {"history": history}}


@pytest.fixture
def settings(answers):
    class Rest(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path, {})).encode())

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


def job(since: int, *parallelisms: int, state: str = "RUNNING") -> dict[str, Any]:
    return {
        "state": state,
        "timestamps": {"RUNNING": since},
        "vertices": [{"parallelism": each} for each in parallelisms],
    }


def failures(*entries: tuple[int, str]) -> dict[str, Any]:
    told = [{"timestamp": at, "exceptionName": "E", "stacktrace": text} for at, text in entries]
    return {"exceptionHistory": {"entries": told}}


@pytest.mark.usefixtures("asked_each_time")
def test_a_restart_is_told_once_with_its_parallelism_and_its_reason(answers, settings, capsys):
    log = RestartLog(settings)
    log.take(JOB)  # Flink does not know the job yet
    for seen in (job(0, 1, state="CREATED"), job(1000, 1, 1), job(1000, 1, 1), job(1000, 1, 1, state="RESTARTING")):
        answers[f"/jobs/{JOB}"] = seen
        log.take(JOB)
    assert capsys.readouterr().out == ""

    answers |= {f"/jobs/{JOB}": job(2000, 2, 1), f"/jobs/{JOB}/exceptions": failures((900, "before"))}
    log.take(JOB)
    log.take(JOB)
    answers |= {
        f"/jobs/{JOB}": job(3000, 1, 1),
        f"/jobs/{JOB}/exceptions": failures((2100, "x.E: first\n\tat y"), (2200, "x.E: last\n\tat z")),
    }
    log.take(JOB)

    assert capsys.readouterr().out.splitlines() == [
        "Flink restarted the job by itself: parallelism 2, before 1; no task had failed",
        "Flink restarted the job by itself: parallelism 1, before 2; x.E: last",
    ]
