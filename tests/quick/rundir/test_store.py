"""Folders of runs and experiments: their names, and their order, whatever the clock on the wall says."""

from __future__ import annotations

import errno
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.cli import shell_completion
from harness.evidence import observed
from harness.evidence.observed import parts_of
from harness.experiments.folder import Folder
from harness.judging import digests, verdict_file
from harness.judging.stored_run import StoredRun
from harness.model import Backfill
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store, new_folder, runs
from reports import listing


@pytest.fixture
def at(monkeypatch):
    """Lets it be a moment, by the clock on the wall of a place."""

    def be(utc: str, zone: str = "UTC") -> None:
        moment_ns = round(datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp() * 1e9)
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        monkeypatch.setattr(time, "time_ns", lambda: moment_ns)

    yield be
    monkeypatch.undo()
    time.tzset()


def names(found: list[Any]) -> list[str]:
    return [each.path.name for each in found]


def test_a_name_is_utc_wherever_the_run_is_made(at, tmp_path):
    at("2026-11-22 18:42:43", "America/Los_Angeles")

    assert new_folder(tmp_path, "calm-fake").name == "20261122-184243-calm-fake"


@pytest.mark.parametrize(
    "moments",
    [
        [("2026-07-01 12:00:00", "Asia/Tokyo"), ("2026-07-01 12:10:00", "America/Los_Angeles")],
        [("2026-10-25 00:50:00", "Europe/Berlin"), ("2026-10-25 01:10:00", "Europe/Berlin")],  # 02:50, and 02:10 again
    ],
    ids=["two zones", "the hour that is there twice"],
)
def test_a_later_run_has_the_later_name(moments, at, tmp_path):
    made = []
    for moment in moments:
        at(*moment)
        made.append(Store.create(tmp_path, "calm-fake").path.name)

    assert sorted(made) == made
    assert names(runs(tmp_path)) == made


def test_the_order_is_what_the_folders_recorded_and_not_their_names(at, tmp_path, monkeypatch):
    """As an older version named them, in local time; or as somebody renamed them."""
    monkeypatch.chdir(tmp_path)
    for minute, name in enumerate(("20260702-090000", "20260701-230000", "last")):
        at(f"2026-07-01 12:{minute:02}:00")
        Store.create(Path("runs"), "calm").path.rename(f"runs/{name}")
        experiment = Folder.create(Path("experiments"), "smoke")
        experiment.save("chaos")
        experiment.path.rename(f"experiments/{name}")

    in_order = ["20260702-090000", "20260701-230000", "last"]

    assert names(runs(Path("runs"))) == in_order
    assert names(listing.runs(Path("runs"))) == in_order
    assert names(listing.experiments(Path("experiments"))) == in_order
    assert shell_completion.run(None, "") == [f"runs/{name}" for name in in_order]  # type: ignore[arg-type]
    assert shell_completion.experiment(None, "") == [f"experiments/{name}" for name in in_order]  # type: ignore[arg-type]


def test_runs_of_one_second_keep_their_order(at, tmp_path):
    made = []
    for tenth in range(12):
        at(f"2026-07-01 12:00:00.{tenth:02}")
        made.append(Store.create(tmp_path, "calm").path.name)

    assert made[1].endswith("-calm-2")
    assert names(runs(tmp_path)) == made  # by name, -10 would come before -2


@pytest.mark.parametrize(
    "history", [b"", b"{", b"[1]\n7\n", b'{"at_ms": "soon"}\n', b'{"at_ms": 1e30}', b'{"at_ms": %d}' % 10**30]
)
def test_what_recorded_nothing_is_the_oldest(history, at, tmp_path):
    at("2026-07-01 12:00:00")
    known, unknown = Store.create(tmp_path, "a"), Store.create(tmp_path, "z")
    (unknown.path / "history.jsonl").write_bytes(history)

    assert names(runs(tmp_path)) == [unknown.path.name, known.path.name]


def test_when_an_experiment_was_begun_is_told_in_utc(at, tmp_path):
    at("2026-07-01 12:00:00", "Asia/Tokyo")
    folder = Folder.create(tmp_path, "smoke")

    assert folder.begun == "2026-07-01 12:00 UTC"
    (folder.path / "history.jsonl").unlink()
    assert folder.begun == ""


LOG = "log.parquet"
NAMES = ("partition", "offset", "event_id", "kind", "event_time_ms")


def parts(*lengths: int) -> list[dict[str, Any]]:
    return [{name: np.arange(length) + number for name in NAMES} for number, length in enumerate(lengths)]


