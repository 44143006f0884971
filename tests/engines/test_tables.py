"""Counts in tables: which ways to write one survive a batch that runs again, or a restart of Flink."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.engines.test_own_servers import assert_no_secret
from tests.engines.test_runs import EXAMPLES, SHORT, check, run
from tests.engines.trial import SOON_UP, SPARK, in_batches_of
from tests.services.guarded import PASSWORD
from tests.services.postgresql_server import asking_for_passwords, did, login, up

KILL, FORGET = "kill@c3:batch=3", "checkpoint-delete-commit@offset>=40%"
UNANSWERED, LOST_REPLY = "table-kill-committed@offset>=20%", "postgresql-reset-reply@offset>=20%"
UPKEEP = "table-compact@offset>=20%; table-vacuum@now; table-writer(for=1s)@now"
# Engine, sink, a fault that makes a batch run again, and whether the table then holds it twice.
WAYS = (
    ("spark-postgresql", "upsert-add", KILL, True),
    ("spark-postgresql", "upsert-totals", KILL, False),
    ("spark-postgresql", "upsert-fenced", KILL, False),
    ("spark-delta", "append", KILL, True),
    ("spark-delta", "append-txn", KILL, False),
    ("spark-delta", "merge-add", KILL, True),
    ("spark-delta", "merge-totals", KILL, False),
    ("spark-delta", "native", FORGET, False),
    ("spark-iceberg", "append", KILL, True),
    ("spark-iceberg", "merge-totals", KILL, False),
    ("spark-iceberg", "native", FORGET, False),
    ("spark-parquet", "append", KILL, True),
    ("spark-parquet", "native", FORGET, False),
    ("spark-delta", "native", UNANSWERED, False),
    ("spark-delta", "append", UNANSWERED, True),
    ("spark-delta", "merge-totals", UPKEEP, False),
    ("spark-delta", "append-txn", "table-kill-written@offset>=20%", False),
    ("spark-iceberg", "native", UNANSWERED, False),
    ("spark-iceberg", "append", UNANSWERED, True),
    ("spark-parquet", "native", UNANSWERED, False),
    ("spark-parquet", "append", UNANSWERED, True),
    ("spark-postgresql", "append", LOST_REPLY, True),
    ("spark-postgresql", "upsert-fenced", LOST_REPLY, False),
    ("spark-postgresql", "upsert-totals", "postgresql-deadlock@offset>=20%", False),
)

pytestmark = pytest.mark.timeout(900)  # on first use packages and jars are fetched


@SPARK
def test_an_appended_batch_is_in_a_table_of_postgresql_twice(tmp_path, served):
    before = servers()
    asked = "--engine", "spark-postgresql", "--sink", "append", "--fault", KILL
    load = ("--duration", "12s", "--rate", "2000", *in_batches_of(4000), *SOON_UP, "--no-archive")
    answer = run(tmp_path, *load, *served, *asked)

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]
    assert f"exactly batch 3 once more, which was replayed after {KILL}" in answer["sentence"]
    assert check(answer, "non-monotonic")["outcome"] == "PASS", "it was polled during the run"
    assert servers() <= before, "nothing is left; a PostgreSQL of others may run on"


def servers() -> set[str]:
    """Return all servers of PostgreSQL, without their workers, and the folders of embedded ones."""
    found = psutil.process_iter(["pid", "name", "cmdline"])
    mains = {
        str(each.info["pid"]) for each in found if each.info["name"] == "postgres" and "-D" in each.info["cmdline"]
    }
    return mains | {str(path) for path in Path("/tmp").glob("streamgauge-postgresql-*")}


@pytest.mark.thorough
@pytest.mark.parametrize(("engine", "sink", "fault", "is_twice"), WAYS)
def test_each_way_to_write_a_table_keeps_what_it_claims(tmp_path, served, engine, sink, fault, is_twice):
    asked = "--engine", engine, "--sink", sink, "--fault", fault
    answer = run(tmp_path, *SHORT, *in_batches_of(10_000), *served, *asked)

    assert answer["verdict"] == ("FAIL" if is_twice else "PASS"), answer["sentence"]
    assert answer["words"] == (["duplicated"] if is_twice else [])


@pytest.mark.thorough
def test_what_a_promoted_replica_lacks_is_lost(tmp_path, served):
    asked = "--engine", "spark-postgresql", "--sink", "append", "--fault", "postgresql-promote(for=1s)@offset>=20%"
    answer = run(tmp_path, *SHORT, *in_batches_of(5_000), *served, *asked)

    assert answer["verdict"] == "FAIL", answer["sentence"]
    assert "lost" in answer["words"]
    assert check(answer, "fault")["outcome"] == "PASS"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("engine", "sink", "words"),
    [
        ("flink-postgresql", "append", ["duplicated"]),
        ("flink-postgresql", "upsert-final", []),
        ("flink-iceberg", "append", []),
        ("flink-iceberg", "append-final", []),
        ("flink-iceberg", "upsert-totals", []),
    ],
)
def test_each_way_of_flink_to_write_a_table_keeps_what_it_claims(tmp_path, served, engine, sink, words):
    answer = run(tmp_path, *SHORT, *served, "--engine", engine, "--sink", sink, "--fault", "kill@offset=50%")

    assert answer["verdict"] == ("FAIL" if words else "PASS"), answer["sentence"]
    assert answer["words"] == words


@pytest.mark.thorough
def test_totals_that_flink_writes_by_primary_key_go_back_by_a_checkpoint(tmp_path, served):
    asked = "--engine", "flink-postgresql", "--sink", "upsert-totals", "--conf", "execution.checkpointing.interval=10 s"
    answer = run(tmp_path, "--duration", "20s", "--rate", "2000", *served, *asked, "--fault", "kill@offset=50%")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["non-monotonic"]), answer["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize("store", ["postgresql", "delta", "iceberg"])
def test_a_job_of_a_users_own_that_appends_to_a_table_is_found_out(tmp_path, served, store):
    asked = "--engine", EXAMPLES / "tables" / store, "--fault", "checkpoint-delete-commit@offset>=40%"
    answer = run(tmp_path, *SHORT, *served, *asked)

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]


@pytest.mark.thorough
def test_a_password_of_postgresql_is_nowhere_in_a_run_s_files(tmp_path, served, monkeypatch):
    monkeypatch.setenv("TEST_PASSWORD", PASSWORD)
    role = f"CREATE ROLE keeper LOGIN PASSWORD '{PASSWORD}'"
    with up(tmp_path / "server") as server:
        did(server.address, role, "GRANT CREATE ON DATABASE postgres TO keeper")
        with asking_for_passwords(server, "keeper"):
            url = login(server, "keeper", "${env:TEST_PASSWORD}")
            asked = "--engine", "spark-postgresql", "--sink", "upsert-totals", "--fault", KILL, "--sql", url
            answer = run(tmp_path / "runs", *SHORT, *in_batches_of(10_000), *served, *asked)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert_no_secret(tmp_path / "runs")
