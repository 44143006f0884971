"""Runs a program as a process: below a small parent process where the kernel supports that, else as a plain child.

Below a parent (harness/services/parent.py) no descendant of the program can escape, and the parent ends all of them
when the harness dies. Without one, descendants are found by process group and environment mark only.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from harness.host.pinning import born_on
from harness.model import HarnessError
from harness.services import parent

PARENT = str(Path(parent.__file__).absolute())


class Program(Protocol):
    """One started program, in its own session and process group."""

    @property
    def pid(self) -> int: ...

    @property
    def parent(self) -> int | None:
        """Return the process between us and the program; None without one."""

    def poll(self) -> int | None:
        """Return the program's exit code; None while it runs, negative for a signal."""

    def terminate(self) -> None:
        """Send SIGTERM to the program alone."""

    def end_all(self) -> None:
        """Send SIGKILL to all descendants; `gone` reports completion. Safe to call again."""

    def gone(self) -> bool:
        """Return whether no process of it is left, as far as can be known."""

    @property
    def note(self) -> str:
        """Return a sentence about anything unusual, or ""."""


def start(
    program: str,
    argv: Sequence[str],
    *,
    stdout: IO[bytes],
    stderr: IO[bytes] | int,
    cwd: str | Path | None,
    env: Mapping[str, str],
    stdin: int = subprocess.DEVNULL,
    cores: frozenset[int] = frozenset(),
    group: Path | None = None,
) -> Program:
    """Start a program. `program` is the path, `argv` begins with its name. `stdin` is as in subprocess. `cores` are all
    that it sees; none: those that we see. `group` is the control group of all of it; None: ours.
    """

    def started(command: Sequence[str], report: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
        with born_on(cores):
            return subprocess.Popen(
                command,
                executable=None if report else program,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                env=env,
                start_new_session=True,
                pass_fds=report,
            )

    if not has_parents():
        if group:
            raise HarnessError("A process can't join a control group here: this kernel does not list children.")
        return _Plain(_born_in_lasting_thread(lambda: started(argv)))
    reading, writing = os.pipe()
    joined = str(group) if group else ""
    words = [sys.executable, "-I", "-S", PARENT, str(os.getpid()), str(writing), joined, program, *argv]
    try:
        process = _born_in_lasting_thread(lambda: started(words, (writing,)))
    finally:
        os.close(writing)
    return _Below(process, reading)


def has_parents() -> bool:
    """Return whether the kernel has subreapers and lists the children of a process."""
    return sys.platform == "linux" and Path(f"/proc/self/task/{os.getpid()}/children").exists()


class _Below:
    """A program below a parent process: the kernel itself tracks what `end_all` and `gone` cover."""

    def __init__(self, process: subprocess.Popen[bytes], report: int) -> None:
        self._process, self._report = process, report
        self._lock = threading.Lock()
        self._code: int | None = None
        self.note = ""
        self.parent: int | None = process.pid
        words = os.read(report, 64).split()  # `pid N`, and also `end CODE` if it has already ended
        if not words:
            raise HarnessError(f"The parent of a child ended before the child was born, with {process.wait()}.")
        self.pid = int(words[1])
        os.set_blocking(report, False)
        if len(words) > 2:
            self._over(int(words[3]))

    def poll(self) -> int | None:
        with self._lock:
            if self._code is None:
                self._read()
            return self._code

    def terminate(self) -> None:
        self._ask(signal.SIGTERM)

    def end_all(self) -> None:
        self._ask(parent.END_ALL)

    def gone(self) -> bool:
        return self._process.poll() is not None and self.poll() is not None

    def _ask(self, number: signal.Signals) -> None:
        for each in (signal.SIGCONT, number):  # it may have been stopped
            self._process.send_signal(each)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            words = os.read(self._report, 64).split()
            if not words:
                self.note = (
                    f"its parent, a process of streamgauge, was ended from outside with "
                    f"{self._process.wait()}. Processes that it started may still run"
                )
            self._over(int(words[1]) if words else self._process.wait())

    def _over(self, code: int) -> None:
        self._code = code
        os.close(self._report)


class _Plain:
    """A plain child: its own descendants may escape."""

    parent = None
    note = ""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self.pid = process, process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def terminate(self) -> None:
        self._process.terminate()

    def end_all(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS refuses while a member is a zombie
            os.killpg(self.pid, signal.SIGKILL)

    def gone(self) -> bool:
        return self._process.poll() is not None


_births: queue.SimpleQueue[tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]] = (
    queue.SimpleQueue()
)


def _born_in_lasting_thread(birth: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Fork in a thread that never ends: the kernel's parent is the forking *thread*, whose end would end the child."""
    if not any(thread.name == "births" for thread in threading.enumerate()):
        threading.Thread(target=_attend_births, name="births", daemon=True).start()
    future: Future[subprocess.Popen[bytes]] = Future()
    _births.put((birth, future))
    return future.result()


def _attend_births() -> None:
    while True:
        birth, future = _births.get()
        try:
            future.set_result(birth())
        except Exception as error:  # noqa: BLE001  (it belongs to the caller)
            future.set_exception(error)
