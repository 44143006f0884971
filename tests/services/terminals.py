"""A terminal with a small shell: it starts a job in the foreground, stops it by Ctrl-Z, brings it back, hangs up."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.util.wait import wait_until

DEADLINE_S = 60.0
# As a shell does it: the job has a process group of its own, and hears SIGHUP when the shell does.
SHELL = """
import fcntl, os, signal, sys, termios, time
folder, *job = sys.argv[1:]
def report(word):
    with open(folder + "/report", "a") as file: file.write(word + "\\n")
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP): signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if not pid:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(job[0], job)
signal.signal(signal.SIGHUP, lambda *_: os.kill(-pid, signal.SIGHUP))
report(f"pid {pid}")
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status): break
    os.tcsetpgrp(0, os.getpgrp())
    report("stopped")
    while not os.path.exists(folder + "/fg"): time.sleep(0.01)
    os.tcsetpgrp(0, pid)
    os.kill(-pid, signal.SIGCONT)
report(f"ended {os.waitstatus_to_exitcode(status)}")
"""


class Terminal:
    """From its making to `close`."""

    def __init__(self, job: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self._folder, self._shown = folder, b""
        self._master, slave = os.openpty()
        self._shell = subprocess.Popen(
            [sys.executable, "-I", "-c", SHELL, str(folder), *job],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=env,
        )
        os.close(slave)
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def press(self, key: str) -> None:
        """`C` for Ctrl-C."""
        os.write(self._master, bytes([ord(key) - 64]))

    def foreground(self) -> None:
        (self._folder / "fg").touch()

    @property
    def shown(self) -> str:
        """All that was printed; a terminal that is as narrow as this one folds lines."""
        return " ".join(self._shown.decode(errors="replace").split())

    def wait(self, word: str) -> str:
        """Until the shell reports it: what stands behind it."""
        return wait_until(
            lambda: next((line for line in self._report() if line.startswith(word)), None),
            deadline_s=DEADLINE_S,
            what=f"{word!r} from the shell",
            state=lambda: f"{self._report()}; {self.shown}",
        ).removeprefix(f"{word} ")

    def hang_up(self) -> None:
        if not self._closing.is_set():
            self._closing.set()
            self._reader.join()
            os.close(self._master)

    def close(self) -> None:
        self.hang_up()
        self._shell.kill()
        self._shell.wait()

    def _report(self) -> list[str]:
        file = self._folder / "report"
        return file.read_text().splitlines() if file.exists() else []

    def _read(self) -> None:
        while not self._closing.is_set():
            if select.select([self._master], [], [], 0.02)[0]:
                try:
                    self._shown += os.read(self._master, 65536)
                except OSError:  # nobody holds its other end any more
                    return
