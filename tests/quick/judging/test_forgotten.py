"""Runs that an edited checkpoint knows nothing of: kept apart, and held against what is wrong in the counts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.engines.spark import checkpoint, forgotten
from harness.evidence.ledger import Ledger
from harness.evidence.observed import Observed
from harness.judging.checks import CHECKS
from harness.judging.checks.case import RunFacts
from harness.judging.lateness import batch_of, counted_by, in_run
from harness.model import Batch, BatchLog, EarlierRun, Outcome
from harness.selftest.by_hand import CODES, ledger
from tests.quick.cases import EPOCH_MS, WINDOW_MS, case, events
from tests.quick.engines.test_checkpoint import make, offsets_file


def copied(tmp_path: Path, watermarks_ms: list[int], commits: int | None = None) -> tuple[Path, Path]:
    live, copies = make(tmp_path / "live", watermarks_ms, commits), tmp_path / "copies"
    checkpoint.collect(live, copies)
    return live, copies


def runs(copies: Path) -> list[tuple[int, int, int, int, int, bool]]:
    found = forgotten.earlier_runs(copies, drops_late=True, allow_multiple=True)
    return [(r.start, r.batch, r.starts.get(0, 0), r.ends[0], r.drop_watermark_ms, r.committed) for r in found]


def test_an_untouched_checkpoint_has_forgotten_nothing(tmp_path):
    live, copies = copied(tmp_path, [0, 100, 200], commits=2)

    forgotten.set_apart(live, copies, 2)

    assert runs(copies) == []
    assert [each.name for each in sorted((copies / "offsets").iterdir())] == ["0", "1", "2"]


def test_what_spark_purged_is_not_forgotten(tmp_path):
    live, copies = copied(tmp_path, [0, 100, 200])
    for folder in ("offsets", "commits"):
        (live / folder / "0").unlink()

    forgotten.set_apart(live, copies, 2)

    assert runs(copies) == []
    assert (copies / "offsets" / "0").exists()


def test_a_batch_that_is_planned_anew_keeps_its_first_plan_apart(tmp_path):
    live, copies = copied(tmp_path, [0, 100, 200])
    (live / "offsets" / "2").unlink()
    (live / "commits" / "2").unlink()

    forgotten.set_apart(live, copies, 2)
    assert not checkpoint.committed(copies, 2)
    (live / "offsets" / "2").write_text(offsets_file(200, {0: 77}))
    checkpoint.collect(live, copies)

    assert runs(copies) == [(2, 2, 20, 30, 100, True)]
    assert checkpoint.read(copies, drops_late=True).batches[-1].ends == {0: 77}


def test_a_batch_whose_commit_alone_is_gone_was_run_all_the_same(tmp_path):
    live, copies = copied(tmp_path, [0, 100, 200])
    (live / "commits" / "2").unlink()

    forgotten.set_apart(live, copies, 2)

    assert runs(copies) == [(2, 2, 20, 30, 100, True)]
    assert not checkpoint.committed(copies, 2)
    assert checkpoint.planned(copies, 2) is not None


def test_a_checkpoint_that_is_gone_altogether_has_forgotten_all(tmp_path):
    live, copies = copied(tmp_path, [0, 100], commits=1)
    shutil.rmtree(live)
    live.mkdir()

    forgotten.set_apart(live, copies, 2)

    assert runs(copies) == [(2, 0, 0, 10, 0, True), (2, 1, 10, 20, 0, False)]
    assert not (copies / "metadata").exists()


def test_a_plan_is_looked_up_as_it_was_at_that_start(tmp_path):
    live, copies = copied(tmp_path, [0, 100, 200])
    (live / "offsets" / "2").unlink()
    (live / "commits" / "2").unlink()
    forgotten.set_apart(live, copies, 2)  # when batch 1 still ended at 20
    (live / "offsets" / "1").write_text(offsets_file(150, {0: 25}))
    forgotten.set_apart(live, copies, 3)
    checkpoint.collect(live, copies)

    assert runs(copies) == [(2, 2, 20, 30, 100, True), (3, 1, 10, 20, 0, False)]


FIRST_RUN = EarlierRun(2, 3, {0: 40, 1: 40}, {0: 60, 1: 60}, 0, committed=True)
OPEN_RUN = EarlierRun(2, 4, {0: 60, 1: 60}, {0: 70, 1: 70}, 0, committed=False)
EVIDENCE = BatchLog(
    (
        Batch(2, {0: 40, 1: 40}, 0),
        Batch(3, {0: 90, 1: 90}, 0),
        Batch(4, {0: 150, 1: 150}, 0),
    ),
    drops_late=False,
    complete=True,
    earlier=(FIRST_RUN, OPEN_RUN),
)


def forgetful(change: Ledger, evidence: BatchLog = EVIDENCE) -> RunFacts:
    """Batch 3 was planned anew, to offset 90, after it had been run to offset 60."""
    log = events()
    honest = ledger(log)
    return case(log, batch_log=evidence, batch=batch_of(log, evidence), observed=Observed(honest + change, ()))


def counts(low: int, high: int) -> Ledger:
    log = events()
    rows = (log.offset >= low) & (log.offset < high)
    return ledger(log, rows)


def test_increments_hold_the_forgotten_run_twice():
    found = CHECKS["duplicated"](forgetful(counts(40, 60)))

    assert (found.outcome, found.count) == (Outcome.FAIL, 40)
    assert "exactly batch 3 once more: the checkpoint had lost that run" in found.sentence


def test_several_forgotten_runs_are_named_together():
    found = CHECKS["duplicated"](forgetful(counts(40, 70)))

    assert "exactly batches 3 to 4 once more" in found.sentence


def test_a_fence_loses_what_the_batch_has_more_when_planned_anew():
    found = CHECKS["lost"](forgetful(Ledger() - counts(60, 90)))

    assert (found.outcome, found.count) == (Outcome.FAIL, 60)
    assert "exactly what batch 3 had more when planned anew" in found.sentence


def test_a_fence_in_each_campaign_skips_nothing_of_those_in_which_the_first_run_wrote_nothing():
    log = events()
    first = replace(FIRST_RUN, ends={0: 41, 1: 41})  # two events, of two of the three campaigns
    campaign = CODES.keys(log.cell)
    fenced = campaign[(log.offset >= 40) & (log.offset < 41)]
    skipped = (log.offset >= 41) & (log.offset < 90) & np.isin(campaign, fenced)
    missing = ledger(log, skipped)
    found = CHECKS["lost"](forgetful(Ledger() - missing, replace(EVIDENCE, earlier=(first,))))

    assert 0 < found.count < 2 * 49
    assert "exactly what batch 3 had more in campaigns of its first run when planned anew" in found.sentence


@pytest.mark.parametrize("check", ["lost", "duplicated"])
def test_what_no_run_explains_is_not_explained(check):
    by = -1 if check == "lost" else 1
    found = CHECKS[check](forgetful(Ledger({cell: by * count for cell, count in counts(41, 61).items()})))

    assert found.outcome is Outcome.FAIL
    assert "exactly" not in found.sentence


def test_what_a_run_took_and_did_not_drop():
    log = events()
    first_window = EPOCH_MS + WINDOW_MS
    run = EarlierRun(2, 0, {}, {0: 60, 1: 10}, first_window, committed=True)
    ends = log.closes_ms

    taken = in_run(log, run)

    assert (taken == ((log.partition == 0) & (log.offset < 60)) | ((log.partition == 1) & (log.offset < 10))).all()
    assert (counted_by(log, [run]) == (taken & (ends > first_window))).all()
    assert np.count_nonzero(counted_by(log, [run])) == 10
