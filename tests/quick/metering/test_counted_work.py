"""Work that is counted: sums over what lives and what has ended, and None where nothing tells."""

from __future__ import annotations

import socket
import struct
from contextlib import closing

import pytest
import redis
from redis._parsers.helpers import parse_info

from harness.metering import allocated_bytes, socket_bytes
from harness.metering.allocated_bytes import Agents
from harness.metering.counted_work import SCRIPTS, CountedWork, Totals, calls, writes
from harness.model import HarnessError

COMMAND = {  # what Redis 6.2 and 7 tell, the names of either
    "hset": {"flags": ["write", "denyoom", "fast"]},
    "HINCRBY": {"flags": ["write", "denyoom", "fast"]},
    "xgroup": {"flags": ["write", "denyoom"]},
    "hgetall": {"flags": ["readonly", "random"]},
    "eval": {"flags": ["noscript", "skip_monitor", "may_replicate", "movablekeys"]},
    "ping": {"flags": ["stale", "fast"]},
}
COMMANDSTATS = """# Commandstats
cmdstat_hset:calls=40,usec=15,usec_per_call=7.50,rejected_calls=0,failed_calls=0
cmdstat_hincrby:calls=300,usec=15,usec_per_call=7.50,rejected_calls=0,failed_calls=0
cmdstat_xgroup|create:calls=2,usec=6,usec_per_call=6.00,rejected_calls=0,failed_calls=0
cmdstat_hgetall:calls=7000,usec=1,usec_per_call=1.00,rejected_calls=0,failed_calls=0
cmdstat_evalsha:calls=5,usec=54,usec_per_call=54.00,rejected_calls=0,failed_calls=0
cmdstat_client|setname:calls=8,usec=31,usec_per_call=3.88,rejected_calls=0,failed_calls=6
cmdstat_info:calls=9,usec=18,usec_per_call=18.00,rejected_calls=0,failed_calls=0
"""


class Server:
    """A Redis that has counted so much."""

    def __init__(self, calls: int = 0, run_id: str = "first") -> None:
        self.calls, self.run_id, self.away, self.closed = calls, run_id, False, 0

    def __call__(self):
        if self.away:
            raise redis.ConnectionError
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.closed += 1

    def command(self):
        return COMMAND

    def info(self, section):
        return {"run_id": self.run_id} if section == "server" else {"cmdstat_hset": {"calls": self.calls}}


@pytest.fixture
def no_compiler(monkeypatch):
    def refuse():
        raise HarnessError("/jre/bin/java is a runtime without a compiler")

    monkeypatch.setattr(allocated_bytes, "agent", refuse)


@pytest.fixture
def agents(tmp_path, monkeypatch):
    monkeypatch.setattr(allocated_bytes, "agent", lambda: tmp_path / "agent.jar")
    with closing(Agents()) as agents:
        yield agents


def has_told(agents, name, allocated):
    """What a JVM leaves that is gone: its last answer, and a socket at which nobody listens."""
    (agents._folder / name).write_bytes(struct.pack(">q", allocated))
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind(str(agents._folder / f"{name}.socket"))


def test_of_redis_only_writes_and_scripts_count():
    assert calls(parse_info(COMMANDSTATS), writes(COMMAND) | SCRIPTS) == 40 + 300 + 2 + 5


def test_a_server_that_was_started_again_goes_on_from_what_it_had_counted(no_compiler):
    server = Server(40)
    with closing(CountedWork(server)) as work:
        first = work.read([], [])
        server.calls, server.run_id = 3, "second"

        assert (first.redis_commands, work.read([], []).redis_commands) == (40, 43)
        server.away = True
        assert work.read([], []).redis_commands is None
    assert server.closed == 2


def test_sockets_that_are_closed_keep_what_was_seen_of_them(no_compiler, monkeypatch):
    looks = iter([{11: 100, 12: 5}, {12: 9}, {12: 9, 13: 1}])
    monkeypatch.setattr(socket_bytes, "by_port", lambda pids, port: next(looks))
    with closing(CountedWork(None, 9092)) as work:
        assert [work.read([], [7]).kafka_bytes for _ in range(3)] == [105, 109, 110]


def test_where_netlink_does_not_tell_nothing_is_told(no_compiler, monkeypatch):
    monkeypatch.setattr(socket_bytes, "_inodes", lambda pid: iter([4711]))
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)  # as on a Mac
    with closing(CountedWork(None, 9092)) as work:
        assert work.read([], [1]).kafka_bytes is None


def test_without_a_compiler_a_reason_is_told_and_no_option_given(no_compiler):
    with closing(CountedWork(None)) as work:
        assert work.read([7], [7]) == Totals()
        assert work.java_options == ()
        assert "runtime without a compiler" in work.reason


def test_jvms_that_are_gone_keep_what_they_told_also_two_of_one_pid(agents):
    has_told(agents, "7-1000", 10**12)
    has_told(agents, "7-2000", 5)
    has_told(agents, "8-1000", 20)

    assert agents.allocated_bytes([7]) == 10**12 + 25
    assert agents.reason == ""


def test_a_jvm_that_does_not_tell_makes_the_sum_unknown(agents):
    has_told(agents, "7-1000", 10)

    assert agents.allocated_bytes([7, 9]) is None
    assert "pid 9" in agents.reason


def test_without_any_jvm_there_is_no_sum(agents):
    assert agents.allocated_bytes([]) is None
    assert agents.reason == "there is no JVM"


def test_the_option_survives_a_space_and_the_folder_goes_with_the_agents(agents):
    option, *_ = agents.options

    assert option.startswith('"-javaagent:')
    assert option.endswith(f'agent.jar={agents._folder}"')
    agents.close()
    assert not agents._folder.exists()


def answer(inode: int, acked: int, received: int) -> bytes:
    """What the kernel says of one connection."""
    info = bytes(socket_bytes.ACKED_AT) + struct.pack("=QQ", acked, received) + bytes(100)
    other = struct.pack("=HHB3x", 5, 8, 1)  # one byte, and filled up to four
    content = struct.pack(socket_bytes.SOCKET, 2, 1, 0, 0, bytes(48), 0, 0, 0, 0, inode)
    return content + other + struct.pack("=HH", 4 + len(info), 2) + info


def test_what_the_kernel_says_of_a_connection():
    assert socket_bytes._connection(answer(4711, 1000, 5 * 10**9)) == (4711, 5 * 10**9 + 999), (
        "the first is no byte of the stream"
    )


def test_a_kernel_that_does_not_count_tells_of_no_bytes():
    assert socket_bytes._connection(answer(4711, 1000, 2)[:80]) == (4711, 0)


def test_without_a_port_no_connection_is_looked_at(no_compiler):
    with closing(CountedWork(None)) as work:
        assert work.read([], [1]).kafka_bytes is None
