"""The proxy before a real Redis and a real Kafka, on real sockets: what it does, to whom, and that it is undone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import redis
from confluent_kafka import Consumer, TopicPartition

from harness.model import HarnessError, KafkaAddress
from harness.services import kafka
from harness.services.kafka import EmbeddedKafka
from harness.services.link import Link
from harness.services.owners import is_running, sweep
from harness.services.ping import Ping
from harness.services.proxy import SIDES, Toxic
from harness.services.redis import connect
from harness.util.wait import wait_until
from workloads.jobs import redis_results
from workloads.jobs.redis_sinks import RETRYING, SINKS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def link(tmp_path, redis_address):
    link = Link("redis", tmp_path)
    link.start()
    link.lead_to(urlsplit(redis_address.url).netloc)
    yield link
    link.stop()


@pytest.fixture
def direct(redis_address):
    with connect(redis_address) as client:
        client.config_resetstat()
        yield client


@pytest.fixture
def ping(link):
    with Ping("redis", link.address) as ping:
        assert ping.measure()
        yield ping


def engine(link: Link, *, retries: bool = False) -> redis.Redis:
    return redis_results.connect({"redis": f"redis://{link.address}/0", "redis_prefix": ""}, retries=retries)


def add(client: redis.Redis, fields: int = 300) -> None:
    """One pipeline, of more bytes than a client sends at once."""
    pipeline = client.pipeline(transaction=False)
    for each in range(fields):
        pipeline.hincrby("counts", f"{each:040d}", 1)
    pipeline.execute()


def counts(direct: redis.Redis) -> dict[int, int]:
    """How many fields have which count."""
    values = [int(value) for value in direct.hvals("counts")]
    return {value: values.count(value) for value in values}


def test_untroubled_it_passes_all_bytes_on(link, direct):
    with engine(link) as client:
        add(client)
        client.set("large", "x" * 3_000_000)
        assert client.get("large") == "x" * 3_000_000

    statistics = link.statistics()
    assert counts(direct) == {1: 300}
    assert statistics.answered["HINCRBY"] == 300
    assert (statistics.unanswered, statistics.swallowed, statistics.resets) == ({}, {}, 0)
    assert statistics.passed["reply"] > 3_000_000


@pytest.mark.parametrize(
    "toxic", [Toxic(delay_ms=100), Toxic(kbps=256), Toxic(slice_bytes=100, gap_ms=2)], ids=["delay", "kbps", "slice"]
)
@pytest.mark.parametrize("sides", [("request",), ("reply",), SIDES], ids="+".join)
def test_a_slow_direction_is_slow_also_for_connections_that_were_open_before(link, ping, toxic, sides):
    link.trouble(toxic, sides)
    slow = ping.measure(4000)
    cleared = link.clear()
    fast = ping.measure(4000)

    assert slow.ms >= 0.95 * len(sides) * toxic.least_ms(4000) >= 70
    assert fast.ms < slow.ms
    assert not cleared.troubled


def test_jitter_is_another_delay_each_time_and_keeps_the_order(link, ping):
    link.trouble(Toxic(jitter_ms=100), SIDES)

    looks = [ping.measure().ms for _ in range(8)]

    assert max(looks) - min(looks) > 25


@pytest.mark.parametrize("sides", [("request",), ("reply",), SIDES], ids="+".join)
def test_a_black_hole_keeps_connections_open_and_resets_those_that_lost_bytes(link, ping, sides):
    with Ping("redis", link.address) as untouched:
        assert untouched.measure()
        link.trouble(Toxic(swallow=True), sides)
        ping.ask()
        assert ping.hear(0.5) is None
        hole = link.statistics()
        cleared = link.clear()

        assert (hole.open, hole.resets) == (2, 0)
        assert sum(hole.swallowed.values()) > 0
        assert cleared.resets == 1
        with pytest.raises(ConnectionResetError):
            ping.hear(5)
        assert untouched.measure()


def test_all_connections_are_reset_at_once(link, ping):
    with engine(link) as client:
        client.ping()
        assert link.reset().resets == 2

        with pytest.raises(ConnectionResetError):
            ping.hear(5)
        with suppress(redis.ConnectionError):  # a reset that came while nothing was asked, the client may mend itself
            client.ping()
        assert client.ping() is True


def test_a_lost_reply_is_of_a_pipeline_that_was_executed_in_whole(link, direct):
    with engine(link) as client:
        client.ping()
        link.trouble(Toxic(lose_reply=True, times=1), SIDES)
        client.get("reading does not count")
        with pytest.raises(redis.ConnectionError):
            add(client)
        struck = link.statistics()
        executed = direct.info("commandstats")["cmdstat_hincrby"]["calls"]
        add(client)

    assert (struck.struck, struck.resets, struck.troubled) == (1, 1, False)
    assert struck.unanswered == {"HINCRBY": 300} == {"HINCRBY": executed}
    assert counts(direct) == {2: 300}


def test_redis_pys_own_retries_count_twice_and_say_nothing(link, direct):
    """The exhibit: no crash, no error, a wrong number."""
    usual = redis.Redis().get_retry()
    assert usual
    assert usual.get_retries() > 0
    with engine(link, retries=True) as client:
        client.ping()
        link.trouble(Toxic(lose_reply=True, times=1), SIDES)
        add(client)

    assert counts(direct) == {2: 300}


@pytest.mark.parametrize(
    ("sink", "loud", "count"),
    [("absolute", True, 5), ("fenced", True, 5), ("increment", True, 10), ("increment-retrying", False, 10)],
)
def test_which_sink_counts_a_batch_twice_whose_reply_was_lost(link, direct, sink, loud, count):
    """One that hears of it stops, and Spark runs the batch again; one that retries never says a word."""
    batch = {campaign: {0: 5} for campaign in "abc"}
    with engine(link, retries=sink in RETRYING) as client:
        client.ping()
        link.trouble(Toxic(lose_reply=True, times=1), SIDES)
        with pytest.raises(redis.ConnectionError) if loud else nullcontext():
            SINKS[sink](client, 0, batch)
        if loud:
            SINKS[sink](client, 0, batch)

    assert link.statistics().struck == 1
    assert [direct.hget(campaign, "0") for campaign in "abc"] == [str(count)] * 3


def test_a_transaction_whose_reply_is_lost_was_executed(link, direct):
    with engine(link) as client:
        link.trouble(Toxic(lose_reply=True, times=1), SIDES)
        transaction = client.pipeline(transaction=True)
        transaction.hset("a", "b", 1)
        with pytest.raises(redis.ConnectionError):
            transaction.execute()

    assert direct.hget("a", "b") == "1"
    assert link.statistics().unanswered == {"MULTI": 1, "HSET": 1, "EXEC": 1}


def test_a_request_that_is_cut_leaves_half_of_a_pipeline(link, direct):
    with engine(link) as client:
        client.ping()
        link.trouble(Toxic(cut_after_bytes=5000, times=1), ("request",))
        with pytest.raises(redis.ConnectionError):
            add(client)
        executed = wait_until(lambda: direct.hlen("counts"), deadline_s=10, what="Redis to execute what came")
        wait_until(lambda: link.statistics().open == 0, deadline_s=10, what="the connection to end")
        struck = link.statistics()
        add(client)

    assert 0 < executed < 300
    assert struck.unanswered == {"HINCRBY": executed}
    assert counts(direct) == {2: executed, 1: 300 - executed}


def test_a_cut_between_two_commands_is_one_cut(link, direct):
    command = b"*4\r\n$7\r\nHINCRBY\r\n$6\r\ncounts\r\n$1\r\na\r\n$1\r\n1\r\n"
    with engine(link) as client:
        client.ping()
        link.trouble(Toxic(cut_after_bytes=len(command), times=2), ("request",))
        with pytest.raises(redis.ConnectionError):
            client.hincrby("counts", "a", 1)
        wait_until(lambda: link.statistics().open == 0, deadline_s=10, what="the connection to end")

    assert (link.statistics().struck, link.statistics().troubled) == (1, True)
    assert link.statistics().unanswered == {"HINCRBY": 1}
    assert direct.hget("counts", "a") == "1"


def test_a_reply_that_is_cut_ends_in_a_reset(link, direct):
    direct.set("large", "x" * 100_000)
    with Ping("redis", link.address) as ping:
        link.trouble(Toxic(cut_after_bytes=5000, times=1), ("reply",))
        ping.ask(100_000)
        with pytest.raises(ConnectionResetError):
            ping.hear(5)

    assert link.statistics().passed["reply"] == 5000


def test_so_many_times_and_never_again(link, direct):
    link.trouble(Toxic(lose_reply=True, times=2), SIDES)
    for _ in range(2):
        with engine(link) as client, pytest.raises(redis.ConnectionError):
            client.hincrby("counts", "a", 1)
    with engine(link) as client:
        assert client.hincrby("counts", "a", 1) == 3

    assert link.statistics().struck == 2


def test_whoever_leads_nowhere_refuses(tmp_path):
    link = Link("redis", tmp_path)
    link.start()
    try:
        with pytest.raises(ConnectionResetError), Ping("redis", link.address) as ping:
            ping.measure()
    finally:
        link.stop()


def test_a_proxy_that_died_is_told_and_its_connections_are_gone(link, ping):
    (child,) = (each for each in psutil.Process().children() if "harness.services.proxy" in each.cmdline())
    child.kill()
    with pytest.raises(OSError, match=r"reset|closed the connection"):
        ping.hear(10)
    wait_until(lambda: not is_running(child), deadline_s=10, what="the proxy to be gone")

    with pytest.raises(HarnessError, match="ended by itself"):
        link.check()


def test_a_proxy_dies_with_its_owner(tmp_path):
    """Also when the owner had no time to say good-bye."""
    script = (
        "import sys, signal; from pathlib import Path; from harness.services.link import Link; "
        "link = Link('redis', Path(sys.argv[1])); link.start(); print(link.address, flush=True); signal.pause()"
    )
    owner = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert owner.stdout
    host, _, port = owner.stdout.readline().strip().rpartition(":")
    (proxy,) = psutil.Process(owner.pid).children()
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate()
    sweep()

    assert not is_running(proxy)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 5)


@pytest.mark.timeout(400)
def test_kafka_leads_an_engine_back_to_the_proxy_and_nobody_else(tmp_path, jars, java):
    link = Link("kafka", tmp_path)
    link.start()
    broker = EmbeddedKafka(tmp_path, jars, java, heap="512m", engine_at=link.address)
    try:
        address = broker.start()
        link.lead_to(broker.behind_proxy)
        kafka.create_topic(address, "any", 1)
        assert link.statistics().connections == 0

        consumer = Consumer({"bootstrap.servers": link.address, "group.id": "any"})
        consumer.assign([TopicPartition("any", 0, 0)])
        brokers = consumer.list_topics("any", timeout=30).brokers.values()
        consumer.consume(1, timeout=1)
        assert {f"{each.host}:{each.port}" for each in brokers} == {link.address}
        assert kafka.end_offsets(KafkaAddress(link.address), "any") == {0: 0}
        with Ping("kafka", link.address) as ping:
            assert ping.measure()
            link.trouble(Toxic(kbps=256), SIDES)
            narrow = ping.measure(8000)
            assert narrow
            assert narrow.ms >= 250  # one side alone takes 258 ms
        consumer.close()
    finally:
        broker.stop()
        link.stop()
