"""What is too little is said before the start, each with the number that is needed and with what to do."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config import plan
from harness.engines import manifest
from harness.host import needs
from harness.host.needs import MIB, Granted, Minimum, lacking, of_run
from harness.model import HarnessError

PLENTY = Granted(1 << 40, None, None, Path("/tmp"), native=True)
NEED = Minimum(memory_bytes=900 * MIB, open_files=400, threads=300, native=True)


def needed_by(*, engine: str = "spark", brokers: int = 1, **keys: object) -> Minimum:
    spec, its_manifest = plan.resolve("test", {"engine": engine, **keys}, {}, manifest.load)
    return of_run(spec, its_manifest, brokers)


def test_a_machine_with_plenty_lacks_nothing():
    assert lacking(NEED, PLENTY) == []
    assert lacking(NEED, replace(PLENTY, open_files=400, threads=300, memory_bytes=900 * MIB)) == []
    assert lacking(Minimum(), Granted(0, 0, 0, Path("/tmp"), native=False)) == []


@pytest.mark.parametrize(
    ("too_little", "told"),
    [
        ({"open_files": 256}, r"256 open files here, but 400 are needed: raise the hard limit \(ulimit"),
        (
            {"threads": 299},
            r"299 more processes and threads are allowed here, but 300 are needed: raise the limit \(ulimit -u",
        ),
        ({"memory_bytes": 512 * MIB}, r"512 MiB of memory are granted here, but 900 MiB are needed: use a larger"),
        ({"native": False}, r"temporary folder /tmp is mounted noexec.* set TMPDIR to a folder"),
    ],
)
def test_each_thing_that_is_lacking_is_one_sentence(too_little, told):
    (sentence,) = lacking(NEED, replace(PLENTY, **too_little))

    assert re.search(told, sentence)
    assert sentence.endswith(".")


def test_what_a_run_does_not_start_it_does_not_need():
    assert needed_by() == needs.DEFAULT_RUN
    assert needed_by(kafka="127.0.0.1:9092").memory_bytes == needs.DEFAULT_RUN.memory_bytes - needs.KAFKA.memory_bytes
    assert needed_by(engine="reference").memory_bytes == needs.DEFAULT_RUN.memory_bytes - needs.SPARK.memory_bytes
    of_cluster = needs.DEFAULT_RUN.memory_bytes + needs.MASTER.memory_bytes + 2 * needs.WORKER.memory_bytes
    assert needed_by(master="cluster[2]").memory_bytes == of_cluster
    of_workers = needs.DEFAULT_RUN.memory_bytes + 2 * needs.LOAD_WORKER.memory_bytes
    assert needed_by(workers=2).memory_bytes == of_workers
    assert needed_by(workers=2, bind="127.0.0.1:5557") == needs.DEFAULT_RUN
    assert needed_by(brokers=3).memory_bytes == needs.DEFAULT_RUN.memory_bytes + 2 * needs.KAFKA.memory_bytes
    assert not needed_by(engine="reference").native
    assert needed_by(engine="kafka-streams").native
    spec, _ = plan.resolve("test", {"engine": "reference"}, {}, manifest.load)
    assert of_run(spec, replace(manifest.load("reference"), command=()), 1) == Minimum()  # the fake engine


def test_no_temporary_folder_at_all_is_a_sentence(monkeypatch):
    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    with pytest.raises(HarnessError, match=r"no temporary folder: No usable .*\. Set TMPDIR"):
        needs.granted()


def test_a_run_with_too_few_open_files_is_refused_before_it_starts_anything(tmp_path):
    """As a user has it: a hard limit of the shell."""
    hard = needs.HARNESS.open_files - 1
    line = [
        sys.executable,
        "-E",
        "-m",
        "harness",
        "run",
        "calm",
        "--engine",
        "reference",
        "--out",
        str(tmp_path / "runs"),
    ]
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard)),
    )

    assert done.returncode == 4
    assert f"may have {hard} open files here, but" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
