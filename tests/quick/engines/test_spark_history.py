"""A checkpoint of Spark's that goes over from files to Kafka: by hand, as Spark makes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.engines.spark import checkpoint, forgotten
from harness.evidence.observed import LogEvents
from harness.judging.lateness import batch_of
from harness.model import Batch, BatchLog, FileSeam
from tests.quick.engines.test_checkpoint import offsets_file
from workloads.jobs import spark_history

# The lots of two partitions' files, and where they end.
LOTS = [["0-000-010.json", "1-000-004.json"], ["0-010-020.json.gz"], ["1-004-030.json"]]
ENDS = [{0: 10, 1: 4}, {0: 20, 1: 4}, {0: 20, 1: 30}]
BEGINS = {"topic": {"0": 20, "1": 30}}


def lot(names):
    lines = [json.dumps({"path": f"file:///a/2025-06-15/{name}", "timestamp": 1, "batchId": 0}) for name in names]
    return "\n".join(["v1", *lines])


def plan(watermark_ms, *sources):
    head = offsets_file(watermark_ms, {}).split("\n")[:2]
    return "\n".join([*head, *map(json.dumps, sources)])


def of_files(folder: Path) -> Path:
    """Each lot is a batch."""
    for name in ("offsets", "commits", "sources/0"):
        (folder / name).mkdir(parents=True)
    for number, names in enumerate(LOTS):
        (folder / "sources/0" / str(number)).write_text(lot(names))
        (folder / "offsets" / str(number)).write_text(plan(100 * number, {"logOffset": number}))
        (folder / "offsets" / f".{number}.crc").touch()
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def batch(folder: Path, number: int, text: str) -> None:
    (folder / "offsets" / str(number)).write_text(text)
    (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_the_plans_of_files_say_how_far_they_reach(tmp_path):
    folder = of_files(tmp_path)
    log = checkpoint.read(folder, drops_late=True)

    assert log.complete, log.note
    assert [dict(each.files) for each in log.batches] == ENDS
    assert [dict(each.ends) for each in log.batches] == [{}, {}, {}]
    assert [each.drop_watermark_ms for each in log.batches] == [0, 0, 100]
    assert checkpoint.newest_committed(folder) == (2, ENDS[2])
    assert checkpoint.restart_offsets(folder) == ((20, 30), (20, 30))


def test_it_goes_over_to_kafka_and_all_else_goes_on(tmp_path):
    folder = of_files(tmp_path)
    assert not spark_history.is_handed_over(folder)
    spark_history.hand_over(folder, BEGINS)
    batch(folder, 3, plan(300, {"topic": {"0": 25, "1": 30}}))
    log = checkpoint.read(folder, drops_late=True)

    assert spark_history.is_handed_over(folder)
    assert not (folder / "offsets" / ".2.crc").exists(), "it was that of another plan"
    assert not (folder / "sources/0").exists()
    assert log.complete, log.note
    assert [dict(each.ends) for each in log.batches] == [{}, {}, {0: 20, 1: 30}, {0: 25, 1: 30}]
    assert [dict(each.files) for each in log.batches] == [*ENDS, ENDS[-1]]
    assert [each.drop_watermark_ms for each in log.batches] == [0, 0, 100, 200]
    assert checkpoint.newest_committed(folder) == (3, {0: 25, 1: 30})


@pytest.mark.parametrize("died", ["before", "in the middle of a copy", "behind the copy", "behind the plan", "at last"])
def test_it_can_be_done_again_wherever_it_broke_off(tmp_path, died):
    whole, folder = of_files(tmp_path / "whole"), of_files(tmp_path / "folder")
    spark_history.hand_over(whole, BEGINS)
    if died != "before":
        half = folder / "sources" / (".files.part" if died == "in the middle of a copy" else "files")
        shutil.copytree(folder / "sources/0", half)
    if died in ("behind the plan", "at last"):
        shutil.copy(whole / "offsets/2", folder / "offsets/2")
    if died == "at last":
        shutil.rmtree(folder / "sources/0")
    spark_history.hand_over(folder, BEGINS)

    assert checkpoint.read(folder, drops_late=True) == checkpoint.read(whole, drops_late=True)
    assert not (folder / "sources/0").exists()


def test_a_job_that_dies_before_its_new_plan_was_copied_has_forgotten_no_batch(tmp_path):
    live, copies = of_files(tmp_path / "live"), tmp_path / "copies"
    checkpoint.collect(live, copies)
    spark_history.hand_over(live, BEGINS)
    forgotten.set_apart(live, copies, 2)
    checkpoint.collect(live, copies)

    assert forgotten.earlier_runs(copies, drops_late=True, allow_multiple=True) == ()
    assert checkpoint.read(copies, drops_late=True) == checkpoint.read(live, drops_late=True)


def test_a_plan_that_differs_in_more_than_its_source_is_another_one(tmp_path):
    live, copies = of_files(tmp_path / "live"), tmp_path / "copies"
    checkpoint.collect(live, copies)
    batch(live, 2, plan(999, BEGINS))
    forgotten.set_apart(live, copies, 2)
    checkpoint.collect(live, copies)

    assert [each.batch for each in forgotten.earlier_runs(copies, drops_late=True, allow_multiple=True)] == [2]


def test_without_a_plan_there_is_nothing_to_go_on_from(tmp_path):
    with pytest.raises(SystemExit, match="no plan of a batch to continue from"):
        spark_history.hand_over(tmp_path, BEGINS)


def test_of_both_at_once_kafka_is_not_done_before_the_files(tmp_path):
    folder = of_files(tmp_path)
    (folder / "sources/1").mkdir()
    (folder / "sources/1/0").write_bytes(b"\0v1\n" + json.dumps(BEGINS).encode())
    for number in range(3):
        batch(folder, number, plan(100 * number, {"logOffset": number}, {"topic": {"0": 50 + number, "1": 30}}))
    done = [checkpoint.parse(folder / "offsets" / str(number)).done for number in range(3)]

    assert done == [{0: 10, 1: 4}, {0: 51, 1: 4}, {0: 52, 1: 30}]
    assert [dict(each.files) for each in checkpoint.read(folder, drops_late=True).batches] == ENDS


def test_a_lot_that_is_missing_makes_a_plan_unusable(tmp_path):
    folder = of_files(tmp_path)
    (folder / "sources/0/1").unlink()
    log = checkpoint.read(folder, drops_late=True)

    assert not log.complete
    assert "offsets/1, 2 can't be used" in log.note


def test_an_event_is_of_the_batch_that_took_it_from_where_it_lies():
    offsets = np.array([9, 10, 19, 20, 24])
    partition = np.zeros(len(offsets), dtype=np.int16)
    events = LogEvents(partition, offsets, offsets, time_ms=offsets * 1000, cell=offsets, closes_ms=offsets)
    batches = (
        Batch(0, {0: 25}, 0, files={0: 10}),
        Batch(1, {0: 26}, 0, files={0: 20}),
        Batch(2, {0: 27}, 0),  # it says nothing of files: nothing more was taken from there
    )

    def found(seam):
        return batch_of(events, BatchLog(batches, drops_late=True, complete=True, seam=seam)).tolist()

    assert found(FileSeam((20,), (15,))) == [0, 1, 1, 0, 0]
    assert found(FileSeam((20,), (10,), until_ms=15_000)) == [0, 1, 0, 0, 0], "what lies in both counts from one"
    assert found(None) == [0, 0, 0, 0, 0]
