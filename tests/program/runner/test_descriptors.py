"""Input, output and errors of a command: closed, read-only, or led to a terminal that is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import pytest

from harness.model import Exit

ROOT = Path(__file__).resolve().parents[3]
FAST = ["run", "--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5"]
UNDRAWN = "from harness.drivers import one_run; one_run.write_page = lambda *_: None"
# In the place of all commands, whose import takes most of a start.
LITTLE = """
import json, sys, types
from harness.model import UsageError
def called(words):
    if words == ["mistake"]:
        raise UsageError("No such command.")
    print(json.dumps(words))
    return 0
sys.modules["harness.cli"] = types.ModuleType("harness.cli")
sys.modules["harness.cli.app"] = types.SimpleNamespace(called=lambda words: called(words))
"""
# Starts a child as the harness does, which says where the descriptors lead that it was given.
CHILD = f"""{LITTLE}
from pathlib import Path
from harness.services import children
from harness.util.wait import wait_until
def called(_):
    child = children.spawn(["ls", "-l", "/proc/self/fd/"], name="child", log=Path("child.log"))
    wait_until(lambda: not child.alive(), deadline_s=30, what="the child to end")
    return child.returncode()
"""


def program(
    code: str, words: list[str], folder: Path, *, closed: Collection[int] = (), stdout: BinaryIO | None = None
) -> subprocess.CompletedProcess[str]:
    """The program, begun without some of its three descriptors."""

    def close() -> None:
        for number in closed:
            os.close(number)

    main = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}\nfrom harness.__main__ import main; main()"
    return subprocess.run(
        [sys.executable, "-E", "-c", main, *words],
        cwd=folder,
        env=os.environ | {"XDG_STATE_HOME": str(folder / "state")},
        stdout=stdout or subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=close,
        timeout=100,
    )


@pytest.mark.parametrize("numbers", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_a_command_ends_as_ever_when_descriptors_are_closed(numbers, tmp_path):
    done = program(LITTLE, ["answer"], tmp_path, closed=numbers)

    assert (done.returncode, done.stderr) == (Exit.PASS, "")
    assert 1 in numbers or json.loads(done.stdout) == ["answer"]


@pytest.mark.parametrize("numbers", [(1,), (2,), (0, 1, 2)], ids=str)
def test_a_mistake_is_one_too_when_descriptors_are_closed(numbers, tmp_path):
    done = program(LITTLE, ["mistake"], tmp_path, closed=numbers)

    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert 2 in numbers or done.stderr == "streamgauge: No such command.\n"


def test_a_run_without_descriptors_keeps_its_verdict_and_writes_into_no_file_of_it(tmp_path):
    done = program(UNDRAWN, FAST, tmp_path, closed=(0, 1, 2))

    (run,) = (tmp_path / "runs").iterdir()
    assert done.returncode == Exit.PASS
    assert json.loads((run / "verdict.json").read_text())["outcome"] == "PASS"
    judged = program(UNDRAWN, ["recheck", str(run)], tmp_path, closed=(0, 1, 2))
    assert judged.returncode == Exit.PASS, "its evidence is as it was"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("numbers", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_a_child_is_given_nothing_but_a_log(numbers, tmp_path):
    """A pipe or socket of ours that got the number 0, 1 or 2 would be its input or output."""
    done = program(CHILD, [], tmp_path, closed=numbers)

    assert done.returncode == 0, done.stderr
    led = {line.split(" -> ")[1] for line in (tmp_path / "child.log").read_text().splitlines() if " -> " in line}
    assert {to for to in led if not to.startswith("/proc/")} == {"/dev/null", str(tmp_path / "child.log")}


def test_what_can_only_be_read_is_no_output_and_no_error(tmp_path):
    """`streamgauge ls 1</dev/null`"""
    with Path(os.devnull).open("rb") as nothing:
        done = program(LITTLE, ["answer"], tmp_path, stdout=nothing)

    assert (done.returncode, done.stderr) == (Exit.PASS, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_an_answer_that_could_not_be_kept_is_no_success(tmp_path):
    with Path("/dev/full").open("wb") as full:
        done = program(LITTLE, ["answer"], tmp_path, stdout=full)

    assert done.returncode == Exit.BROKEN
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
