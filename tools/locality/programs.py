"""The programs that send and receive the records. Each is a child, and answers requests over a loopback connection."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import msgspec
import psutil

from harness.engines import environments
from harness.engines.job import Surroundings
from harness.engines.process import OTHER_ENGINES
from harness.install import jvm
from harness.install.origin import ROOT
from harness.metering.cpu_books import Cpu
from harness.metering.process_sampling import exactly
from harness.model import HarnessError
from harness.services.addresses import LOOPBACK as HOST
from harness.services.addresses import free_ports
from harness.services.children import Child, spawn
from harness.services.kafka import EmbeddedKafka, create_topic, delete_topic
from harness.util.wait import DeadlinePassed, wait_until
from tools.bench.bench_tools import PRODUCER_SETTINGS
from tools.locality.ways import KAFKA, LOOPBACK, Answer, Way
from workloads.jobs.flink_rest import answer_of

HERE = Path(__file__).parent
WHOSE = "`bench --locality`"
HEAP = ("-Xms512m", "-Xmx512m")
START_DEADLINE_S = 120.0
ANSWER_DEADLINE_S = 120.0
END_DEADLINE_S = 5.0
POLL_S = 0.2
TASK_MANAGERS = 2
FLINK_PACKAGE = "pyflink"
# Flink looks into classes of Java's own.
OPENED = tuple(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "time"))


class Program:
    """A child that has connected to us."""

    def __init__(self, child: Child, lines: TextIO) -> None:
        self.child, self._lines = child, lines

    def ask(self, *words: object) -> str:
        """Send one request, and return the line that it answers."""
        with suppress(OSError):  # it has ended: no answer comes
            self._lines.write(" ".join(map(str, words)) + "\n")
            self._lines.flush()
        return self.heard()

    def measure(self, way: Way, size: int, time_ms: int, *more: str) -> Answer:
        return msgspec.json.decode(self.ask(way.name, size, time_ms, *more), type=Answer)

    def heard(self) -> str:
        try:
            line = self._lines.readline()
        except OSError:  # also a timeout
            line = ""
        if not line:
            with suppress(DeadlinePassed):  # its last words come after it has hung up
                wait_until(lambda: not self.child.alive(), deadline_s=END_DEADLINE_S, what="its end")
            end = f"ended with exit code {self.child.returncode()}" if not self.child.alive() else "goes on"
            raise HarnessError(
                f"The program {self.child.name} of {WHOSE} should have answered within {ANSWER_DEADLINE_S:.0f} s. It "
                f"did not, and {end}. {self.child.last_words()}"
            )
        return line


@contextmanager
def program(name: str, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Program]:
    """Start a program, whose command gets the port that it has to connect to in the place of PORT."""
    with socket.create_server((HOST, 0)) as door:
        door.settimeout(POLL_S)
        port = str(door.getsockname()[1])
        argv = [port if word == "PORT" else word for word in command]
        child = spawn(argv, name=name, log=folder / f"{name}.log", env=env, cwd=ROOT)
        try:
            with _connected(door, child) as connection:
                connection.settimeout(ANSWER_DEADLINE_S)
                with connection.makefile("rw", encoding="utf-8") as lines:
                    yield Program(child, lines)
        finally:
            child.kill_group()


def _connected(door: socket.socket, child: Child) -> socket.socket:
    deadline_s = time.monotonic() + START_DEADLINE_S
    while child.alive() and time.monotonic() < deadline_s:
        with suppress(TimeoutError):
            return door.accept()[0]
    raise HarnessError(f"The program {child.name} of {WHOSE} did not start. {child.last_words()}")


class Java:
    """The ways in Java. With a broker, each measurement of Kafka has a topic of its own."""

    def __init__(self, sender: Program, receiver: Program) -> None:
        self._sender, self._receiver = sender, receiver
        self.broker: EmbeddedKafka | None = None
        self._topics = 0

    def measure(self, way: Way, size: int, time_ms: int) -> Answer:
        if self.broker is None or way != KAFKA:
            return self._sender.measure(way, size, time_ms)
        self._topics += 1
        topic = f"hop-{self._topics}"
        create_topic(self.broker.address, topic, 1)
        try:
            return self._sender.measure(way, size, time_ms, self.broker.address.bootstrap, topic)
        finally:
            delete_topic(self.broker.address, topic)

    def cpu_s(self, way: Way) -> float:
        broker = [self.broker.child] if self.broker and way == KAFKA else []
        return cpu_s(self._sender.child, self._receiver.child, *broker)


class Engine:
    """The ways in an engine, with the loopback socket of Java beside them."""

    def __init__(self, java: Java, program: Program, carriers: Sequence[Child]) -> None:
        self._java, self._program, self._carriers = java, program, carriers

    def measure(self, way: Way, size: int, time_ms: int) -> Answer:
        return (self._java if way == LOOPBACK else self._program).measure(way, size, time_ms)

    def cpu_s(self, way: Way) -> float:
        return self._java.cpu_s(way) if way == LOOPBACK else cpu_s(*self._carriers)


def cpu_s(*children: Child) -> float:
    """Return the CPU time so far of these children and of what they have started."""
    used = 0.0
    for process in (process for child in children for process in child.members()):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used += exactly(process.pid, Cpu(times.user, times.system)).total_s
    return used


# ---------------------------------------------------------------- Java


def java_classes(which: str, sources: Sequence[str], jars: Sequence[Path]) -> str:
    """Return the class path of programs of ours, which are compiled on first use."""
    shared = ("Totals.java", "Requests.java")
    paths = [HERE / name for name in (*shared, *sources)]
    ours = environments.compiled(f"locality-{which}", WHOSE, paths, jars, lambda _: None)
    return ":".join(map(str, (ours, *jars)))


@contextmanager
def java(folder: Path) -> Iterator[Java]:
    """Start a receiver and a sender in two JVMs."""
    plug = folder / "plug"
    command = [*java_command(), "receive", "PORT", str(plug)]
    with (
        program("receiver", command, folder) as receiver,
        program("sender", sender_command(plug, receiver.heard().strip()), folder) as sender,
    ):
        yield Java(sender, receiver)


def sender_command(plug: Path, port: str) -> list[str]:
    """Return the command of a sender to a receiver that listens at this Unix socket, and at this port."""
    return [*java_command(), "send", "PORT", str(plug), port, *(f"{k}={v}" for k, v in PRODUCER_SETTINGS.items())]


def java_command() -> list[str]:
    jars = sorted(jvm.jars("services").glob("*.jar"))
    return [str(jvm.java()), *jvm.ENGLISH, *HEAP, "-cp", java_classes("java", ["Ways.java"], jars), "Ways"]


# ---------------------------------------------------------------- Flink


@contextmanager
def flink(beside: Java, surroundings: Surroundings, folder: Path) -> Iterator[Engine]:
    """Start a JobManager and two TaskManagers of one slot each, and the program that submits jobs."""
    home = next(surroundings.python.parent.parent.glob(f"lib/python*/site-packages/{FLINK_PACKAGE}"))
    jars = sorted((home / "lib").glob("*.jar"))
    classpath = java_classes("flink", ["FlinkWays.java"], jars)
    rest, rpc = free_ports(2)
    settings = flink_settings(folder, rest, rpc)
    options = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    library = folder / "flink-lib"
    library.mkdir()
    for jar in classpath.split(":"):
        (library / Path(jar).name).symlink_to(jar)
    env = flink_environment(home, library, folder)
    scripts = ["jobmanager", *["taskmanager"] * TASK_MANAGERS]
    started: list[Child] = []
    try:
        for number, script in enumerate(scripts):
            command = ["bash", str(home / "bin" / f"{script}.sh"), "start-foreground", *options]
            name = f"flink-{script}-{number}"
            started.append(spawn(command, name=name, log=folder / f"{name}.log", env=env))
        wait_until(
            lambda: _refuse_ended(started) and _slots(settings) == TASK_MANAGERS,
            deadline_s=START_DEADLINE_S,
            what=f"Flink to offer {TASK_MANAGERS} slots",
            state=lambda: " ".join(child.last_words() for child in started),
        )
        command = [str(jvm.java()), *jvm.ENGLISH, *OPENED, *HEAP, "-cp", classpath, "FlinkWays", "PORT", str(rest)]
        with program("flink", command, folder, env) as submits:
            yield Engine(beside, submits, started[-TASK_MANAGERS:])
    finally:
        for child in started[::-1]:
            child.kill_group()


def flink_settings(folder: Path, rest: int, rpc: int) -> dict[str, str]:
    return {
        "jobmanager.rpc.address": HOST,
        "jobmanager.rpc.port": str(rpc),
        "jobmanager.bind-host": HOST,
        "jobmanager.memory.process.size": "1g",
        "taskmanager.host": HOST,
        "taskmanager.bind-host": HOST,
        "taskmanager.numberOfTaskSlots": "1",
        "taskmanager.memory.process.size": "1g",
        "rest.address": HOST,
        "rest.bind-address": HOST,
        "rest.port": str(rest),
        "rest.bind-port": str(rest),
        "io.tmp.dirs": str(folder),
    }


def flink_environment(home: Path, library: Path, folder: Path) -> dict[str, str]:
    """Return ours without the variables of another Flink; its logs lie in our folder."""
    ours = {key: value for key, value in os.environ.items() if key not in OTHER_ENGINES}
    return ours | {
        "FLINK_CONF_DIR": str(home / "conf"),
        "FLINK_LIB_DIR": str(library),
        "FLINK_LOG_DIR": str(folder),
        "FLINK_PID_DIR": str(folder),
        "JVM_ARGS": f"-Djava.io.tmpdir={folder}",
    }


def _slots(settings: Mapping[str, str]) -> int:
    try:
        return int(answer_of(settings, "overview")["slots-available"])
    except OSError:  # it does not listen yet
        return 0


def _refuse_ended(started: Sequence[Child]) -> bool:
    for child in started:
        if not child.alive():
            raise HarnessError(f"{child.name} ended with exit code {child.returncode()}. {child.last_words()}")
    return True


# ---------------------------------------------------------------- Spark


@contextmanager
def spark(beside: Java, folder: Path) -> Iterator[Engine]:
    """Start a driver of Spark, which runs all its tasks itself."""
    env = {key: value for key, value in os.environ.items() if key not in OTHER_ENGINES}
    with program(
        "spark", [sys.executable, "-m", "tools.locality.spark_ways", "PORT", str(folder)], folder, env
    ) as driver:
        yield Engine(beside, driver, [driver.child])
