"""What the files of one run say against each other, and where nobody can tell."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.engines import fake
from harness.evidence import observed
from harness.evidence.ledger import Expectation, Ledger
from harness.judging import contradictions
from harness.judging.facts import facts_of
from harness.judging.recounted import Recounted, digest_of
from harness.judging.stored_run import LOG, StoredRun
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from harness.selftest.runs import fake_run

NOTHING = Ledger()
# Its own offsets are all that says how far it came.
BY_OFFSETS = replace(fake.MANIFEST, evidence="none")


def found(store: Store, log: Ledger = NOTHING) -> tuple[str, ...]:
    run = StoredRun(store)
    return contradictions.found(run, Expectation(run.observed.counts, run.observed.counts), log)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that is right; each test has a copy of it."""
    _, store = fake_run(tmp_path_factory.mktemp("right"), BY_OFFSETS)
    return store.path


@pytest.fixture
def store(made, tmp_path) -> Store:
    return Store.open(shutil.copytree(made, tmp_path / "run"))


def stopped_telling(store: Store) -> None:
    """Its progress ends half-way, and it is said to have drained."""
    progress = store.path / "progress.jsonl"
    progress.write_text("".join(progress.read_text().splitlines(keepends=True)[:10]))


def mixed(store: Store) -> None:
    """Its log is not in order of offsets."""
    path = store.path / LOG
    pq.write_table(pq.read_table(path)[::-1], path)


def beyond(store: Store) -> None:
    """It says to have done more than there is."""
    progress = store.path / "progress.jsonl"
    progress.write_text(progress.read_text() + '{"at":1750000002000,"batch":99,"rows":0,"offsets":{"0":99999}}\n')


@pytest.mark.parametrize("how", [stopped_telling, mixed, beyond])
def test_offsets_of_a_topic_that_was_made_anew_contradict_nothing(store, how):
    """They began from 0 once more: what was said of them before is of other records."""
    how(store)
    assert len(found(store)) == 1

    store.tell("anew", ends={"0": 100})

    assert found(store) == ()


def test_parts_of_the_log_in_the_wrong_order_are_a_contradiction(store, monkeypatch):
    """A long log is read in parts, and each of these may be in order."""
    log = pq.read_table(store.path / LOG)
    pq.write_table(pa.concat_tables([log[-100:], log[:-100]]).combine_chunks(), store.path / LOG)
    monkeypatch.setattr(observed, "ROWS_AT_ONCE", 100)

    assert [each for each in found(store) if "after a later record" in each]


@pytest.mark.parametrize("how", [stopped_telling, beyond])
def test_a_log_that_could_not_be_read_contradicts_nothing(store, how):
    how(store)
    (store.path / LOG).unlink()
    store.tell("unread", file=LOG, why="no broker")

    assert found(store) == ()


def test_an_engine_that_stood_still_by_its_offsets_drained_by_its_results(store):
    stopped_telling(store)
    store.tell("still", by="results")

    assert found(store) == ()


def test_what_is_there_and_is_said_to_be_unread_is_a_contradiction(store):
    store.tell("unread", file=LOG, why="no broker")

    assert found(store) == (f"the history records that {LOG} could not be written, but the file exists",)


def test_a_spec_that_was_edited_after_it_was_sealed_is_refused(store):
    contradictions.refuse_other_plan(StoredRun(store))
    spec = store.read_json("spec.json")
    store.write_json("spec.json", {**spec, "watermark_ms": spec["watermark_ms"] + 1})

    with pytest.raises(MissingEvidence, match="the sealed spec has other values of watermark_ms"):
        contradictions.refuse_other_plan(StoredRun(store))


def test_a_last_look_that_saw_another_count_is_a_contradiction(store):
    path = store.path / "samples.parquet"
    samples = pq.read_table(path)
    count = samples.column("count").to_numpy().copy()
    count[-1] += 1
    place = samples.column_names.index("count")
    pq.write_table(samples.set_column(place, "count", pa.array(count, samples.schema.field("count").type)), path)

    (why,) = found(store)
    assert "1 count of observed.parquet differ from the last poll in samples.parquet" in why


def test_records_that_were_lost_between_spark_and_the_log_are_a_contradiction(store):
    """The tasks of Spark compare what they read, and send it here."""
    run = StoredRun(store)
    log = facts_of(run).log_ledger
    right = Recounted.of(run.audit, digest_of(log, run.oracle))
    store.tell("recount", by="here", answer=None, why="no Spark")
    assert found(store, log) == ()
    store.tell("recount", by="spark", answer=right)
    assert found(store, log) == ()
    store.tell("recount", by="spark", answer=replace(right, found=right.found + 1, missing=1))
    store.tell("recount", by="spark", answer=replace(right, cells="another"))

    counts, cells = found(store, log)

    assert f"differ in found, missing: {right.found} and {right.found + 1} (found)" in counts
    assert "differ in cells" in cells
    assert facts_of(StoredRun(store)).contradictions == (counts, cells)
    assert any("no Spark" in note for note in facts_of(StoredRun(store)).notes)
