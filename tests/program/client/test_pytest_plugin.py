"""The pytest plug-in, in a pytest of its own: what a job's tests say, and where its runs lie."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from client import pytest_plugin

pytestmark = pytest.mark.timeout(300)  # four whole runs before the first test
ROOT = Path(__file__).resolve().parents[3]
TESTS = """
import pytest

SMALL = {"duration": "14s", "rate": 300, "quiet": True}


def test_right(gauge):
    assert gauge("fake", **SMALL).assert_pass().passed


@pytest.mark.parametrize("fault", ["kill@offset=50%"])
def test_wrong(gauge, fault):
    gauge("fake", fault=fault, conf="misbehave=drop:50", **SMALL).assert_pass()


def test_unknown(gauge):
    gauge("fake", fault="kill@c3:batch=900", **SMALL).assert_pass()


def test_not_understood(gauge):
    gauge("fake", fault="hurricane", **SMALL)


def test_not_possible(gauge, monkeypatch):
    from client import commands, program

    def asked(words):
        raise program.ProgramError("the disk is full")

    monkeypatch.setattr(commands, "asked", asked)
    gauge("fake")
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "test_jobs.py").write_text(TESTS)
    return pytest_in(folder, "--junitxml=junit.xml"), folder


def pytest_in(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "client.pytest_plugin", "-p", "no:cacheprovider", *words, "."]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=280)
    return done.stdout + done.stderr


def test_fail_fails_and_unknown_is_an_error(told):
    output, _ = told
    assert "2 failed, 1 passed, 2 errors" in output, output


def test_the_text_of_a_failure_is_the_verdict(told):
    output, folder = told
    assert "FAIL  lost: " in output
    assert "campaign " in output
    assert "assert_pass()" not in output
    assert "program.py" not in output, "no traceback of ours is shown"
    assert "the disk is full" in output
    assert "'hurricane'" in output
    assert str(folder / "streamgauge-runs") in output


def test_junit_tells_them_apart(told):
    _, folder = told
    cases = ET.parse(folder / "junit.xml").getroot().iter("testcase")
    seen = {case.get("name"): sorted({child.tag for child in case} & {"failure", "error"}) for case in cases}

    assert seen == {
        "test_right": [],
        "test_wrong[kill@offset=50%]": ["failure"],
        "test_unknown": ["error"],
        "test_not_understood": ["failure"],
        "test_not_possible": ["error"],
    }


def test_workers_of_xdist_report_the_same(tmp_path):
    (tmp_path / "test_jobs.py").write_text(TESTS)
    output = pytest_in(tmp_path, "-n", "2", "-k", "right or unknown")

    assert "1 passed, 1 error" in output, output
    assert len([*(tmp_path / "streamgauge-runs").iterdir()]) == 2


@pytest.mark.parametrize("name", ["x" * 300, "\u00e4" * 300, "kill@c3:batch=3; " * 40])
def test_a_long_name_of_a_test_is_a_folder_all_the_same(name, tmp_path):
    one, other = (pytest_plugin.folder_of(f"test_jobs.py::test_wrong[{name}{end}]") for end in "ab")

    assert one != other
    (tmp_path / one).mkdir()


def test_each_test_has_a_folder_of_its_own(told):
    _, folder = told
    runs = sorted(each.name for each in (folder / "streamgauge-runs").iterdir())

    assert runs == [
        *("test_jobs.py-test_right", "test_jobs.py-test_unknown", "test_jobs.py-test_wrong-kill-offset=50"),
    ]
    for name in runs:
        (run,) = (folder / "streamgauge-runs" / name).iterdir()
        assert (run / "report.html").is_file()
