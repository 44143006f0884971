"""The live page's process: what it answers, to whom, and that nothing a run writes becomes markup or code."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from harness.rundir.live_lines import LiveLines
from harness.util.wait import wait_until
from harness.web.server import Server
from reports.live import assets, export
from reports.live.server import METRICS_FILE, LivePage, Written

SCRIPT = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
SECOND = {"offered": 5, "planned": 9, "processed": 4, "visible": 3, "probes_ms": []}
# uPlot 1.6.32 as npm has it: dist/uPlot.iife.min.js, dist/uPlot.min.css and LICENSE.
UPLOT = {
    "uplot.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uplot.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uplot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "logs").mkdir(parents=True)
    (folder / "history.jsonl").write_text('{"at_ms":1,"kind":"made"}\n')
    LiveLines(folder).write("phase", 10, name="load", waits_for="")
    return folder


@pytest.fixture
def served(run: Path) -> Iterator[tuple[LivePage, Server]]:
    page = LivePage(run)
    with Server(page.answers) as server:
        yield page, server


def asked(server: Server, path: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


class Reader(threading.Thread):
    """A browser that reads events until they end."""

    def __init__(self, server: Server, path: str = "/events") -> None:
        super().__init__(daemon=True)
        self.events: list[dict[str, Any]] = []
        self.has_ended = False
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self._socket.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
        self.start()

    def go(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        with self._socket, self._socket.makefile("rb") as lines, suppress(OSError):  # of one that goes
            for line in lines:
                if line.startswith(b"data: {") and line.endswith(b"\n") and len(line) > 12:
                    self.events.append(json.loads(line[6:]))
                self.has_ended = self.has_ended or line.startswith(b"event: end")

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.events) >= count, deadline_s=30, what="events", every_s=0.02)


def test_the_page_and_its_files_come_from_here_and_nothing_else_is_there(served):
    _, server = served
    page = asked(server, "/")[1].decode()
    assert "http" not in page.replace('http-equiv="', "")
    for name in assets.FILES:
        assert name in page
        assert asked(server, f"/{name}")[0].status == 200
    for path in (
        "/history.jsonl",
        "/../run/history.jsonl",
        "/logs/engine.log",
        "/%2e%2e/x",
        "/page/live.js",
        "/report.html",
    ):
        assert asked(server, path)[0].status == 404


def test_a_report_is_served_once_it_is_there_and_its_scripts_never_run(served, run):
    _, server = served
    (run / "report.html").write_text("<script>alert(1)</script>")

    response, content = asked(server, "/report.html")
    assert content == b"<script>alert(1)</script>"
    assert "script-src" not in response.headers["Content-Security-Policy"]
    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_no_run_outside_of_the_experiment_is_shown(tmp_path):
    experiment, outside = tmp_path / "experiment", tmp_path / "outside"
    for folder in (experiment / "runs" / "a", outside):
        folder.mkdir(parents=True)
        (folder / "owner.json").write_text("{}")
        (folder / "report.html").write_text("a report")
    (experiment / "experiment.json").write_text('{"kind": "repeat", "wanted": 2}')
    with Server(LivePage(experiment).answers) as server:
        assert asked(server, "/runs/a/report.html")[0].status == 200
        for path in ("/../outside/report.html", "/runs/../../outside/report.html", "/events?run=../outside"):
            assert asked(server, path)[0].status == 404


def test_ten_readers_get_the_same_and_one_that_goes_disturbs_none(served, run):
    page, server = served
    readers = [Reader(server) for _ in range(10)]
    for reader in readers:
        reader.wait_for(1)
    readers[0].go()
    LiveLines(run).write("second", 11, **SECOND)
    for reader in readers[1:]:
        reader.wait_for(2)
    page.end()
    for reader in readers:
        reader.join(10)

    assert all(reader.has_ended for reader in readers[1:])
    assert all(reader.events == readers[1].events for reader in readers[2:])


def test_without_a_reader_no_file_is_read(served, run, monkeypatch):
    _, server = served
    read: list[object] = []

    def entries(follower: object) -> Iterator[object]:
        read.append(follower)
        return iter(())

    monkeypatch.setattr("reports.live.follow.Follower.entries", entries)
    asked(server, "/")
    assert read == []
    reader = Reader(server)
    assert wait_until(lambda: read, deadline_s=20, what="a reader's files to be read")
    reader.go()


def test_a_script_in_a_log_or_in_a_name_stays_text_in_the_stored_page(run):
    (run / "logs" / f"{SCRIPT.replace('/', '_')}.log").write_text(SCRIPT)
    LiveLines(run).write("phase", 12, name=SCRIPT, waits_for=SCRIPT)

    stored = export.write(run)
    assert stored
    text = stored.read_text()
    assert SCRIPT not in text
    assert text.count("<script") == 3, "its frames, the charts and the page"
    data = text.partition('id="frames">')[2].partition("</script>")[0]
    assert json.loads(data)["frames"][0]["set"]["phases"][0]["name"] == "load"
    assert "onerror" in data
    assert "default-src 'none'" in text


def test_the_page_writes_text_and_never_markup():
    code = (assets.FOLDER / "live.js").read_text()
    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("):
        assert word not in code


def test_the_chart_library_is_the_published_one_with_its_licence():
    assert {name: sha256((assets.FOLDER / name).read_bytes()).hexdigest() for name in UPLOT} == UPLOT
    assert "MIT" in (assets.FOLDER / "uplot.LICENSE").read_text()


def test_two_hours_of_ten_thousand_cells_stay_small(run):
    keys, windows, seconds = 100, 100, 7200
    lines = LiveLines(run)
    lines.write("load plan", 0, epoch_ms=1, lacks="")
    with (run / "live" / "lines.jsonl").open("ab") as file:
        for window in range(windows):
            for stand in (0, 1):
                groups = [[window * 72_000, stand, f"0-{keys - 1}"]]
                at_ms = (window + stand) * 72_000
                file.write(json.dumps({"kind": "cells", "at_ms": at_ms, "groups": groups}).encode() + b"\n")
        for second in range(seconds):
            told = {**SECOND, "offered": 1000 * second, "probes_ms": [12.5, 31.2], "at_ms": second * 1000}
            parts = {part: [second * 0.3, 10**9] for part in ("engine", "kafka", "redis", "generator", "harness")}
            file.write(json.dumps({"kind": "second", **told}).encode() + b"\n")
            use = {"kind": "parts", "at_ms": second * 1000, "parts": parts, "processes": [[1, "java", 1.0, 1]]}
            file.write(json.dumps(use).encode() + b"\n")

    stored = export.write(run)
    assert stored
    assert stored.stat().st_size < 20_000_000
    frames = list(export.frames(run))
    assert sum(len(frame.get("rows", ())) for frame in frames) == seconds
    assert sum(len(group[2]) for frame in frames for group in frame.get("cells", ())) >= keys * windows


def offered_in(text: str) -> list[float]:
    """The events that were offered, of each run in the text."""
    families = {each.name: each for each in text_string_to_metric_families(text)}
    offered = families.get("streamgauge_offered_events")
    return [sample.value for sample in offered.samples] if offered else []


def test_metrics_are_served_as_prometheus_asks_for_them(served, run):
    _, server = served
    LiveLines(run).write("second", 20, **SECOND)

    response, content = asked(server, "/metrics")

    assert response.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert offered_in(content.decode()) == [5]
    assert f'run="{run.name}"' in content.decode()


def test_metrics_are_also_a_file_that_is_always_whole_and_has_the_last_numbers(run):
    page, file = LivePage(run), run / METRICS_FILE
    with Written(page, run):
        wait_until(file.exists, deadline_s=15, what="the first metrics")
        assert offered_in(file.read_text()) == []
        LiveLines(run).write("second", 20, **SECOND)

    assert offered_in(file.read_text()) == [5]
    assert [path.name for path in (run / "live").iterdir()] == ["lines.jsonl", "metrics.prom"]


def test_a_folder_that_is_gone_ends_no_metrics(run):
    with Written(LivePage(run), run / "gone") as written:
        pass

    assert not written._thread.is_alive()
    assert not (run / "gone").exists()
