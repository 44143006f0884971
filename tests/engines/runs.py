"""Whole runs as a user makes them: the command line in a process of its own, and what it answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from harness.services import owners

SHORT = ["--duration", "12s", "--rate", "5000"]


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "harness.cli", "run", "--out", str(folder), "--json", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=380)
    assert out, f"no answer, exit {process.returncode}; stderr:\n{err[-3000:]}"
    answer: dict[str, Any] = json.loads(out)
    assert answer["exit"] == process.returncode
    return answer


def run(folder: Path, *arguments: object) -> dict[str, Any]:
    return told(start(folder, *arguments))


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "harness.cli", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


def check(answer: dict[str, Any], name: str) -> Any:
    return next(each for each in answer["checks"] if each["name"] == name)


def left_of(pid: int) -> list[psutil.Process]:
    """What a harness that has ended left running."""
    mark = f"{pid}:"
    found = psutil.process_iter()
    return [each for each in found if owners.environment_of(each).get(owners.OWNER_VARIABLE, "").startswith(mark)]
