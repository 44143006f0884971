"""A load of several processes: a master beside the harness, and workers on this machine or on others.

Without an address to bind to, the workers are child processes of ours. With one, they are started elsewhere by
`streamgauge worker`, and the run waits for them before it starts anything else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from generators.harness_files import read_workers
from generators.worker_files import OWN_VARIABLE, Own
from harness.engines.config import write_privately
from harness.install.origin import ROOT
from harness.load.fleet import STOP_DEADLINE_S, Load
from harness.model import HarnessError, KafkaAddress, RunSpec
from harness.services.addresses import LOOPBACK, free_ports, split
from harness.services.children import Child, spawn
from harness.util.texts import many
from harness.util.wait import wait_until

WORKERS_VARIABLE = "STREAMGAUGE_WORKERS"
WORKERFILE = "generators/load_worker.py"
GATHER_DEADLINE_S = 600.0


class WorkersLoad(Load):
    """See `Load`. The master is its child process, and so are the workers on this machine."""

    locustfile = "generators/load_master.py"

    def __init__(self, spec: RunSpec, topic: str, run: Path, private: Path) -> None:
        super().__init__(spec, topic, run, private)
        self._address = split(spec.bind) if spec.bind else (LOOPBACK, free_ports(1)[0])
        self._workers: list[Child] = []

    def start(self) -> None:
        if self._child:  # by `gather`
            return
        super().start()
        if not self._spec.bind:
            self._workers = [self._start_worker(number) for number in range(1, self._spec.workers + 1)]

    def gather(self) -> None:
        """Start, and wait for the workers on other hosts."""
        self.start()
        wait_until(
            lambda: not self._ended() and len(read_workers(self._folder)) == self._spec.workers,
            deadline_s=GATHER_DEADLINE_S,
            what=f"{many(self._spec.workers, 'load worker')} to join at {self._spec.bind}",
            state=lambda: joined(read_workers(self._folder)),
        )

    def wait_ready(self) -> None:
        super().wait_ready()
        for worker in self._workers:
            worker.go_first()

    def tell(self, kafka: KafkaAddress) -> None:
        for own in self._folder.glob("worker-*"):
            write_settings(Own(own), kafka)
        super().tell(kafka)

    @property
    def pids(self) -> Sequence[int]:
        return [*super().pids, *(worker.pid for worker in self._workers)]

    def signal(self, number: signal.Signals) -> None:
        """Signal the workers first: when all go on after a pause, they speak before the master listens."""
        for worker in self._workers:
            worker.signal_group(number)
        super().signal(number)

    def stop(self) -> None:
        """Stop the master first: it asks the workers for their books."""
        super().stop()
        for worker in self._workers:
            worker.stop(STOP_DEADLINE_S)

    def _is_there(self, name: str) -> bool:
        """Raise if a worker has ended already: the master would wait for it."""
        for worker in self._workers:
            if not worker.alive() and self._running.alive():
                raise HarnessError(f"A load worker ended before the load began. {worker.last_words()}")
        return super()._is_there(name)

    def _role(self) -> Sequence[str]:
        host, port = self._address
        size = str(self._spec.workers)
        return ["--master", "--master-bind-host", host, "--master-bind-port", str(port), "--expect-workers", size]

    def _environment(self) -> Mapping[str, str]:
        return {**super()._environment(), WORKERS_VARIABLE: str(self._spec.workers)}

    def _start_worker(self, number: int) -> Child:
        folder = self._folder / f"worker-{number}"
        folder.mkdir(mode=0o700)
        return start_worker(self._address, folder, self._run / "logs" / f"load-worker-{number}.log")


def joined(hosts: Sequence[str]) -> str:
    """Describe which workers have joined."""
    if not hosts:
        return "no worker has joined."
    names = (each if hosts.count(each) == 1 else f"{each} ({hosts.count(each)})" for each in dict.fromkeys(hosts))
    return f"{many(len(hosts), 'worker')} joined, on {', '.join(names)}."


def start_worker(master: tuple[str, int], folder: Path, log: Path) -> Child:
    """Start a worker for the master at this address. `folder` is its own (generators/worker_files.py)."""
    host, port = master
    argv = [sys.executable, "-m", "locust", "-f", WORKERFILE, "--worker", "--master-host", host]
    argv += ["--master-port", str(port), "--only-summary", "--exit-code-on-error", "0"]
    env = {**os.environ, OWN_VARIABLE: str(folder), "OPENBLAS_NUM_THREADS": "1"}
    return spawn(argv, name="load worker", log=log, env=env, cwd=ROOT)


def write_settings(own: Own, kafka: KafkaAddress) -> None:
    """Write how the clients of Kafka authenticate. A worker reads it from here only."""
    settings = {"confluent": dict(kafka.librdkafka), "kafka-python": dict(kafka.kafka_python)}
    write_privately(own.settings_file, json.dumps(settings))
