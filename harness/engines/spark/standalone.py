"""A standalone cluster of Spark as child processes: a master and workers, on loopback addresses alone.

Each of them has a parent of ours, so that the CPU and memory of its executors are the engine's, faults can strike it,
and it ends with us. The master writes what it knows into a folder, so that a restarted one can take over.
"""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from harness.engines.base import ClusterState
from harness.model import HarnessError
from harness.services.addresses import LOOPBACK, PortTaken
from harness.services.children import Child, spawn
from harness.services.embedded import Embedded
from harness.util.texts import many
from harness.util.wait import wait_until

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
CORES = 1  # of each worker
MEMORY = "64g"  # offered by each worker: the executor's own setting decides
READY_DEADLINE_S = 120.0
ANSWER_S = 5.0
STOP_DEADLINE_S = 5.0
MOST_LOG_BYTES = 8 << 20  # kept of an executor's log
ALIVE = "ALIVE"
# Master and workers do little: they must not take the cores of the executors.
FRUGAL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class StandaloneCluster(Embedded[str]):
    """See `harness.engines.base.Cluster`. `home` is Spark's folder, `env` the environment of its executors. `folder` is
    private, and `logs` is the run's."""

    name, ports, stop_deadline_s = "Spark master", 2, STOP_DEADLINE_S
    head = "master"

    def __init__(self, size: int, home: Path, folder: Path, logs: Path, env: Mapping[str, str]) -> None:
        super().__init__(logs / "spark-master.log")
        self.size = size
        self._home, self._folder, self._logs = home, folder, logs
        self._env = {**env, **_of_spark(home)}
        self._ports: list[int] = []
        self._workers: dict[int, Child] = {}

    def children(self) -> tuple[Child, ...]:
        return (*super().children(), *self._workers.values())

    def stop(self) -> None:
        """Stop the workers first: they report to the master."""
        for worker in self._workers.values():
            worker.stop(self.stop_deadline_s)
        self._workers = {}
        super().stop()
        self._keep_logs()

    def seen(self) -> ClusterState | None:
        """Ask the master; None if it does not answer."""
        connection = http.client.HTTPConnection(LOOPBACK, self._ports[1], timeout=ANSWER_S)
        try:
            connection.request("GET", "/json/")
            told = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
        alive = sum(worker["state"] == ALIVE for worker in told["workers"])
        return ClusterState(told["status"] == ALIVE, alive, len(told["activeapps"]))

    def worker_pids(self, number: int) -> tuple[int, ...]:
        return tuple(process.pid for process in self._workers[number].members())

    def kill_worker(self, number: int) -> None:
        self._workers[number].kill_group()

    def start_worker(self, number: int) -> None:
        if number in self._workers and self._workers[number].alive():
            raise HarnessError(f"Worker {number} can't be started while it still runs.")
        folder = self._folder / f"worker-{number}"
        argv = ["--host", LOOPBACK, "--cores", str(CORES), "--memory", MEMORY, "--webui-port", "0"]
        log = self._logs / f"spark-worker-{number}.log"
        command = [self._program, WORKER, *argv, "--work-dir", str(folder), self.address_of_master]
        self._workers[number] = spawn(command, name=f"spark-worker-{number}", log=log, env=self._env)

    def add_worker(self) -> int:
        self.size += 1
        self.start_worker(self.size)
        return self.size

    def remove_worker(self) -> str:
        number, worker = self.size, self._workers.pop(self.size)
        self.size -= 1
        ended = worker.stop(self.stop_deadline_s)
        late = "" if ended else f", killed after {self.stop_deadline_s:.0f} s"
        return f"SIGTERM to worker {number} (process {worker.pid}{late}), no process left"

    def kill_master(self) -> int:
        pid = self.child.pid
        self.child.kill_group()
        return pid

    def start_master(self, *, recovers: bool) -> None:
        """Start it again at its address; without recovery it has forgotten workers and applications."""
        if self.child.alive():
            raise HarnessError("The master can't be started while it still runs.")
        if not recovers:
            shutil.rmtree(self._recovery, ignore_errors=True)
        self._spawn_master()

    @property
    def address_of_master(self) -> str:
        return f"spark://{LOOPBACK}:{self._ports[0]}"

    def _start_at(self, ports: list[int]) -> str:
        self._ports = ports
        self._spawn_master()
        self._await(lambda state: state.serves, "the master to answer")
        for number in range(1, self.size + 1):
            self.start_worker(number)
        self._await(lambda state: state.workers == self.size, f"{many(self.size, 'worker')} to register")
        return self.address_of_master

    def _await(self, condition: Callable[[ClusterState], bool], what: str) -> None:
        def holds() -> bool:
            for child in self.children():
                _refuse_ended(child)
            state = self.seen()
            return state is not None and condition(state)

        wait_until(
            holds,
            deadline_s=READY_DEADLINE_S,
            what=f"{what} in the cluster at {self.address_of_master}",
            state=lambda: f"{self.seen()}. {self.child.last_words()}",
        )

    def _spawn_master(self) -> None:
        self._recovery.mkdir(parents=True, exist_ok=True)
        port, page = map(str, self._ports)
        argv = [self._program, MASTER, "--host", LOOPBACK, "--port", port, "--webui-port", page]
        options = {
            "spark.deploy.recoveryMode": "FILESYSTEM",
            "spark.deploy.recoveryDirectory": str(self._recovery),
            "spark.port.maxRetries": "0",  # else it takes the next port
            "spark.master.rest.enabled": "false",  # it listens at a port of its own, the same for all
        }
        own = " ".join(f"-D{key}={value}" for key, value in options.items())
        env = {**self._env, "SPARK_MASTER_OPTS": own}
        self._child = spawn(argv, name="spark-master", log=self.log, env=env)

    @property
    def _program(self) -> str:
        return str(self._home / "bin" / "spark-class")

    @property
    def _recovery(self) -> Path:
        return self._folder / "recovery"

    def _keep_logs(self) -> None:
        """Copy the logs of executors, which lie in the folders of their workers and vanish with them."""
        for log in sorted(self._folder.glob("worker-*/app-*/*/stderr")):
            application, executor = log.parent.parent.name, log.parent.name
            with suppress(OSError), log.open("rb") as file:
                kept = self._logs / f"spark-executor-{application.rpartition('-')[2]}-{executor}.log"
                kept.write_bytes(file.read(MOST_LOG_BYTES))


def home_of(python: Path) -> Path:
    """Return the folder of Spark inside the packages of this Python."""
    found = sorted(python.parent.parent.glob("lib/python*/site-packages/pyspark"))
    if not found:
        raise HarnessError(f"The environment of {python} has no pyspark, whose master and workers a cluster needs.")
    return found[0]


def _of_spark(home: Path) -> dict[str, str]:
    return {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,  # without it, their web pages listen on all addresses
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": FRUGAL,
    }


def _refuse_ended(child: Child) -> None:
    if not child.alive():
        taken = any("Address already in use" in line for line in child.tail(500))
        kind = PortTaken if taken else HarnessError
        raise kind(f"The {child.name} ended while starting (exit {child.returncode()}). {child.last_words()}")
