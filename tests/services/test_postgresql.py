"""Results in a real PostgreSQL: ours, and one of others with rights, passwords and tables of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model import HarnessError, KafkaAddress, SqlAddress, UsageError
from harness.results.base import ResultLocation
from harness.results.redis_scan import HASH, NO_RESULT, Row, UnreadableError
from harness.results.sql import Sql
from harness.services import owners, postgresql
from harness.util.clock import Clock
from tests.quick.cases import ANY
from tests.services.postgresql_server import asking_for_passwords, did, login, up

SCHEMA = "streamgauge_test"
MANIFEST = replace(ANY, results="sql:counts", columns={"campaign": "id", "opens": "since", "count": "views"})
TABLE = "CREATE TABLE counts (id text, since timestamptz, views numeric)"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with up(tmp_path_factory.mktemp("postgresql")) as server:
        yield server


@pytest.fixture
def address(server):
    made = replace(server.address, schema=SCHEMA)
    postgresql.make_schema(made)
    yield made
    assert postgresql.drop_schema(made) == ""


def source(address: SqlAddress, **described) -> Sql:
    return Sql(
        ResultLocation(
            None,
            KafkaAddress(""),
            "",
            ["a", "b"],
            {},
            10_000,
            10_000,
            0,
            replace(MANIFEST, **described),
            Path(),
            Path(),
            Clock(),
            sql=address,
        )
    )


def test_a_table_is_empty_until_the_job_has_made_it_and_read_when_it_changes(address):
    with_sums = source(address, sums=True)
    assert with_sums.rows() == []
    did(address, TABLE, "INSERT INTO counts VALUES ('a', to_timestamp(10), 3), ('a', to_timestamp(10), 4)")
    first = with_sums.rows()
    assert first == [Row("a", "10000", "7", HASH)]
    assert with_sums.rows() is first, "nothing was read again"
    did(address, "UPDATE counts SET views = views + 1")

    assert with_sums.rows() == [Row("a", "10000", "9", HASH)]
    with_sums.close()


def test_a_change_that_is_not_committed_is_not_seen(address):
    did(address, TABLE)
    found = source(address)
    with postgresql.connect(address) as other, other.transaction():
        other.execute("INSERT INTO counts VALUES ('a', to_timestamp(10), 3)")
        assert found.rows() == []

    assert found.rows() == [Row("a", "10000", "3", HASH)]
    found.close()


def test_what_is_no_count_is_named(address):
    did(address, TABLE, "INSERT INTO counts VALUES ('a', to_timestamp(10), 1.5), (NULL, to_timestamp(10), 1)")
    did(address, "INSERT INTO counts VALUES ('b', to_timestamp(10), NULL), ('b', to_timestamp(10), 2)")
    texts = {False: ["1.5", "2", "NULL"], True: ["1.5", "NULL"]}

    for sums in (False, True):
        found = source(address, sums=sums)
        rows = found.rows()
        assert [row.kind for row in rows if not row.field] == [NO_RESULT]
        assert sorted(row.value for row in rows if row.field) == texts[sums]
        found.close()


def test_a_table_elsewhere_is_not_taken_for_the_runs_own(server, address):
    """Another run's, a user's in another schema, and one that this user may not read."""
    other = replace(server.address, schema=f"{SCHEMA}_other")
    postgresql.make_schema(other)
    for each in (server.address, other):
        did(each, TABLE, "INSERT INTO counts VALUES ('a', to_timestamp(10), 3)")
    found, others = source(address), source(other)
    assert found.rows() == []
    did(address, TABLE, "INSERT INTO counts VALUES ('b', to_timestamp(10), 4)")
    assert (found.rows(), others.rows()) == ([Row("b", "10000", "4", HASH)], [Row("a", "10000", "3", HASH)])
    did(server.address, "CREATE ROLE stranger LOGIN")
    as_stranger = source(replace(address, url=login(server, "stranger")), results="sql:public.counts")
    with pytest.raises(UnreadableError, match="permission denied"):
        as_stranger.rows()

    for each in (found, others, as_stranger):
        each.close()
    assert postgresql.drop_schema(other) == ""
    with postgresql.connect(server.address) as connection:
        assert connection.execute("SELECT count(*) FROM counts").fetchone() == (1,), "the user's own is untouched"
        connection.execute("DROP TABLE counts")


def test_a_query_may_return_the_cells(address):
    did(address, TABLE, "INSERT INTO counts VALUES ('a', to_timestamp(10), 3), ('a', to_timestamp(10), 4)")
    query = "SELECT id AS campaign, since AS opens, max(views) AS count FROM counts GROUP BY id, since"
    found = source(address, results="sql", query=query, columns={})

    assert found.rows() == [Row("a", "10000", "4", HASH)]
    found.close()


def test_missing_columns_and_wrong_queries_are_told(address):
    did(address, "CREATE TABLE counts (id text, start timestamptz, views bigint)")
    lacking, wrong = source(address), source(address, results="sql", query="SELEKT 1")
    with pytest.raises(UnreadableError, match=r"since.* are needed, and there are id, start, views"):
        lacking.rows()

    with pytest.raises(UnreadableError, match="syntax error"):
        wrong.rows()
    lacking.close()
    wrong.close()


def test_a_server_that_was_gone_is_read_again_when_it_is_back(server, address):
    did(address, TABLE, "INSERT INTO counts VALUES ('a', to_timestamp(10), 3)")
    found = source(address)
    assert len(found.rows()) == 1
    server.restart()
    with pytest.raises(HarnessError, match="PostgreSQL at "):
        found.rows()

    assert len(found.rows()) == 1, "what was committed is still there"
    found.close()


def test_a_job_finds_its_tables_by_their_names_alone(address):
    import psycopg

    did(address, TABLE)
    with psycopg.connect(postgresql.as_job_sees(address)["url"]) as connection:
        connection.execute("INSERT INTO counts VALUES ('a', to_timestamp(10), 3)")

    found = source(address)
    assert len(found.rows()) == 1
    found.close()


def test_the_address_of_jdbc_keeps_user_password_and_options():
    told = postgresql.as_job_sees(SqlAddress("postgresql://me:a%2Fb@host:1/shop?sslmode=require", "own"))

    assert told["jdbc"] == "jdbc:postgresql://host:1/shop?user=me&password=a%2Fb&sslmode=require&currentSchema=own"
    assert told["url"] == "postgresql://me:a%2Fb@host:1/shop?sslmode=require&options=-c%20search_path%3Down"


def test_a_user_who_may_not_make_a_schema_is_told_what_to_grant(server):
    did(server.address, "CREATE ROLE reader LOGIN")
    with pytest.raises(UsageError, match="GRANT CREATE ON DATABASE"):
        postgresql.external(login(server, "reader"), SCHEMA)


def test_a_wrong_password_is_told_without_it(server):
    did(server.address, "CREATE ROLE keeper LOGIN PASSWORD 'right'", "GRANT CREATE ON DATABASE postgres TO keeper")
    with asking_for_passwords(server, "keeper"):
        with pytest.raises(UsageError, match="authentication failed") as refused:
            postgresql.external(login(server, "keeper", "geheim"), SCHEMA)
        assert postgresql.external(login(server, "keeper", "right"), SCHEMA).external

    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("name", ["nobody:geheim", "nobody:gehe%zzim"])
def test_an_address_that_can_t_be_used_is_told_without_its_password(server, name):
    url = server.address.url.replace(f"{postgresql.USER}@", f"{name}@")
    with pytest.raises(UsageError) as refused:
        postgresql.external(url, SCHEMA)

    assert "gehe" not in str(refused.value)
    assert "PostgreSQL" in str(refused.value)


def test_what_a_killed_run_left_is_dropped_and_nothing_else(server, monkeypatch):
    left, other = (replace(server.address, schema=f"streamgauge_{name}") for name in ("left", "other"))
    dead = owners.owner_mark().partition(":")[2]
    monkeypatch.setattr(owners, "owner_mark", lambda: f"999999999:{dead}")
    postgresql.make_schema(left)
    monkeypatch.undo()
    postgresql.make_schema(other)
    did(server.address, "CREATE SCHEMA streamgauge_mine")
    postgresql.external(server.address.url, SCHEMA)

    with postgresql.connect(server.address) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'streamgauge%'").fetchall()
    assert sorted(name for (name,) in found) == ["streamgauge_mine", "streamgauge_other"]
    assert postgresql.drop_schema(other) == ""
