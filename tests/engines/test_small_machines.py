"""Machines that are not like ours: little memory, a small /tmp, one without programs, a home that can't be written.

Each run gets through, or is refused in a sentence before it starts anything. The machines are made of control groups
and mounts, which takes root; without it these tests are skipped, each with the reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.host import cgroup
from harness.model import Exit
from harness.terminal.command_end import cache_folder
from tests.engines.test_runs import check, told

BAD = Path(__file__).parent / "bad"
SMALL = ("calm", "--rate", "500", "--duration", "5s", "--campaigns", "20", "--fault", "none")
LITTLE_BYTES = 1536 << 20  # enough for all but one that takes what there is

pytestmark = pytest.mark.timeout(300)


@contextmanager
def control_group(controller: str, limit: int, *names: str) -> Iterator[Path]:
    """With a limit in the first of these files that there is; whoever writes itself into the given file is limited."""
    levels = [level for level in cgroup.levels(controller) if level.is_dir()]
    group = levels[0] / f"streamgauge-test-{uuid.uuid4().hex[:8]}" if levels else Path("/no/group")
    try:
        group.mkdir()
        next(group / name for name in names if (group / name).exists()).write_text(str(limit))
    except (OSError, StopIteration) as error:
        pytest.skip(f"a control group with a limit of {controller} can't be made here: {error!r}")
    yield group / "cgroup.procs"
    group.rmdir()


def run_within(members: Path, folder: Path, engine: object) -> dict[str, Any]:
    line = [sys.executable, "-m", "harness", "run", *SMALL, "--engine", str(engine), "--out", str(folder), "--json"]
    enter = ["sh", "-c", f'echo $$ > {members} && exec "$@"', "sh"]
    return told(subprocess.Popen([*enter, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


@pytest.fixture
def little_memory() -> Iterator[Path]:
    with control_group("memory", LITTLE_BYTES, "memory.max", "memory.limit_in_bytes") as members:
        yield members


def test_what_the_kernel_kills_for_memory_is_no_crash(tmp_path, little_memory):
    """The child of the engine is killed, and the engine itself ends with 1: only the kernel's count tells why."""
    answer = run_within(little_memory, tmp_path, BAD / "hungry")

    assert (answer["exit"], answer["words"]) == (Exit.UNKNOWN, ["no-memory"]), answer["sentence"]
    sentence = check(answer, "engine")["sentence"]
    assert "ran out of memory: the kernel killed 1 process to free some; 1.61 GB are granted" in sentence
    assert "exit code 1" in sentence


def test_one_that_uses_up_its_own_heap_has_crashed(tmp_path, little_memory):
    answer = run_within(little_memory, tmp_path, BAD / "heap")

    assert (answer["exit"], answer["words"]) == (Exit.FAIL, ["crashed"]), answer["sentence"]
    assert "MemoryError" in str(check(answer, "engine")["witnesses"])


@pytest.mark.parametrize(
    ("controller", "limit", "names", "told"),
    [
        ("pids", 100, ("pids.max",), r"Only \d+ more processes and threads are allowed here, but 150 are needed"),
        (
            "memory",
            512 << 20,
            ("memory.max", "memory.limit_in_bytes"),
            "512 MiB of memory are granted here, but 768 MiB",
        ),
    ],
)
def test_a_container_that_is_too_small_is_told_so_before_the_start(tmp_path, controller, limit, names, told):
    with control_group(controller, limit, *names) as members:
        answer = run_within(members, tmp_path / "runs", "reference")

    assert answer["exit"] == Exit.BROKEN
    assert re.search(told, answer["error"])
    assert not (tmp_path / "runs").exists()


def elsewhere(mounts: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A command with mounts of its own. What is below /tmp may be hidden by them."""
    if os.geteuid() or not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("mounts of one's own can't be made here: that takes root, Linux and the program unshare")
    for needed in (Path(sys.executable), cache_folder()):
        if needed.is_relative_to("/tmp"):
            pytest.skip(f"{needed} lies below /tmp, which this test covers: take a checkout and a HOME elsewhere")
    line = [sys.executable, "-E", "-m", "harness", *map(str, arguments)]
    return subprocess.run(
        ["unshare", "-m", "sh", "-ec", f'{mounts}\nexec "$@"', "sh", *line],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture
def runs(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that no mount hides."""
    folder = request.config.rootpath / f".runs-{uuid.uuid4().hex[:8]}"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_small_tmp_without_programs_and_a_small_shm_are_enough_for_the_reference(runs):
    mounts = "mount -t tmpfs -o noexec,size=32m none /tmp\nmount -t tmpfs -o size=64m none /dev/shm"
    done = elsewhere(mounts, "run", *SMALL, "--engine", "reference", "--out", runs)

    assert done.returncode == Exit.PASS, done.stderr


@pytest.mark.thorough
def test_a_tmp_that_can_not_be_written_is_passed_over(runs):
    done = elsewhere("mount -t tmpfs -o ro none /tmp", "run", *SMALL, "--engine", "reference", "--out", runs)

    assert done.returncode == Exit.PASS, done.stderr


@pytest.mark.parametrize(
    ("mounts", "told"),
    [
        ("mount -t tmpfs -o noexec none /tmp", r"is mounted noexec, but Java libraries of this engine"),
        (
            "mount -t tmpfs -o size=1m none /tmp",
            r"not enough disk space for this run: it may need \d+ MB below /tmp \(.*\), but only 1\.0 MB are free",
        ),
        ("mount -t tmpfs -o ro none /mnt; export HOME=/mnt", "Set XDG_STATE_HOME"),
    ],
)
def test_what_spark_can_not_work_with_is_a_sentence_before_the_start(runs, mounts, told):
    done = elsewhere(mounts, "run", "calm", "--out", runs)

    assert done.returncode == Exit.BROKEN
    assert re.search(told, done.stderr, re.DOTALL)
    assert "Traceback" not in done.stderr
    assert not runs.exists()


def test_a_home_that_can_not_be_written_is_enough_with_a_state_folder_elsewhere(runs, tmp_path):
    mounts = f"mount -t tmpfs -o ro none /mnt; export HOME=/mnt XDG_STATE_HOME={tmp_path}"
    done = elsewhere(mounts, "run", *SMALL, "--engine", "fake", "--out", runs)

    assert done.returncode == Exit.PASS, done.stderr
