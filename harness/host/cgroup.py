"""The resources granted to this process: cores, memory, processes and open files; and the kernel's count of OOM kills.

A container's limits are set in control groups, of version 1, of version 2, or of both at once. A limit on any level up
to the root binds, so the smallest one counts. Standard library only: the launcher runs before a package is installed.
`system` is the root of the file system; tests pass a tree of their own.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SYSTEM = Path("/")
# Version 1 writes "no limit" as the largest number that its page counter holds.
NO_LIMIT_BYTES = 1 << 60
# More than any of our programs opens. macOS grants no more than the second, whatever its hard limit is.
MANY_OPEN_FILES = (65_536, 10_240)
STEAL_WORD = 8  # of the first line of /proc/stat
_OCTAL = re.compile(r"\\(\d{3})")


# ---------------------------------------------------------------- Files of the limits


def folders(controller: str, groups: str, mounts: str) -> list[list[Path]]:
    """Return the folders of one controller from this process's own group up to the highest visible one, for each
    hierarchy.

    `groups` is the text of /proc/self/cgroup, `mounts` that of /proc/self/mountinfo.
    """
    found: list[list[Path]] = []
    for line in groups.splitlines():
        number, _, rest = line.partition(":")
        names, _, own = rest.partition(":")
        unified = number == "0" and not names
        if unified or controller in names.split(","):
            for root, mounted in _mounts_of("" if unified else controller, mounts):
                found.append([*_way_up(own, root, mounted)])
    return found


def _mounts_of(controller: str, mounts: str) -> Iterator[tuple[str, Path]]:
    """Yield root and mount point of each mount of a hierarchy. `controller` is empty for version 2."""
    for line in mounts.splitlines():
        fields, separator, kind = line.partition(" - ")
        if not separator:
            continue
        name, _, options = kind.split(" ", 2)
        wanted = name == "cgroup" and controller in options.split(",") if controller else name == "cgroup2"
        if wanted:
            root, mounted = fields.split(" ")[3:5]
            yield _unescaped(root), Path(_unescaped(mounted))


def _unescaped(field: str) -> str:
    return _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), field)


def _way_up(own: str, root: str, mounted: Path) -> Iterator[Path]:
    """A container may see only its own part of the hierarchy, while its group keeps the name it has outside."""
    below = os.path.relpath(own, root) if own.startswith("/") else own
    inside = below != "." and not below.startswith("..")
    folder = mounted / below if inside else mounted
    yield folder
    while folder != mounted:
        folder = folder.parent
        yield folder


def levels(controller: str, system: Path = SYSTEM) -> list[Path]:
    """Return all of `folders` for this process."""
    return [folder for way in _ways(controller, system) for folder in way]


def own_groups(controller: str, system: Path = SYSTEM) -> list[Path]:
    """Return the folder of this process's own group, in each hierarchy."""
    return [way[0] for way in _ways(controller, system)]


