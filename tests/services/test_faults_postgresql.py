"""The postgresql family on a real server: each lands, with a proof that comes from the server, and is healed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any

import pytest

from harness.faults.postgresql import KINDS
from harness.faults.registry import create, parse
from harness.faults.run_at_poll import Field, Moment
from harness.model import EngineManifest, KafkaAddress, SinkClaim
from harness.services import postgresql
from harness.util.wait import wait_until
from tests.quick.cases import SPEC
from tests.quick.faults.test_faults import ScriptedEngine
from tests.services.test_postgresql import server  # noqa: F401  (a fixture)

MANIFEST = EngineManifest(
    "scripted", ("x",), ".", shipped=False, sinks=(SinkClaim("default", "keep", "none"),), results="sql:counts"
)
ENGINE: Any = ScriptedEngine()
TRIED = [
    ("postgresql-kill(for=100ms)", "ended with exit code -9, and nothing answers at its port; it was started again"),
    ("postgresql-pause(for=100ms)", "it is in state T; SIGCONT, and it answers"),
    ("postgresql-cut", "was ended in `SELECT pg_sleep"),
    ("postgresql-lock(for=100ms)", "the server lists the lock as granted; the lock is gone"),
]


def test_all_of_the_family_are_tried_here():
    assert {each.name for each in KINDS} == {text.partition("(")[0] for text, _ in TRIED}


@contextmanager
def working(url: str) -> Iterator[None]:
    """A job has a statement running."""
    import psycopg

    def work() -> None:
        with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SELECT pg_sleep(20)")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join(30)


@pytest.mark.parametrize(("text", "proof"), TRIED)
def test_each_lands_with_its_proof_and_is_healed(server, text, proof):  # noqa: F811
    fault = create(replace(SPEC, engine="scripted", sink="default", fault=parse(f"{text}@now")), MANIFEST)
    with postgresql.connect(server.address) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS counts (n bigint)")
        connection.execute("INSERT INTO counts VALUES (1)")
        (before,) = connection.execute("SELECT count(*) FROM counts").fetchone()
    redis: Any = None
    field = Field(None, None, KafkaAddress("nobody"), "topic", redis, [], lambda _: None, postgresql=server)

    def report():
        return fault.reports()[0]

    def is_over():
        fault.poll(Moment(time.time_ns() // 1_000_000, 1, ENGINE, None, 1000, field))
        return fault.over()

    with working(server.address.url) if "cut" in text else nullcontext():
        wait_until(is_over, deadline_s=60, what=f"{text} to be over", state=lambda: report().proof)

    assert (report().landed, report().healed) == (True, True)
    assert proof in report().proof
    with postgresql.connect(server.address) as connection:
        assert connection.execute("SELECT count(*) FROM counts").fetchone() == (before,), "what was committed is there"


@pytest.mark.parametrize(
    ("described", "spec", "why"),
    [
        ({"results": "redis:compact"}, {}, "writes its results elsewhere"),
        ({}, {"sql": "postgresql://host/db"}, "harms only an embedded one"),
        ({"results": "sql", "query": "SELECT 1"}, {}, "no table is known to lock"),
    ],
)
def test_a_run_that_can_t_have_one_says_why(described, spec, why):
    asked = replace(SPEC, engine="scripted", sink="default", fault=parse("postgresql-lock@now"), **spec)
    (need,) = create(asked, replace(MANIFEST, **described)).needs

    assert why in need
