"""A program as a process: below a small parent of ours where the kernel allows that, else as a plain child.

Below a parent (harness/services/parent.py) nothing that the program starts can leave it, and the parent ends it all
when the harness dies. Without one, the process group and the mark in the environment are all there is to go by.
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

from harness.model import HarnessError
from harness.services import parent

PARENT = str(Path(parent.__file__).absolute())


class Program(Protocol):
    """One program that was started, in a session and process group of its own."""

    @property
    def pid(self) -> int: ...

    @property
    def parent(self) -> int | None:
        """The process between us and the program; None without one."""

    def poll(self) -> int | None:
        """How the program ended; None while it runs, negative for a signal."""

    def terminate(self) -> None:
        """SIGTERM to the program alone."""

    def end_all(self) -> None:
        """SIGKILL to everything below; ask `gone` whether it is done. Safe to call again."""

    def gone(self) -> bool:
        """Whether nothing of it is left, as far as can be known."""

    @property
    def note(self) -> str:
        """What was odd about it: a sentence, or ""."""


def start(
    program: str,
    argv: Sequence[str],
    *,
    stdout: IO[bytes],
    stderr: IO[bytes] | int,
    cwd: str | Path | None,
    env: Mapping[str, str],
    stdin: int = subprocess.DEVNULL,
) -> Program:
    """`program` is the path, `argv` begins with its name. `stdin`: as in subprocess."""

    def started(command: Sequence[str], report: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
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
        return _Plain(_born_in_lasting_thread(lambda: started(argv)))
    reading, writing = os.pipe()
    words = [sys.executable, "-I", "-S", PARENT, str(os.getpid()), str(writing), program, *argv]
    try:
        process = _born_in_lasting_thread(lambda: started(words, (writing,)))
    finally:
        os.close(writing)
    return _Below(process, reading)


def has_parents() -> bool:
    """Whether the kernel has subreapers and lists the children of a process."""
    return sys.platform == "linux" and Path(f"/proc/self/task/{os.getpid()}/children").exists()


class _Below:
    """Below a parent: `end_all` and `gone` are the kernel's word."""

    def __init__(self, process: subprocess.Popen[bytes], report: int) -> None:
        self._process, self._report = process, report
        self._lock = threading.Lock()
        self._code: int | None = None
        self.note = ""
        self.parent: int | None = process.pid
        words = os.read(report, 64).split()  # `pid N`, and of one that has ended already `end CODE`
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
        for each in (signal.SIGCONT, number):  # whatever was done to it
            self._process.send_signal(each)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            words = os.read(self._report, 64).split()
            if not words:
                self.note = (
                    f"its parent, a process of streamgauge's, was ended with {self._process.wait()} from outside: "
                    "what it started may run on unseen"
                )
            self._over(int(words[1]) if words else self._process.wait())

    def _over(self, code: int) -> None:
        self._code = code
        os.close(self._report)


class _Plain:
    """A child of ours: what it starts may leave it."""

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
    """The kernel takes the *thread* that forked for the parent, so children are born in one that never ends."""
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
        except Exception as error:  # noqa: BLE001  (it belongs to whoever asked for the child)
            future.set_exception(error)
