"""The redis family on a server of a dictionary and a process that only sleeps: strikes, proofs, healing."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psutil
import pytest
import redis as redis_py

from harness.faults.redis import ASIDE, KINDS, Kill
from harness.faults.registry import create, parse
from harness.faults.run_at_poll import Field, Moment
from harness.model import KafkaAddress, UsageError
from harness.services.redis import CLIENT_NAME
from tests.quick.cases import SCRIPTED, SPEC
from tests.quick.faults.test_faults import ScriptedEngine

MANIFEST = SCRIPTED
ENGINE: Any = ScriptedEngine()
CAMPAIGNS = ("a", "b", "c")
TABLE = {"campaigns": "all of them", "ad": "a"}


class ScriptedChild:
    """A real process, so that signals and their proofs are real."""

    def __init__(self):
        self._process = subprocess.Popen(["sleep", "600"])
        self.pid = self._process.pid

    def alive(self):
        return self._process.poll() is None

    def returncode(self):
        return self._process.poll()

    def signal_group(self, number):
        self._process.send_signal(number)
        if number.name == "SIGSTOP":  # on its way for a moment
            while psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:
                pass

    def kill_group(self):
        self._process.kill()
        self._process.wait(20)


class ScriptedServer:
    """As much of Redis as the family uses. What is in `deaf` is not done."""

    def __init__(self):
        self.child = ScriptedChild()
        self.data, self.saved = {}, {}
        self.settings = {"maxmemory": "0", "maxmemory-policy": "noeviction", "min-replicas-to-write": "0"}
        self.deaf = set()
        self.connections = {"1": CLIENT_NAME, "7": "", "12": ""}
        self.starts, self.expired, self.paused = 1, 0, False

    def restart(self, keeps="", first=None):
        assert not self.child.alive()
        self.child = ScriptedChild()
        self.data = dict(self.saved) if keeps else {}
        self.starts += 1
        if first:
            first(ScriptedClient(self))

    @contextmanager
    def client(self, reply_s=15.0):
        yield ScriptedClient(self)


class ScriptedClient:
    """Each command as it is sent; a pipeline is the same client, which remembers the answers."""

    def __init__(self, server, answers=None):
        self._server, self._answers = server, answers

    def __getattr__(self, name):
        def ask(*arguments, **named):
            if not self._server.child.alive():
                raise redis_py.ConnectionError("refused")
            if psutil.Process(self._server.child.pid).status() == psutil.STATUS_STOPPED:
                raise redis_py.TimeoutError("no answer")
            answer = None if name in self._server.deaf else getattr(self, f"_{name}")(*arguments, **named)
            if self._answers is not None:
                self._answers.append(answer)
            return answer

        return ask

    @contextmanager
    def pipeline(self, transaction):
        yield ScriptedClient(self._server, [])

    def execute(self):
        return self._answers

    def _ping(self):
        return True

    def _info(self, section):
        return {
            "server": {"run_id": f"{self._server.starts}" * 40},
            "memory": {"used_memory": 1000},
            "stats": {"expired_keys": self._server.expired},
            "persistence": {
                "rdb_bgsave_in_progress": 0,
                "rdb_last_bgsave_status": "ok" if self._server.saved else "err",
                "aof_rewrite_in_progress": 0,
                "aof_last_bgrewrite_status": "ok" if self._server.saved else "err",
            },
        }[section]

    def _set(self, key, value):
        if self._server.paused:
            raise redis_py.TimeoutError("no answer")
        if self._server.settings["maxmemory"] != "0":
            raise redis_py.OutOfMemoryError("command not allowed when used memory > 'maxmemory'.")
        if self._server.settings["min-replicas-to-write"] != "0":
            raise redis_py.ResponseError("NOREPLICAS Not enough good replicas to write.")
        self._server.data[key] = value

    def _get(self, key):
        return self._server.data.get(key)

    def _delete(self, *keys):
        for key in keys:
            self._server.data.pop(key, None)

    def _exists(self, *keys):
        return sum(key in self._server.data for key in keys)

    def _type(self, key):
        return "hash" if isinstance(self._server.data.get(key), dict) else "string"

    def _hlen(self, key):
        if isinstance(self._server.data.get(key), str):
            raise redis_py.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")
        return len(self._server.data.get(key, {}))

    def _rename(self, old, new):
        self._server.data[new] = self._server.data.pop(old)

    def _pexpire(self, key, _):
        del self._server.data[key]
        self._server.expired += 1

    def _dbsize(self):
        return len(self._server.data)

    def _flushall(self):
        self._server.data.clear()

    def _config_get(self, name):
        return {name: self._server.settings[name]}

    def _config_set(self, name, value):
        self._server.settings[name] = value
        if name == "appendonly":
            self._server.saved = self._server.data

    def _bgsave(self):
        self._server.saved = dict(self._server.data)

    def _shutdown(self, nosave):
        assert nosave
        self._server.child.kill_group()

    def _client_pause(self, timeout, all):
        assert not all
        self._server.paused = True

    def _client_unpause(self):
        self._server.paused = False

    def _client_list(self):
        return [{"id": number, "name": name} for number, name in self._server.connections.items()]

    def _client_kill_filter(self, _id):
        del self._server.connections[_id]


@pytest.fixture
def server():
    server = ScriptedServer()
    server.data = {"a": {"0": "5", "10000": "7"}, "b": {"0": "1"}, **TABLE}
    yield server
    server.child.kill_group()


def put_back(client):
    for key, value in TABLE.items():
        client.set(key, value)


class Course:
    """A fault, polled every 50 ms of a clock of its own."""

    def __init__(self, server, text):
        spec = replace(SPEC, engine="scripted", sink="default", fault=parse(text))
        self.fault, self.now_ms = create(spec, MANIFEST), 0
        self.field = Field(None, server, KafkaAddress("nobody"), "topic", redis_py.Redis(), CAMPAIGNS, put_back)

    def poll(self, until_ms):
        while self.now_ms < until_ms:
            self.now_ms += 50
            self.fault.poll(Moment(self.now_ms, 1, ENGINE, None, 1000, self.field))
        return self.report

    @property
    def report(self):
        (report,) = self.fault.reports()
        return report


def test_all_of_the_family_are_tried_here():
    assert {each.name for each in KINDS} == {text.partition("(")[0] for text, _ in TRIED}


TRIED = (
    (
        "redis-kill",
        "nothing answers at its port; its run_id changed from 11111111 to 22222222, and data from before is",
    ),
    ("redis-restart-empty", "SHUTDOWN NOSAVE; process"),
    ("redis-flush", "of 4 keys none was left"),
    ("redis-pause", "a test write was not answered within 0.5 s, and PING was; a test write is accepted again"),
    ("redis-freeze", "the process is stopped, and PING was not answered"),
    (
        "redis-full",
        "CONFIG SET maxmemory-policy noeviction, maxmemory 500; a test write was refused: command not allow",
    ),
    ("redis-read-only", "a test write was refused: NOREPLICAS"),
    ("redis-client-kill", "connections 7, 12 are gone from CLIENT LIST"),
    (
        "redis-wrong-type",
        "key a returns: WRONGTYPE Operation against a key holding the wrong kind of value; key a",
    ),
    ("redis-evict(campaigns=2)", "3 counts of 2 campaigns are gone: expired_keys went from 0 to 2"),
)


@pytest.mark.parametrize(("text", "proof"), TRIED)
def test_each_lands_with_its_proof_and_is_healed(server, text, proof):
    report = Course(server, f"{text}@now").poll(10_000)

    assert (report.landed, report.healed) == (True, True), report.proof
    assert proof in report.proof
    assert server.child.alive()
    assert not [key for key in server.data if key.startswith("streamgauge:")], "nothing of ours is left"
    assert server.settings == {**server.settings, "maxmemory": "0", "min-replicas-to-write": "0"}
    assert all(server.data[key] == value for key, value in TABLE.items())


@pytest.mark.parametrize(
    ("text", "deaf"),
    [
        ("redis-flush", "flushall"),
        ("redis-pause", "client_pause"),
        ("redis-full", "config_set"),
        ("redis-read-only", "config_set"),
        ("redis-client-kill", "client_kill_filter"),
        ("redis-evict(campaigns=1)", "pexpire"),
        ("redis-evict(campaigns=3)", ""),  # only two have results
        ("redis-kill(persistence=rdb)", "bgsave"),
    ],
)
def test_what_had_no_effect_has_not_landed(server, text, deaf):
    server.deaf = {deaf}
    report = Course(server, f"{text}@now").poll(90_000)

    assert not report.landed, report.proof
    assert "no effect was seen" in report.proof


def test_a_write_that_is_refused_for_another_reason_is_no_proof(server):
    server.deaf, server.settings["min-replicas-to-write"] = {"config_set"}, "1"

    assert not Course(server, "redis-full@now").poll(90_000).landed


@pytest.mark.parametrize("text", ["redis-pause", "redis-freeze", "redis-full", "redis-kill", "redis-read-only"])
def test_it_lasts_as_long_as_it_was_told(server, text):
    report = Course(server, f"{text}(for=2s)@t>=1s").poll(10_000)

    assert (report.at_ms, report.landed_ms) == (1050, 1050)
    assert 3050 <= report.healed_ms <= 3100


@pytest.mark.parametrize(
    ("persistence", "results", "words"),
    [
        ("none", {}, "data from before is gone"),
        ("rdb", {"a": {"0": "5"}}, "before its save is there, data from its end is gone"),
        ("aof", {"a": {"0": "6"}}, "before its save is there, data from its end is there"),
    ],
)
def test_what_a_killed_server_has_kept_depends_on_how_it_keeps_it(server, persistence, results, words):
    server.data = {"a": {"0": "5"}, **TABLE}
    course = Course(server, f"redis-kill(persistence={persistence}, age=1s)@now")
    course.poll(50)
    server.data["a"] = {"0": "6"}
    report = course.poll(20_000)

    assert {key: value for key, value in server.data.items() if key in CAMPAIGNS} == results
    assert words in report.proof
    assert server.data.items() >= TABLE.items()


def test_a_result_put_aside_comes_back_as_it_was(server):
    course = Course(server, "redis-wrong-type@now")
    course.poll(1000)
    assert server.data["a"] == "not a hash"
    assert server.data[ASIDE] == {"0": "5", "10000": "7"}
    course.poll(10_000)

    assert server.data["a"] == {"0": "5", "10000": "7"}


def test_in_its_middle_it_is_undone_at_the_end_of_a_run(server):
    course = Course(server, "redis-freeze(for=10m)@now")
    course.poll(100)
    assert psutil.Process(server.child.pid).status() == psutil.STATUS_STOPPED
    course.fault.heal(Moment(200, 1, ENGINE, None, 1000, course.field))

    assert course.report.healed
    assert psutil.Process(server.child.pid).status() != psutil.STATUS_STOPPED


def test_a_server_that_does_not_come_back_is_not_healed(server):
    server.restart = lambda *_: None
    report = Course(server, "redis-restart-empty@now").poll(70_000)

    assert (report.landed, report.healed) == (True, False)
    assert "not seen to be undone within 60 s" in report.proof


def test_a_server_by_address_is_never_harmed():
    spec = replace(SPEC, engine="scripted", sink="default", redis="redis://localhost:1/0")
    for each in KINDS:
        (need,) = create(replace(spec, fault=parse(f"{each.name}@now")), MANIFEST).needs
        assert "--redis" in need


def test_a_world_without_redis_has_none_to_harm():
    report = Course(None, "redis-flush@now").poll(100)

    assert not report.reachable
    assert "no embedded Redis" in report.proof


def test_a_way_of_keeping_data_that_does_not_exist_is_refused(server):
    with pytest.raises(UsageError, match="'disk' of redis-kill is not one of none, rdb, aof"):
        Course(server, "redis-kill(persistence=disk)@now")


def test_a_server_is_killed_as_soon_as_its_save_has_the_age_that_was_told(server):
    kill = Kill(0.0, "rdb", 1.0)
    client: Any = ScriptedClient(server)
    assert not kill.is_ready(client, 1000)
    server.saved = {"a": {"0": "5"}}

    assert [kill.is_ready(client, now_ms) for now_ms in (2000, 2999, 3000)] == [False, False, True]
