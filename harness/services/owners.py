"""Who owns which process and folder on this machine, so that nothing outlives its owner and no sibling is touched.

An owner is one harness process. What it starts carries its mark in the environment, which grandchildren inherit. The
environment alone is not enough (a process that sets its own title, as redis-server does, overwrites it), so the owner
also keeps a ledger on disk: one small file for each child and each folder that is to be deleted. `sweep` ends and
deletes exactly what belongs to owners that are no longer alive.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from harness.model import HarnessError
from harness.terminal.command_end import state_folder
from harness.util.wait import wait_until

OWNER_VARIABLE = "STREAMGAUGE_OWNER"
SWEEP_DEADLINE_S = 20.0


@dataclass(frozen=True)
class Entry:
    """One thing that an owner has: a child process (pid and start), maybe below a parent of its own, or a folder."""

    owner: str
    name: str
    pid: int = 0
    start: str = ""
    folder: str = ""
    parent: int = 0
    parent_start: str = ""


def start_of(pid: int) -> str:
    """When a process started, as a text that stays the same for its whole life; "" when there is no such process.

    On Linux in ticks since the boot: psutil's wall-clock time moves when the clock is set, and would make the living
    look dead.
    """
    try:
        if sys.platform != "linux":
            return f"{psutil.Process(pid).create_time():.3f}"
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError, psutil.Error):
        return ""


def owner_mark() -> str:
    """This process as an owner: `<pid>:<start>:<where that pid means something>`."""
    return f"{os.getpid()}:{start_of(os.getpid())}:{_machine()}"


def is_alive(owner: str) -> bool:
    """Whether the owner of a mark lives here: the same pid alone may be somebody else by now."""
    pid, _, rest = owner.partition(":")
    start, _, machine = rest.partition(":")
    if machine != _machine() or not pid.isdigit() or not start or start_of(int(pid)) != start:
        return False
    with suppress(psutil.Error):
        return psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE
    return False


def is_dead(owner: str) -> bool:
    """Whether the owner of a mark lived here and is no more. What lives elsewhere is not ours to judge."""
    return owner.endswith(f":{_machine()}") and not is_alive(owner)


def environment_of(process: psutil.Process) -> dict[str, str]:
    """The environment a process was started with; empty when it is gone or not ours to see."""
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def is_running(process: psutil.Process) -> bool:
    """Alive: not a zombie, which is dead and only waits to be counted, unless some of its threads are not dead yet."""
    try:
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def enter_child(name: str, pid: int, parent: int | None = None) -> Path:
    """Note a child in the ledger, with the process it runs below; delete the returned file when both are gone."""
    above = start_of(parent) if parent else ""
    return _write(Entry(owner_mark(), name, pid, start_of(pid), parent=parent or 0, parent_start=above))


def lease_folder(path: Path) -> Path:
    """Make `path` a folder that belongs to this owner until `release_folder`, or until the sweep after its death.

    It is private (0700), and it must be new or empty, because all of it will be deleted.
    """
    path = path.absolute()
    if path.exists() and any(path.iterdir()):
        raise HarnessError(f"{path} was to become a folder of ours, but it holds files already. Choose another one.")
    _write(Entry(owner_mark(), path.name, folder=str(path)))
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
    """Delete every folder that this owner still has."""
    try:
        entries = _entries()
    except HarnessError:  # nothing can be entered there, so that nothing was
        return
    for _, entry in entries:
        if entry.folder and entry.owner == owner_mark():
            release_folder(Path(entry.folder))


def sweep() -> list[str]:
    """End the processes and delete the folders of dead owners; says what it did, a sentence each.

    A living owner's things are never touched. Two sweeps at once wait for each other.
    """
    done: list[str] = []
    with locked("sweep"):
        orphaned = [(file, entry) for file, entry in _entries() if is_dead(entry.owner)]
        _end_orphans([entry for _, entry in orphaned], done)
        for file, entry in orphaned:
            if entry.folder and Path(entry.folder).exists():
                _delete(Path(entry.folder))
                done.append(f"Deleted {entry.folder}, which a run that is no longer alive left behind.")
            file.unlink(missing_ok=True)
    return done


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it."""
    with (state_folder() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _delete(folder: Path) -> None:
    """With what is mounted below it: a disk that was of use to a fault."""
    for mounted in psutil.disk_partitions(all=True):
        if Path(mounted.mountpoint).is_relative_to(folder):
            subprocess.run(["umount", "-l", mounted.mountpoint], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _end_orphans(entries: list[Entry], done: list[str]) -> None:
    """Kill until none is left: one may have been forking while we looked. The parents end what is below them and then
    themselves; one that was killed before that would let it escape."""
    told: set[int] = set()
    parents = {(entry.parent, entry.parent_start) for entry in entries if entry.parent}

    def none_left() -> bool:
        orphans = _orphans(entries)
        for process in orphans:
            if process.pid not in told:
                told.add(process.pid)
                done.append(f"Ended {_describe(process)}, which a run that is no longer alive left behind.")
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
    """By their mark, by the ledger, and by descent from those."""
    noted = {(entry.pid, entry.start) for entry in entries if entry.pid}
    noted |= {(entry.parent, entry.parent_start) for entry in entries if entry.parent}
    dead: dict[str, bool] = {"": False}  # the same owner is asked for once, not for each of its processes

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
    """Where a pid means something: a state folder may be shared by hosts, and the processes of a container be seen."""
    try:
        return f"{platform.node()}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _ledger() -> Path:
    folder = state_folder() / "ledger"
    folder.mkdir(exist_ok=True)
    return folder


def _write(entry: Entry) -> Path:
    """Whole or not at all: a sweep of somebody else may be reading."""
    file = _ledger() / f"{uuid.uuid4().hex}.json"
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(entry)))
    return draft.replace(file)


def _entries() -> list[tuple[Path, Entry]]:
    found = []
    for file in _ledger().glob("*.json"):
        with suppress(OSError, ValueError, TypeError):
            found.append((file, Entry(**json.loads(file.read_text()))))
    return found
