"""Real runs on a small disk: one that fits as foretold, and one whose disk is filled while it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from generators.tape import Tape
from harness.config import plan
from harness.engines.manifest import load
from harness.host import disk_space
from harness.host.disk_space import MB
from harness.model import Exit
from harness.services.small_disk import SmallDisk, impossible
from harness.util.wait import wait_until
from tests.engines.test_runs import command, told

LOAD = ("calm", "--engine", "reference", "--rate", "10000", "--fault", "none")
Mount = Callable[[int], SmallDisk]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    if why := impossible():
        pytest.skip(f"NO REAL FULL DISK IS TRIED: none can be mounted here ({why})")
    made: list[SmallDisk] = []

    def make(size: int) -> SmallDisk:
        made.append(SmallDisk(tmp_path / "disk", -(-size // (1 << 20))))
        made[0].mount()
        (made[0].folder / "tmp").mkdir()
        return made[0]

    yield make
    for disk in made:
        disk.unmount()


def start(disk: SmallDisk, *arguments: str) -> subprocess.Popen[str]:
    """Everything that it writes goes there."""
    line = [sys.executable, "-m", "harness", "run", *LOAD, *arguments, "--out", str(disk.folder / "runs"), "--json"]
    env = {**os.environ, "TMPDIR": str(disk.folder / "tmp")}
    return subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def needed(duration: str) -> int:
    keys = {"engine": "reference", "rate": 10_000, "duration": duration, "fault": "none"}
    spec, manifest = plan.resolve("calm", keys, {}, load)
    here = Path()
    wanted = disk_space.needs(manifest, Tape(spec.tape).total, brokers=1, runs=1, out=here, temporary=here)
    return sum(need.size for need in wanted) + disk_space.AS_GOOD_AS_FULL


def test_a_run_that_is_let_in_fits(mount: Mount) -> None:
    disk = mount(needed("10s") + 2 * MB)

    answer = told(start(disk, "--duration", "10s"))

    assert answer["verdict"] == "PASS", answer["sentence"]


def test_a_disk_that_is_filled_meanwhile_is_named_and_nothing_is_blamed_on_the_engine(mount: Mount) -> None:
    disk = mount(needed("20s") + 2 * MB)
    process = start(disk, "--duration", "20s")

    def loads() -> bool:
        assert process.poll() is None, process.communicate()
        return any(b'"kind":"epoch"' in path.read_bytes() for path in disk.folder.glob("runs/*/history.jsonl"))

    wait_until(loads, deadline_s=120, what="the load to begin")
    disk.fill()
    answer = told(process)
    disk.free()

    assert answer["exit"] in (Exit.UNKNOWN, Exit.BROKEN)
    said = answer.get("sentence") or answer["error"]
    assert str(disk.folder) in said
    assert "are free" in said
    (run,) = (disk.folder / "runs").iterdir()
    assert (run / "spec.json").exists()
    assert command("recheck", run).returncode == Exit.UNKNOWN
