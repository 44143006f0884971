"""The image for Kubernetes as far as it can be tried without one: its Containerfile is linted and copies what a wheel
is made of, and its entrypoint runs what it should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program.wheels import BESIDE, PACKAGES, ROOT

FOLDER = ROOT / "examples" / "kubernetes"
CONTAINERFILE, ENTRYPOINT = FOLDER / "Containerfile", FOLDER / "entrypoint"
HADOLINT = Path(sys.executable).with_name("hadolint")
OF_SPARK = {
    "SPARK_JAVA_OPT_0": "-Dfirst=a b",
    "SPARK_JAVA_OPT_1": "-Dsecond=1",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_DRIVER_URL": "spark://driver",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_APPLICATION_ID": "app",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "pod",
    "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.2",
}


def linted(text: str) -> str:
    assert HADOLINT.exists(), "hadolint is not installed: ./streamgauge test installs what requirements/test.lock pins"
    done = subprocess.run([HADOLINT, "-"], input=text, capture_output=True, text=True, check=False)
    assert bool(done.stdout) is bool(done.returncode)
    return done.stdout


def test_the_containerfile_is_linted():
    assert linted(CONTAINERFILE.read_text()) == ""


@pytest.mark.parametrize(
    ("right", "wrong", "rule"),
    [
        ("bookworm AS wheel", "bookworm AS wheel\nRUN cd /tmp", "DL3003"),
        ("--no-install-recommends ", "", "DL3015"),
        ("WORKDIR /source", "WORKDIR source", "DL3000"),
        ('"$(python', "$(python", "SC"),
    ],
)
def test_a_planted_mistake_is_found(right, wrong, rule):
    text = CONTAINERFILE.read_text()
    assert right in text

    assert rule in linted(text.replace(right, wrong, 1))


def test_what_it_copies_is_there_and_a_whole_wheel():
    copied = re.findall(r"^COPY (?!--from)(.+) (\S+)$", CONTAINERFILE.read_text(), re.MULTILINE)
    sources = [word for words, _ in copied for word in words.split()]

    assert all((ROOT / each).exists() for each in sources)
    assert {*PACKAGES, *BESIDE, "requirements"} <= {*sources}


@pytest.fixture
def enter(tmp_path):
    """The entrypoint, with programs that print their arguments."""
    (tmp_path / "bin").mkdir()
    for name in ("java", "streamgauge", "bin/spark-submit"):
        program = tmp_path / "bin" / name if "/" not in name else tmp_path / name
        program.write_text('#!/bin/sh\necho "$(basename "$0")"\nprintf "%s\\n" "$@"\n')
        program.chmod(0o755)

    def entered(*words, **more):
        variables = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SPARK_HOME": str(tmp_path), **more}
        done = subprocess.run([ENTRYPOINT, *words], env=variables, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    return entered


def test_a_command_is_one_of_streamgauge(enter):
    assert enter("run", "calm", "--conf", "a=b c") == (0, ["streamgauge", "run", "calm", "--conf", "a=b c"], "")


def test_an_executor_gets_each_option_as_one_word(enter, tmp_path):
    code, words, _ = enter("executor", **OF_SPARK)

    assert code == 0
    assert words[:3] == ["java", "-Dfirst=a b", "-Dsecond=1"]
    assert f"/opt/spark/conf:{tmp_path}/jars/*" in words
    assert words[words.index("--executor-id") + 1] == "7"


def test_an_executor_without_its_variables_says_which(enter):
    code, words, said = enter("executor", **{key: text for key, text in OF_SPARK.items() if key != "SPARK_DRIVER_URL"})

    assert code != 0
    assert not words
    assert "SPARK_DRIVER_URL" in said


def test_a_driver_is_submitted_as_client(enter):
    code, words, _ = enter("driver", "--properties-file", "x", **OF_SPARK)

    assert code == 0
    assert words == [
        *("spark-submit", "--conf", "spark.driver.bindAddress=10.0.0.2", "--deploy-mode", "client"),
        *("--properties-file", "x"),
    ]
