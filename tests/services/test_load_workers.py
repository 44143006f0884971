"""A load of several processes for real: Locust's master and workers, a real broker, and foreign clocks."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from generators.profiles import steady
from generators.roster import LOST_S
from generators.schedule import Schedule
from generators.worker_files import Own
from harness.drivers import load_worker
from harness.kafka_log import recount
from harness.load import workers
from harness.load.fleet import Load
from harness.load.workers import WorkersLoad, start_worker
from harness.model import INDEX_BITS, MARK_SERVER, Certificate, Exit, HarnessError, KafkaAddress
from harness.rundir.store import Store
from harness.services.addresses import free_ports, split
from harness.services.kafka import create_topic, end_offsets
from harness.util.clock import Clock
from harness.util.wait import wait_until
from tests.engines.test_runs import run as whole_run
from tests.services.test_load import CODEC, SPEC, TAPE, sent
from workloads.base import NO_EVENT

# Its processes are its own, too, as on another host: by its clock, all of ours began at another time.
FOREIGN = ("unshare", "-T", "-p", "--mount-proc", "--monotonic", "100000", "--boottime", "100000", "-f")
TOTAL = Schedule(TAPE).total
INTERRUPTED = 130
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
# Those of masters that do not answer when a worker asks for the time: at its begin, or after the load.
DEAF = """
from generators.load_master import *
from generators.load_master import MASTER
answer = MASTER._pong
MASTER._pong = lambda name, told: None if MASTER.roster.started is {} else answer(name, told)
"""
# The locustfile of a master whose Locust does at once what it does after a minute: a lost worker's users move on.
HASTY = "from locust import runners\nrunners.HEARTBEAT_DEAD_INTERNAL = -1\nfrom generators.load_master import *\n"
SLOW = replace(SPEC, workers=2, tape=replace(TAPE, profile=steady(500, 8_000)))
EARLY = steady(3000, 1000)
CALM = ("calm", "--engine", "reference", "--fault", "none", "--rate", "1000", "--duration", "6s", "--campaigns", "20")

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("own_state")]
# They take as long as those before them, which another worker of xdist does meanwhile.
SECOND_HALF = pytest.mark.xdist_group("load workers, the second half")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


def content_of(log: Mapping[str, NDArray[Any]], epoch_ms: int) -> str:
    """What a log holds and in which partition, whenever it was sent and in whichever order."""
    columns = {name: log[name] for name in sorted(log) if name != "offset"}
    columns["event_time_ms"] = np.where(log["kind"] == NO_EVENT, 0, columns["event_time_ms"] - epoch_ms)
    order = np.lexsort(tuple(columns.values()))
    found = hashlib.sha256()
    for column in columns.values():
        found.update(np.ascontiguousarray(column[order]).tobytes())
    return f"{len(order)} records, {found.hexdigest()[:16]}"


def digest(kafka: KafkaAddress, topic: str, epoch_ms: int) -> str:
    return content_of(recount.read(kafka, topic, end_offsets(kafka, topic), CODEC), epoch_ms)


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


@pytest.mark.parametrize(
    "changed",
    [replace(SPEC, client="kafka-python"), replace(SPEC, tape=replace(TAPE, warm_up=EARLY))],
    ids=["kafka-python", "warm-up"],
)
def test_it_is_the_same_by_another_client_and_after_a_warm_up(changed, kafka_address, topic, run, tmp_path):
    create_topic(kafka_address, alone := f"{topic}-alone", TAPE.partitions)
    (tmp_path / "alone" / "logs").mkdir(parents=True)
    by_one = Load(changed, alone, tmp_path / "alone", tmp_path / "alone")
    expected = digest(kafka_address, alone, sent(by_one, kafka_address, Clock()))

    load = WorkersLoad(replace(changed, workers=2), topic, run, tmp_path)
    epoch_ms = sent(load, kafka_address, Clock())

    assert digest(kafka_address, topic, epoch_ms) == expected
    assert load.certify().sent == Schedule(changed.tape).total


def test_no_worker_overtakes_the_one_that_sends_the_backlog(kafka_address, topic, run, tmp_path):
    tape = replace(TAPE, warm_up=EARLY, waits=True)
    load = WorkersLoad(replace(SPEC, workers=2, tape=tape), topic, run, tmp_path)
    sent(load, kafka_address, Clock())

    assert load.certify().sent == Schedule(tape).total
    log = recount.read(kafka_address, topic, end_offsets(kafka_address, topic), CODEC)
    waiting = log["event_id"] >> INDEX_BITS >= tape.senders
    assert 0 < waiting.sum() < len(waiting)
    for partition in range(TAPE.partitions):
        here = log["partition"] == partition
        assert log["offset"][here & waiting].max() < log["offset"][here & ~waiting].min()


@contextmanager
def worker(master: str, *flags: str, before: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """A worker as a user starts it on another host, behind a command that makes this machine another one."""
    line = [*before, sys.executable, "-m", "harness", "worker", "--master", master, *flags]
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
    with worker(master), worker(master, before=FOREIGN):
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
    with other_host(*ports) as inside, worker(master), worker(master, before=(*inside, *FOREIGN)):
        load.gather()
        epoch_ms = sent(load, kafka_address, Clock())
    certificate = load.certify()

    assert digest(kafka_address, topic, epoch_ms) == alone
    assert certificate.valid, certificate.reasons


@contextmanager
def half_sent(load: WorkersLoad, kafka: KafkaAddress) -> Iterator[None]:
    """Drive a load to its middle."""
    clock, half = Clock(), Schedule(load.tape).total / 2
    try:
        load.start()
        load.tell(kafka)
        load.wait_ready()
        load.go(clock.now_ms(), clock)
        wait_until(lambda: load.status().sent > half, deadline_s=60, what="half of the load")
        yield
    finally:
        load.stop()
    assert not any(child.members() for child in load._workers)


def broken(load: WorkersLoad, kafka: KafkaAddress, harm: signal.Signals) -> str:
    """Harm a worker at half of the load; how the run ends."""
    with half_sent(load, kafka):
        load._workers[0].signal_group(harm)
        with pytest.raises(HarnessError) as ended:
            wait_until(lambda: load.status().finished, deadline_s=60, what="the load to end")
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
    """One that says that it ends is believed at once, so patience makes no difference to it."""
    spec = replace(SLOW, patience=1 if "3.5 s" in said else 100)
    assert said in broken(WorkersLoad(spec, topic, run, tmp_path), kafka_address, harm)


@SECOND_HALF
def test_users_that_locust_gives_to_another_worker_end_the_load(monkeypatch, kafka_address, topic, run, tmp_path):
    """With so much patience that the worker itself is not missed."""
    (tmp_path / "hasty.py").write_text(HASTY)
    monkeypatch.setattr(WorkersLoad, "locustfile", str(tmp_path / "hasty.py"))
    load = WorkersLoad(replace(SLOW, patience=100), topic, run, tmp_path)

    assert "Locust has distributed them again" in broken(load, kafka_address, signal.SIGSTOP)


@SECOND_HALF
def test_a_load_that_is_paused_for_longer_than_a_worker_may_be_silent_goes_on(kafka_address, topic, run, tmp_path):
    load, clock = WorkersLoad(SLOW, topic, run, tmp_path), Clock()
    with half_sent(load, kafka_address):
        load.signal(signal.SIGSTOP)
        until_ms = clock.now_ms() + 1500 * LOST_S
        wait_until(lambda: clock.now_ms() > until_ms, deadline_s=60, what="the end of the pause")
        load.signal(signal.SIGCONT)
        wait_until(lambda: load.status().finished, deadline_s=60, what="the load to end")
    certificate = load.certify()

    assert certificate.acknowledged == Schedule(SLOW.tape).total
    assert certificate.lag_ms["max"] > 1000 * LOST_S


@SECOND_HALF
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


def deaf(monkeypatch: pytest.MonkeyPatch, folder: Path, *, after_the_start: bool) -> None:
    (folder / "deaf.py").write_text(DEAF.format(after_the_start))
    monkeypatch.setattr(WorkersLoad, "locustfile", str(folder / "deaf.py"))


@SECOND_HALF
def test_a_clock_that_can_not_be_measured_again_withholds_speed(monkeypatch, kafka_address, topic, run, tmp_path):
    deaf(monkeypatch, tmp_path, after_the_start=True)
    load = WorkersLoad(replace(SPEC, workers=1), topic, run, tmp_path)
    sent(load, kafka_address, Clock())
    certificate = load.certify()

    assert certificate.sent == TOTAL
    assert [why for why in certificate.reasons if "is unknown: it was not measured before and after the load" in why]


@SECOND_HALF
def test_a_worker_that_does_not_know_the_clock_sends_nothing(monkeypatch, kafka_address, topic, run, tmp_path):
    deaf(monkeypatch, tmp_path, after_the_start=False)
    load = WorkersLoad(replace(SPEC, workers=1), topic, run, tmp_path)
    with pytest.raises(HarnessError, match="the run answered none of 40 questions for its clock"):
        sent(load, kafka_address, Clock())
    assert load.certify().sent == 0


@SECOND_HALF
def test_a_worker_too_many_is_sent_away_and_changes_nothing(kafka_address, topic, run, tmp_path):
    load, master = bound(run, tmp_path, topic, number=1)
    with worker(master):
        load.gather()
        with worker(master) as second:
            assert "the run already has its 1 worker." in second.communicate(timeout=200)[0]
            assert second.returncode == Exit.BROKEN
        sent(load, kafka_address, Clock())
    assert load.certify().sent == TOTAL


def log_of(run: Path) -> str:
    """The log without opening and closing events, whose times are those of this run."""
    store = Store.open(run)
    table = store.read_table("log.parquet")
    log = {name: table.column(name).to_numpy() for name in table.column_names}
    planned = log["event_id"] >> INDEX_BITS != MARK_SERVER
    (epoch,) = store.history("epoch")
    return content_of({name: column[planned] for name, column in log.items()}, epoch["epoch_ms"])


@SECOND_HALF
@pytest.mark.timeout(900)
def test_whole_runs_with_one_worker_and_with_four_are_the_same(kafka_address, redis_address, tmp_path):
    servers = ("--kafka", kafka_address.bootstrap, "--redis", redis_address.url, "--reset")
    answers = {n: whole_run(tmp_path, *CALM, *servers, "--workers", n) for n in (1, 4)}

    one, four = (Path(answers[n]["run"]) for n in (1, 4))
    assert [answers[n]["verdict"] for n in (1, 4)] == ["PASS", "PASS"]
    # The windows, and so the cells, of the opening and closing events are those of each run's own hour.
    said = [answers[n]["sentence"].partition(" in ") for n in (1, 4)]
    assert [(events, cells.endswith(" cells")) for events, _, cells in said] == [
        ("2,124 events counted right", True)
    ] * 2
    assert log_of(one) == log_of(four)
    sealed = [Store.open(run).read_json("plan.json") for run in (one, four)]
    assert sealed[0]["expected"] == sealed[1]["expected"]
    assert sealed[0]["tape"]["digest"] == sealed[1]["tape"]["digest"]


@contextmanager
def waiting(folder: Path) -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[str]]]:
    """A run that waits for a second worker, and its first one."""
    master = f"127.0.0.1:{free_ports(1)[0]}"
    line = [sys.executable, "-m", "harness", "run", *CALM, "--workers", "2", "--bind", master, "--out", str(folder)]
    run = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    with worker(master) as first:
        assert first.stdout
        assert any("Joined the run" in words for words in iter(first.stdout.readline, ""))
        try:
            yield run, first
        finally:
            run.kill()
            run.communicate(timeout=60)


@pytest.fixture
def heeded() -> Iterator[None]:
    """Ctrl-C, also where the tests run in the background of a shell, which has them ignore it, and what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@SECOND_HALF
@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize(
    ("stopped", "codes", "of_run", "of_worker"),
    [
        (0, (INTERRUPTED, Exit.BROKEN), "Stopped by Ctrl-C", "ended before its load did"),
        (1, (Exit.BROKEN, INTERRUPTED), "ended: it was stopped there.", "Stopped by Ctrl-C"),
    ],
    ids=["run", "worker"],
)
def test_ctrl_c_at_either_end_ends_both_and_leaves_nothing(stopped, codes, of_run, of_worker, tmp_path):
    with waiting(tmp_path) as both:
        below = [child for each in both for child in psutil.Process(each.pid).children(recursive=True)]
        assert len(below) >= 2
        both[stopped].send_signal(signal.SIGINT)
        said = [each.communicate(timeout=100)[0] for each in both]

    assert tuple(each.returncode for each in both) == codes, said
    assert (of_run in said[0], of_worker in said[1]) == (True, True), said
    assert not [child for child in below if child.is_running()]
