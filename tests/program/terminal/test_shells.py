"""Tab in a new shell, after `completion SHELL --install`: what a person types and sees. A shell that is not on this
machine is skipped.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.util.wait import wait_until

ROOT = Path(__file__).resolve().parents[3]
SHELLS = ("bash", "zsh", "fish")
CONTROLS = re.compile(r"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[=>()][0-9A-Z]?|[\r\x07]")
DEADLINE_S = 60.0
ON_A_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A new user, with the program on PATH."""
    program = tmp_path / "bin" / "streamgauge"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m harness "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    return {"HOME": str(tmp_path), "PATH": path, "TERM": "xterm", "LANG": "C.UTF-8", "PS1": "> "}


class Shell:
    """An interactive shell on a terminal."""

    def __init__(self, master: int) -> None:
        self._master = master
        self.shown = ""

    def types(self, text: str) -> None:
        self.shown = ""
        os.write(self._master, text.encode())

    def sees(self, text: str) -> None:
        def is_there() -> bool:
            while select.select([self._master], [], [], 0)[0]:
                self.shown += os.read(self._master, 65536).decode(errors="replace")
            return text in CONTROLS.sub("", self.shown)

        wait_until(is_there, deadline_s=DEADLINE_S, what=repr(text), state=lambda: repr(self.shown), every_s=0.05)


@contextmanager
def started(shell: str, env: dict[str, str], cwd: Path) -> Iterator[Shell]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    command = [sys.executable, "-I", "-c", ON_A_TERMINAL, shell, "-i"]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=env) as process:
        os.close(slave)
        try:
            yield Shell(master)
        finally:
            process.kill()
            os.close(master)


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes_commands_and_engines_in_a_new_shell(shell: str, env: dict[str, str], tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"NOT TRIED: there is no {shell} on this machine")
    subprocess.run(["streamgauge", "completion", shell, "--install"], env=env, cwd=tmp_path, check=True)

    with started(shell, env, tmp_path) as opened:
        opened.types("echo it has begun\n")
        opened.sees("\nit has begun")
        opened.types("streamgauge chao\t")
        opened.sees("streamgauge chaos ")
        opened.types("--engine flink-st\t")
        opened.sees("--engine flink-standalone")
