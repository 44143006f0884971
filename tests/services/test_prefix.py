"""A Redis that is shared: all keys of a run begin with its prefix, and no other key is read or written."""

from __future__ import annotations

import uuid

import pytest
import redis as redis_py

from harness.model import RedisAddress, UsageError
from harness.results import redis_scan
from harness.results.redis_pipeline import Prepared
from harness.services import claim
from harness.services.redis import connect
from harness.services.redis_rights import Wants, refusals
from tests.services.guarded import PASSWORD, REDIS_RIGHTS
from workloads.ad_impressions.jobs.ads import read_ads
from workloads.jobs.redis_results import connect as connect_job
from workloads.jobs.redis_sinks import SINKS
from workloads.prefixed import Prefixed

PREFIX = "team/a:"


@pytest.fixture
def admin(redis_address):
    with connect(redis_address) as client:
        yield client
        client.execute_command("ACL", "DELUSER", "tenant")


@pytest.fixture
def address(redis_address, admin):
    """As a user who may read and write below the prefix, and nothing else."""
    rights = REDIS_RIGHTS.replace("~*", f"~{PREFIX}*").split()
    admin.execute_command("ACL", "SETUSER", "tenant", "reset", "on", f">{PASSWORD}", *rights)
    url = redis_address.url.replace("redis://", f"redis://tenant:{PASSWORD}@")
    return RedisAddress(url, external=True, prefix=PREFIX)


@pytest.fixture
def client(address):
    with connect(address) as client:
        yield client


def test_a_user_of_a_prefix_is_refused_nothing_with_it_and_named_it_without(address, client):
    assert refusals(client, "there", Wants(bytes=1_000_000, scripts=True)) == []
    with connect(RedisAddress(address.url, external=True)) as without:
        found = refusals(without, "there", Wants())
    assert {each.name for each in found} == {"NOPERM"}
    assert "--redis-prefix" in found[0].sentence


def test_two_runs_share_a_database(redis_address, admin, client):
    admin.set("theirs", "value")
    with connect(RedisAddress(redis_address.url, external=True, prefix="team/b:")) as other:
        for each in (client, other):
            claim.claim(each, reset=False)
            claim.expect(each, ["results"])
            each.hset("results", "0", "1")
        with pytest.raises(UsageError, match=r"below the prefix 'team/b:'.*created by streamgauge.* has 1 key"):
            claim.claim(other, reset=False)
        claim.claim(other, reset=True)

        assert claim.release(client) == 1
        assert other.dbsize() == 2, "its marker and its owner"
    assert {key for key in admin.scan_iter() if not key.startswith("team/")} == {"theirs"}
    assert admin.hgetall(f"{PREFIX}results") == {"0": "1"}


@pytest.mark.parametrize("sink", SINKS)
def test_each_sink_writes_below_the_prefix_and_is_read_there(address, admin, client, sink):
    admin.hset("results", "0", "9")
    job = connect_job({"redis": address.url, "redis_prefix": PREFIX})

    SINKS[sink](job, 1, {"results": {0: 5}})
    SINKS[sink](job, 2, {"results": {10: 6}})

    rows = {(row.key, row.field): row.value for row in redis_scan.scan(client)}
    assert rows["results", "0"] == "5"
    assert rows["results", "10"] == "6"
    assert ("updated:results", "10") in rows
    reader = Prepared(client, ["results"])
    assert b"\r\n5\r\n" in reader.ask(reader.request("HGETALL"))
    reader.disconnect()
    assert sorted(key for key in admin.scan_iter() if not key.startswith(PREFIX)) == ["results"]
    job.close()


def test_a_script_and_the_table_of_ads_are_below_the_prefix(client, admin):
    ad, campaign = str(uuid.uuid4()), str(uuid.uuid4())
    admin.mset({f"{PREFIX}{ad}": campaign, str(uuid.uuid4()): campaign})
    assert read_ads(client) == {ad: campaign}

    script = client.register_script("return redis.call('SET', KEYS[1], ARGV[1])")
    with client.pipeline(transaction=False) as pipe:
        script(keys=["one"], args=["1"], client=pipe)
        pipe.execute()
    script(keys=["two"], args=["2"])

    assert admin.mget(f"{PREFIX}one", f"{PREFIX}two") == ["1", "2"]


def test_names_come_back_without_the_prefix(client, admin):
    admin.mset({f"{PREFIX}one": "1", "team/other": "2"})

    assert list(client.scan_iter()) == ["one"]
    assert list(client.scan_iter("t*")) == []
    assert list(client.scan_iter(NEVER_DECODE=True)) == [b"one"]
    assert client.mget(["one", "two"]) == ["1", None]


def test_a_command_that_could_reach_other_keys_is_refused(client, admin):
    admin.set("theirs", "value")
    for name, words in {"RENAME": ("theirs", "mine"), "FLUSHDB": ()}.items():
        with pytest.raises(redis_py.DataError, match=f"{name} can't be used below the prefix"):
            client.execute_command(name, *words)
    assert isinstance(client, Prefixed)
    assert admin.get("theirs") == "value"
