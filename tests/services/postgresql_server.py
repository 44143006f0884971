"""A real PostgreSQL for tests, also one that asks for passwords."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.engines import environments
from harness.engines.manifest import load
from harness.model import SqlAddress
from harness.services import postgresql
from harness.services.postgresql import EmbeddedPostgres
from harness.util.wait import wait_until


@contextmanager
def up(folder: Path) -> Iterator[EmbeddedPostgres]:
    folders = environments.prepare(load("spark-postgresql"), print).packages
    sys.path += map(str, folders)
    server = EmbeddedPostgres(folder, "public")
    server.start()
    try:
        yield server
    finally:
        server.stop()
        for each in folders:
            sys.path.remove(str(each))


def did(address: SqlAddress, *statements: str) -> None:
    with postgresql.connect(address) as connection:
        for each in statements:
            connection.execute(each)


def login(server: EmbeddedPostgres, name: str, password: str = "") -> str:
    secret = f":{password}" if password else ""
    return server.address.url.replace(f"{postgresql.USER}@", f"{name}{secret}@")


@contextmanager
def asking_for_passwords(server: EmbeddedPostgres, user: str) -> Iterator[None]:
    rules = Path(str(server._home)) / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host all {user} 127.0.0.1/32 scram-sha-256\n{before}")
    did(server.address, "SELECT pg_reload_conf()")
    wait_until(lambda: not may_log_in(server, user), deadline_s=20, what=f"{user} to need a password")
    try:
        yield
    finally:
        rules.write_text(before)
        did(server.address, "SELECT pg_reload_conf()")


def may_log_in(server: EmbeddedPostgres, user: str) -> bool:
    import psycopg

    try:
        did(replace(server.address, url=login(server, user)), "SELECT 1")
    except psycopg.OperationalError:
        return False
    return True
