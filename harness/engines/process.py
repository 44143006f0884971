"""An engine as child processes: started from its manifest, configured by one file, observed through its files.

It works for any program that obeys four rules: the path of a JSON file is its configuration, SIGTERM ends it cleanly,
SIGKILL may come at any moment, and after a restart with the same file it goes on where it was. Progress, crash points
and a readable checkpoint are optional.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.engines import complaint, yahoo_conf
from harness.engines.base import Member, Reached, RestartOffsets, Workers
from harness.engines.config import EngineConfig, write_privately
from harness.engines.driver import Driver, members_of, members_of_cluster
from harness.engines.flink import kept_checkpoint, restarts
from harness.engines.flink.task_managers import TaskManagers
from harness.engines.group_progress import GroupProgress
from harness.engines.job import OURS, Job, Surroundings
from harness.engines.kept import Kept
from harness.engines.own_logs import OwnLogs
from harness.engines.progress import ProgressFile
from harness.engines.shipped import job_path
from harness.engines.spark import checkpoint as spark_checkpoint
from harness.engines.spark import executors, forgotten, losses, states
from harness.engines.spark.standalone import StandaloneCluster, home_of
from harness.host.quota import Quota
from harness.install import archives
from harness.install.origin import ROOT
from harness.model import (
    BatchLog,
    EarlierRun,
    EngineManifest,
    HarnessError,
    KeptState,
    LastWords,
    Progress,
    workers_of_master,
)
from harness.services.children import Child, spawn
from harness.util.wait import DeadlinePassed, wait_until

STOP_DEADLINE_S = 30.0
KILL_DEADLINE_S = 30.0
JAVA_OPTIONS_FILE = "java.options"  # read by `java @FILE`
JOBS_OWN_PROGRESS = "progress-of-the-job.jsonl"
LOGS = "logs"  # in the run's directory
WORKLOADS = ROOT / "workloads"
SCRATCH, NEIGHBOURS, STATES, CLUSTER = "scratch", "neighbours", "states", "cluster"  # in the run's private folder
EXECUTORS = "executors"
READS_STATES = WORKLOADS / "jobs" / "spark_states.py"
PROVES_EXECUTORS = WORKLOADS / "jobs" / "spark_executors.py"
STATES_DEADLINE_S = 600.0
TOOL_OPTIONS = "JAVA_TOOL_OPTIONS"  # every JVM reads it
JVM_OPTIONS = (TOOL_OPTIONS, "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
COLUMNS = ("number", "key", "field", "value")  # of the states read
# pyspark and pyflink use these instead of the Spark or Flink inside their package.
OTHER_ENGINES = frozenset(
    {
        "SPARK_HOME",
        "SPARK_CONF_DIR",
        "SPARK_REMOTE",
        "PYSPARK_SUBMIT_ARGS",
        "FLINK_HOME",
        "FLINK_LIB_DIR",
        "FLINK_OPT_DIR",
        "FLINK_PLUGINS_DIR",
        "FLINK_CONF_DIR",
    }
)


class ProcessEngine:
    """Implements `harness.engines.base.Engine` for real processes.

    `logs` gets one log per start, `evidence` (a folder in the run) the copies of a checkpoint, `private` (readable by
    its owner only, outside of the run's directory) the config, which may hold passwords. `env` is added to ours:
    JAVA_HOME, for example. `cores` are those that it may use; none: all. `quota` limits it to a part of them.
    """

    def __init__(
        self,
        manifest: EngineManifest,
        config: EngineConfig,
        *,
        logs: Path,
        evidence: Path,
        private: Path,
        env: Mapping[str, str],
        surroundings: Surroundings = OURS,
        cores: frozenset[int] = frozenset(),
        quota: Quota | None = None,
    ) -> None:
        self.manifest = manifest
        self._cores, self._quota = cores, quota
        self.config = config  # of its next start
        self._logs = logs
        self._private = private
        self._evidence = evidence
        self._surroundings = surroundings
        self._around = env
        _furnish(private)
        self._prepare_start()
        self._progress = ProgressFile(Path(config.progress_path))
        self._group: GroupProgress | None = None
        self._kept = Kept(Path(config.progress_path).parent, evidence.parent)
        self._crash_path = Path(config.crash_path)
        self._reached_path = self._crash_path.with_name(self._crash_path.name + ".reached")
        self._replayed: set[int] = set()
        self._cut_off: list[EarlierRun] = []
        self._done = -1  # newest batch with an observed commit
        self.starts = 0
        self._child: Child | None = None
        self._children: list[Child] = []  # from all starts
        self._ghosts: list[Driver] = []
        self._ends: list[str] = []  # anything unusual about its ends
        self._executors = ""  # what a cluster of the user has proven
        self._own_logs = OwnLogs(manifest.logs, Path(manifest.home))
        self._standalone: StandaloneCluster | None = None
        self._task_managers: TaskManagers | None = None
        if workers := workers_of_master(config.master):
            self._make_cluster(workers)

    @property
    def pid(self) -> int | None:
        """Return the pid of the newest start; None before the first."""
        return self._child.pid if self._child else None

    def pids(self) -> tuple[int, ...]:
        """Return the root processes of the newest start and of its cluster."""
        own = (self._child.pid,) if self._child else ()
        return (*own, *(self._standalone.pids() if self._standalone else ()))

    @property
    def cluster(self) -> Workers | None:
        return self._standalone or self._task_managers

    @property
    def checkpoint(self) -> Path | None:
        """Return the folder of its state, if it is on this machine."""
        return _local_folder(self.config.checkpoint)

    def start(self) -> None:
        if self._standalone and not self._standalone.children():
            self.change({"master": self._standalone.start()})
        if self._task_managers:
            self._task_managers.prepare()
        self.starts += 1
        self._child = self._spawn(f"engine-{self.starts}", self._argv)

    def alive(self) -> bool:
        return self._child is not None and self._child.alive()

    def exit_code(self) -> int | None:
        return self._child.returncode() if self._child else None

    def progress(self) -> Progress | None:
        """Combine the engine's reports with its checkpoint: a crash loses the last lines, and without new events they
        would never be replaced."""
        if not self.manifest.progress:
            return None
        if self._group and not self.alive():  # read its last commit
            self._group.poll()
        told = self._progress.newest()
        if self._checkpoint is None:
            return told
        proved = spark_checkpoint.newest_committed(self._checkpoint, self._done)
        self._done = proved[0] if proved else self._done
        if proved and (told is None or (told.batch, told.offsets) != proved):
            return Progress(time.time_ns() // 1_000_000, proved[0], 0, proved[1])
        # A line may outlive its batch: an edited checkpoint may lack it.
        return told if told and spark_checkpoint.committed(self._checkpoint, told.batch) else None

    def collect(self) -> None:
        self._kept.copy()
        if self._checkpoint:
            spark_checkpoint.collect(self._checkpoint, self._evidence)

    def batch_log(self) -> BatchLog | None:
        if self.manifest.evidence == "none":
            return None
        drops_late = self.manifest.sink(self.config.sink).late == "drop"
        if self._checkpoint is None:
            note = f"The checkpoint {self.config.checkpoint} is not on this machine."
            return BatchLog((), drops_late, complete=False, note=note)
        allow_multiple = self.config.options.get(spark_checkpoint.ALLOW_MULTIPLE, "true").lower() != "false"
        log = spark_checkpoint.read(
            self._evidence,
            drops_late=drops_late,
            allow_multiple=allow_multiple,
            replayed=frozenset(self._replayed),
        )
        earlier = forgotten.earlier_runs(self._evidence, drops_late=drops_late, allow_multiple=allow_multiple)
        return replace(log, earlier=(*earlier, *self._cut_off))

    def keep_state(self, number: int, batch: int) -> KeptState | None:
        if self._checkpoint:
            return states.keep(self._checkpoint, number, batch, self._states)
        told, live = self._progress.newest(), self.checkpoint
        return kept_checkpoint.keep(live, number, told, self._states) if live and told else None

    def read_states(self) -> Mapping[str, Sequence[str | int]]:
        """The engine itself reads them, with the job's settings: some define the format of the state."""
        table, config = self._states / "read", self.config.write(self._states)
        sparks = [self._surroundings.python, READS_STATES, config]
        own = self.manifest.states and argv_of(self.manifest, self.manifest.states, config, self._surroundings)
        words = (*(own or sparks), self._states, table)
        # A user's job does not get our modules on its path; the reader does.
        env = {**self._env, "PYTHONPATH": str(self._private / NEIGHBOURS)}
        child = spawn([*map(str, words)], name=STATES, log=self._logs / f"{STATES}.log", env=env)
        try:
            wait_until(lambda: not child.alive(), deadline_s=STATES_DEADLINE_S, what="the state to be read")
        finally:
            child.kill_group()
        if child.returncode():
            said = " ".join(complaint.reason(child.tail(complaint.REMEMBERED)))
            raise HarnessError(f"its reader ended with exit code {child.returncode()} ({LOGS}/{STATES}.log): {said}")
        return columns_of(table)

    def prove_executors(self) -> executors.Told:
        """Let a first job show that the executors of a cluster of the user fit, and see the folder of the checkpoint.
        HarnessError says what is missing."""
        folder = self._private / EXECUTORS
        folder.mkdir(exist_ok=True)
        answer, log = folder / "answer.json", f"{LOGS}/{EXECUTORS}.log"
        words = [self._surroundings.python, PROVES_EXECUTORS, self.config.write(folder), answer]
        env = {**self._env, "PYTHONPATH": str(self._private / NEIGHBOURS)}
        child = spawn([*map(str, words)], name=EXECUTORS, log=self._logs / f"{EXECUTORS}.log", env=env)
        told = executors.answer_of(child, answer, self.config.master, log)
        executors.refuse_unfit(told, self.config.master, str(Path(self.config.checkpoint).parent))
        self._executors = executors.in_words(told)
        return told

    @property
    def _states(self) -> Path:
        folder = self._private / STATES
        folder.mkdir(exist_ok=True)
        return folder

    def tail(self, lines: int) -> tuple[str, ...]:
        return tuple(self._child.tail(lines)) if self._child else ()

    def last_words(self) -> LastWords:
        own = ((f"{LOGS}/{name}", lines) for name, lines in self._own_logs.tails(complaint.REMEMBERED))
        first = [(f"{LOGS}/engine-{self.starts}.log", self.tail(complaint.REMEMBERED))]
        return complaint.most_telling([*first, *own])

    def notes(self) -> tuple[str, ...]:
        odd = (child.note for child in self._children if child.note)
        proven = filter(None, [self._executors, self._quota.in_words() if self._quota else ""])
        lost = (losses if self.manifest.on_spark else restarts).in_words(self._logged())
        return (*proven, *lost, *self._progress.notes(), *self._ends, *odd, *injected(os.environ | self.manifest.env))

    def _logged(self) -> Iterator[str]:
        """Yield the lines of all its starts."""
        for child in self._children:
            with suppress(OSError), child.log.open(encoding="utf-8", errors="replace") as log:
                yield from log

    def stop(self) -> None:
        if self._group:
            self._group.stop()
        try:
            for ghost in self._ghosts:
                ghost.kill()
            # A JVM writes its archive of classes last of all, and may be a child of the started process.
            writes = archives.is_made_with(self.config.java_options)
            if self._child and not self._child.stop(STOP_DEADLINE_S, whole=writes):
                self._ends.append(f"it did not end within {STOP_DEADLINE_S:.0f} s of SIGTERM and was killed")
        except DeadlinePassed as error:  # the other services must still be closed
            self._ends.append(f"it still runs after SIGKILL: {error}")
        if self._standalone:
            self._standalone.stop()
        if self._quota:
            self._quota.remove()
        self._own_logs.copy(self._logs)
        self._kept.copy()

    def kill(self) -> str:
        child = self._started()
        child.kill_group()
        # A process of many threads looks dead shortly before it is, and before its parent is notified.
        wait_until(lambda: not child.alive(), deadline_s=KILL_DEADLINE_S, what=f"the end of process {child.pid}")
        return f"SIGKILL to process group {child.pid} (exit code {child.returncode()}), no process left"

    def restart(self) -> None:
        if self.alive():
            raise HarnessError("The engine can't be restarted while it still runs: two processes would write at once.")
        if self._child:
            self._child.kill_group()  # what outlived the one that was started would write as well
        if self._checkpoint:
            # The checkpoint may have been edited while the engine was down.
            forgotten.set_apart(self._checkpoint, self._evidence, self.starts + 1)
            self._done = spark_checkpoint.newest_commit(self._checkpoint)
            if self.manifest.plans_afterwards:
                run = spark_checkpoint.cut_off(self._checkpoint, self.starts + 1, self.config.partitions)
                self._cut_off.append(run)
            else:
                self._replayed |= spark_checkpoint.open_batches(self._checkpoint)
        self._progress.begin()
        self.start()

    def change(self, changed: Mapping[str, Any]) -> None:
        self.config = replace(self.config, **changed)
        write_config(self.manifest, self.config, self._private)

    @property
    def job(self) -> Job:
        return Job(self.manifest, self._surroundings, self.config.checkpoint)

    def restart_offsets(self) -> RestartOffsets:
        return (
            RestartOffsets(*spark_checkpoint.restart_offsets(self._checkpoint))
            if self._checkpoint
            else RestartOffsets()
        )

    def restored(self) -> RestartOffsets:
        return RestartOffsets(spark_checkpoint.in_order(self._progress.restored()))

    def follow(self, group: GroupProgress) -> None:
        """Let `group` write the progress from now on."""
        self._group = group
        group.start()

    def swap_job(self, job: Job) -> None:
        """Keep the options given to the run; replace the predecessor's own options by the new job's."""
        given = {k: v for k, v in self.config.options.items() if self.manifest.options.get(k) != v}
        self.config = replace(
            self.config,
            options={**job.manifest.options, **given},
            checkpoint=job.checkpoint,
            jars=tuple(map(str, job.surroundings.jars)),
            java_options=(),  # an archive of classes fits one job only
        )
        self.manifest, self._surroundings = job.manifest, job.surroundings
        self._prepare_start()

    def _prepare_start(self) -> None:
        """Set config file, command and environment of the next start."""
        manifest, config = self.manifest, self.config
        self.config_path = write_config(manifest, config, self._private)
        self._argv = self._argv_with(self.config_path)
        self._env = environment_of(manifest, self._around, self._private, self._surroundings)
        self._checkpoint = _local_folder(config.checkpoint) if manifest.evidence != "none" else None

    def end(self) -> str:
        child = self._started()
        ended = child.stop(STOP_DEADLINE_S)
        child.kill_group()  # what outlived the one that was started would write as well
        late = "" if ended else f", killed after {STOP_DEADLINE_S:.0f} s"
        return f"SIGTERM to process {child.pid} (exit code {child.returncode()}{late}), no process left"

    def members(self) -> tuple[Member, ...]:
        own = members_of(self._child) if self._child else ()
        return (*own, *members_of_cluster(self._standalone.children())) if self._standalone else own

    def signal(self, number: signal.Signals, pids: Collection[int]) -> None:
        for child in (self._started(), *(self._standalone.children() if self._standalone else ())):
            child.signal_group(number, pids)

    def detach(self) -> Driver:
        ghost = Driver(self._started())
        self._ghosts.append(ghost)
        self._child = None
        return ghost

    def start_second(self) -> Driver:
        name = f"engine-{self.starts}-second-{len(self._ghosts) + 1}"
        progress = Path(self.config.progress_path).with_name(f"progress-{name}.jsonl")
        folder = self._private / name
        folder.mkdir()
        config = replace(self.config, progress_path=str(progress), crash_path=str(folder / "crash"))
        argv = self._argv_with(write_config(self.manifest, config, folder))
        ghost = Driver(self._spawn(name, argv), ProgressFile(progress))
        self._ghosts.append(ghost)
        return ghost

    def freeze(self) -> None:
        # Signal the group first: finding stray members takes longer than the moments that faults aim at.
        with suppress(ProcessLookupError):  # it ended by itself, which `alive` reports
            os.killpg(self._started().pid, signal.SIGSTOP)
        self._started().signal_group(signal.SIGSTOP)

    def thaw(self) -> None:
        self._started().signal_group(signal.SIGCONT)

    def arm(self, point: str, batch: int) -> None:
        half_done = self._crash_path.with_name(self._crash_path.name + ".tmp")
        half_done.write_text(json.dumps({"point": point, "batch": batch}), encoding="utf-8")
        half_done.replace(self._crash_path)

    def disarm(self) -> None:
        self._crash_path.unlink(missing_ok=True)
        self._reached_path.unlink(missing_ok=True)

    def reached(self) -> Reached | None:
        try:
            value = json.loads(self._reached_path.read_bytes())
            return Reached(point=str(value["point"]), batch=int(value["batch"]), at_ms=int(value["at_ms"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise HarnessError(
                f"The engine announced a crash point in {self._reached_path.name}, but not as "
                f'{{"point", "batch", "at_ms"}}: {error!r}. The job must write a new file and rename it.'
            ) from error

    def planned(self, batch: int) -> bytes | None:
        if self._checkpoint is None:
            return None
        live = spark_checkpoint.planned(self._checkpoint, batch)
        return live if live is not None else spark_checkpoint.planned(self._evidence, batch)

    def committed(self, batch: int) -> bool:
        if self._checkpoint is None:
            newest = self.progress()
            return newest is not None and newest.batch >= batch
        return any(spark_checkpoint.committed(folder, batch) for folder in (self._checkpoint, self._evidence))

    def _make_cluster(self, workers: int) -> None:
        if self.manifest.on_task_managers:
            self._task_managers = TaskManagers(workers, self._private, self.members)
        else:
            home, folder = home_of(self._surroundings.python), self._private / CLUSTER
            self._standalone = StandaloneCluster(workers, home, folder, self._logs, self._env)

    def _argv_with(self, config: Path) -> list[str]:
        return argv_of(self.manifest, self.manifest.command, config, self._surroundings)

    def _spawn(self, name: str, argv: list[str]) -> Child:
        log, home = self._logs / f"{name}.log", Path(self.manifest.home)
        group = self._quota.group if self._quota else None
        child = spawn(argv, name=name, log=log, env=self._env, cwd=home, cores=self._cores, group=group)
        self._children.append(child)
        return child

    def _started(self) -> Child:
        if self._child is None:
            raise HarnessError("The engine can't be signalled before it is started.")
        return self._child


def write_config(manifest: EngineManifest, config: EngineConfig, folder: Path) -> Path:
    """Write the config file of an engine, in the format that it reads."""
    if manifest.progress_group:  # the progress is the group's; the job's own is kept beside it
        config = replace(config, progress_path=str(Path(config.progress_path).with_name(JOBS_OWN_PROGRESS)))
    if manifest.orders == "yahoo":
        return write_privately(folder / yahoo_conf.FILE, yahoo_conf.render(config))
    write_privately(folder / JAVA_OPTIONS_FILE, "\n".join(config.java_options))
    return config.write(folder)


def argv_of(
    manifest: EngineManifest, command: Sequence[str], config: Path, surroundings: Surroundings = OURS
) -> list[str]:
    """Fill in the words of one of a manifest's commands; its program may lie beside the manifest."""
    words = {
        "config": config,
        "python": surroundings.python,
        "home": manifest.home,
        "job": job_path(manifest),
        "java": surroundings.java or "java",
        "classpath": os.pathsep.join(map(str, surroundings.jars)),
        "java_options": f"@{config.with_name(JAVA_OPTIONS_FILE)}",
    }
    program, *arguments = (word.format(**words) for word in command)
    beside_manifest = Path(manifest.home) / program
    return [str(beside_manifest) if beside_manifest.is_file() else program, *arguments]


def columns_of(table: Path) -> dict[str, list[str | int]]:
    """Read a table: Spark writes a folder of Parquet, other engines a file with a JSON object per line."""
    from pyarrow import parquet  # slow to import, and few runs need it

    columns: dict[str, list[str | int]]
    if table.is_dir():
        columns = parquet.read_table(table).to_pydict()
    else:
        rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
        columns = {name: [row[name] for row in rows] for name in COLUMNS}
    return columns


def _furnish(private: Path) -> None:
    """Prepare the private folder. A killed engine can't delete its temporary files, so they lie here, where they vanish
    with the run. A shipped job also imports its neighbours through here, and nothing that lies beside those: for an
    installed program that would be all packages of this program, and an engine with its own packages would import ours
    instead."""
    (private / SCRATCH).mkdir(parents=True, exist_ok=True)
    jobs = private / NEIGHBOURS / WORKLOADS.name
    jobs.parent.mkdir(exist_ok=True)
    if not jobs.is_symlink():
        jobs.symlink_to(WORKLOADS)


def environment_of(
    manifest: EngineManifest, env: Mapping[str, str], private: Path, surroundings: Surroundings
) -> dict[str, str]:
    """Build an engine's environment: the user's shell, then our variables, then its manifest's."""
    python = surroundings.python
    scratch = str(private / SCRATCH)
    ours = {"PYTHONUNBUFFERED": "1", "TMPDIR": scratch, "SPARK_LOCAL_DIRS": scratch}
    if any("{python}" in word for word in manifest.command):
        # By default Spark's Python workers use `python3` on PATH. The user of a separate Spark sets this himself.
        ours |= {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    shell = without_other_engines(os.environ) if manifest.command[0] == "{python}" else os.environ
    has_neighbours = manifest.shipped or manifest.extends
    if has_neighbours or surroundings.packages:
        # Added to the user's folders: alone, those would hide the job's neighbours.
        own = manifest.env.get("PYTHONPATH", "" if has_neighbours else shell.get("PYTHONPATH", ""))
        added = [private / NEIGHBOURS] if has_neighbours else []
        ours["PYTHONPATH"] = os.pathsep.join([*filter(None, [own]), *map(str, (*added, *surroundings.packages))])
    own_env = {name: value for name, value in manifest.env.items() if name != "PYTHONPATH" or name not in ours}
    return in_scratch({**shell, **ours, **env, **own_env})


def injected(around: Mapping[str, str]) -> list[str]:
    """Report options that a shell or a manifest gives to every JVM, without their values, which may be secrets."""
    return [
        f"{name} is set: every JVM uses its options, which affect the measured speed"
        for name in JVM_OPTIONS
        if around.get(name)
    ]


def in_scratch(around: Mapping[str, str]) -> dict[str, str]:
    """Set a JVM's temporary folder, which ignores TMPDIR: a killed JVM would leave its files in the system's folder for
    good. A setting by the user, a manifest or a command line comes later and wins."""
    folder = f"-Djava.io.tmpdir={around['TMPDIR']}"
    quoted = f'"{folder}"' if any(map(str.isspace, folder)) else folder
    return {**around, TOOL_OPTIONS: f"{quoted} {around.get(TOOL_OPTIONS, '')}".strip()}


def without_other_engines(shell: Mapping[str, str]) -> dict[str, str]:
    """Remove variables by which a Spark or Flink of the user would run while the report names ours."""
    return {name: value for name, value in shell.items() if name not in OTHER_ENGINES}


def _local_folder(checkpoint: str) -> Path | None:
    """Return a checkpoint's folder, or None if it is on another file system."""
    scheme, separator, rest = checkpoint.partition(":")
    if not separator or "/" in scheme:
        return Path(checkpoint)
    return Path("/" + rest.lstrip("/")) if scheme == "file" else None
