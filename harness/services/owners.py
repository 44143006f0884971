"""Records the owner of each process and folder, so that nothing outlives its owner and no other run is touched.

An owner is one harness process. Its children carry its mark in the environment, which grandchildren inherit. The
environment alone is not enough (a process that sets its own title, as redis-server does, overwrites it), so the owner
also keeps a ledger on disk: one small file for each child and each folder that is to be deleted. `sweep` ends and
deletes exactly what belongs to owners that are no longer alive.
"""

from __future__ import annotations

import fcntl
import functools
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.model import HarnessError
from harness.services import state_records
from harness.terminal.command_end import state_folder
from harness.util.wait import wait_until

OWNER_VARIABLE = "STREAMGAUGE_OWNER"
LEDGER = "ledger"
SWEEP_DEADLINE_S = 20.0


@dataclass(frozen=True)
class Entry:
    """A possession of an owner: a child process (pid and start), maybe below its own parent process, or a folder."""

    owner: str
    name: str
    pid: int = 0
    start: str = ""
    folder: str = ""
    parent: int = 0
    parent_start: str = ""


def start_of(pid: int) -> str:
    """Return a process's start time as a text that stays the same for its whole life; "" if there is no such process.

    On Linux it is in ticks since the boot: psutil's wall-clock time moves when the clock is set, so live processes
    would look dead.
    """
    try:
        if sys.platform != "linux":
            return f"{psutil.Process(pid).create_time():.3f}"
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError, psutil.Error):
        return ""


def owner_mark() -> str:
    """Return the mark of this process: `<pid>:<start>:<where both are valid>`."""
    return f"{os.getpid()}:{start_of(os.getpid())}:{_machine()}"


def is_alive(owner: str) -> bool:
    """Return whether the owner of a mark lives here. The pid alone is not enough, since it may be reused."""
    pid, _, rest = owner.partition(":")
    start, _, machine = rest.partition(":")
    if machine != _machine() or not pid.isdigit() or not start or start_of(int(pid)) != start:
        return False
    with suppress(psutil.Error):
        return psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE
    return False


def is_dead(owner: str) -> bool:
    """Return whether the owner of a mark lived here and has ended. Owners elsewhere can't be judged."""
    return owner.endswith(f":{_machine()}") and not is_alive(owner)


def environment_of(process: psutil.Process) -> dict[str, str]:
    """Return the environment a process was started with; empty if it is gone or access is denied."""
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def is_running(process: psutil.Process) -> bool:
    """Return whether a process is alive. A zombie is dead, unless some of its threads still run."""
    try:
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def enter_child(name: str, pid: int, parent: int | None = None) -> Path:
    """Record a child in the ledger, with the process it runs below. Delete the file when both have ended."""
    above = start_of(parent) if parent else ""
    entry = Entry(owner_mark(), name, pid, start_of(pid), parent=parent or 0, parent_start=above)
    return state_records.write(LEDGER, entry)


def lease_folder(path: Path) -> Path:
    """Make `path` a folder that belongs to this owner until `release_folder`, or until the sweep after its death.

    It is private (0700), and it must be new or empty, because all of it will be deleted.
    """
    path = path.absolute()
    if path.exists() and any(path.iterdir()):
        raise HarnessError(f"{path} already contains files, so it can't become a run's folder. Choose another one.")
    state_records.write(LEDGER, Entry(owner_mark(), path.name, folder=str(path)))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def release_folder(path: Path) -> None:
    """Delete a folder of this owner, and its entry."""
    path = path.absolute()
    _delete(path)
    for file, entry in _entries():
        if entry.folder == str(path) and entry.owner == owner_mark():
            file.unlink(missing_ok=True)


def release_all() -> None:
    """Delete all remaining folders of this owner."""
    try:
        entries = _entries()
    except HarnessError:  # no entry can be written there, so there is none
        return
    for _, entry in entries:
        if entry.folder and entry.owner == owner_mark():
            release_folder(Path(entry.folder))


def sweep() -> list[str]:
    """End the processes and delete the folders of dead owners. Return a sentence for each.

    A live owner's processes and folders are never touched. Two sweeps at once wait for each other.
    """
    done: list[str] = []
    with locked("sweep"):
        orphaned = [(file, entry) for file, entry in _entries() if is_dead(entry.owner)]
        _end_orphans([entry for _, entry in orphaned], done)
        for file, entry in orphaned:
            if entry.folder and Path(entry.folder).exists():
                _delete(Path(entry.folder))
                done.append(f"Deleted {entry.folder}, which a dead run left behind.")
            file.unlink(missing_ok=True)
    return done


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Admit one process at a time; the lock ends with the process that holds it."""
    with (state_folder() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _delete(folder: Path) -> None:
    """Unmount disks below the folder first: a fault may have mounted one."""
    for mounted in psutil.disk_partitions(all=True):
        if Path(mounted.mountpoint).is_relative_to(folder):
            subprocess.run(["umount", "-l", mounted.mountpoint], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _end_orphans(entries: list[Entry], done: list[str]) -> None:
    """Kill until none is left: a process may have forked during the search. The parent processes end their descendants
    and then themselves; killed earlier, they would let them escape."""
    told: set[int] = set()
    parents = {(entry.parent, entry.parent_start) for entry in entries if entry.parent}

    def none_left() -> bool:
        orphans = _orphans(entries)
        for process in orphans:
            if process.pid not in told:
                told.add(process.pid)
                done.append(f"Ended {_describe(process)}, which a dead run left behind.")
        for process in orphans:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGCONT)
                if (process.pid, start_of(process.pid)) not in parents or not process.children():
                    process.kill()
        return not orphans

    wait_until(
        none_left,
        deadline_s=SWEEP_DEADLINE_S,
        what="the processes of a dead run to end",
        state=lambda: ", ".join(_describe(process) for process in _orphans(entries)),
    )


def _orphans(entries: list[Entry]) -> list[psutil.Process]:
    """Find orphans by mark, by ledger, and by descent from those."""
    noted = {(entry.pid, entry.start) for entry in entries if entry.pid}
    noted |= {(entry.parent, entry.parent_start) for entry in entries if entry.parent}
    dead: dict[str, bool] = {"": False}  # check each owner once, not once per process

    def is_orphan(process: psutil.Process) -> bool:
        mark = environment_of(process).get(OWNER_VARIABLE, "")
        if mark not in dead:
            dead[mark] = is_dead(mark)
        return dead[mark] or (process.pid, start_of(process.pid)) in noted

    found = {process for process in psutil.process_iter() if is_orphan(process)}
    for process in tuple(found):
        with suppress(psutil.Error):
            found.update(process.children(recursive=True))
    return [process for process in found if is_running(process)]


def _describe(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"process {process.pid} ({process.name()})"
    return f"process {process.pid}"


@functools.cache
def _machine() -> str:
    """Return where a pid and a start are valid: hosts may share a state folder, a container's processes may be visible,
    and in another time namespace every process has another start.
    """
    where = [platform.node()]
    for kind in ("pid", "time"):
        with suppress(OSError):  # no Linux, or one that is older than time namespaces
            where.append(str(Path("/proc/self/ns", kind).readlink()))
    return "/".join(where)


def _entries() -> list[tuple[Path, Entry]]:
    return state_records.read(LEDGER, Entry)
