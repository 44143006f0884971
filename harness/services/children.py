"""Child processes: every process of the harness is started here, and this module also ensures that it ends.

Each child has its own session, a log file of limited size, the owner's mark, an entry in the owner's ledger, and on
Linux its own parent (harness/services/parent.py), which no descendant can leave and which ends all of them when the
harness dies. Killing a child kills all its descendants, and completes only when none is left: two drivers that run by
accident produce wrong counts that look like a bug of the engine.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from harness.model import HarnessError, Stopped
from harness.services import logs, program
from harness.services.owners import OWNER_VARIABLE, enter_child, environment_of, is_running, owner_mark, release_all
from harness.terminal import command_end
from harness.util.texts import shown
from harness.util.wait import DeadlinePassed, wait_until

CHILD_VARIABLE = "STREAMGAUGE_CHILD"
KILL_DEADLINE_S = 20.0
LONGEST_LINE = 200  # characters of a log's line in a message; Kafka writes whole requests into one
FIRST = -10  # nine times the CPU share of a session with the default

# Leaves its parent and prints the pid of the process that remains.
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
    """A process that the harness started, with all its descendants."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, started: program.Program, token: str) -> None:
        self.name, self.argv, self.log, self.pid = name, tuple(argv), log, started.pid
        self._program, self._token = started, token
        self._log = logs.Log(log)
        logs.watch(self._log)
        self._entry = enter_child(name, started.pid, started.parent)
        self._buried = False

    def alive(self) -> bool:
        """Return whether the child itself runs; its descendants may outlive it."""
        return self._program.poll() is None

    def returncode(self) -> int | None:
        """Return None while it runs; a negative number is the signal that ended it."""
        return self._program.poll()

    @property
    def note(self) -> str:
        """Return a sentence about anything unusual in its end, or ""."""
        return self._program.note

    def go_first(self) -> None:
        """Raise the CPU priority of its session, where the kernel schedules by sessions and we may (root).

        An engine that takes all CPU should slow down itself, and not its input.
        """
        with suppress(OSError):
            Path(f"/proc/{self.pid}/autogroup").write_text(f"{FIRST}\n")

    def members(self) -> list[psutil.Process]:
        """Return the child and its descendants."""
        if self._buried:  # the pid may have been reused
            return []
        return [process for process in self._family() if is_running(process)]

    def signal_group(self, number: signal.Signals, pids: Collection[int] | None = None) -> None:
        """Send a signal to all members, or to the given ones."""
        for process in self.members():
            if pids is None or process.pid in pids:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)

    def kill_group(self) -> None:
        """Send SIGKILL to all members, repeatedly until none is left."""
        if self.alive():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)  # all at once: no member can fork in between
        wait_until(
            self._end_members,
            deadline_s=KILL_DEADLINE_S,
            what=f"all processes of {self.name} to end after SIGKILL",
            state=lambda: f"still there: {[process.pid for process in self.members()]}. The log is {self.log}.",
            every_s=0.01,
        )
        self._buried = True
        logs.unwatch(self._log)
        self._entry.unlink(missing_ok=True)
        _living.discard(self)

    def terminate(self) -> None:
        """Send SIGTERM to the child alone, so that it can end its own children in order."""
        if self.alive():
            self._program.terminate()

    def stop(self, deadline_s: float, *, whole: bool = False) -> bool:
        """Terminate the child, then SIGKILL the rest. Return whether the child ended by itself before the deadline.

        With `whole`, its descendants too have until the deadline to end by themselves.
        """
        if self.alive():
            self.terminate()
            left = self._any_left if whole else self.alive
            with suppress(DeadlinePassed):
                wait_until(lambda: not left(), deadline_s=deadline_s, what=f"{self.name} to end", every_s=0.01)
        in_time = not self.alive()
        self.kill_group()
        return in_time

    def tail(self, lines: int) -> list[str]:
        return self._log.tail(lines)

    def last_words(self) -> str:
        """Return the end of its log, formatted as the end of a message."""
        return f"The last lines of {self.log}:" + "".join(f"\n  {shown(line, LONGEST_LINE)}" for line in self.tail(12))

    def _any_left(self) -> bool:
        """Ask the parent first: a list of members misses a process whose own parent ends while the list is made."""
        return not self._program.gone() or bool(self.members())

    def _family(self) -> Iterable[psutil.Process]:
        """Return the descendants of its parent process; without one, its process group and processes with its mark."""
        if self._program.parent is None or self._program.gone():
            return filter(self._is_marked, psutil.process_iter())
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._program.parent).children(recursive=True)
        return ()

    def _is_marked(self, process: psutil.Process) -> bool:
        with suppress(OSError):  # gone, or (on macOS) not permitted
            if os.getpgid(process.pid) == self.pid:
                return True
        return environment_of(process).get(CHILD_VARIABLE) == self._token

    def _end_members(self) -> bool:
        """Kill the descendants of its parent process first, then others with its mark."""
        if not self._program.gone():
            self._program.end_all()
            return False
        members = self.members()
        for process in members:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return not members


_living: set[Child] = set()


def spawn(
    argv: Sequence[str],
    *,
    name: str,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int = subprocess.DEVNULL,
    cores: frozenset[int] = frozenset(),
) -> Child:
    """Start a program as a child in its own session, with its output appended to `log`.

    `env` is the whole environment, as in subprocess; None: ours. The marks are added to it. `cores` are all that it and
    its descendants may use; none: those that we may.
    """
    environment = dict(os.environ if env is None else env)
    path = shutil.which(argv[0], path=environment.get("PATH"))
    if path is None:
        raise HarnessError(
            f"{name} cannot be started: the program {argv[0]!r} does not exist, and it is not on PATH. Install it."
        )
    token = uuid.uuid4().hex
    environment |= {OWNER_VARIABLE: owner_mark(), CHILD_VARIABLE: token}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        started = program.start(
            str(Path(path).absolute()),
            argv,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=environment,
            stdin=stdin,
            cores=cores,
        )
    child = Child(name, argv, log, started, token)
    _living.add(child)
    return child


def detach(argv: Sequence[str], *, log: Path, cwd: Path) -> int:
    """Start a process that outlives us and is no child of ours, hence an owner itself. Return its pid."""
    environment = {name: value for name, value in os.environ.items() if name not in (OWNER_VARIABLE, CHILD_VARIABLE)}
    command = [sys.executable, "-I", "-S", "-c", _DETACH, str(log), *argv]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, cwd=cwd, check=True, text=True
    )
    return int(done.stdout)


def stop_all(spared: Collection[Child] = ()) -> None:
    """Kill all remaining children, the youngest first, and delete the folders of this owner."""
    for child in sorted(_living.difference(spared), key=lambda child: child.pid, reverse=True):
        with suppress(DeadlinePassed):  # go on with the others; the next sweep tries again
            child.kill_group()
    release_all()


@contextmanager
def guard() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP end the program like an exception does. At the end all processes that were started
    inside are gone.
    """
    outside = frozenset(_living)
    heard = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, command_end.stop) for number in heard}
    try:
        yield
    finally:
        try:
            stop_all(outside)
        except Stopped:  # a signal interrupted it
            stop_all(outside)
            raise
        for number, handler in previous.items():
            signal.signal(number, handler)


atexit.register(stop_all)
os.register_at_fork(after_in_child=_living.clear)  # a fork has no claim on its parent's children
