"""What a Redis of others refuses is named before a run, with the right or the setting to grant."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import redis as redis_py
import typer

from harness.cli import doctor
from harness.model import Exit, HarnessError, RedisAddress
from harness.runner.world.server_refusals import Refusals
from harness.services import redis_rights
from harness.services.external import Wants as RunWants
from harness.services.redis import EmbeddedRedis, connect, external
from harness.services.redis_rights import Counters, Wants, counters, refusals
from harness.util.server_errors import MANUAL
from tests.services.guarded import PASSWORD, REDIS_RIGHTS, certificates, redis_user
from tests.services.tls import tls_before

PLACE, ROOT = "host:6379", Path(__file__).parents[2]


@pytest.fixture
def server(tmp_path):
    server = EmbeddedRedis(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def admin(server):
    with connect(server.address) as client:
        yield client


def as_user(server: EmbeddedRedis, *rules: str, database: int = 0) -> redis_py.Redis:
    with connect(server.address) as admin:
        redis_user(admin, *rules)
    url = server.address.url.replace("redis://", f"redis://alice:{PASSWORD}@").replace("/0", f"/{database}")
    return connect(RedisAddress(url, external=True))


def test_a_user_with_the_documented_rights_is_refused_nothing_and_nothing_stays(server, admin):
    with as_user(server) as client:
        assert refusals(client, PLACE, Wants(bytes=1_000_000, scripts=True)) == []
    assert admin.dbsize() == 0


def test_the_documented_rights_are_those_of_these_tests_and_reach_any_database(server):
    assert f"ACL SETUSER NAME on >PASSWORD {REDIS_RIGHTS}\n" in (ROOT / MANUAL).read_text()
    with as_user(server, database=4) as client:
        assert refusals(client, PLACE, Wants(bytes=1_000_000, scripts=True)) == []


def test_a_database_that_may_not_be_chosen_is_told_with_the_right_to_grant(server):
    with pytest.raises(HarnessError, match=r"NOPERM.*'select'.*grant it with ACL SETUSER") as caught:
        as_user(server, "-select", database=4)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("command", ["hset", "scan", "unlink", "multi", "eval", "sadd"])
def test_a_command_that_is_missing_is_named(server, command):
    with as_user(server, f"-{command}") as client:
        (refusal,) = refusals(client, PLACE, Wants(scripts=True))
    assert refusal.name == "NOPERM"
    assert command.upper() in refusal.sentence
    assert "ACL SETUSER" in refusal.sentence


def test_a_replica_is_refused(tmp_path, server, admin):
    other = EmbeddedRedis(tmp_path / "other")
    other.start()
    try:
        admin.replicaof("127.0.0.1", other.address.url.rpartition(":")[2].partition("/")[0])
        (refusal,) = refusals(admin, PLACE, Wants())
        assert refusal.name == "READONLY"
        assert "name the primary" in refusal.sentence
    finally:
        other.stop()


@pytest.mark.parametrize(("policy", "then"), [("noeviction", "refuses writes"), ("allkeys-lru", "evicts keys")])
def test_too_little_memory_is_refused_with_what_would_come_of_it(admin, policy, then):
    admin.config_set("maxmemory", str(3_000_000))
    admin.config_set("maxmemory-policy", policy)

    (refusal,) = refusals(admin, PLACE, Wants(bytes=50_000_000))

    assert refusal.name == "maxmemory"
    assert then in refusal.sentence
    assert policy in refusal.sentence
    assert refusals(admin, PLACE, Wants(bytes=100)) == []


def test_a_store_that_is_full_is_refused(admin):
    admin.set("big", "x" * 100_000)
    admin.config_set("maxmemory", "1000")
    assert refusals(admin, PLACE, Wants())[0].name == "OOM"


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("openssl"):
        pytest.skip("NOT TESTED: Redis with TLS, as there is no openssl")
    folder = tmp_path_factory.mktemp("papers")
    certificates(folder)
    return folder


@pytest.fixture
def door(server, papers):
    with tls_before(int(server.address.url.rpartition(":")[2].partition("/")[0]), papers / "server.pem") as port:
        yield port


def test_a_redis_with_tls_is_reached_with_its_authority(server, papers, door):
    with as_user(server):
        pass
    address = external(f"rediss://alice:{PASSWORD}@127.0.0.1:{door}/0?ssl_ca_certs={papers}/ca.crt")
    with connect(address) as client:
        assert refusals(client, PLACE, Wants(bytes=1_000_000, scripts=True)) == []


@pytest.mark.parametrize(
    ("scheme", "option", "why"),
    [
        ("rediss", "?ssl_ca_certs={}/stranger.crt", "CERTIFICATE_VERIFY_FAILED.*ssl_ca_certs"),
        ("rediss", "", "CERTIFICATE_VERIFY_FAILED.*ssl_ca_certs"),
        ("rediss", "?ssl_ca_certs={}/none.crt", "ssl_ca_certs"),
        ("redis", "", r"TLS \(rediss://\)"),
    ],
    ids=["another authority", "no authority", "no such file", "without TLS"],
)
def test_why_a_redis_with_tls_is_not_reached_is_said_without_the_secret(papers, door, scheme, option, why):
    address = external(f"{scheme}://alice:{PASSWORD}@127.0.0.1:{door}/0{option.format(papers)}")
    with pytest.raises(HarnessError, match=why) as caught:
        connect(address)
    assert PASSWORD not in str(caught.value)


def test_what_the_server_counted_since_is_in_words(admin):
    before = counters(admin)
    with pytest.raises(redis_py.ResponseError):
        admin.execute_command("NO-SUCH-COMMAND")
    admin.config_set("maxmemory", "1000")
    with pytest.raises(redis_py.ResponseError):
        admin.set("key", "value")

    since = counters(admin).since(before)

    assert since.in_words() == "errorstat_OOM +1"
    assert since.refused["ERR"] == 1
    assert counters(admin).since(counters(admin)) == Counters(0, {})


def engine_that_failed(client: redis_py.Redis) -> Refusals:
    return Refusals(None, client, PLACE, "topic", RunWants())


def test_an_engine_that_failed_is_excused_by_what_the_server_refuses_now(admin):
    seen = engine_that_failed(admin)
    assert seen.of_failed("redis.exceptions.OutOfMemoryError: no") == "", "a log alone proves nothing"

    admin.set("big", "x" * 100_000)
    admin.config_set("maxmemory", "1000")

    assert "OOM" in seen.of_failed("")


def test_an_engine_that_failed_is_excused_by_the_servers_counter_and_its_own_log(server):
    with as_user(server, "-zadd") as client:
        seen = engine_that_failed(client)
        with pytest.raises(redis_py.exceptions.NoPermissionError):
            client.zadd("scores", {"a": 1})

        assert "errorstat_NOPERM +1" in seen.of_failed("redis.exceptions.NoPermissionError: this user has no")
        assert seen.of_failed("ValueError: my own bug") == ""


def test_results_that_were_evicted_are_counted(admin):
    seen = engine_that_failed(admin)
    assert seen.evicted() == ""
    admin.config_set("maxmemory-policy", "allkeys-lru")
    for number in range(200):
        admin.set(f"key-{number}", "x" * 10_000)
    admin.config_set("maxmemory", str(admin.info("memory")["used_memory"] - 500_000))
    admin.set("one more", "1")

    assert "evicted_keys +" in seen.evicted()


def test_a_log_names_an_answer_by_its_prefix_or_by_a_class():
    assert redis_rights.names("READONLY", "READONLY You can't write against a read only replica.")
    assert redis_rights.names("READONLY", "redis.exceptions.ReadOnlyError: You can't")
    assert not redis_rights.names("ERR", "ERR no such key")
    assert not redis_rights.names("OOM", "java.lang.OutOfMemoryError: Java heap space")


def test_doctor_names_what_a_redis_refuses_and_hides_the_password(server, capsys):
    with as_user(server, "-hset"):
        pass
    address = server.address.url.replace("redis://", f"redis://alice:{PASSWORD}@")

    with pytest.raises(typer.Exit) as ended:
        doctor.doctor(redis=address)

    said = capsys.readouterr().out
    assert ended.value.exit_code == Exit.BROKEN
    assert re.search(r"^Redis rights: wrong, .*refused 1 trial\. .*HSET: NOPERM", said, re.MULTILINE)
    assert PASSWORD not in said