def _ways(controller: str, system: Path) -> list[list[Path]]:
    groups, mounts = (_text(system / f"proc/self/{name}") for name in ("cgroup", "mountinfo"))
    return [[system / folder.relative_to("/") for folder in way] for way in folders(controller, groups, mounts)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


# ---------------------------------------------------------------- Cores


def allowed_cores() -> int:
    """Count the cores on which the scheduler may run this process, by cpuset and `taskset`."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def quota_cores(system: Path = SYSTEM) -> float | None:
    """Return the CPU quota of its groups in cores; None without a quota."""
    quotas = [
        quota
        for level in levels("cpu", system)
        for quota in (
            quota_of(_text(level / "cpu.max")),
            quota_of(f"{_text(level / 'cpu.cfs_quota_us')} {_text(level / 'cpu.cfs_period_us')}"),
        )
        if quota is not None
    ]
    return min(quotas, default=None)


def quota_of(text: str) -> float | None:
    """Parse a quota: `150000 100000` is 1.5 cores; `max 100000`, `-1 100000` and an empty text are none."""
    quota, _, period = text.partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def cores(system: Path = SYSTEM) -> float:
    """Return the cores that this process can use: the smaller of quota and allowed cores."""
    quota = quota_cores(system)
    return allowed_cores() if quota is None else min(allowed_cores(), quota)


def throttling(system: Path = SYSTEM) -> tuple[tuple[int, int], ...]:
    """Return (periods, throttled periods) so far for each group, up to the root, that has a quota."""
    texts = [_text(level / "cpu.stat") for level in levels("cpu", system)]
    counts = [(counter(text, "nr_periods"), counter(text, "nr_throttled")) for text in texts]
    return tuple((periods, throttled) for periods, throttled in counts if periods is not None and throttled is not None)


def steal(system: Path = SYSTEM) -> tuple[int, int] | None:
    """Return the CPU ticks of all cores so far, and the stolen ones among them; None if they are not counted."""
    words = _text(system / "proc/stat").partition("\n")[0].split()
    if len(words) <= STEAL_WORD or words[0] != "cpu":
        return None
    ticks = [int(word) for word in words[1 : STEAL_WORD + 1]]  # the guests after these are part of `user`
    return sum(ticks), ticks[-1]


# ---------------------------------------------------------------- Memory


def machine_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_limit_bytes(system: Path = SYSTEM) -> int | None:
    """Return the memory limit of its groups; None without one."""
    limits = [
        limit
        for level in levels("memory", system)
        for name in ("memory.max", "memory.limit_in_bytes")
        if (limit := _number(_text(level / name))) is not None and limit < NO_LIMIT_BYTES
    ]
    return min(limits, default=None)


def memory_bytes(system: Path = SYSTEM) -> int:
    limit = memory_limit_bytes(system)
    return machine_bytes() if limit is None else min(machine_bytes(), limit)


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def killed_for_memory(system: Path = SYSTEM) -> int | None:
    """Count the processes that the kernel has killed for lack of memory; None if the system does not count them.

    The nearest group that counts includes our children. The count of the whole machine includes strangers, and is used
    only if no group counts.
    """
    for level in levels("memory", system):
        for name in ("memory.events", "memory.oom_control"):
            if (count := counter(_text(level / name), "oom_kill")) is not None:
                return count
    return counter(_text(system / "proc/vmstat"), "oom_kill")


def counter(text: str, name: str) -> int | None:
    """Return the number after a name, in a file of `name number` lines."""
    found = re.search(rf"^{re.escape(name)} (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else None


# ---------------------------------------------------------------- Processes, threads and open files


def threads_left(system: Path = SYSTEM) -> int | None:
    """Return how many more processes and threads may be started; None without a limit."""
    left = [
        limit - (_number(_text(level / "pids.current")) or 0)
        for level in levels("pids", system)
        if (limit := _number(_text(level / "pids.max"))) is not None
    ]
    if not _is_superuser(system) and (limit := _limit(resource.RLIMIT_NPROC)) is not None:
        left.append(limit - threads_of_user(system))
    return max(0, min(left)) if left else None


def _is_superuser(system: Path) -> bool:
    """The kernel exempts only the real superuser. Root of a container may be any user outside of it."""
    root_is_root = _text(system / "proc/self/uid_map").split()[:2] in (["0", "0"], [])
    return os.getuid() == 0 and root_is_root


def threads_of_user(system: Path = SYSTEM) -> int:
    """Count all threads of this user on the machine, as `ulimit -u` does, not only ours."""
    count = 0
    for status in (system / "proc").glob("[0-9]*/status"):
        text = _text(status)
        if re.search(rf"^Uid:\s+{os.getuid()}\s", text, re.MULTILINE) and (
            threads := re.search(r"^Threads:\s+(\d+)$", text, re.MULTILINE)
        ):
            count += int(threads[1])
    return count


def open_files() -> int | None:
    """Return the hard limit of open files per process; None without a limit."""
    return _limit(resource.RLIMIT_NOFILE)


def _limit(which: int) -> int | None:
    hard = resource.getrlimit(which)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def raise_open_files() -> None:
    """Raise the soft limit for us and all children, up to the hard one and no further than needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for many in MANY_OPEN_FILES:
        wanted = many if hard == resource.RLIM_INFINITY else min(many, hard)
        if wanted <= soft or soft == resource.RLIM_INFINITY:
            return
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return
