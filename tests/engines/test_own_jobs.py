"""The examples with builds of their own, from an empty folder: made by Maven, killed, and right."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.engines.test_runs import EXAMPLES, check, run

BUILD_DEADLINE_S = 600

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not shutil.which("mvn"), reason="no mvn on PATH: the jobs of examples/own-* were NOT built and run"
    ),
]


@pytest.fixture
def built(tmp_path: Path):
    def build(name: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("target"))
        subprocess.run(["mvn", "-q", "package"], cwd=folder, check=True, timeout=BUILD_DEADLINE_S)
        return folder

    return build


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("own-flink", ("--duration", "30s")),
        # Some windows have to be over, with their grace, when it is killed at half of the time.
        ("own-kafka-streams", ("--duration", "60s", "--watermark", "20s")),
    ],
)
def test_built_by_maven_and_killed_it_is_right(tmp_path, built, name, load):
    answer = run(tmp_path / "runs", "--rate", "2000", *load, "--engine", built(name))

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "landed" in check(answer, "fault")["sentence"]


@pytest.mark.parametrize(
    ("name", "dials", "headline"),
    [
        ("own-flink", ("--conf", "job.restore=false"), "lost: "),
        ("own-flink", ("--conf", "job.checkpoints=false"), "lost: "),
        ("own-flink", ("--conf", "job.out-of-order=0 s"), "late-dropped: "),
        ("own-kafka-streams", ("--watermark", "20s", "--conf", "job.grace-ms=0", "--fault", "none"), "late-dropped: "),
    ],
)
def test_each_option_that_makes_it_wrong_is_found_under_its_name(tmp_path, built, name, dials, headline):
    answer = run(tmp_path / "runs", "--rate", "2000", "--duration", "30s", *dials, "--engine", built(name))

    assert answer["verdict"] == "FAIL"
    assert answer["sentence"].startswith(headline), answer["sentence"]


def test_with_increments_it_counts_again_what_came_behind_its_checkpoint(tmp_path, built):
    engine = built("own-flink") / "increments"
    answer = run(tmp_path / "runs", "--rate", "2000", "--duration", "30s", "--engine", engine)

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]
