"""A program that would rather not end: `python nasty.py KIND WORD`. WORD stands in the command line of all that comes
from it, so that a test can find it without a mark, a session or a parent. Each says `ready` when it has done its worst.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

SLEEP = "import time; time.sleep(600)"
BURN = "import time\nwhile time.process_time() < 0.5: pass\ntime.sleep(600)"


def daemon(script: str = SLEEP) -> None:
    """Double fork, a session of its own, no environment, no open files."""
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(0, 100)
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", script, sys.argv[2]], {})
    os.wait()


def burner() -> None:
    daemon(BURN)


def leaver() -> None:
    """Leaves the daemon and goes."""
    daemon()
    print("ready", flush=True)
    sys.exit(7)


def hopper() -> None:
    """Its child goes on and it ends itself, for ever: no pid lives for long."""
    if os.fork():
        return
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep(0.001)


def breeder() -> None:
    """Children without end, each in a session of its own; as many as a machine can bear."""
    if os.fork():
        return
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        if not os.fork():
            os.setsid()
            time.sleep(0.2)
            os._exit(0)
        time.sleep(0.002)


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def frozen() -> None:
    """Stops all that it has, and then itself."""
    child = os.fork()
    if not child:
        os.setsid()
        time.sleep(600)
    os.kill(child, signal.SIGSTOP)
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)


def moved() -> None:
    """Its first process stays alone in its group; the work is done in another one."""
    if not os.fork():
        os.setpgid(0, 0)


def jailer() -> None:
    """Freezes whoever started it."""
    os.kill(os.getppid(), signal.SIGSTOP)


def orphan() -> None:
    """Kills whoever started it."""
    os.kill(os.getppid(), signal.SIGKILL)


KINDS: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (daemon, burner, leaver, hopper, breeder, deaf, frozen, moved, jailer, orphan)
}

if __name__ == "__main__":
    KINDS[sys.argv[1]]()
    print("ready", flush=True)
    time.sleep(600)
