"""The redis family on a real server: each lands, with a proof that comes from the server, and is healed."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from harness.faults.redis import KINDS
from harness.faults.registry import create, parse
from harness.faults.run_at_poll import Field, Moment
from harness.model import KafkaAddress
from harness.services.redis import EmbeddedRedis
from harness.util.wait import wait_until
from tests.quick.cases import SCRIPTED, SPEC
from tests.quick.faults.test_faults import ScriptedEngine

MANIFEST = SCRIPTED
ENGINE: Any = ScriptedEngine()
CAMPAIGNS = [f"campaign-{number}" for number in range(8)]
ALL = {(campaign, "0"): "5" for campaign in CAMPAIGNS}
LATER = {**ALL, ("campaign-0", "0"): "6"}


@pytest.fixture
def server(tmp_path):
    server = EmbeddedRedis(tmp_path)
    server.start()
    yield server
    server.stop()


def put_back(client):
    client.set("ad", "campaign-0")


def results(client):
    return {(name, field): count for name in CAMPAIGNS for field, count in client.hgetall(name).items()}


TRIED = [
    ("redis-kill(for=100ms)", {}, "ended with exit code -9, and nothing answers at its port; its run_id changed from "),
    ("redis-kill(for=100ms, persistence=rdb, age=300ms)", ALL, "save is there, data from its end is gone"),
    (
        "redis-kill(for=100ms, persistence=aof, age=300ms)",
        LATER,
        "save is there, data from its end is ",
    ),
    (
        "redis-restart-empty(for=100ms)",
        {},
        "ended with exit code 0, and nothing answers at its port; its run_id changed from ",
    ),
    ("redis-flush", {}, "of 9 keys none was left"),
    (
        "redis-pause(for=100ms)",
        LATER,
        "a test write was not answered within 0.5 s, and PING was; a test write",
    ),
    ("redis-freeze(for=100ms)", LATER, "the process is stopped, and PING was not answered within 0.5 s"),
    ("redis-full(for=100ms)", LATER, "a test write was refused: command not allowed when used memory > 'maxmemory'"),
    ("redis-read-only(for=100ms)", LATER, "a test write was refused: NOREPLICAS"),
    ("redis-client-kill", LATER, "gone from CLIENT LIST"),
    ("redis-wrong-type(for=100ms)", LATER, "key campaign-0 returns: WRONGTYPE"),
    ("redis-evict(campaigns=3)", dict(list(ALL.items())[3:]), "3 counts of 3 campaigns are gone: expired_keys went"),
]


def test_all_of_the_family_are_tried_here():
    assert {each.name for each in KINDS} == {text.partition("(")[0] for text, _, _ in TRIED}


@pytest.mark.parametrize(("text", "left", "proof"), TRIED)
def test_each_lands_with_its_proof_and_is_healed(server, text, left, proof):
    fault = create(replace(SPEC, engine="scripted", sink="default", fault=parse(f"{text}@now")), MANIFEST)

    def report():
        return fault.reports()[0]

    with server.client() as client, server.client() as engine:
        field = Field(None, server, KafkaAddress("nobody"), "topic", client, CAMPAIGNS, put_back)
        put_back(client)
        for name in CAMPAIGNS:
            client.hset(name, "0", "5")
        engine.client_setname("")

        def is_over():
            fault.poll(Moment(time.time_ns() // 1_000_000, 1, ENGINE, None, 1000, field))
            if report().at_ms and not report().landed and "save" in proof:
                client.hset("campaign-0", "0", "6")  # after the snapshot was begun
            return fault.over()

        wait_until(is_over, deadline_s=60, what=f"{text} to be over", state=lambda: report().proof)
        if left == LATER and "kill(" not in text:
            engine.hset("campaign-0", "0", "6")  # a client that connects again can go on

        assert (report().landed, report().healed) == (True, True)
        assert proof in report().proof
        assert results(client) == left
        assert client.get("ad") == "campaign-0"
        assert client.keys("streamgauge:*") == []
