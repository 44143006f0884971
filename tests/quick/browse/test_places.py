"""No address leads out of a served folder, and nothing but runs, experiments and their files is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from harness.web.server import Server
from reports.browse.places import Served, address
from reports.browse.site import Site
from tests.quick.browse import folders
from tests.quick.browse.folders import RIGHT, SECRET


@pytest.fixture(scope="module")
def above(tmp_path_factory: pytest.TempPathFactory, stored: Path) -> Path:
    """A folder with a secret beside the served folder."""
    folder = tmp_path_factory.mktemp("above")
    (folder / "secret.txt").write_text(SECRET)
    folders.copied(stored, folder / "runs", RIGHT)
    return folder


@pytest.fixture(scope="module")
def server(above: Path) -> Iterator[Server]:
    with Server(Site({"runs": above / "runs"}).answers) as server:
        yield server


def got(server: Server, path: str) -> tuple[int, bytes]:
    """Ask for a path as it is: a browser would mend it."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.putrequest("GET", path)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


@pytest.mark.parametrize("name", ["plan.json", "log.parquet"])
def test_a_file_of_a_run_is_served(server: Server, above: Path, name: str) -> None:
    assert got(server, f"/files/runs/{RIGHT}/{name}") == (200, (above / "runs" / RIGHT / name).read_bytes())


@pytest.mark.parametrize(
    "path",
    [
        "/files/runs/../secret.txt",
        "/files/runs/right/../../secret.txt",
        "/files/runs/%2e%2e/secret.txt",
        "/files/runs/..%2fsecret.txt",
        "/files/runs/right/..%2F..%2Fsecret.txt",
        "/files/runs/%252e%252e/secret.txt",
        "/files/runs/right/%252e%252e%252f%252e%252e%252fsecret.txt",
        "/files/runs/..%5csecret.txt",
        "/files/runs/right/./../../secret.txt",
        "/files/../runs/right/plan.json",
        "/files/secret.txt",
        "/files//etc/passwd",
        "/files/runs//etc/passwd",
        "/files/runs/%2fetc%2fpasswd",
        "/files/runs/right/%00",
        "/files/runs/right/plan.json%00.html",
        "/files/runs/right/plan.json/",
        "/files/runs/right",
        "/files/runs/right/logs",
        "/files/runs",
        "/files/",
        "/files",
        "//etc/passwd",
        "/../secret.txt",
        "/run/runs/..",
        "/run/runs/../runs/right",
        "/in/runs/..",
        "/run/runs",
        "/run/",
        f"/files/runs/{'x' * 5000}/plan.json",
        "/files/runs/right/" + "a/" * 2000 + "b",
    ],
)
def test_no_path_leads_out(server: Server, path: str) -> None:
    status, body = got(server, path)
    assert (status, SECRET.encode() in body, b"root:" in body) == (404, False, False)


@pytest.mark.parametrize("query", ["a=runs/../x&b=runs/right", "a=/etc&b=runs/right", "a=runs&b=runs", "", "a=%00&b=x"])
def test_nor_does_a_comparison(server: Server, query: str) -> None:
    status, body = got(server, f"/compare?{query}")
    assert (status, b"Choose two runs" in body) == (400, True)


@pytest.mark.parametrize("history", ["runs/../secret.txt", "../secret.txt", "/etc/passwd", "runs/right/history.jsonl"])
def test_nor_a_history(server: Server, history: str) -> None:
    assert got(server, f"/gates?history={history}")[0] == 404


def test_no_link_leads_out(site: Site, runs: Path, stored: Path) -> None:
    """A link to a file below a run's folder, to a folder there, and a run that is one."""
    folders.copied(stored, runs, RIGHT)
    (runs / RIGHT / "logs" / "out.log").symlink_to(runs.parent / "secret.txt")
    (runs / RIGHT / "logs" / "away").symlink_to(runs.parent)
    elsewhere = folders.copied(stored, runs.parent / "elsewhere", RIGHT)
    (runs / "linked").symlink_to(elsewhere / RIGHT)
    for path in ("right/logs/out.log", "right/logs/away/secret.txt", "linked/plan.json"):
        assert site.answers(f"/files/runs/{path}", {}) is None, path
    assert site.answers("/run/runs/linked", {}) is None
    assert {each.name: each.state for each in site.index.entries()} == {RIGHT: "PASS", "linked": "not read"}


def test_a_run_with_a_link_that_leads_out_is_not_read(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT)
    folders.copied(stored, runs.parent / "elsewhere", RIGHT)
    (runs / RIGHT / "verdict.json").unlink()
    (runs / RIGHT / "verdict.json").symlink_to(runs.parent / "elsewhere" / RIGHT / "verdict.json")
    (entry,) = site.index.entries()
    assert (entry.state, "verdict.json" in entry.sentence, entry.engines) == ("not read", True, ())
    assert site.answers(f"/run/runs/{RIGHT}", {}) is None
    assert site.answers(f"/files/runs/{RIGHT}/verdict.json", {}) is None


def test_a_link_that_stays_inside_is_followed(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT)
    (runs / "newest").symlink_to(runs / RIGHT)
    assert sorted(entry.name for entry in site.index.entries()) == ["newest", RIGHT]
    assert site.answers("/files/runs/newest/plan.json", {}) is not None


def test_a_pipe_is_not_waited_for(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT)
    os.mkfifo(runs / RIGHT / "report.html")
    os.mkfifo(runs / RIGHT / "logs" / "engine.log")
    os.mkfifo(runs / "gates.jsonl")
    (entry,) = site.index.entries()
    assert (entry.state, "no file" in entry.sentence) == ("not read", True)
    assert site.answers(f"/files/runs/{RIGHT}/logs/engine.log", {}) is None
    assert site.answers("/trends", {}) is not None


def test_files_of_a_foreign_folder_and_half_written_ones_are_not_served(site: Site, runs: Path, stored: Path) -> None:
    folders.copied(stored, runs, RIGHT)
    (runs / "notes").mkdir()
    (runs / "notes" / "todo.txt").write_text("x")
    (runs / "loose.txt").write_text("x")
    (runs / RIGHT / ".verdict.json.part").write_text("x")
    for place in ("notes/todo.txt", "loose.txt", f"{RIGHT}/.verdict.json.part"):
        assert site.answers(f"/files/runs/{place}", {}) is None, place


def test_a_served_folder_may_be_missing(tmp_path: Path) -> None:
    served = Served({"runs": tmp_path / "none"})
    assert ([*served.below("runs")], served.path("runs/x"), served.path("other/x")) == ([], None, None)


def test_an_address_keeps_the_bytes_of_a_name(runs: Path, stored: Path, site: Site) -> None:
    run = folders.not_utf8(runs, stored)
    assert address("run", "runs", run.name) == "/run/runs/run-%FF"
    assert site.answers(f"/run/runs/{run.name}", {}) is not None
    with Server(site.answers) as server:
        assert got(server, "/files/runs/run-%FF/plan.json")[0] == 200
        assert b"/run/runs/run-%FF" in got(server, "/")[1]
        compared = got(server, "/compare?a=runs/run-%FF&b=runs/run-%FF")
    assert compared[0] == 200
