"""The shared process of all jobs on PyFlink around their query: settings, checkpoints, progress, and a clean end."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyflink
from py4j.protocol import Py4JError
from pyflink.common import JobClient
from pyflink.java_gateway import get_gateway

from workloads.jobs.flink_checkpoints import METADATA, kept, newest_checkpoint, number_of, offsets_in
from workloads.jobs.flink_late import LateLog
from workloads.jobs.flink_rest import LOOPBACK, CheckpointLog, RestartLog, free_port
from workloads.jobs.progress_log import ProgressLog, tell_settings
from workloads.jobs.run_config import Config, engine_options

FLINK_HOME = Path(pyflink.__file__).parent
POLL_EVERY_S = 0.2
HEAP = "-Xmx2g"  # of a JVM that runs everything
# The state of a channel in a checkpoint.
CHANNEL_HEAD_BYTES = 4
FEW_BYTES = 1024  # empty buffers are always smaller

RESTORED = "execution.state-recovery.path"
MAY_LOSE_STATE = "execution.state-recovery.ignore-unclaimed-state"

PLACES = (
    "pipeline.name",
    RESTORED,
    "execution.checkpointing.dir",
    "io.tmp.dirs",
    "python.executable",
    "python.client.executable",
    "rest.port",
    "rest.bind-port",
    "jobmanager.rpc.port",
)

# At the end of a job Beam warns of a closed call, and logs our whole environment.
LOGGING = """\
rootLogger.level = WARN
logger.beam.name = org.apache.beam
logger.beam.level = ERROR
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.target = SYSTEM_OUT
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} - %m%n%throwable{12}
"""


def common_settings(config: Config) -> dict[str, str]:
    """Return all settings of a streaming job that are not Flink's defaults. Those of `--conf` take precedence."""
    return {
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": checkpoint_folder(config).as_uri(),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        **restored(checkpoint_folder(config)),
        "table.exec.state.ttl": "1 h",
        "rest.port": str(free_port()),
        **batch_settings(config),
    }


def batch_settings(config: Config) -> dict[str, str]:
    """Return the settings that a batch needs, too."""
    return {
        "pipeline.name": f"streamgauge-{config['run']}",
        "pipeline.jars": ";".join(Path(jar).as_uri() for jar in config["jars"]),
        # A source without a partition would hold back all watermarks.
        "parallelism.default": str(min(cores(), config["partitions"])),
        "table.local-time-zone": "UTC",
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        "python.fn-execution.bundle.time": "50",  # ms: how long a change waits for others
        "io.tmp.dirs": tempfile.gettempdir(),
        "jobmanager.rpc.address": LOOPBACK,
        "jobmanager.bind-host": LOOPBACK,
        "taskmanager.host": LOOPBACK,
        "taskmanager.bind-host": LOOPBACK,
        "rest.address": LOOPBACK,
        "rest.bind-address": LOOPBACK,
        **engine_options(config),
    }


