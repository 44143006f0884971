"""Child processes: every process of the harness is born here, and here it is made sure that it also dies.

Each child has a session of its own, a log file that is kept short, the owner's mark, an entry in the owner's ledger,
and on Linux the order to the kernel to kill it when the harness dies. Killing a child means its whole process group and
everything that carries its mark, and it is over only when none of them is left: two drivers running by accident make
wrong counts that look like a bug of the engine.
"""

from __future__ import annotations

import atexit
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from harness import ending
from harness.model import HarnessError
from harness.services import logs
from harness.services.owners import OWNER_VARIABLE, enter_child, environment_of, is_running, owner_mark, release_all
from harness.wait import DeadlinePassed, wait_until

CHILD_VARIABLE = "STREAMGAUGE_CHILD"
KILL_DEADLINE_S = 20.0
FIRST = -10  # nine times the share of a session that has no wish

# Runs in the child, before the program: asks the kernel (PR_SET_PDEATHSIG = 1) to kill the child with its parent,
# looks whether the parent died just before, and puts back the signals that Python ignores for itself. A program of its
# own instead of subprocess' preexec_fn, which may deadlock in a process with threads.
_LAST_WILL = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("The parent died first.")
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
os.execv(sys.argv[2], sys.argv[3:])
"""

# Leaves its parent for good, and prints the pid of what stays.
_DETACH = """
import os, sys
pid = os.fork()
if pid:
    print(pid)
    sys.exit(0)
os.setsid()
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.dup2(log, 1)
os.dup2(log, 2)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Child:
    """A process that the harness started, with all that came from it."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, process: subprocess.Popen[bytes], token: str) -> None:
        self.name, self.argv, self.log, self.pid = name, tuple(argv), log, process.pid
        self._process, self._token = process, token
        self._log = logs.Log(log)
        logs.watch(self._log)
        self._entry = enter_child(name, process.pid)
        self._buried = False

    def alive(self) -> bool:
        """Whether the child itself runs; its descendants may outlive it."""
        return self._process.poll() is None

    def returncode(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.poll()

    def go_first(self) -> None:
        """Where the kernel deals out the CPU by sessions, and we may wish for more (root): before the other sessions.

        An engine that takes all there is shall slow down itself, and not what it is sent.
        """
        with suppress(OSError):
            Path(f"/proc/{self.pid}/autogroup").write_text(f"{FIRST}\n")

    def members(self) -> list[psutil.Process]:
        """The child and everything that came from it: its process group, and who left that but carries its mark."""
        if self._buried:  # the number may be somebody else's by now
            return []
        self._process.poll()
        return [process for process in psutil.process_iter() if self._is_member(process) and is_running(process)]

    def signal_group(self, number: signal.Signals, pids: Collection[int] | None = None) -> None:
        """Send a signal to all members, or to some of them."""
        for process in self.members():
            if pids is None or process.pid in pids:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)

    def kill_group(self) -> None:
        """SIGKILL to all members, again until none is left."""
        wait_until(
            self._kill_members,
            deadline_s=KILL_DEADLINE_S,
            what=f"all processes of {self.name} to end after SIGKILL",
            state=lambda: f"still there: {[process.pid for process in self.members()]}. The log is {self.log}.",
            every_s=0.01,
        )
        self._process.wait(KILL_DEADLINE_S)  # it is dead, but its exit code may not have been collected yet
        self._buried = True
        logs.unwatch(self._log)
        self._entry.unlink(missing_ok=True)
        _living.discard(self)

    def stop(self, deadline_s: float) -> bool:
        """SIGTERM to the child alone, so that it can end its own children in order; then SIGKILL to whoever is left.
        Whether it had ended by itself when the deadline came."""
        if self.alive():
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(deadline_s)
        in_time = not self.alive()
        self.kill_group()
        return in_time

    def tail(self, lines: int) -> list[str]:
        """The last lines of its log."""
        return self._log.tail(lines)

    def last_words(self) -> str:
        """The end of its log as the end of a message."""
        return f"The last lines of {self.log}:" + "".join(f"\n  {line}" for line in self.tail(12))

    def _is_member(self, process: psutil.Process) -> bool:
        with suppress(OSError):  # gone, or (on macOS) not ours to ask about
            if os.getpgid(process.pid) == self.pid:
                return True
        return environment_of(process).get(CHILD_VARIABLE) == self._token

    def _kill_members(self) -> bool:
        members = self.members()
        if any(process.pid == self.pid for process in members):
            with suppress(ProcessLookupError, PermissionError):  # macOS refuses while a member is a zombie
                os.killpg(self.pid, signal.SIGKILL)  # all at once: nobody can fork in between
        for process in members:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return not members


_living: set[Child] = set()
_births: queue.SimpleQueue[tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]] = (
    queue.SimpleQueue()
)


def spawn(
    argv: Sequence[str], *, name: str, log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Child:
    """Start a program as a child in a session of its own, its output appended to `log`.

    `env` is the whole environment, as in subprocess; None: ours. The marks are added to it.
    """
    environment = dict(os.environ if env is None else env)
    program = shutil.which(argv[0], path=environment.get("PATH"))
    if program is None:
        raise HarnessError(f"{name} cannot be started: there is no program {argv[0]!r}, also not on PATH.")
    token = uuid.uuid4().hex
    environment |= {OWNER_VARIABLE: owner_mark(), CHILD_VARIABLE: token}
    command = _with_last_will([str(Path(program).absolute()), *argv])
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = _born_in_lasting_thread(
            lambda: subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )
        )
    child = Child(name, argv, log, process, token)
    _living.add(child)
    return child


def detach(argv: Sequence[str], *, log: Path, cwd: Path) -> int:
    """Start a process that outlives us and is nobody's child, hence an owner itself; its pid."""
    environment = {name: value for name, value in os.environ.items() if name not in (OWNER_VARIABLE, CHILD_VARIABLE)}
    command = [sys.executable, "-I", "-S", "-c", _DETACH, str(log), *argv]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, cwd=cwd, check=True, text=True
    )
    return int(done.stdout)


def stop_all() -> None:
    """Kill all children that are left, the youngest first, and delete the folders of this owner."""
    for child in sorted(_living, key=lambda child: child.pid, reverse=True):
        with suppress(DeadlinePassed):  # the others must die all the same; the next sweep tries again
            child.kill_group()
    release_all()


@contextmanager
def guard() -> Iterator[None]:
    """While inside, SIGTERM and SIGHUP end the program as an exception does; at the end nothing of ours is left."""
    heard = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, ending.stop) for number in heard}
    try:
        yield
    finally:
        stop_all()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _with_last_will(program_and_argv: Sequence[str]) -> list[str]:
    if sys.platform != "linux":  # no such order to the kernel elsewhere: the next sweep has to do
        return list(program_and_argv[1:])
    return [sys.executable, "-I", "-S", "-c", _LAST_WILL, str(os.getpid()), *program_and_argv]


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


atexit.register(stop_all)
os.register_at_fork(after_in_child=_living.clear)  # they are children of the parent only
