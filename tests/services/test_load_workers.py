"""A load of several processes for real: Locust's master and workers, a real broker, and foreign clocks."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from generators.profiles import steady
from generators.schedule import Schedule
from generators.worker_files import Own
from harness.drivers import load_worker
from harness.kafka_log import recount
from harness.load import workers
from harness.load.fleet import Load
from harness.load.workers import WorkersLoad, start_worker
from harness.model import Certificate, Exit, HarnessError, KafkaAddress
from harness.services.addresses import free_ports, split
from harness.services.kafka import create_topic, end_offsets
from harness.util.clock import Clock
from harness.util.wait import wait_until
from tests.services.test_load import CODEC, SPEC, TAPE, sent
from workloads.base import NO_EVENT

# Its processes are its own, too, as on another host: by its clock, all of ours began at another time.
FOREIGN = ("unshare", "-T", "-p", "--mount-proc", "--monotonic", "100000", "--boottime", "100000", "-f")
TOTAL = Schedule(TAPE).total
SPACE, HERE, THERE = "sg-workers", "10.77.46.1", "10.77.46.2"
# Copies bytes between two addresses: HOST PORT of its own, HOST PORT of the other.
FORWARD = """
import asyncio, sys
async def pipe(reader, writer):
    while data := await reader.read(1 << 18):
        writer.write(data)
    writer.close()
async def serve(reader, writer):
    there = await asyncio.open_connection(sys.argv[3], int(sys.argv[4]))
    await asyncio.gather(pipe(reader, there[1]), pipe(there[0], writer))
async def main():
    await (await asyncio.start_server(serve, sys.argv[1], int(sys.argv[2]))).serve_forever()
asyncio.run(main())
"""
# The locustfile of a worker with another version.
OTHER = "import harness\nharness.__version__ = '9.9.9'\nfrom generators.load_worker import *\n"
HALF_OF_IT = replace(SPEC, workers=2, tape=replace(TAPE, profile=steady(500, 8_000)))

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("own_state")]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


def digest(kafka: KafkaAddress, topic: str, epoch_ms: int) -> str:
    """The content of a log and the partition of each record, whenever it was sent and in whichever order."""
    log = recount.read(kafka, topic, end_offsets(kafka, topic), CODEC)
    columns = {name: log[name] for name in sorted(log) if name != "offset"}
    columns["event_time_ms"] = np.where(log["kind"] == NO_EVENT, 0, columns["event_time_ms"] - epoch_ms)
    order = np.lexsort(tuple(columns.values()))
    found = hashlib.sha256()
    for column in columns.values():
        found.update(np.ascontiguousarray(column[order]).tobytes())
    return f"{len(order)} records, {found.hexdigest()[:16]}"


@pytest.fixture(scope="module")
def alone(kafka_address, tmp_path_factory) -> str:
    """The digest of what one process sends."""
    folder, topic = tmp_path_factory.mktemp("alone"), "one-process"
    (folder / "logs").mkdir()
    create_topic(kafka_address, topic, TAPE.partitions)
    return digest(kafka_address, topic, sent(Load(SPEC, topic, folder, folder), kafka_address, Clock()))


def servers_of(certificate: Certificate) -> list[int]:
    return sorted(server for worker in certificate.workers for server in worker.servers)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_the_load_is_the_same_however_many_workers_send_it(number, alone, kafka_address, topic, run, tmp_path):
    load = WorkersLoad(replace(SPEC, workers=number), topic, run, tmp_path)
    epoch_ms = sent(load, kafka_address, Clock())
    certificate = load.certify()

    assert digest(kafka_address, topic, epoch_ms) == alone
    assert (certificate.intended, certificate.sent, certificate.acknowledged) == (TOTAL, TOTAL, TOTAL)
    assert certificate.valid, certificate.reasons
    assert len(certificate.workers) == number
    assert servers_of(certificate) == list(range(TAPE.senders))
    assert sum(worker.sent for worker in certificate.workers) == TOTAL


@contextmanager
def worker(master: str, *before: str) -> Iterator[subprocess.Popen[str]]:
    """A worker as a user starts it on another host, behind a command that makes this machine another one."""
    line = [*before, sys.executable, "-m", "harness", "worker", "--master", master]
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=200)


def refused(*command: str) -> str:
    """Why this command can't be run here; "" if it can."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else ""


def bound(run: Path, folder: Path, topic: str, number: int = 2) -> tuple[WorkersLoad, str]:
    master = f"127.0.0.1:{free_ports(1)[0]}"
    return WorkersLoad(replace(SPEC, workers=number, bind=master), topic, run, folder), master


def test_a_clock_that_began_at_another_time_makes_no_difference(alone, kafka_address, topic, run, tmp_path):
    if why := refused(*FOREIGN, "true"):
        pytest.skip(f"NO FOREIGN CLOCK WAS TRIED: a time namespace needs root and Linux ({why})")
    load, master = bound(run, tmp_path, topic)
    with worker(master), worker(master, *FOREIGN):
        load.gather()
        epoch_ms = sent(load, kafka_address, Clock())
    certificate = load.certify()

    assert digest(kafka_address, topic, epoch_ms) == alone
    assert certificate.valid, certificate.reasons
    assert 0 < certificate.clock_error_ms < SPEC.lag_budget_ms


