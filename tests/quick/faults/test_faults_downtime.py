"""What is done while an engine is down: each deed lands only with its proof, and is undone after a loud stop."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.engines.base import Member, Reached
from harness.engines.complaint import most_telling
from harness.engines.process import ProcessEngine
from harness.engines.spark.checkpoint import numbers
from harness.faults import checkpoint, registry
from harness.faults.base import Fault
from harness.faults.registry import FAULTS, parse
from harness.faults.run_at_poll import Moment
from harness.judging.lateness import watermarks_ms
from harness.model import EngineManifest, LastWords, Progress, SinkClaim
from harness.services import small_disk
from tests.quick.cases import SPEC, placed
from tests.quick.engines.test_checkpoint import make, offsets_file
from tests.quick.faults.test_faults import TOTAL, ScriptedEngine, report_of

CLAIM = SinkClaim("absolute", "drop", "exactly-once", crash_points=("c1", "c2", "c3", "c4"))
FENCED = SinkClaim("fenced", "keep", "exactly-once", crash_points=("c1", "c2", "c3", "c4"))
SPARK = EngineManifest("spark", ("x",), ".", True, (CLAIM, FENCED), evidence="spark-checkpoint", ivy="spark")
FAILED = (
    "java.lang.IllegalStateException: nothing there",
    "\tat org.apache.Job.run(Job.java)",
    "Caused by: java.io.EOFException: cut",
    *["\tat java.util.Frame.of(Frame.java)"] * 200,
)


@dataclass
class Downed(ScriptedEngine):
    """An engine whose checkpoint is a folder of the test, and whose run config is a file of it."""

    manifest: EngineManifest = SPARK
    checkpoint: Path | None = None
    config_path: Path | None = None
    starts: int = 1
    code: int | None = None
    changes: list[Mapping[str, Any]] = field(default_factory=list)

    def progress(self) -> Progress | None:
        return self.newest

    def collect(self) -> None:
        self.story.append("collect")

    def restart(self) -> None:
        super().restart()
        self.starts += 1

    def exit_code(self) -> int | None:
        return self.code

    def last_words(self) -> LastWords:
        return most_telling([("logs/engine-2.log", FAILED)])

    def change(self, changed: Mapping[str, Any]) -> None:
        self.changes.append(changed)
        if self.config_path:
            self.config_path.write_text(json.dumps(changed))

    def members(self) -> tuple[Member, ...]:
        return (Member(7, 1, ("python3", "job.py", str(self.config_path)), leads=True),) if self.running else ()

    def planned(self, batch: int) -> bytes | None:
        path = self.checkpoint / "offsets" / str(batch) if self.checkpoint else None
        return path.read_bytes() if path and path.exists() else None


def create(text: str, manifest: EngineManifest = SPARK, **changes) -> Fault:
    return registry.create(replace(SPEC, fault=parse(text), engine="spark", **changes), manifest)


def told(done: int) -> Progress:
    return Progress(1, done // 10 - 1, 1, {0: done})


def at(fault: Fault, engine: Downed, now_ms: int = 100, disk: object = None) -> None:
    fault.poll(Moment(now_ms, 1, engine, engine.newest, TOTAL, SimpleNamespace(disk=disk)))  # type: ignore[arg-type]


def with_state(folder: Path, batches: int) -> Path:
    """Batches that each have data, the last one planned and not committed, with hidden checksums and RocksDB state."""
    make(folder, [0] * batches, commits=batches - 1)
    for path in [each for each in folder.rglob("*") if each.is_file()]:
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    tables = folder / "state" / "0" / "1" / "SSTs"
    tables.mkdir(parents=True)
    for version in range(1, batches + 1):
        for path in (tables / f"{version:06}.sst", tables.parent / f"{version}.zip"):
            path.write_bytes(f"version {version}".encode() * 100)
            path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    return folder


@pytest.fixture
def spark(tmp_path) -> Downed:
    return Downed(checkpoint=with_state(tmp_path / "cp", 5), config_path=tmp_path / "engine.json", newest=told(40))


def standing(spark: Downed, batch: int = 4, point: str = "c1") -> Downed:
    spark.at = Reached(point, batch, 1)
    return spark


def struck(text: str, spark: Downed, **changes) -> Fault:
    """Up to the restart: held, killed there, edited, started again."""
    fault = create(text, **changes)
    at(fault, spark)
    assert spark.story[-1] == "arm c1 0"
    at(fault, standing(spark))
    assert spark.story[-4:] == ["kill", "collect", "disarm", "restart"]
    return fault


def left(spark: Downed) -> tuple[list[int], list[int]]:
    assert spark.checkpoint
    return numbers(spark.checkpoint / "offsets"), numbers(spark.checkpoint / "commits")


def test_a_deleted_commit_is_that_of_the_last_batch_with_data_and_the_replay_is_proved_by_its_plan(spark):
    fault = struck("checkpoint-delete-commit@now", spark)
    assert left(spark) == ([0, 1, 2, 3], [0, 1, 2])
    assert report_of(fault).landed

    at(fault, spark, 200)
    assert not fault.settled()
    spark.newest = told(50)
    at(fault, spark, 300)
    at(fault, spark, 400)

    report = report_of(fault)
    assert (fault.over(), report.healed, report.batch, report.replayed) == (True, True, 3, True)
    assert "gone, each with its .crc: offsets/4, commits/3; offsets/ ends at 3, commits/ ends at 2" in report.proof
    assert "batch 3 was run again, by the very same plan" in report.proof
    assert not list(spark.checkpoint.parent.glob("*.kept"))


def test_batches_without_data_are_passed_over(spark):
    (spark.checkpoint / "offsets" / "3").write_text(offsets_file(0, {0: 30}))  # as batch 2

    struck("checkpoint-delete-commit@now", spark)

    assert left(spark) == ([0, 1, 2], [0, 1])


def test_hidden_checksums_go_with_their_files(spark):
    struck("checkpoint-delete-offsets@now", spark)

    assert left(spark) == ([0, 1, 2], [0, 1, 2])
    assert not (spark.checkpoint / "offsets" / ".3.crc").exists()
    assert (spark.checkpoint / "offsets" / ".2.crc").exists()


def test_a_batch_that_is_planned_anew_is_told_with_what_it_has_more(spark):
    fault = struck("checkpoint-delete-offsets@now", spark)
    (spark.checkpoint / "offsets" / "3").write_text(offsets_file(0, {0: 900}))
    spark.newest = told(900)
    at(fault, spark, 300)
    at(fault, spark, 400)

    assert report_of(fault).replayed is None
    assert "again, with a new plan, up to 900 records instead of 40" in report_of(fault).proof


def test_at_a_crash_point_it_is_the_batch_that_was_being_written(spark):
    fault = create("checkpoint-delete-offsets@c3:batch=4")
    at(fault, spark)
    assert spark.story == ["arm c3 4"]
    at(fault, standing(spark, point="c3"))

    assert left(spark) == ([0, 1, 2, 3], [0, 1, 2, 3])
    assert report_of(fault).batch == 4
    assert "at c3 of batch 4: killed" in report_of(fault).proof


@pytest.mark.parametrize(
    ("fault", "gone"),
    [("checkpoint-gap", "offsets/3"), ("checkpoint-delete-metadata", "metadata"), ("checkpoint-delete-all", "offsets")],
)
def test_an_engine_that_stops_loudly_gets_its_checkpoint_back_and_has_to_go_on(spark, fault, gone):
    before = {path.relative_to(spark.checkpoint) for path in spark.checkpoint.rglob("*")}
    done = struck(f"{fault}@now", spark)
    assert report_of(done).landed
    assert not (spark.checkpoint / gone).exists()

    spark.running, spark.code = False, 1
    at(done, spark, 300)
    assert {path.relative_to(spark.checkpoint) for path in spark.checkpoint.rglob("*")} == before
    assert not done.over()
    assert not done.busy()  # the supervisor is to start it again
    spark.restart()
    spark.newest = told(60)
    at(done, spark, 400)

    report = report_of(done)
    assert (report.landed, report.healed) == (True, True)
    assert (
        "it stopped loudly: exit code 1, 'java.lang.IllegalStateException: nothing there; Caused by: java.io"
        in report.proof
    )
    assert "its old checkpoint was restored; it went on from 40 to 60 records" in report.proof


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (FAILED, ", and its log ends with 'java.lang.IllegalStateException: nothing there; "),
        (["12:51:17 WARN it waits"], "; its old checkpoint was restored"),
    ],
)
def test_an_engine_that_hangs_is_helped_too_and_quoted_if_it_complains(spark, monkeypatch, log, words):
    monkeypatch.setattr(spark, "last_words", lambda: most_telling([("engine.log", log)]))
    fault = struck("checkpoint-gap@now", spark)
    at(fault, spark, 500_000)

    assert spark.story[-2:] == ["kill", "restart"]
    assert (spark.checkpoint / "offsets" / "3").exists()
    spark.newest = told(60)
    at(fault, spark, 500_100)
    assert f"no progress for 120 s{words}" in report_of(fault).proof


def test_who_is_patient_waits_longer_before_it_is_said_to_hang(spark):
    fault = struck("checkpoint-gap@now", spark, patience=3.0)
    at(fault, spark, 300_000)

    assert spark.story[-1] == "restart"
    at(fault, spark, 500_000)
    assert spark.story[-2:] == ["kill", "restart"]


def test_state_is_cut_in_the_file_that_has_to_be_loaded(spark):
    fault = struck("checkpoint-truncate-state@now", spark)

    assert "state/0/1/4.zip has 450 of its 900 bytes; its .crc is deleted" in report_of(fault).proof
    assert len((spark.checkpoint / "state" / "0" / "1" / "4.zip").read_bytes()) == 450
    assert len((spark.checkpoint / "state" / "0" / "1" / "5.zip").read_bytes()) == 900
    assert not (spark.checkpoint / "state" / "0" / "1" / ".4.zip.crc").exists()


def test_one_bit_is_turned_in_the_newest_table_of_that_state(spark):
    fault = struck("checkpoint-flip-state@now", spark)

    table = spark.checkpoint / "state" / "0" / "1" / "SSTs" / "000004.sst"
    assert sum(old != new for old, new in zip(b"version 4" * 100, table.read_bytes(), strict=True)) == 1
    assert "byte 450 of 900 in state/0/1/SSTs/000004.sst is" in report_of(fault).proof


def test_damage_that_is_found_some_batches_later_is_undone_all_the_same(spark):
    fault = struck("checkpoint-flip-state@now", spark)
    table = spark.checkpoint / "state" / "0" / "1" / "SSTs" / "000004.sst"
    spark.newest = told(50)
    at(fault, spark, 200)
    assert not report_of(fault).healed

    spark.running, spark.code = False, 1
    at(fault, spark, 300)
    assert table.read_bytes() == b"version 4" * 100
    spark.restart()
    at(fault, spark, 400)
    assert not report_of(fault).healed  # what it did before it stopped is no sign that it goes on
    spark.newest = told(60)
    at(fault, spark, 500)

    report = report_of(fault)
    assert (report.landed, report.healed) == (True, True)
    assert "it stopped loudly" in report.proof
    assert "it went on from 50 to 60 records" in report.proof


@pytest.mark.parametrize(
    ("batch", "done", "borne"),
    [(6, 60, True), (5, 60, False), (5, TOTAL, True), (5, TOTAL - 1, False)],
    ids=["three batches", "two batches", "two batches, to the end", "two batches, nearly to the end"],
)
def test_damage_that_is_borne_for_some_batches_or_to_the_end_is_left_as_it_is(spark, batch, done, borne):
    """It was damaged behind batch 3; whatever goes wrong later, or never, is for the supervisor and for the judge."""
    fault = struck("checkpoint-flip-state@now", spark)
    spark.newest = Progress(1, batch, 1, {0: done})
    at(fault, spark, 200)
    at(fault, spark, 300)

    assert (fault.over(), report_of(fault).healed) == (borne, borne)
    assert "stopped loudly" not in report_of(fault).proof


@pytest.mark.parametrize(("batches", "reachable"), [(3, True), (2, False)])
def test_a_checkpoint_is_edited_from_its_second_commit_on(tmp_path, batches, reachable):
    """Of these batches the last one is planned and not committed."""
    engine = Downed(checkpoint=with_state(tmp_path / "cp", batches), newest=told(10))
    fault = create("checkpoint-delete-commit@now")
    at(fault, engine)

    assert report_of(fault).reachable is reachable
    assert bool(engine.story) is reachable


def test_an_engine_whose_end_was_missed_is_down_while_its_checkpoint_is_put_back(spark):
    fault = struck("checkpoint-gap@now", spark)
    spark.restart()
    at(fault, spark, 300)

    assert spark.story[-3:] == ["restart", "kill", "restart"]
    assert (spark.checkpoint / "offsets" / "3").exists()


def test_a_sink_without_state_has_none_to_be_damaged(tmp_path):
    spark = Downed(checkpoint=make(tmp_path, [0, 0, 0]), newest=told(30))
    fault = create("checkpoint-flip-state@now")
    at(fault, spark)

    assert not report_of(fault).reachable
    assert "sink absolute keeps no state" in report_of(fault).proof
    assert spark.story == []


def test_a_copy_is_taken_and_put_back_some_batches_later(spark):
    fault = create("checkpoint-restore-older(batches=2)@now")
    at(fault, spark)
    at(fault, standing(spark))
    assert spark.story == ["arm c1 0", "disarm", "arm c1 6"]
    assert not report_of(fault).landed

    for batch in (4, 5):
        (spark.checkpoint / "commits" / str(batch)).write_text("v1\n{}")
        (spark.checkpoint / "offsets" / str(batch + 1)).write_text(offsets_file(0, {0: 10 * batch + 20}))
    spark.newest = told(60)
    at(fault, standing(spark, 6), 200)
    assert left(spark) == ([0, 1, 2, 3, 4], [0, 1, 2, 3])
    spark.newest = told(70)
    at(fault, spark, 300)
    at(fault, spark, 400)

    report = report_of(fault)
    assert (report.healed, report.batch, report.replayed) == (True, 4, True)
    assert "had committed batch 5; the restored copy ends at batch 3" in report.proof
    assert [each.name for each in spark.checkpoint.parent.iterdir() if each.is_dir()] == ["cp"]


def test_what_never_stood_still_was_not_touched(spark):
    fault = create("checkpoint-delete-all@now")
    at(fault, spark)
    at(fault, spark, 500_000)
    at(fault, spark, 500_100)

    assert spark.story == ["arm c1 0", "disarm"]
    assert not report_of(fault).landed
    assert left(spark)[0] == [0, 1, 2, 3, 4]


def test_what_has_nothing_more_to_write_is_not_waited_for(spark):
    fault = create("checkpoint-gap@now")
    at(fault, spark)
    spark.newest = told(TOTAL)
    at(fault, spark, 200)
    at(fault, spark, 300)

    assert fault.over()
    assert not report_of(fault).landed
    assert "withdrawn, and nothing was changed" in report_of(fault).proof


class Disk:
    """A disk as the test wants it."""

    def __init__(self) -> None:
        self.ballast = 0

    def fill(self) -> int:
        self.ballast += 1
        return 4096

    def refusal(self) -> str:
        return "ENOSPC, No space left on device" if self.ballast else ""

    def free(self) -> None:
        self.ballast = 0

    def free_bytes(self) -> int:
        return 5000


def test_what_was_committed_while_the_disk_was_full_is_no_sign_that_it_goes_on(spark, monkeypatch):
    monkeypatch.setattr(small_disk, "impossible", lambda: "")
    disk, fault = Disk(), create("checkpoint-disk-full(for=2s)@now")
    at(fault, spark, 100, disk)
    spark.newest = told(50)
    for now_ms in (200, 2300, 2400):
        at(fault, spark, now_ms, disk)
    assert disk.ballast == 0
    assert not report_of(fault).healed

    spark.newest = told(60)
    at(fault, spark, 2500, disk)
    assert "the engine did not stop; it went on from 50 to 60 records" in report_of(fault).proof


def test_with_nothing_left_to_do_no_disk_is_filled(spark, monkeypatch):
    monkeypatch.setattr(small_disk, "impossible", lambda: "")
    disk, fault = Disk(), create("checkpoint-disk-full(for=2s)@now")
    spark.newest = told(TOTAL)
    at(fault, spark, 100, disk)

    assert disk.ballast == 0
    assert not report_of(fault).reachable
    assert "already been processed" in report_of(fault).proof


def test_a_full_disk_is_kept_full_and_freed(spark, monkeypatch):
    monkeypatch.setattr(small_disk, "impossible", lambda: "")
    disk, fault = Disk(), create("checkpoint-disk-full(for=2s)@now")
    at(fault, spark, 100, disk)
    at(fault, spark, 200, disk)
    filled = disk.ballast
    at(fault, spark, 300, disk)
    assert disk.ballast > filled
    spark.starts = 3
    at(fault, spark, 2300, disk)
    assert disk.ballast == 0
    assert not fault.over()
    spark.newest = told(60)
    at(fault, spark, 2400, disk)

    report = report_of(fault)
    assert (report.landed, report.healed) == (True, True)
    assert "a write to it fails: ENOSPC, No space left on device" in report.proof
    assert "5,000 bytes are free again; the engine stopped and was restarted (2 times)" in report.proof
    assert "it went on from 40 to 60 records" in report.proof


@pytest.mark.skipif(bool(small_disk.impossible()), reason="no tmpfs can be mounted here")
def test_a_small_disk_is_full_when_it_says_so(tmp_path):
    disk = small_disk.SmallDisk(tmp_path / "disk", 1)
    disk.mount()
    try:
        assert not disk.refusal()
        assert disk.fill() <= 1 << 20
        assert disk.refusal() == "ENOSPC, No space left on device"
        disk.free()
        assert not disk.refusal()
        assert disk.free_bytes() > 1 << 19
    finally:
        disk.unmount()
    assert not (tmp_path / "disk" / "ballast").exists()


@pytest.mark.parametrize(
    ("text", "changed", "said"),
    [
        ("change-partitions@now", {"options": {"spark.sql.shuffle.partitions": "4"}}, "shuffle.partitions = 4"),
        ("change-trigger(to=2s)@now", {"trigger": "2000 milliseconds"}, "trigger = 2000 milliseconds"),
        ("change-slots(to=2)@now", {"master": "local[2]"}, "master = local[2]"),
        ("change-watermark(to=20s)@now", {"watermark_ms": 20_000}, "watermark_ms = 20000"),
        ("change-sink@now", {"sink": "fenced"}, "sink = fenced"),
        ("change-code@now", {"options": {"streamgauge.parser": "from_json"}}, "streamgauge.parser = from_json"),
    ],
)
def test_a_change_is_proved_by_the_config_of_the_process(spark, text, changed, said):
    fault = struck(text, spark)
    assert spark.changes == [changed]
    spark.newest = told(60)
    at(fault, spark, 300)
    at(fault, spark, 400)

    report = report_of(fault)
    assert (report.landed, report.healed) == (True, True)
    assert f"process 7 was started with {'spark.sql.' if 'shuffle' in said else ''}{said}" in report.proof


def test_a_change_that_nobody_was_told_of_has_not_landed(spark):
    spark.config_path.write_text("{}")
    spark.change = spark.changes.append

    assert not report_of(struck("change-sink@now", spark)).landed


def test_orders_that_are_seen_some_looks_after_the_kill_are_told_with_it(spark, monkeypatch):
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Downed, "members", lambda _: ())  # a process that has not run its program yet
        fault = struck("change-trigger@now", spark)
        assert not report_of(fault).landed
    at(fault, spark, 200)

    assert report_of(fault).landed
    assert "at c1 of batch 4: killed, and nothing is left; process 7 was started" in report_of(fault).proof


def test_what_stops_loudly_after_a_change_gets_its_old_orders_back(spark):
    fault = struck("change-sink@now", spark)
    spark.running, spark.code = False, 1
    at(fault, spark, 300)
    spark.restart()
    spark.newest = told(60)
    at(fault, spark, 400)

    assert spark.changes == [{"sink": "fenced"}, {"sink": "absolute"}]
    assert "it stopped loudly: exit code 1" in report_of(fault).proof
    assert "its old config was restored: sink = absolute; it went on from 40 to 60 records" in report_of(fault).proof


def test_what_a_checkpoint_pins_is_told_from_its_plans(spark):
    conf = {"conf": {"spark.sql.shuffle.partitions": "2"}}
    spark.checkpoint.joinpath("offsets", "3").write_text(f"v1\n{json.dumps(conf)}\n{{}}")
    spark.checkpoint.joinpath("offsets", "5").write_text(f"v1\n{json.dumps(conf)}\n{{}}")
    fault = struck("change-partitions@now", spark)
    spark.newest = told(60)
    at(fault, spark, 300)
    at(fault, spark, 400)

    assert "spark.sql.shuffle.partitions = 2; before the restart it was the same" in report_of(fault).proof


@pytest.mark.parametrize(
    ("text", "manifest", "why"),
    [
        ("checkpoint-gap@now", replace(SPARK, evidence="none"), "no checkpoint in a format"),
        ("checkpoint-gap@now", replace(SPARK, resumes=False), "does not resume"),
        ("checkpoint-gap@c4", SPARK, "not held at c4"),
        ("checkpoint-restore-older@now", replace(SPARK, sinks=(replace(CLAIM, crash_points=()),)), "held at c1"),
        ("change-sink(to=fence)@now", SPARK, "no sink 'fence'; its sinks are absolute, fenced (nearest: 'fenced')"),
        ("change-sink(to=absolute)@now", SPARK, "already has sink = absolute"),
        ("change-code@now", replace(SPARK, id="mine", ivy=""), "mine has no setting streamgauge.parser"),
        ("change-slots@now", replace(SPARK, id="mine", ivy=""), "mine has no setting master"),
        ("change-trigger@now", replace(SPARK, progress=False), "reports no progress"),
    ],
)
def test_what_an_engine_cannot_suffer_is_not_applicable(spark, text, manifest, why):
    fault = create(text, manifest)
    at(fault, spark)

    assert not report_of(fault).reachable
    assert why in report_of(fault).proof


def test_a_disk_that_is_not_ours_is_not_filled(monkeypatch):
    monkeypatch.setattr(small_disk, "impossible", lambda: "mount: only root can do that")
    fault = create("checkpoint-disk-full@now", checkpoint="/data/checkpoints")

    assert "is at /data/checkpoints, whose disk" in report_of(fault).proof
    assert "no small disk can be mounted here: mount: only root can do that" in report_of(fault).proof
    assert registry.own_disks(parse("kill@now; checkpoint-disk-full@now")) == {"checkpoint"}
    assert registry.own_disks(parse("kill@now")) == set()


def test_the_judge_knows_every_lateness_that_was_declared():
    spec = replace(
        SPEC, watermark_ms=10_000, fault=parse("kill@now; change-watermark@now; change-watermark(to=2s)@now")
    )

    assert watermarks_ms(spec) == [10_000, 20_000, 2_000]


@pytest.mark.parametrize("kind", [*FAULTS.values()], ids=lambda kind: kind.name)
def test_every_kind_has_its_options_filled_in(kind):
    assert parse(f"{kind.name}@{'c3' if kind.moments == ('point',) else 't>=1s'}").options == kind.options


def test_an_engine_that_was_edited_tells_no_progress_that_it_lost(tmp_path):
    """Its own lines outlive the batches that they tell of."""
    live = make(tmp_path / "cp", [0, 0, 0, 0])
    path = tmp_path / "progress.jsonl"
    path.write_text(json.dumps({"at": 1, "batch": 3, "rows": 1, "offsets": {"0": 40}}) + "\n")
    config = placed(tmp_path, checkpoint=str(live), sink="absolute")
    folders = {"logs": tmp_path, "evidence": tmp_path / "evidence", "private": tmp_path}
    manifest = replace(SPARK, command=("true", "{config}"))
    engine = ProcessEngine(manifest, config, **folders, env={})
    engine.collect()
    newest = engine.progress()
    assert newest
    assert (newest.batch, newest.at_ms) == (3, 1)  # its own line

    for batch in (2, 3):
        (live / "offsets" / str(batch)).unlink()
        (live / "commits" / str(batch)).unlink()
    engine.restart()
    try:
        newest = engine.progress()
        assert newest
        assert (newest.batch, newest.offsets) == (1, {0: 20})
        assert engine.planned(3) is None
        assert not engine.committed(3)
        log = engine.batch_log()
        assert log
        assert [run.batch for run in log.earlier] == [2, 3]
        for batch in (0, 1):
            (live / "commits" / str(batch)).unlink()
        engine.kill()
        engine.restart()
        assert engine.progress() is None
    finally:
        engine.stop()


def test_orders_are_changed_in_the_file_that_the_next_start_reads(tmp_path):
    folders = {"logs": tmp_path, "evidence": tmp_path / "evidence", "private": tmp_path}
    engine = ProcessEngine(
        replace(SPARK, command=("true", "{config}")), placed(tmp_path, sink="absolute"), **folders, env={}
    )

    engine.change({"sink": "fenced", "options": {"a": "b"}})

    written = json.loads((tmp_path / "engine.json").read_text())
    assert (written["sink"], written["options"], written["window_ms"]) == ("fenced", {"a": "b"}, 10_000)


def test_a_copy_leaves_out_what_vanishes_while_it_is_taken(tmp_path, monkeypatch):
    source = make(tmp_path / "cp", [0, 0])
    real = shutil.copy2

    def vanishing(path: Path, place: Path) -> object:
        if path.name == "0" and path.parent.name == "offsets":
            path.unlink()
        return real(path, place)

    monkeypatch.setattr(shutil, "copy2", vanishing)
    checkpoint.copy(source, tmp_path / "copy")

    assert numbers(tmp_path / "copy" / "offsets") == [1]
    assert numbers(tmp_path / "copy" / "commits") == [0, 1]


def test_the_write_at_which_an_engine_is_held_may_come_a_minute_later_than_it_takes_to_start(spark):
    fault = create("checkpoint-delete-commit@now")
    at(fault, spark)
    late_ms = 100 + int(SPARK.ready_s * 1000) + 59_000
    at(fault, spark, late_ms)
    at(fault, standing(spark), late_ms + 100)

    assert spark.story[-4:] == ["kill", "collect", "disarm", "restart"]
    assert report_of(fault).landed


def test_an_engine_that_makes_no_progress_is_given_up_on_when_its_time_is_over(spark):
    fault = struck("checkpoint-delete-commit@now", spark)
    (report,) = fault.reports()
    over_ms = report.landed_ms + int(SPARK.ready_s * 1000)
    at(fault, spark, over_ms)
    assert spark.story.count("kill") == 1
    at(fault, spark, over_ms + 1)

    assert spark.story.count("kill") == 2
    assert "it made no progress for" in report_of(fault).proof + report_of(fault).refused
