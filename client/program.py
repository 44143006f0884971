"""Finds the program, and asks it: a command in a process of its own, whose answer is one JSON object."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
USAGE, BROKEN = 2, 4  # exit codes without a verdict
END_S = 60.0  # how long an interrupted command may take to stop what it started

Flag = str | int | float | bool | Path | Sequence[str] | None


class ProgramError(Exception):
    """The program could not do this, and there is no verdict."""


class UsageError(ProgramError):
    """The program does not understand a flag, or flags that contradict each other. Nothing was started."""


def command() -> list[str]:
    """Return the program's command: a wheel's own, or the launcher of the checkout."""
    if (HERE / "program").is_dir():
        return [sys.executable, "-I", str(HERE / "__main__.py")]
    return [str(HERE.parent / "streamgauge")]


def words_of(flags: Mapping[str, Flag]) -> list[str]:
    """Translate keyword arguments to flags: `rate=500` is `--rate 500`, `archive=False` is `--no-archive`."""
    return [word for name, value in flags.items() for word in _words(name.replace("_", "-"), value)]


def _words(name: str, value: Flag) -> list[str]:
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    values = [value] if isinstance(value, str | int | float | Path) else value
    return [word for each in values for word in (f"--{name}", str(each))]


def asked(words: Sequence[str]) -> dict[str, Any]:
    """Run a command, and return its answer. Its progress goes to standard error as it comes."""
    child = subprocess.Popen([*command(), *words, "--json"], stdout=subprocess.PIPE, text=True)
    try:
        output, _ = child.communicate()
    except BaseException:  # also Ctrl-C in a notebook, which reaches this process alone
        _end(child)
        raise
    return _answer_in(output, words, child.returncode)


def _end(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGINT)
    try:
        child.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()


def _answer_in(output: str, words: Sequence[str], code: int) -> dict[str, Any]:
    try:
        answer = json.loads(output)
    except ValueError:
        answer = {}
    if not isinstance(answer, dict) or not answer or "error" in answer:
        reason = answer.get("error") if isinstance(answer, dict) and answer else "its last lines are on standard error"
        kind = UsageError if code == USAGE else ProgramError
        raise kind(f"streamgauge {' '.join(words)} ended with exit code {code}: {reason}")
    return answer