@contextmanager
def other_host(*ports: int) -> Iterator[tuple[str, ...]]:
    """A network of its own, from which these ports of this machine's loopback are reached as its own. Yield the command
    that runs something there."""
    inside = ("ip", "netns", "exec", SPACE)
    with ExitStack() as stack:
        stack.callback(subprocess.run, ["ip", "netns", "del", SPACE], check=False)
        for line in (
            f"ip link add sgw0 type veth peer name sgw1 netns {SPACE}",
            f"ip addr add {HERE}/30 dev sgw0",
            "ip link set sgw0 up",
            f"ip -n {SPACE} addr add {THERE}/30 dev sgw1",
            f"ip -n {SPACE} link set sgw1 up",
            f"ip -n {SPACE} link set lo up",
        ):
            subprocess.run(line.split(), check=True)
        for port in ports:
            (between,) = free_ports(1)
            for before, way in (
                ((), (HERE, between, "127.0.0.1", port)),
                (inside, ("127.0.0.1", port, HERE, between)),
            ):
                process = subprocess.Popen([*before, sys.executable, "-c", FORWARD, *map(str, way)])
                stack.callback(process.wait, 10)
                stack.callback(process.kill)
        yield inside


def test_a_host_of_its_own_with_a_clock_of_its_own_sends_the_same(alone, kafka_address, topic, run, tmp_path):
    if why := refused(*FOREIGN, "true") or refused("ip", "netns", "add", SPACE):
        pytest.skip(f"NO OTHER HOST WAS TRIED: network and time namespaces need root and Linux ({why})")
    load, master = bound(run, tmp_path, topic)
    ports = [int(address.rpartition(":")[2]) for address in (master, kafka_address.bootstrap)]
    with other_host(*ports) as inside, worker(master), worker(master, *inside, *FOREIGN):
        load.gather()
        epoch_ms = sent(load, kafka_address, Clock())
    certificate = load.certify()

    assert digest(kafka_address, topic, epoch_ms) == alone
    assert certificate.valid, certificate.reasons


def broken(load: WorkersLoad, kafka: KafkaAddress, harm: signal.Signals) -> str:
    """Harm a worker at half of the load; how the run ends."""
    clock, half = Clock(), Schedule(load.tape).total / 2
    try:
        load.start()
        load.tell(kafka)
        load.wait_ready()
        load.go(clock.now_ms(), clock)
        wait_until(lambda: load.status().sent > half, deadline_s=60, what="half of the load")
        load._workers[0].signal_group(harm)
        with pytest.raises(HarnessError) as ended:
            wait_until(lambda: load.status().finished, deadline_s=60, what="the load to end")
    finally:
        load.stop()
    assert not any(child.members() for child in load._workers)
    return str(ended.value)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (signal.SIGKILL, "is lost: nothing was heard of it for 3.5 s. It had the servers"),
        (signal.SIGSTOP, "is lost: nothing was heard of it for 3.5 s. It had the servers"),
        (signal.SIGTERM, "ended: it was stopped there. It had the servers"),
    ],
)
def test_a_load_that_loses_a_worker_is_void(harm, said, kafka_address, topic, run, tmp_path):
    assert said in broken(WorkersLoad(HALF_OF_IT, topic, run, tmp_path), kafka_address, harm)


def test_a_worker_of_another_version_is_refused_on_both_sides(monkeypatch, topic, run, tmp_path):
    """Before Kafka is told to anybody."""
    other, own = tmp_path / "other.py", tmp_path / "own"
    other.write_text(OTHER)
    own.mkdir()
    load, master = bound(run, tmp_path, topic, number=1)
    monkeypatch.setattr(workers, "WORKERFILE", str(other))
    worker_alone = start_worker(split(master), own, tmp_path / "worker.log")
    try:
        with pytest.raises(HarnessError, match=r"has streamgauge 9\.9\.9 instead of"):
            load.gather()
        wait_until(lambda: not worker_alone.alive(), deadline_s=60, what="the worker to end")
    finally:
        load.stop()
        worker_alone.stop(1)
    (*_, last) = Own(own).said()
    assert "the run refused it: The worker on" in load_worker.why(last, master)


def test_a_worker_too_many_is_sent_away_and_changes_nothing(kafka_address, topic, run, tmp_path):
    load, master = bound(run, tmp_path, topic, number=1)
    with worker(master):
        load.gather()
        with worker(master) as second:
            assert "the run has its 1 workers" in second.communicate(timeout=200)[0]
            assert second.returncode == Exit.BROKEN
        sent(load, kafka_address, Clock())
    assert load.certify().sent == TOTAL
