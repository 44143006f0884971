"""The least resources that a run needs, and which of them are missing; checked before anything is started.

The figures are measured (docs/start/machine.md, "What a machine must have"). An unknown engine has no minimum.
Standard library only: `doctor` shows them before a package is installed.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.host import cgroup
from harness.model import EngineManifest, HarnessError, RunSpec, workers_of_master

MIB = 1 << 20


@dataclass(frozen=True)
class Minimum:
    """The least resources; with less, a run fails."""

    memory_bytes: int = 0
    open_files: int = 0  # per process
    threads: int = 0  # in all processes
    native: bool = False  # a Java program unpacks machine code into the temporary folder and runs it there

    def __add__(self, other: Minimum) -> Minimum:
        return Minimum(
            self.memory_bytes + other.memory_bytes,
            max(self.open_files, other.open_files),
            self.threads + other.threads,
            self.native or other.native,
        )


@dataclass(frozen=True)
class Granted:
    """The resources granted to us. None: without a limit."""

    memory_bytes: int
    open_files: int | None
    threads: int | None
    temporary: Path
    native: bool


HARNESS = Minimum(memory_bytes=352 * MIB, open_files=256, threads=40)  # with Redis and the fleet
KAFKA = Minimum(memory_bytes=416 * MIB, open_files=256, threads=110)
SPARK = Minimum(memory_bytes=512 * MIB, open_files=512, threads=150, native=True)
# Of a cluster of the run, beside the driver: the master, and each worker with its executor (peaks of a small run).
MASTER = Minimum(memory_bytes=224 * MIB, threads=60)
WORKER = Minimum(memory_bytes=640 * MIB, open_files=512, threads=150, native=True)
LOAD_WORKER = Minimum(memory_bytes=152 * MIB, threads=12)  # beside the process that the harness counts
JVM = Minimum(native=True)  # an engine with no other known needs
DEFAULT_RUN = HARNESS + KAFKA + SPARK


def of_run(spec: RunSpec, manifest: EngineManifest, brokers: int) -> Minimum:
    """Add up the needs of a run. `brokers` is how many brokers its fault plan requires."""
    if manifest.simulated:
        return Minimum()
    need = HARNESS
    for _ in range(0 if spec.kafka else brokers):
        need += KAFKA
    if workers := workers_of_master(spec.master) if manifest.on_spark else 0:
        need += MASTER
    for _ in range(workers):
        need += WORKER
    for _ in range(0 if spec.bind else spec.workers):
        need += LOAD_WORKER
    if spec.recount == "spark" and not manifest.on_spark:
        need += SPARK
    return need + (SPARK if manifest.on_spark else JVM if manifest.on_jvm else Minimum())


def lacking(need: Minimum, granted: Granted) -> list[str]:
    """Return a sentence for each missing resource, with the required amount and advice."""
    said = []
    if granted.open_files is not None and granted.open_files < need.open_files:
        said.append(
            f"A process may have {granted.open_files:,} open files here, but {need.open_files:,} are needed: raise the "
            f"hard limit (ulimit -Hn {need.open_files}; of a container: --ulimit nofile={need.open_files})."
        )
    if granted.threads is not None and granted.threads < need.threads:
        said.append(
            f"Only {granted.threads:,} more processes and threads are allowed here, but {need.threads:,} are "
            f"needed: raise "
            "the limit (ulimit -u; of a container: --pids-limit)."
        )
    if granted.memory_bytes < need.memory_bytes:
        said.append(
            f"{granted.memory_bytes / MIB:,.0f} MiB of memory are granted here, but {need.memory_bytes / MIB:,.0f} MiB "
            "are needed: use a larger container, or services of your own (--kafka, --redis)."
        )
    if need.native and not granted.native:
        said.append(
            f"The temporary folder {granted.temporary} is mounted noexec, but Java libraries of this engine unpack "
            f"native code there and load it: set TMPDIR to a folder on another disk."
        )
    return said


def temporary_folder() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:  # its text lists every path that was tried
        why = error.strerror
        raise HarnessError(f"There is no temporary folder: {why}. Set TMPDIR to a writable folder.") from error


def lets_programs_run(folder: Path) -> bool:
    return not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)


def granted() -> Granted:
    temporary = temporary_folder()
    return Granted(
        memory_bytes=cgroup.memory_bytes(),
        open_files=cgroup.open_files(),
        threads=cgroup.threads_left(),
        temporary=temporary,
        native=lets_programs_run(temporary),
    )


def refuse_too_little(need: Minimum) -> None:
    """Raise with one sentence per missing resource, before anything is started."""
    if said := lacking(need, granted()):
        raise HarnessError(" ".join(said))
