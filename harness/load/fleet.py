"""The harness' side of the load: starts the ad servers as a child process and exchanges files with them.

The child is Locust, which must not share a process with Spark's client. Its config file may hold secrets, so it lies in
a private folder outside of the run; only `sends.parquet` and the log of the process are stored in the run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from generators.encode import Encoder
from generators.fleet import CONFIG_VARIABLE, LoadConfig
from generators.harness_files import DONE, GO, READY, SENDS_FILE, STATUS
from generators.producers import ConfluentProducer, send_all
from generators.schedule import Schedule
from generators.sends import SENDS
from harness.engines.config import write_privately
from harness.host import disk_space
from harness.install.origin import ROOT
from harness.load.certificate import certify
from harness.model import Certificate, HarnessError, KafkaAddress, LoadStatus, LoadWorker, RunSpec, Sentinel
from harness.services.children import Child, spawn
from harness.util.clock import Clock
from harness.util.wait import wait_until
from workloads.base import Codec

READY_DEADLINE_S = 60.0
MARKS_DEADLINE_S = 30.0
STOP_DEADLINE_S = 20.0
TAIL_BYTES = 4096


class Load:
    """One fleet of ad servers: start, tell, wait_ready, go, status until finished, certify, stop."""

    grows = False
    locustfile = "generators/adservers.py"

    def __init__(self, spec: RunSpec, topic: str, run: Path, private: Path) -> None:
        self._spec, self._topic = spec, topic
        self.tape = spec.tape
        self._run, self._folder = run, private / "load"
        self._config = self._folder / "config.json"
        self._child: Child | None = None

    def start(self) -> None:
        """Start the ad servers. They wait for the address of Kafka."""
        self._folder.mkdir(mode=0o700)
        argv = [sys.executable, "-m", "locust", "-f", self.locustfile, "--exit-code-on-error", "0"]
        argv += [*self._role(), "--headless", "--only-summary"]
        log = self._run / "logs" / "load.log"
        self._child = spawn(argv, name="load", log=log, env=self._environment(), cwd=ROOT)

    def tell(self, kafka: KafkaAddress) -> None:
        """Write the config, once Kafka is up and has the topic."""
        client, folder = self._spec.client, str(self._folder)
        settings: Mapping[str, Any] = kafka.kafka_python if client == "kafka-python" else kafka.librdkafka
        content = LoadConfig(
            self.tape,
            client,
            kafka.bootstrap,
            self._topic,
            settings,
            folder,
            grows=self.grows,
            patience=self._spec.patience,
        )
        write_privately(self._config, msgspec.json.encode(content).decode())

    def wait_ready(self) -> None:
        wait_until(
            lambda: self._is_there(READY),
            deadline_s=READY_DEADLINE_S,
            what=f"{self._spec.tape.senders} ad servers to be up and to see topic {self._topic}",
            state=self._running.last_words,
            every_s=0.02,
        )
        self._running.go_first()  # not before: while the fleet starts, the engine needs the CPU for its own start

    @property
    def nice(self) -> int:
        """Return the nice value of the ad servers; a negative one gives them precedence."""
        return int(json.loads((self._folder / READY).read_bytes())["nice"])

    def go(self, epoch_ms: int, clock: Clock) -> None:
        """Start the load at this time on this clock."""
        part = self._folder / "go.part"
        part.write_text(json.dumps({"epoch_ms": epoch_ms, "zero_ns": clock.zero_ns}))
        part.replace(self._folder / GO)

    def status(self) -> LoadStatus:
        """Return the newest counts. A process that ended well is finished; any other end raises."""
        ended, line = self._ended(), self._line()
        return LoadStatus(line.get("intended", 0), line.get("sent", 0), line.get("acked", 0), ended)

    def throttled_ms(self) -> int:
        """Return the longest time for which a quota of Kafka has throttled the load so far."""
        return self._line().get("throttled_ms", 0)

    def certify(self) -> Certificate:
        """Stop a load that still runs, so that no file is open; copy the send records into the run and check them."""
        self.stop()
        books = self._folder / SENDS_FILE
        table = pq.read_table(books) if books.exists() else pa.schema(list(SENDS.items())).empty_table()
        with disk_space.writing(self._run / SENDS_FILE, table.nbytes):
            pq.write_table(table, self._run / SENDS_FILE, compression="zstd")
        return certify(table, Schedule(self.tape).total, self._spec.lag_budget_ms, self._workers_of())

    @property
    def pids(self) -> Sequence[int]:
        """Return the processes to which the load's whole cost belongs; none before the start."""
        return [self._child.pid] if self._child else []

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole fleet: faults pause it while they remove records from the log."""
        self._running.signal_group(number)

    def stop(self) -> None:
        """Stop with SIGTERM, upon which Locust flushes and closes its records."""
        if self._child is not None:
            self._child.stop(STOP_DEADLINE_S)

    def _role(self) -> Sequence[str]:
        """One process is the whole load."""
        return []

    def _environment(self) -> Mapping[str, str]:
        # One thread for all arithmetic: more would take CPU time from the engine.
        return {**os.environ, CONFIG_VARIABLE: str(self._config), "OPENBLAS_NUM_THREADS": "1"}

    @property
    def _running(self) -> Child:
        if self._child is None:
            raise HarnessError("The load was requested before it was started.")
        return self._child

    def _is_there(self, name: str) -> bool:
        return not self._ended() and (self._folder / name).exists()

    def _ended(self) -> bool:
        child = self._running
        if child.alive():
            return False
        if code := child.returncode():
            why = f" {'; '.join(errors)}." if (errors := self._errors()) else ""
            words = f"The ad servers ended early (exit {code}), so there is no load.{why}"
            raise HarnessError(f"{words} {child.last_words()}")
        return True

    def _errors(self) -> list[str]:
        return list(self._done().get("errors", []))

    def _workers_of(self) -> tuple[LoadWorker, ...]:
        return msgspec.convert(self._done().get("workers", []), tuple[LoadWorker, ...])

    def _done(self) -> dict[str, Any]:
        """Return the last word on the load; nothing before its end."""
        done = self._folder / DONE
        told: dict[str, Any] = json.loads(done.read_bytes()) if done.exists() else {}
        return told

    def _line(self) -> dict[str, int]:
        """Return the last complete status line, or the final status. Only the end of the file is read."""
        path = self._folder / STATUS
        if done := self._done():
            return done
        if not path.exists():
            return {}
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            whole = file.read().rpartition(b"\n")[0].splitlines()
        return json.loads(whole[-1]) if whole else {}


def send_marks(kafka: KafkaAddress, topic: str, marks: Sequence[Sentinel], codec: Codec) -> None:
    """Send sentinel records, each to its partition, and wait until Kafka has confirmed all of them."""
    encoder = Encoder(codec, 0)
    # A new broker refuses the first request for an id, which is retried; a stopped one refuses all. The error below
    # names each record that was not confirmed.
    producer = ConfluentProducer(kafka.bootstrap, topic, {**kafka.librdkafka, "log_level": "2"})
    try:
        send_all(producer, ((mark.partition, encoder.mark(mark)) for mark in marks), MARKS_DEADLINE_S)
    except TimeoutError as error:
        kinds = " and ".join(sorted({mark.kind for mark in marks}))
        raise HarnessError(
            f"The {len(marks)} {kinds} events for topic {topic} were not all confirmed by Kafka at {kafka.bootstrap} "
            f"within {MARKS_DEADLINE_S:g} s: {error}."
        ) from error
