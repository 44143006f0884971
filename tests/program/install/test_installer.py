"""Packages are installed step by step: what is said meanwhile, why one failed, and from whom they are fetched."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import psutil
import pytest

from harness.install import installer
from harness.install.installer import Step, StepError
from harness.install.progress import Amount, Part, Progress
from harness.model import HarnessError
from harness.util.wait import wait_until


def test_a_step_that_fails_ends_in_a_sentence_with_its_log(tmp_path, capsys):
    log = tmp_path / "log"
    with (tmp_path / "lock").open("w") as lock:
        installer.run_step("seeing", ["sh", "-c", "echo earlier: dns error"], lock, log)
        with pytest.raises(HarnessError) as caught:
            installer.run_step("listening", ["sh", "-c", "echo all is quiet; exit 3"], lock, log)
    assert "Preparing failed while listening: it ended with exit code 3, last words: all is quiet." in str(caught.value)
    assert str(log) in str(caught.value)
    assert log.read_text().startswith("$ sh -c 'echo earlier: dns error'\nearlier: dns error\n$ sh")
    assert capsys.readouterr().err == "streamgauge: seeing ...\nstreamgauge: listening ...\n"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("error: failed to write: No space left on device (os error 28)", "the disk is full"),
        ("Caused by: dns error\nCaused by: failed to lookup address", "the package index was not reached"),
        (
            "ERROR: Could not find a version that satisfies uv (from versions: none)",
            "the package index was not reached",
        ),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "a downloaded package is not the pinned one"),
        ("error: Hash mismatch for `rich==15.0.0`", "a downloaded package is not the pinned one"),
        ("\n  something else  \n\n", "it ended with exit code 2, last words: something else"),
        ("", "it ended with exit code 2, last words: none"),
    ],
)
def test_why_a_step_failed(said, cause, tmp_path):
    sentence = installer.explain("installing", 2, said, tmp_path / "log")
    assert sentence.startswith(f"Preparing failed while installing: {cause}. To go on, ")


def test_a_sentence_of_our_own_is_passed_on(tmp_path):
    said = "Fetching ...\nstreamgauge: The disk is full.\n"
    assert installer.explain("fetching", 4, said, tmp_path / "log") == "The disk is full."


# ---------------------------------------------------------------- Side by side


def step(tmp_path: Path, what: str, script: str, part: Part | None = None) -> Step:
    return Step(what, ["sh", "-c", script], tmp_path / f"{what}.log", part=part)


def both(tmp_path: Path, first: str, second: str) -> list[StepError]:
    with (tmp_path / "lock").open("w") as lock:
        return installer.run_side_by_side([step(tmp_path, "one", first), step(tmp_path, "two", second)], lock)


def test_steps_run_side_by_side_each_with_its_log(tmp_path, capsys):
    """Each waits for the other, so one after the other would never end."""
    wait = "echo {0}; touch {0}; until [ -e {1} ]; do sleep 0.01; done"
    assert both(tmp_path, wait.format("a", "b"), wait.format("b", "a")) == []
    assert (tmp_path / "one.log").read_text().splitlines()[1:] == ["a"]
    assert (tmp_path / "two.log").read_text().splitlines()[1:] == ["b"]
    assert capsys.readouterr().err == "streamgauge: one and two ...\n"


def test_the_failure_of_another_step_stops_nothing_and_is_returned(tmp_path):
    (error,) = both(tmp_path, "until [ -e failed ]; do sleep 0.01; done; touch done", "touch failed; echo Oops; exit 3")
    assert (tmp_path / "done").exists()
    assert "Preparing failed while two: it ended with exit code 3, last words: Oops." in str(error)


def test_the_failure_of_the_first_step_ends_the_others_with_all_that_they_started(tmp_path):
    children = "sleep 60 & echo $! >child; touch began; wait"
    with pytest.raises(StepError, match="while one: it ended with exit code 3"):
        both(tmp_path, "until [ -e began ]; do sleep 0.01; done; exit 3", children)
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not running(child), deadline_s=30, what="the child of the other step to end")


def running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_step_that_cannot_start_leaves_no_other_running(tmp_path):
    first = step(tmp_path, "one", "echo $$ >pid.part; mv pid.part pid; exec sleep 60")
    second = Step("two", [str(tmp_path / "nothing")], tmp_path / "two.log")
    with (tmp_path / "lock").open("w") as lock, pytest.raises(FileNotFoundError):
        installer.run_side_by_side([first, second], lock)
    if (tmp_path / "pid").exists():
        assert not running(int((tmp_path / "pid").read_text()))


def test_what_a_step_has_fetched_is_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Progress.__init__, "__defaults__", ((), 0.0))
    part = Part("jars", lambda: Amount(23_000_000, 57_000_000))
    with (tmp_path / "lock").open("w") as lock:
        installer.run_side_by_side([step(tmp_path, "one", "sleep 0.3", part)], lock)
    assert "streamgauge: jars 23 of 57 MB, 0 s so far\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "passing"),
    [
        ("dns error", True),
        ("No space left on device", True),
        ("Hash mismatch for x, after a connection refused", False),
        ("setup.py broke", False),
    ],
)
def test_whether_what_was_fetched_can_be_used_again(said, passing, tmp_path):
    with (tmp_path / "lock").open("w") as lock, pytest.raises(StepError) as caught:
        installer.run_side_by_side([step(tmp_path, "one", f"echo '{said}'; exit 1")], lock)
    assert caught.value.passing is passing


# ---------------------------------------------------------------- pip and its settings


def test_the_pip_of_this_python_runs_from_its_wheel():
    """So that no environment needs one of its own."""
    wheel = installer.bundled_pip()
    if wheel is None:
        pytest.skip("this Python has no wheel of pip: NOT TRIED to run it")
    asked = [*installer.pip_command(sys.executable), "--version"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"pip {wheel.name.split('-')[1]} from {wheel}")


def test_the_wheel_of_a_distribution_is_found(tmp_path, monkeypatch):
    for name in ("pip-23.0-py3-none-any.whl", "pip-23.1-py3-none-any.whl", "setuptools-66-py3-none-any.whl"):
        zipfile.ZipFile(tmp_path / name, "w").close()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sysconfig.get_config_var", lambda _: None)
    monkeypatch.setattr(installer, "WHEELS_OF_DISTRIBUTIONS", str(tmp_path))
    assert installer.bundled_pip() == tmp_path / "pip-23.1-py3-none-any.whl"

    monkeypatch.setattr(installer, "WHEELS_OF_DISTRIBUTIONS", str(tmp_path / "none"))
    assert installer.bundled_pip() is None
    assert installer.pip_command("python") == ["python", "-m", "pip"]


def test_the_settings_of_pip_are_read(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = file:///mirror-a\n[install]\nextra-index-url = file:///b\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_TRUSTED_HOST", "one two")
    found = installer.index_settings(sys.executable)
    assert (found["UV_DEFAULT_INDEX"], found["UV_INDEX"]) == ("file:///mirror-a", "file:///b")
    assert found["UV_INSECURE_HOST"] == "one two"


def test_pips_mirror_is_handed_to_the_installer_unless_the_user_told_it_another():
    listed = ":env:.index-url='mirror-a'\nglobal.cert='certificates.pem'\nglobal.color='no'\n"
    assert installer.translate_pip_settings(listed, {}) == {
        "UV_DEFAULT_INDEX": "mirror-a",
        "SSL_CERT_FILE": "certificates.pem",
    }
    assert "UV_DEFAULT_INDEX" not in installer.translate_pip_settings(listed, {"UV_DEFAULT_INDEX": "mirror-b"})


def test_of_two_settings_the_one_counts_that_counts_for_pip():
    """A variable comes before a file, and a section of `pip install` before the one of all commands."""
    listed = ":env:.index-url='env'\nglobal.index-url='global'\ninstall.index-url='install'\n"
    assert installer.translate_pip_settings(listed, {}) == {"UV_DEFAULT_INDEX": "env"}
    assert installer.translate_pip_settings(listed.partition("\n")[2], {}) == {"UV_DEFAULT_INDEX": "install"}


def test_several_values_are_separated_as_uv_wants_them(tmp_path):
    listed = f"global.extra-index-url='\\na\\nb'\nglobal.find-links='{tmp_path} /not/there https://c/d'\n"
    assert installer.translate_pip_settings(listed, {}) == {
        "UV_INDEX": "a b",
        "UV_FIND_LINKS": f"{tmp_path},https://c/d",
    }
    assert installer.translate_pip_settings("global.find-links='/not/there'\n", {}) == {}


def test_what_would_confuse_the_installers_is_left_out():
    kept = installer.clean_environment({"PYTHONPATH": "x", "PYSPARK_HADOOP_VERSION": "2", "PIP_USER": "1", "LANG": "C"})
    assert kept == {
        "LANG": "C",
        "PIP_USER": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