@pytest.mark.parametrize("lengths", [(0,), (0, 5, 0, 3), (0, 300_000, 1, 270_000)])
def test_a_table_that_was_written_in_parts_is_read_whole_and_in_parts(lengths, tmp_path, monkeypatch):
    monkeypatch.setattr(observed, "ROWS_AT_ONCE", 100_000)
    store, written = Store.create(tmp_path, "run"), parts(*lengths)
    store.write_parts(LOG, iter(written))
    whole = {name: np.concatenate([part[name] for part in written]) for name in NAMES}
    log = store.open_table(LOG)
    read = [*parts_of(log.select(NAMES[:2]))]

    assert max(len(part["offset"]) for part in read) <= 100_000
    assert [*read[0]] == [*NAMES[:2]]
    assert (np.concatenate([part["offset"] for part in read]) == whole["offset"]).all()
    assert (log.column("kind").to_numpy() == whole["kind"]).all()
    assert store.read_table(LOG).equals(pa.table(whole))


@pytest.mark.parametrize("length", [10, 600_000])
def test_a_group_of_rows_that_could_not_be_written_is_no_table(length, tmp_path, monkeypatch):
    """It is written beside what comes next; the last one has nothing behind it."""

    def refused(*_: object) -> None:
        raise OSError(errno.EIO, "planted")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", refused)
    store = Store.create(tmp_path, "run")
    with pytest.raises(OSError, match="planted"):
        store.write_parts(LOG, iter(parts(length)))
    assert not [each.name for each in store.path.iterdir() if LOG in each.name]


def test_what_is_wrong_with_a_table_is_said_when_it_is_met(tmp_path):
    store = Store.create(tmp_path, "run")
    good, bad = parts(300_000, 300_000)
    bad["kind"] = pa.array([None, *range(299_999)])
    store.write_parts(LOG, iter([good, bad]))
    read = parts_of(store.open_table(LOG))

    assert len(next(read)["kind"]) == 0
    with pytest.raises(MissingEvidence, match=r"log\.parquet is .*: column 'kind' is not all of"):
        sum(len(part["kind"]) for part in read)
    content = (store.path / LOG).read_bytes()
    (store.path / LOG).write_bytes(content[:4] + bytes(996) + content[1000:])
    with pytest.raises(MissingEvidence, match=r"log\.parquet is torn"):
        list(parts_of(store.open_table(LOG)))
    (store.path / LOG).write_bytes(content[:1000])
    with pytest.raises(MissingEvidence, match=r"log\.parquet is torn"):
        store.open_table(LOG)


def test_a_line_is_not_glued_to_one_that_a_kill_tore(tmp_path):
    store = Store.create(tmp_path, "run")
    with (store.path / "history.jsonl").open("ab") as file:
        file.write(b'{"at_ms":1,"kind":"lo')
    store.tell("ended early", why="killed")

    assert [line["why"] for line in store.history("ended early")] == ["killed"]


def test_a_file_that_was_edited_is_named_also_if_its_digest_was_computed_anew(tmp_path):
    store = Store.create(tmp_path, "run")
    store.write_json("spec.json", {"late": 0})
    files = digests.of_files(store)
    store.tell(digests.CLOSED, files=files)
    digests.write(store, files)
    assert digests.compare(store).changed == ()
    store.write_json("spec.json", {"late": 1})
    digests.write(store, digests.of_files(store))

    assert digests.compare(store).changed == (
        "spec.json was edited",
        "digests.json was edited: it has other digests than history.jsonl",
    )


def test_digests_that_can_t_be_read_are_a_change(tmp_path):
    store = Store.create(tmp_path, "run")
    (store.path / digests.FILE).write_text("{")

    (said,) = digests.compare(store).changed
    assert digests.FILE in said
    assert digests.compare(store).lack == ""


def test_the_restarts_of_an_engine_are_all_of_its_starts_but_the_first(tmp_path):
    run: Any = SimpleNamespace(store=Store.create(tmp_path, "run"))
    read: Any = StoredRun._restarts
    for at_ms in (1000, 2000, 3000):
        run.store.tell("started", at_ms=at_ms)
        found = [restart.at_ms for restart in read.func(run)]
        assert found == [2000, 3000][: at_ms // 1000 - 1]


def test_a_batch_job_that_counted_all_again_is_read_from_the_history(tmp_path):
    run: Any = SimpleNamespace(store=Store.create(tmp_path, "again"))
    read: Any = StoredRun.backfill
    assert read.func(run) is None
    told = Backfill("spark", "", 1000, 2.0, 3.0)
    run.store.tell("backfill", told=asdict(told))

    assert read.func(run) == told


def test_a_run_whose_process_was_killed_before_it_had_digests_says_so(tmp_path):
    store = Store.create(tmp_path, "run")
    (store.path / "history.jsonl").unlink(missing_ok=True)
    assert digests.aborted(store) == ""  # an old run, which kept no history
    store.tell("epoch", at_ms=1000)

    assert digests.aborted(store).startswith("its process was killed")


def test_a_verdict_that_the_history_does_not_name_was_edited(tmp_path):
    store = Store.create(tmp_path, "run")
    assert verdict_file.contradiction(store) == ""
    store.write_json(verdict_file.FILE, {"outcome": "PASS"})

    assert "it is not the last verdict that history.jsonl names" in verdict_file.contradiction(store)
