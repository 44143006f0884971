"""The harness is killed at random moments under faults that freeze engines and services or lead them through a proxy:
the next command leaves nothing running, and what is left of the run can be read.

STREAMGAUGE_KILLS=10 ./streamgauge test engines -- -k killed_harness     as many moments as wanted; one otherwise
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.model import Exit
from harness.services import owners
from harness.util.wait import wait_until

KILLS = int(os.environ.get("STREAMGAUGE_KILLS", "1"))
LONG = "for=120s"
FAULTS = (
    f"pause({LONG})@t>=1s",
    f"net-blackhole(link=redis, {LONG})@t>=1s",
    f"kafka-pause({LONG})@t>=1s",
    f"redis-freeze({LONG})@t>=1s",
    f"net-latency(link=kafka, {LONG})@t>=1s",
)
LATEST_S = 9.0

pytestmark = pytest.mark.timeout(900)


def _moments() -> list[tuple[str, float]]:
    """Seeded, so that a moment that went wrong can be had again."""
    dice = random.Random("killed harness")
    return [(FAULTS[number % len(FAULTS)], round(dice.uniform(0.0, LATEST_S), 2)) for number in range(KILLS)]


@pytest.mark.parametrize(("fault", "after_s"), _moments())
def test_nothing_outlives_a_killed_harness_and_its_run_is_unknown(tmp_path, fault, after_s):
    run = ["run", "calm", "--engine", "reference", "--rate", "1000", "--duration", "60s", "--campaigns", "20"]
    with (tmp_path / "output").open("w") as output:
        harness = subprocess.Popen(
            [sys.executable, "-m", "harness", *run, "--fault", fault, "--out", str(tmp_path / "runs")],
            stdout=output,
            stderr=output,
        )
    mark = f"{harness.pid}:{owners.start_of(harness.pid)}:"
    history = wait_until(
        lambda: next((tmp_path / "runs").glob("*/history.jsonl"), None),
        deadline_s=200,
        what="the run to begin",
        state=(tmp_path / "output").read_text,
    )
    wait_until(
        lambda: '"kind":"epoch"' in history.read_text(),
        deadline_s=400,
        what="the load to begin",
        state=(tmp_path / "output").read_text,
    )
    end_s = time.monotonic() + after_s
    wait_until(lambda: time.monotonic() >= end_s, deadline_s=LATEST_S + 60, what=f"{after_s} s under {fault}")
    ours = _of(harness, mark)
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()

    listed = _command("ls", tmp_path / "runs")
    left = [process for process in {*ours, *_marked(mark)} if owners.is_running(process)]
    judged = _command("recheck", history.parent)
    drawn = _command("report", history.parent)

    assert len(ours) >= 3, "the engine, Kafka and Redis were there"
    assert left == []
    assert "broken off" in listed.stdout
    assert (judged.returncode, judged.stdout[:7]) == (Exit.UNKNOWN, "UNKNOWN"), judged.stderr
    assert drawn.returncode == 0, drawn.stderr


def _of(harness: subprocess.Popen[bytes], mark: str) -> set[psutil.Process]:
    """By descent and by mark: one that sets its own title loses the mark, one that was detached its descent."""
    return {*psutil.Process(harness.pid).children(recursive=True), *_marked(mark)}


def _marked(mark: str) -> set[psutil.Process]:
    return {
        p for p in psutil.process_iter() if owners.environment_of(p).get(owners.OWNER_VARIABLE, "").startswith(mark)
    }


def _command(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=Path.cwd())