def cores() -> int:
    """Count the cores that this process may use: it may be pinned to some of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def told(settings: dict[str, str]) -> dict[str, str]:
    """Return the settings for comparisons, with jars by their file names, which contain the version, and without paths
    and ports.
    """
    jars = ", ".join(Path(jar).name for jar in settings["pipeline.jars"].split(";"))
    return {key: value for key, value in settings.items() if key not in PLACES} | {"pipeline.jars": jars}


def checkpoint_folder(config: Config) -> Path:
    place = config["checkpoint"].removeprefix("file://")
    if "://" in place:
        sys.exit(f"checkpoint is {place!r}; give a folder of this machine: this job looks there for its newest one.")
    folder = Path(place).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def restored(folder: Path) -> dict[str, str]:
    """Continue from the newest complete checkpoint of all starts, or begin at the beginning if there is none."""
    newest = newest_checkpoint(folder)
    return {RESTORED: newest.as_uri()} if newest else {}


def prepare_java(config: Config, options: str) -> None:
    """Prepare all JVMs of this process: their options, their log on our output, their files in the temporary folder."""
    scratch = Path(tempfile.gettempdir())
    conf = scratch / "flink-conf"
    conf.mkdir(exist_ok=True)
    shutil.copy(FLINK_HOME / "conf" / "config.yaml", conf)  # what Flink needs to run on newer versions of Java
    for name in ("log4j-cli.properties", "log4j-console.properties"):
        (conf / name).write_text(LOGGING, encoding="utf-8")
    os.environ |= {
        "FLINK_CONF_DIR": str(conf),
        "FLINK_LOG_DIR": str(scratch),
        "FLINK_PID_DIR": str(scratch),
        "JVM_ARGS": f"-Djava.io.tmpdir={scratch} {options} {config['java_options']}",
    }


def has_data_on_its_way(checkpoint: Path) -> bool:
    """Check if a checkpoint has records in flight between two operators, as an unaligned one may: then not all records
    before its offsets are written. Return True for a checkpoint that was deleted because a newer one exists.
    """
    jvm = get_gateway().jvm
    load = jvm.org.apache.flink.runtime.checkpoint.Checkpoints.loadCheckpointMetadata
    try:
        stream = jvm.java.io.DataInputStream(jvm.java.io.FileInputStream(str(checkpoint / METADATA)))
        try:
            operators = load(stream, jvm.java.lang.ClassLoader.getSystemClassLoader(), str(checkpoint))
        finally:
            stream.close()
        subtasks = [each for one in operators.getOperatorStates().toArray() for each in one.getStates().toArray()]
        channels = [(each.getInputChannelState(), each.getResultSubpartitionState()) for each in subtasks]
        return any(holds_data(handle) for pair in channels for kind in pair for handle in kind.toArray())
    except Py4JError:
        return True


def holds_data(handle: Any) -> bool:
    """Check for bytes after the head. Flink also stores empty buffers, with a length of 0."""
    if handle.getStateSize() > FEW_BYTES:
        return True
    stream = handle.getDelegate().openInputStream()
    try:
        return any(bytes(stream.readAllBytes())[CHANNEL_HEAD_BYTES:])
    finally:
        stream.close()


class Progress:
    """Writes a line for each complete checkpoint that has read more of the topic than the last one, if all of it is
    written.

    The first line of a start follows its first own checkpoint and also has the restored offsets. These are read before
    the job runs, because the checkpoint may be deleted later. They are unknown if Flink may skip a part of the state.
    """

    def __init__(self, config: Config, settings: dict[str, str]) -> None:
        self._topic = config["topic"]
        self._folder = checkpoint_folder(config)
        self._log = ProgressLog(config["progress_path"])
        self._newest = newest_checkpoint(self._folder)
        self._told: dict[int, int] = {}
        begins_at = settings.get(RESTORED, "")
        found = offsets_in(path_of(begins_at), self._topic) if begins_at else {}
        self._restored = {} if settings.get(MAY_LOSE_STATE) == "true" else found
        self._done = sum(found.values())

    def tell(self) -> None:
        newest = newest_checkpoint(self._folder)
        if newest is None or newest == self._newest:
            return
        self._newest = newest
        offsets = offsets_in(newest, self._topic)
        if offsets and offsets != self._told and not has_data_on_its_way(newest):
            done = sum(offsets.values())
            first = {"restored": self._restored} if self._restored else {}
            self._log.write(batch=number_of(newest), rows=done - self._done, offsets=offsets, **first)
            self._told, self._done, self._restored = offsets, done, {}


def path_of(uri: str) -> Path:
    return Path(url2pathname(urlsplit(uri).path))


def run_embedded(
    config: Config, start_query: Callable[[Config, dict[str, str]], JobClient], *, names_late: bool = False
) -> int:
    """Run a query in one JVM with PyFlink's embedded cluster."""
    common = common_settings(config)
    settings = {"rest.bind-port": common["rest.port"], **common}
    tell_settings(config["progress_path"], told(settings))
    prepare_java(config, HEAP)
    return run(config, settings, lambda: start_query(config, settings), names_late=names_late)


def run(
    config: Config,
    settings: dict[str, str],
    begin: Callable[[], JobClient],
    keep: Callable[[], bool] = lambda: True,
    *,
    names_late: bool = False,
) -> int:
    """Run until SIGTERM, until the job ends, which it never does by itself, or until `keep` returns False.

    A job that was stopped leaves a savepoint, and any other its newest checkpoint.
    """
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    progress, checkpoints = Progress(config, settings), CheckpointLog(config, settings)
    restarts = RestartLog(settings)
    late = LateLog(config) if names_late else None
    job = begin()
    number = str(job.get_job_id())
    while not stopped.wait(POLL_EVERY_S):
        if late:
            late.take()
        progress.tell()
        checkpoints.take(number)
        restarts.take(number)
        if not keep():
            return 1
        status = job.get_job_status().result()
        if status.is_globally_terminal_state():
            print(f"The job has ended: {status.name}. Its log above says why.", file=sys.stderr)
            return 1
    end(job, checkpoint_folder(config))
    if late:
        late.take()
    progress.tell()
    return 0


def end(job: JobClient, folder: Path) -> None:
    """Stop the job with a savepoint, or cancel it. A copy of a savepoint is complete, whereas a copy of a checkpoint
    refers to the files of the original.

    PyFlink's own `stop_with_savepoint` names no format, and Flink 2 no longer has such a method.
    """
    canonical = get_gateway().jvm.org.apache.flink.core.execution.SavepointFormatType.CANONICAL
    try:
        savepoint = job._j_job_client.stopWithSavepoint(False, folder.as_uri(), canonical).get()
        kept(path_of(savepoint))
    except Py4JError as error:  # for example because it is being restored
        print(f"There is no savepoint, and the newest checkpoint stays: {error}", file=sys.stderr)
        job.cancel().result()
