"""Counted of real ones: a JVM, a Redis, connections."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from harness.metering import allocated_bytes, socket_bytes
from harness.metering.counted_work import CountedWork
from harness.services.redis import EmbeddedRedis, connect
from harness.util.wait import wait_until

MIB = 2**20
ENDS, LIVES = 200, 300


@pytest.fixture(scope="module")
def program(java, tmp_path_factory):
    """The classes of a JVM that allocates what it is told to."""
    javac = java.resolve().with_name("javac")
    if not javac.is_file():
        pytest.skip("NOT TESTED: bytes that a JVM allocates, as this Java has no compiler")
    place = tmp_path_factory.mktemp("classes")
    source = Path(__file__).with_name("Allocates.java")
    subprocess.run([javac, "-d", place, source], check=True, timeout=60)
    return place


@contextmanager
def allocating(work, java, program, *mebibytes, options=()):
    """When both threads have."""
    env = {**os.environ, "JAVA_TOOL_OPTIONS": " ".join((*work.java_options, *options))}
    command = [str(java), "-cp", str(program), "Allocates", *map(str, mebibytes)]
    jvm = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with jvm:
        assert jvm.stdout
        assert jvm.stdout.readline() == b"done\n", "nothing of the agent is among what a job prints"
        yield jvm
        jvm.kill()


@pytest.fixture(params=["getTotalThreadAllocatedBytes", "asEarlierVersionsHaveNone"])
def work(request, tmp_path, tmp_path_factory, monkeypatch):
    """By what only some versions of Java sum up themselves, and without."""
    source = tmp_path / allocated_bytes.SOURCE.name
    source.write_text(allocated_bytes.SOURCE.read_text().replace("getTotalThreadAllocatedBytes", request.param))
    monkeypatch.setattr(allocated_bytes, "SOURCE", source)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    with closing(CountedWork(None)) as work:
        yield work


def test_bytes_of_a_thread_that_ended_and_of_a_jvm_that_was_killed_are_told(work, java, program):
    with allocating(work, java, program, ENDS, LIVES) as jvm:
        told = work.read([jvm.pid], [jvm.pid]).allocated_bytes
        assert told == pytest.approx((ENDS + LIVES) * MIB, rel=0.01)
    assert work.read([], []).allocated_bytes == pytest.approx(told, rel=0.001)

    with allocating(work, java, program, 0, ENDS) as second:
        both = work.read([second.pid], [second.pid]).allocated_bytes
        assert both == pytest.approx((ENDS + LIVES + ENDS) * MIB, rel=0.01)


def test_garbage_is_collected_on_request_and_the_jvm_is_counted_on(work, java, program, tmp_path):
    log = tmp_path / "gc.log"
    with allocating(work, java, program, ENDS, LIVES, options=[f"-Xlog:gc:file={log}"]) as jvm:
        before = work.read([jvm.pid], [jvm.pid]).allocated_bytes
        assert "System.gc()" not in log.read_text()
        work.collect_garbage()
        assert "System.gc()" in log.read_text()
        assert work.read([jvm.pid], [jvm.pid]).allocated_bytes == pytest.approx(before, rel=0.001)
    work.collect_garbage()  # the JVM has ended, and nothing waits for it


def test_a_jvm_without_the_agent_is_no_zero(work, java, program):
    work._agents.close()  # its folder is gone, as it would be for a JVM of somebody else
    with allocating(work, java, program, 1, 1) as jvm:  # runs none the less
        assert work.read([jvm.pid], [jvm.pid]).allocated_bytes is None
        assert str(jvm.pid) in work.reason


def test_a_frozen_jvm_tells_what_it_had_told(work, java, program):
    with allocating(work, java, program, 1, LIVES) as jvm:
        before = work.read([jvm.pid], [jvm.pid]).allocated_bytes
        jvm.send_signal(signal.SIGSTOP)
        assert work.read([jvm.pid], [jvm.pid]).allocated_bytes == pytest.approx(before, rel=0.01)


def commands(work):
    told = work.read([], []).redis_commands
    assert told is not None
    return told


def test_writes_of_an_engine_are_counted_and_reads_of_others_are_not(tmp_path):
    server = EmbeddedRedis(tmp_path)
    try:
        with (
            closing(CountedWork(server.client)) as work,
            connect(server.start()) as engine,
            server.client() as observer,
        ):
            before = commands(work)
            for number in range(500):
                engine.hincrby("campaign", str(number % 7), 1)
                observer.hgetall("campaign")
            list(observer.scan_iter())
            assert commands(work) - before == 500

            engine.eval("return redis.call('HSET', KEYS[1], '1', '2')", 1, "campaign")
            assert commands(work) - before == 502, "the script, and what it calls"
    finally:
        server.stop()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_bytes_of_a_connection_are_told_by_its_port_alone(family):
    """Over IPv6 as Java does, which reaches an IPv4 server by it too."""
    host = "127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        port = server.getsockname()[1]
        with socket.socket(family) as plug, socket.create_connection(other.getsockname()) as not_ours:
            plug.connect((host, port))
            accepted, _ = server.accept()
            with accepted:
                not_ours.sendall(b"x" * 77)
                plug.sendall(b"x" * 100_001)
                accepted.sendall(b"y" * 2_000)
                inode = os.fstat(plug.fileno()).st_ino
                wait_until(
                    lambda: socket_bytes.by_port([os.getpid()], port) == {inode: 102_001},
                    deadline_s=10,
                    what="the kernel to have counted both directions",
                    state=lambda: str(socket_bytes.by_port([os.getpid()], port)),
                )
                assert socket_bytes.by_port([], port) == {}


OWN_CONNECTION = """
import os
with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as plug:
    plug.sendall(b"x" * 999)
    with server.accept()[0] as accepted:
        accepted.recv(999, socket.MSG_WAITALL)
        print(sum(by_port([os.getpid()], server.getsockname()[1]).values()))
"""


def test_one_who_is_not_root_is_told_too():
    if os.getuid():
        pytest.skip("NOT TESTED: needs root, to be somebody else; the other tests are no root's")
    program = Path(socket_bytes.__file__).read_text(encoding="utf-8") + OWN_CONNECTION
    for python in (os.path.realpath(sys.executable), "/usr/bin/python3"):  # ours may lie in a folder of root's
        with suppress(OSError):
            command = [python, "-I", "-c", program]
            said = subprocess.run(command, user=65534, cwd="/", capture_output=True, text=True, check=False)
            assert said.stdout == "999\n", said.stderr
            return
    pytest.skip("NOT TESTED: nobody else may run a Python here")
