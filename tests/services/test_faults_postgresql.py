"""The postgresql family on a real server: each lands, with a proof that comes from the server, and is healed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.faults.registry import FAULTS, create, parse
from harness.faults.run_at_poll import Field, Moment
from harness.model import FaultReport, KafkaAddress
from harness.services import postgresql, small_disk
from harness.services.link import Link
from harness.services.postgresql import EmbeddedPostgres
from harness.util.wait import wait_until
from tests.quick.cases import SCRIPTED, SPEC
from tests.quick.faults.test_faults import ScriptedEngine
from tests.services.test_postgresql import server  # noqa: F401  (a fixture)

MANIFEST = replace(SCRIPTED, results="sql:counts")
ENGINE: Any = ScriptedEngine()
SLEEP = "SELECT pg_sleep(1)"
UPSERT = "INSERT INTO counts VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = counts.n + 1"
TRIED = [
    ("postgresql-kill(for=100ms)", "", "exit code -9, and nothing answers at its port; it was started again"),
    ("postgresql-pause(for=100ms)", "", "it is in state T; SIGCONT, and it answers"),
    ("postgresql-cut", SLEEP, "was ended in `"),
    ("postgresql-lock(for=100ms)", "", "the server lists the lock as granted; the lock is gone"),
    ("postgresql-deadlock", UPSERT, "and our LOCK TABLE was granted: the server ended the job's transaction"),
    (
        "postgresql-reset-reply",
        UPSERT,
        "confirmed 1 COMMIT, whose reply was dropped, in 1 connection; the newest rows of",
    ),
    ("postgresql-promote(for=100ms)", UPSERT, "are gone; it answers"),
]
ON_A_DISK = "postgresql-disk-full(for=100ms)"


def test_all_of_the_family_are_tried_here():
    tried = [ON_A_DISK, *(text for text, _, _ in TRIED)]

    assert {name for name, each in FAULTS.items() if each.family == "postgresql"} == {
        text.partition("(")[0] for text in tried
    }


@contextmanager
def working(url: str, statement: str) -> Iterator[None]:
    """A job runs this statement again and again, in a transaction each, and connects again when it fails."""
    import psycopg

    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            with suppress(psycopg.Error), psycopg.connect(url) as connection:
                while not over.is_set():
                    connection.execute(statement)
                    connection.commit()

    thread = threading.Thread(target=work, daemon=True)
    if statement:
        thread.start()
    yield
    over.set()
    if statement:
        thread.join(30)


@pytest.fixture
def link(server, tmp_path):  # noqa: F811
    found = Link("postgresql", tmp_path)
    found.start()
    found.lead_to(place_of(server.address.url))
    yield found
    found.stop()


def place_of(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def strike(server: EmbeddedPostgres, text: str, **field: Any) -> FaultReport:  # noqa: F811
    asked = replace(SPEC, engine="scripted", sink="default", fault=parse(f"{text}@now"))
    fault = create(asked, MANIFEST)
    redis: Any = None
    around = Field(None, None, KafkaAddress("nobody"), "topic", redis, [], lambda _: None, postgresql=server, **field)

    def is_over() -> bool:
        fault.poll(Moment(time.time_ns() // 1_000_000, 1, ENGINE, None, 1000, around))
        return fault.over()

    wait_until(is_over, deadline_s=120, what=f"{text} to be over", state=lambda: fault.reports()[0].proof)
    return fault.reports()[0]


@pytest.mark.parametrize(("text", "statement", "proof"), TRIED)
def test_each_lands_with_its_proof_and_is_healed(server, link, text, statement, proof):  # noqa: F811
    with postgresql.connect(server.address) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS counts (id int PRIMARY KEY, n bigint)")
        connection.execute("INSERT INTO counts VALUES (1, 0), (2, 7) ON CONFLICT DO NOTHING")

    with working(server.address.url.replace(place_of(server.address.url), link.address), statement):
        report = strike(server, text, links={"postgresql": link})

    assert (report.landed, report.healed) == (True, True), report.proof
    assert proof in report.proof
    with postgresql.connect(server.address) as connection:
        assert connection.execute("SELECT n FROM counts WHERE id = 2").fetchone() == (7,), "what was committed is there"


@pytest.mark.skipif(bool(small_disk.impossible()), reason="no disk can be mounted here")
def test_a_full_disk_refuses_writes_and_is_healed(server, tmp_path):  # noqa: F811
    tight = EmbeddedPostgres(tmp_path, "public", on_small_disk=True)
    tight.start()
    try:
        report = strike(tight, ON_A_DISK)
        assert (report.landed, report.healed) == (True, True), report.proof
        assert "a test write was refused: could not extend file" in report.proof
        assert "a test write is accepted again" in report.proof
        assert "PostgreSQL is not on a disk of its own" in strike(server, ON_A_DISK).proof
    finally:
        tight.stop()


def test_a_deadlock_needs_rows_that_a_write_can_wait_for(server):  # noqa: F811
    with postgresql.connect(server.address) as connection:
        connection.execute("DROP TABLE IF EXISTS counts; CREATE TABLE counts (n bigint)")
    assert "counts has no unique index" in strike(server, "postgresql-deadlock").proof
    with postgresql.connect(server.address) as connection:
        connection.execute("DROP TABLE counts; CREATE TABLE counts (n bigint PRIMARY KEY)")
    assert "counts has no rows yet" in strike(server, "postgresql-deadlock").proof


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
