"""A job's state: at which batches it is kept, what a copy of a checkpoint holds, and when it can't be asked for."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import plan
from harness.engines import manifest
from harness.engines.spark import states
from harness.evidence.ledger import Ledger
from harness.evidence.observed import Observed, State
from harness.judging.checks import state
from harness.judging.lateness import below, in_files
from harness.model import Batch, BatchLog, FileSeam, KeptState, Outcome, UsageError
from harness.runner.state_snapshots import drawn
from harness.selftest.by_hand import ledger
from tests.quick.cases import EPOCH_MS, SPEC, case, events
from tests.quick.engines.test_checkpoint import make


@given(st.integers(0, 99), st.integers(1, 20), st.integers(20, 10**7))
def test_one_record_is_drawn_of_each_equal_part_of_the_load(seed, parts, records):
    found = drawn(seed, parts, records)

    assert len(found) == parts
    assert all(part * records // parts <= each <= (part + 1) * records / parts for part, each in enumerate(found))
    assert found == drawn(seed, parts, records)


def test_another_seed_draws_others():
    assert drawn(1, 10, 100_000) != drawn(2, 10, 100_000)


def checkpoint(folder: Path) -> Path:
    """Of three batches, the last one open, with a state of one partition."""
    live = make(folder, [0, 100, 200], commits=2)
    (live / "state" / "0" / "0").mkdir(parents=True)
    for version in (1, 2):
        (live / "state" / "0" / "0" / f"{version}.zip").write_bytes(b"x" * version)
    return live


def test_a_copy_holds_the_state_the_offsets_and_the_commit_of_a_batch(tmp_path):
    live = checkpoint(tmp_path / "live")
    kept = states.keep(live, 3, 1, tmp_path / "copies")
    shutil.rmtree(live)

    copy = states.folder_of(tmp_path / "copies", 3, 1)
    assert kept is not None
    assert (kept.number, kept.batch, kept.ends, kept.watermark_ms) == (3, 1, (20,), 100)
    assert (copy / "state" / "0" / "0" / "2.zip").read_bytes() == b"xx"
    assert (copy / "commits" / "1").is_file()
    assert kept.size_bytes == sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())


@pytest.mark.parametrize("batch", [2, 3])
def test_a_batch_that_is_not_committed_is_no_state(tmp_path, batch):
    assert states.keep(checkpoint(tmp_path / "live"), 1, batch, tmp_path / "copies") is None


def test_what_is_purged_in_the_middle_of_a_copy_is_left_out(tmp_path, monkeypatch):
    live, copyfile = checkpoint(tmp_path / "live"), shutil.copyfile

    def purged(source, target):
        if Path(source).name == "1.zip":
            Path(source).unlink()
        return copyfile(source, target)

    monkeypatch.setattr(shutil, "copyfile", purged)

    assert states.keep(live, 1, 1, tmp_path / "copies")
    assert [path.name for path in (tmp_path / "copies").rglob("*.zip")] == ["2.zip"]


MIDDLE = FileSeam(ends=(50, 50), begins=(10, 10), until_ms=EPOCH_MS + 6000)


@pytest.mark.parametrize(("lacks", "word"), [(0, ""), (1, "forgotten")])
def test_behind_a_seam_by_time_a_state_lacks_what_lies_in_files_and_counts_from_kafka(lacks, word):
    """The copy says how far the files reach, also when their place in the plan was given to Kafka."""
    log = events()
    files = in_files(log, MIDDLE)
    held = ledger(log, files)
    kept = KeptState(1, 0, MIDDLE.ends, 0, 0)
    seen = Ledger(dict([*held.items()][lacks:]))
    found = state.check(
        case(
            log,
            spec=replace(SPEC, states=1),
            seam=MIDDLE,
            batch=np.where(files, 0, 1),
            batch_log=BatchLog((Batch(0, {}, 0), Batch(1, {0: 150, 1: 150}, 0)), True, True),
            exact=True,
            states=(State(kept, Observed(seen, ())),),
        )
    )

    assert held != ledger(log, below(log, MIDDLE.ends)), "by its offsets it would be another one"
    assert (found.word, found.outcome) == (word, Outcome.FAIL if word else Outcome.PASS), found.sentence


@pytest.mark.parametrize(
    ("asked", "more"), [(1, ""), (3, "; 3 were requested, but no more batches ended before the load was done")]
)
def test_it_is_told_when_there_are_fewer_states_than_were_asked_for(asked, more):
    log, kept = events(), KeptState(1, 0, (200, 200), 0, 0)
    seen = Observed(ledger(log, below(log, kept.ends)), ())
    found = state.check(case(log, spec=replace(SPEC, states=asked), exact=True, states=(State(kept, seen),)))

    assert found.sentence.endswith(f" in 1 state match the log, after batch 0{more}")


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({"engine": "reference"}, ["reference leaves no Spark checkpoint", "('states')"]),
        ({"engine": "spark-rtm"}, ["spark-rtm leaves no Spark checkpoint"]),
        ({"sink": "fenced"}, ["the sink 'fenced'", "keeps no state"]),
        ({"workload": "page_visits"}, ["one count per window"]),
        ({"fault": "change-job(counts=click, means=carry)@batch>=8"}, ["query changes during the run"]),
        ({"states": 101}, ["states = 101", "0 to 100"]),
    ],
)
def test_a_state_that_nobody_could_judge_is_refused_before_the_run(given, parts):
    with pytest.raises(UsageError) as refused:
        plan.resolve("test", {"states": 10, "late_dropped_max": "any", **given}, {}, manifest.load)

    for part in parts:
        assert part in str(refused.value)


def test_the_scenario_keeps_ten_states_and_kills_the_engine():
    spec, _ = plan.resolve("state", plan.read_scenario("state")[1], {}, manifest.load)

    assert (spec.states, spec.fault.text) == (10, "kill@c3:batch=3")
