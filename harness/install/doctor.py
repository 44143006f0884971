"""Examines this machine: what is present, what is missing, and how to get it.

Each check is one small function that returns a Finding; it changes nothing, prints nothing and raises nothing.
`before_installation` needs no package, so the launcher can call it before .venv exists; `examine` runs all checks.
Standard library only, for the same reason.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from harness.host import cgroup, needs
from harness.install import jvm
from harness.install.origin import HOW_TO_MEND, ROOT
from harness.model import HarnessError
from harness.terminal.command_end import cache_folder, state_path
from harness.util.texts import many

PYTHON_LOWEST, PYTHON_HIGHEST = (3, 11), (3, 13)
ENOUGH_CORES = 2
ENOUGH_DISK = 2_000_000_000  # the log of a run, its checkpoint and the stored run
PORTS_OF_A_RUN = 8
WHOLE = "Use a whole checkout, or install the wheel again."


class State(Enum):
    """OK: nothing to do. MISSING: it does not exist. WRONG: it exists and is unusable."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """The result of one check: its subject, its state, details, and advice."""

    what: str
    state: State
    seen: str
    how: str = ""


def as_line(finding: Finding) -> str:
    line = f"{finding.what}: {finding.state.value}, {finding.seen}"
    return line if finding.state is State.OK else f"{line}. {finding.how}"


def all_well(findings: Sequence[Finding]) -> bool:
    return all(finding.state is State.OK for finding in findings)


def before_installation(target: Path) -> list[Finding]:
    """Run the checks that need no package. Packages will be installed in `target`."""
    return [python(), java(), cores(), memory(), disk("disk", target)]


def examine(runs: Path, find_redis: Callable[[], Path]) -> list[Finding]:
    """Run all checks. `runs` is the folder of the runs; `find_redis` returns the server program or raises."""
    return [
        python(),
        packages(),
        java(),
        *(artifacts(which) for which in jvm.DEFAULT_SETS),
        redis_server(find_redis),
        cores(),
        memory(),
        open_files(),
        threads(),
        ports(),
        temporary(),
        folder("runs folder", runs),
        folder("cache folder", cache_folder()),
        state(),
    ]


# ---------------------------------------------------------------- Programs and packages


def python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    seen = f"{'.'.join(map(str, version))} ({sys.executable})"
    if PYTHON_LOWEST <= version[:2] <= PYTHON_HIGHEST:
        return Finding("Python", State.OK, seen)
    return Finding("Python", State.WRONG, seen, "Python 3.11 to 3.13 is needed; put one of them on PATH.")


def packages(requirements: str | None = None) -> Finding:
    """Compare the packages that are required by exact version; their dependencies were installed with them."""
    asked = exact_versions(_own_requirements() if requirements is None else requirements)
    if not asked:
        return Finding("packages", State.WRONG, f"no list of them in {ROOT}", WHOLE)
    wrong = [
        f"{name} {version} is {installed or 'not installed'}"
        for name, version in asked.items()
        if (installed := _installed_version(name)) != version
    ]
    if wrong:
        return Finding("packages", State.WRONG, "; ".join(wrong), HOW_TO_MEND)
    return Finding("packages", State.OK, f"{many(len(asked), 'package')} as pinned")


def exact_versions(requirements: str) -> dict[str, str]:
    """Parse name -> version from the lines that require one exact version on every machine."""
    return dict(re.findall(r"^([\w-]+)==([\w.]+)$", requirements, re.MULTILINE))


def _own_requirements() -> str:
    """Return the list of the packages that we asked for; "" if there is none."""
    listed = ROOT / "requirements" / "run.in"
    return listed.read_text(encoding="utf-8") if listed.is_file() else ""


def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def java() -> Finding:
    try:
        program = jvm.find_java()
    except HarnessError as error:
        return Finding("Java", State.MISSING, "none that can be started", str(error))
    try:
        version = jvm.java_version(program)
    except HarnessError as error:
        return Finding("Java", State.WRONG, f"{program} does not say its version", str(error))
    # A runtime is enough for all engines except those whose job is a Java source file.
    kind = "JDK" if program.resolve().with_name("javac").exists() else "runtime without compiler"
    seen = f"{version}, {kind} ({program})"
    if version < jvm.MINIMUM_JAVA:
        return Finding("Java", State.WRONG, seen, jvm.HOW_TO_GET_JAVA)
    return Finding("Java", State.OK, seen)


def artifacts(which: str) -> Finding:
    """Check every jar of one set by its checksum."""
    what, how = f"JVM artifacts of {which}", "The next command that needs them fetches them; that takes a network."
    try:
        pinned = jvm.read_sums(jvm.source_folder(which) / "jars.sha256")
        jars = jvm.jar_folder(which)
    except HarnessError as error:
        return Finding(what, State.WRONG, str(error), WHOLE)
    if not jars.is_dir():
        return Finding(what, State.MISSING, f"no folder {jars}", how)
    found = jvm.differences(pinned, jars)
    if found:
        return Finding(what, State.WRONG, f"{'; '.join(found[:3])} in {jars}", how)
    return Finding(what, State.OK, f"{many(len(pinned), 'jar')} as pinned ({jars})")


def redis_server(find: Callable[[], Path]) -> Finding:
    try:
        program = find()
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except HarnessError as error:
        return Finding("Redis server", State.MISSING, "not found", str(error))
    except (OSError, subprocess.TimeoutExpired) as error:
        how = "Install redis-server 6.2 or newer, or give the address of one with --redis."
        return Finding("Redis server", State.WRONG, f"it does not run: {error}", how)
    version = re.search(r"\bv=(\S+)", said)
    return Finding("Redis server", State.OK, f"{version[1] if version else 'version unknown'} ({program})")


# ---------------------------------------------------------------- The machine


def cores() -> Finding:
    count, allowed, quota = cgroup.cores(), cgroup.allowed_cores(), cgroup.quota_cores()
    share = "" if quota is None or quota >= allowed else f", by quota, of {allowed}"
    seen = f"{count:g} usable{share}"
    if count >= ENOUGH_CORES:
        return Finding("cores", State.OK, seen)
    how = f"With fewer than {ENOUGH_CORES}, load and engine starve each other: counts stay right, figures mean little."
    return Finding("cores", State.WRONG, seen, how)


def memory() -> Finding:
    usable, machines = cgroup.memory_bytes(), cgroup.machine_bytes()
    seen = f"{usable / 1e9:.1f} GB{'' if usable == machines else f', the limit here, of {machines / 1e9:.1f} GB'}"
    if usable >= (enough := needs.DEFAULT_RUN.memory_bytes):
        return Finding("memory", State.OK, seen)
    how = f"The default run needs {enough / 1e9:.1f} GB at least; use a larger machine or external services."
    return Finding("memory", State.WRONG, seen, how)


def open_files() -> Finding:
    """Check the hard limit per process, to which we raise the soft limit."""
    to_raise = "the hard limit (ulimit -Hn, or --ulimit nofile= of a container)"
    return _limited("open files", cgroup.open_files(), "for each process", needs.DEFAULT_RUN.open_files, to_raise)


def threads() -> Finding:
    to_raise = "the limit (ulimit -u, or --pids-limit of a container)"
    return _limited("processes and threads", cgroup.threads_left(), "more", needs.DEFAULT_RUN.threads, to_raise)


def _limited(what: str, granted: int | None, of: str, enough: int, to_raise: str) -> Finding:
    seen = "no limit" if granted is None else f"{granted:,} {of}"
    if granted is None or granted >= enough:
        return Finding(what, State.OK, seen)
    return Finding(what, State.WRONG, seen, f"The default run needs {enough:,}: raise {to_raise}.")


def temporary() -> Finding:
    """Check the temporary folder. Java libraries unpack machine code into it, which must be executable there."""
    try:
        scratch = needs.temporary_folder()
    except HarnessError as error:
        return Finding("temporary folder", State.WRONG, "there is none", str(error))
    if needs.lets_programs_run(scratch):
        return disk("temporary folder", scratch)
    how = "Set TMPDIR to a folder on another disk."
    return Finding("temporary folder", State.WRONG, f"{scratch} is mounted noexec", how)


def ports() -> Finding:
    """Check that the loopback interface has as many free ports as a run takes."""
    taken: list[socket.socket] = []
    try:
        for _ in range(PORTS_OF_A_RUN):
            taken.append(socket.create_server(("127.0.0.1", 0)))
        numbers = [one.getsockname()[1] for one in taken]
        return Finding("ports", State.OK, f"{len(numbers)} free ones on 127.0.0.1, such as {numbers[0]}")
    except OSError as error:
        how = "Bring the loopback interface up, and check its firewall rules and net.ipv4.ip_local_port_range."
        return Finding("ports", State.WRONG, f"127.0.0.1 gives none: {error}", how)
    finally:
        for one in taken:
            one.close()


def disk(what: str, target: Path) -> Finding:
    free = shutil.disk_usage(_nearest_existing(target)).free
    seen = f"{free / 1e9:.1f} GB free for {target}"
    if free >= ENOUGH_DISK:
        return Finding(what, State.OK, seen)
    return Finding(what, State.WRONG, seen, f"Free at least {ENOUGH_DISK / 1e9:.0f} GB there, or use another disk.")


def folder(what: str, target: Path) -> Finding:
    """Check that files can be made in a folder (or in the parent of a new one), and that it has enough space."""
    existing = _nearest_existing(target)
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        how = "Make it writable, or choose another place (--out for runs, XDG_CACHE_HOME for the cache)."
        return Finding(what, State.WRONG, f"{existing} cannot be written: {error.strerror}", how)
    return disk(what, target)


def state() -> Finding:
    """Check the folder that records the owners of processes and folders. The check creates nothing."""
    location = state_path()
    existing = _nearest_existing(location)
    if os.access(existing, os.W_OK):
        return Finding("state folder", State.OK, str(location))
    how = "Make it writable, or set XDG_STATE_HOME to a folder that is."
    return Finding("state folder", State.WRONG, f"{existing} cannot be written", how)


def _nearest_existing(target: Path) -> Path:
    return next(path for path in (target.absolute(), *target.absolute().parents) if path.exists())


def machine() -> str:
    """Describe this machine in a few words, for the head of a report."""
    return f"{platform.system()} {platform.machine()}, {cgroup.cores():g} cores, {cgroup.memory_bytes() / 1e9:.0f} GB"
