"""Child processes: every process of the harness is born here, and here it is made sure that it also dies.

Each child has a session of its own, a log file that is kept short, the owner's mark, an entry in the owner's ledger,
and on Linux a parent of its own (harness/services/parent.py) that nothing of it can leave and that ends all of it when
the harness dies. Killing a child means everything that came from it, and it is over only when none of that is left: two
drivers running by accident make wrong counts that look like a bug of the engine.
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
from harness.util.wait import DeadlinePassed, wait_until

CHILD_VARIABLE = "STREAMGAUGE_CHILD"
KILL_DEADLINE_S = 20.0
FIRST = -10  # nine times the share of a session that has no wish

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

    def __init__(self, name: str, argv: Sequence[str], log: Path, started: program.Program, token: str) -> None:
        self.name, self.argv, self.log, self.pid = name, tuple(argv), log, started.pid
        self._program, self._token = started, token
        self._log = logs.Log(log)
        logs.watch(self._log)
        self._entry = enter_child(name, started.pid, started.parent)
        self._buried = False

    def alive(self) -> bool:
        """Whether the child itself runs; its descendants may outlive it."""
        return self._program.poll() is None

    def returncode(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._program.poll()

    @property
    def note(self) -> str:
        """What was odd about its end: a sentence, or ""."""
        return self._program.note

    def go_first(self) -> None:
        """Where the kernel deals out the CPU by sessions, and we may wish for more (root): before the other sessions.

        An engine that takes all there is shall slow down itself, and not what it is sent.
        """
        with suppress(OSError):
            Path(f"/proc/{self.pid}/autogroup").write_text(f"{FIRST}\n")

    def members(self) -> list[psutil.Process]:
        """The child and everything that came from it."""
        if self._buried:  # the number may be somebody else's by now
            return []
        return [process for process in self._family() if is_running(process)]

    def signal_group(self, number: signal.Signals, pids: Collection[int] | None = None) -> None:
        """Send a signal to all members, or to some of them."""
        for process in self.members():
            if pids is None or process.pid in pids:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)

    def kill_group(self) -> None:
        """SIGKILL to everything that came from it, again until none is left."""
        if self.alive():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)  # all at once: nobody can fork in between
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
        """SIGTERM to the child alone, so that it can end its own children in order."""
        if self.alive():
            self._program.terminate()

    def stop(self, deadline_s: float, *, whole: bool = False) -> bool:
        """Terminate it, then SIGKILL to whoever is left. Whether it had ended by itself when the deadline came.

        `whole`: what came from it may end by itself too, as long as the deadline has not come.
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
        """The last lines of its log."""
        return self._log.tail(lines)

    def last_words(self) -> str:
        """The end of its log as the end of a message."""
        return f"The last lines of {self.log}:" + "".join(f"\n  {line}" for line in self.tail(12))

    def _any_left(self) -> bool:
        """By its parent's end first: a list of members misses a process whose own parent ends while it is made."""
        return not self._program.gone() or bool(self.members())

    def _family(self) -> Iterable[psutil.Process]:
        """All that is below its parent; without one, its process group and who carries its mark."""
        if self._program.parent is None or self._program.gone():
            return filter(self._is_marked, psutil.process_iter())
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._program.parent).children(recursive=True)
        return ()

    def _is_marked(self, process: psutil.Process) -> bool:
        with suppress(OSError):  # gone, or (on macOS) not ours to ask about
            if os.getpgid(process.pid) == self.pid:
                return True
        return environment_of(process).get(CHILD_VARIABLE) == self._token

    def _end_members(self) -> bool:
        """What is below its parent first; then who carries its mark all the same."""
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
) -> Child:
    """Start a program as a child in a session of its own, its output appended to `log`.

    `env` is the whole environment, as in subprocess; None: ours. The marks are added to it.
    """
    environment = dict(os.environ if env is None else env)
    path = shutil.which(argv[0], path=environment.get("PATH"))
    if path is None:
        raise HarnessError(f"{name} cannot be started: there is no program {argv[0]!r}, also not on PATH.")
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
        )
    child = Child(name, argv, log, started, token)
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
    previous = {number: signal.signal(number, command_end.stop) for number in heard}
    try:
        yield
    finally:
        try:
            stop_all()
        except Stopped:  # in the middle of it
            stop_all()
            raise
        for number, handler in previous.items():
            signal.signal(number, handler)


atexit.register(stop_all)
os.register_at_fork(after_in_child=_living.clear)  # they are children of the parent only
