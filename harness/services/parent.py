"""The parent of one program: a small process of its own between the harness and what the harness starts.

    python -I -S parent.py HARNESS_PID REPORT_FD GROUP PROGRAM ARGV...        see harness/services/program.py

The kernel gives it every process below it that has lost its own parent (it is a subreaper). So nothing that the program
starts can leave it: no new session, no other process group and no empty environment helps. It writes two lines into
REPORT_FD, `pid N` and, when the program has ended, `end CODE` (negative: a signal). It ends when nothing is left below
it. SIGTERM goes on to the program. SIGUSR1, which the kernel also sends when the harness dies, ends all below. GROUP is
the folder of the control group that it joins with all of them, or "".
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

SET_DEATH_SIGNAL, SET_SUBREAPER = 1, 36  # of prctl
END_ALL = signal.SIGUSR1
HEARD = {signal.SIGCHLD, signal.SIGTERM, END_ALL}
LOOK_AGAIN_S = 0.005
CANNOT_RUN = 126


def main(harness: int, report: int, group: str, program: str, argv: list[str]) -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    os.set_inheritable(report, False)  # the program must not have it: it could tell lies
    _prctl(SET_SUBREAPER, 1)
    _prctl(SET_DEATH_SIGNAL, END_ALL)
    if os.getppid() != harness:
        sys.exit("The harness died before its child was born.")
    if group:
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as members:  # noqa: PTH123  (light)
            members.write("0")  # the process that writes
    here, child = os.getpid(), os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _become(program, argv, here)
    _tell(report, "pid", child)
    _watch(child, report)


def _become(program: str, argv: list[str], parent: int) -> None:
    """In the child: a session of its own, dead with its parent, and the signals that Python ignores put back."""
    try:
        os.setsid()
        _prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() == parent:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            os.execv(program, argv)
    except OSError as error:
        print(f"{program} can't be run: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(CANNOT_RUN)


def _watch(child: int, report: int) -> None:
    """Until nothing is left below: the kernel says so, not a list of ours."""
    running, ending = True, False
    while True:
        heard = signal.sigtimedwait(HEARD, LOOK_AGAIN_S) if ending else signal.sigwaitinfo(HEARD)
        number = heard.si_signo if heard else 0
        ending = ending or number == END_ALL
        if number == signal.SIGTERM and running:
            os.kill(child, signal.SIGTERM)
        try:
            for pid, code in _ended():
                if pid == child:
                    running = False
                    _tell(report, "end", code)
        except ChildProcessError:
            return
        if ending:
            for pid in _children_of(os.getpid()):
                _kill(pid)


def _ended() -> Iterator[tuple[int, int]]:
    """Return a child that has ended, with its exit code. ChildProcessError: none is left."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def _kill(pid: int) -> None:
    """The older generation first. Whoever is born meanwhile becomes a child of ours, and the next look finds it."""
    children = _children_of(pid)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    for child in children:
        _kill(child)


def _children_of(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.scandir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"{task.path}/children", encoding="ascii") as file:  # noqa: PTH123  (light)
                found += map(int, file.read().split())
    return found


def _tell(report: int, word: str, number: int) -> None:
    with suppress(OSError):  # the harness is dead
        os.write(report, f"{word} {number}\n".encode())


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:])
