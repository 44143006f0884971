"""`serve` as a program: it serves what `ls` lists until Ctrl-C, and refuses what it can't serve."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from harness.model import Exit
from harness.rundir.store import Store
from tests.quick.browse import folders
from tests.quick.browse.folders import DOUBLES, RIGHT

ROOT = Path(__file__).resolve().parents[3]
FAST = ["--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.unpack(tmp_path_factory.mktemp("stored"))


def asked(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


def test_it_serves_runs_and_experiments_until_ctrl_c(call_here, few_probes, stored: Path, tmp_path: Path) -> None:
    assert call_here("run", *FAST)[0] == Exit.PASS
    folders.copied(stored, tmp_path / "runs", RIGHT, DOUBLES)
    (made,) = (path.name for path in (tmp_path / "runs").iterdir() if path.name.startswith("2"))
    with subprocess.Popen(
        [sys.executable, "-m", "harness", "serve"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            line = program.stdout.readline()
            found = re.fullmatch(r"runs and experiments: http://127\.0\.0\.1:(\d+)/ until Ctrl-C\.\n", line)
            assert found, line
            port = int(found[1])
            status, page = asked(port, "/?state=FAIL")
            report = asked(port, f"/files/runs/{made}/report.html")
            both = asked(port, f"/compare?a=runs/{made}&b=runs/{DOUBLES}")
            program.send_signal(signal.SIGINT)
            _, err = program.communicate(timeout=60)
        finally:
            program.kill()  # one that ignores Ctrl-C, as its parent may have chosen, would be waited for without end

    assert (status, DOUBLES in page, f"/{RIGHT}" in page) == (200, True, False)
    assert (report[0], "events counted right" in report[1]) == (200, True)
    assert (both[0], "A is PASS and B is FAIL" in both[1]) == (200, True)
    assert program.returncode == 128 + signal.SIGINT
    assert "Stopped by Ctrl-C" in err
    assert "Traceback" not in err


def test_a_port_that_is_taken_is_one_sentence(call_here) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = call_here("serve", "--port", str(port))
    assert (code, "Traceback" in err) == (Exit.USAGE, False)
    assert f"Cannot listen on port {port} of 127.0.0.1: Address already in use" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere does not exist"),
        (["file"], "file is a file"),
        (["one-run"], "one-run is one run"),
        (["--port", "0"], "--port"),
        (["--json"], "has no --json"),
    ],
)
def test_what_cannot_be_served_is_refused(words: list[str], said: str, call_here, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    Store.create(tmp_path, "calm").path.rename(tmp_path / "one-run")
    code, _, err = call_here("serve", *words)
    assert (code, said in " ".join(err.split())) == (Exit.USAGE, True), err
