"""Random questions with a right job each: whatever is legal to ask, right answers are never FAIL, and what can't be
judged is refused before the start. One event too many or too few is FAIL."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config import plan
from harness.judging.stored_run import StoredRun
from harness.model import Outcome, Verdict
from harness.results.redis_scan import Row
from harness.rundir.store import Store
from harness.runner.run import run
from tests.conftest import EXAMPLES
from tests.program.questions import DrawnQuestion, asked
from tests.program.right_jobs import MANIFESTS, QuestionWorld, Wrong
from tests.program.runner.test_run import Silent

SHORT = {"engine": "fake", "rate": 150, "duration": "3s", "servers": 2}
LATE = {"disorder": "late,late_share=0.05,late_min_ms=2000,late_max_ms=20000", "watermark": "1s"}
NO_LIMIT = {"late_dropped_max": 100_000}


def answers(stored: StoredRun) -> list[Row]:
    """Without the times at which the fake engine wrote them."""
    return [row for row in stored.rows if not row.key.startswith("updated:")]


def judged(question: DrawnQuestion, folder: Path, wrong: Wrong | None = None) -> tuple[Verdict, StoredRun]:
    (folder / "workload.toml").write_text(question.text)
    late = question.disorder == "late"
    kill = "kill@t=1s" if question.kill else "none"
    manifest = replace(MANIFESTS[question.sink], window_key=question.window_key)
    keys = SHORT | {"disorder": question.disorder, "workload": str(folder), "fault": kill} | (LATE if late else {})
    spec, manifest = plan.resolve("test", NO_LIMIT if late else {}, keys, lambda *_: manifest)
    stored = StoredRun(Store.create(folder, "run"))
    world = QuestionWorld(spec, stored.store, manifest, wrong=wrong)
    return run(spec, manifest, environment={}, world=world, stored=stored, screen=Silent()), stored


@pytest.mark.timeout(3600)  # a hundred of them, on a busy machine
@given(asked(), st.floats(0, 1, exclude_max=True), st.sampled_from([-1, 1]))
@settings(max_examples=100 if EXAMPLES > 100 else 6)  # each is two runs, of a second
def test_a_right_job_of_any_question_is_right_and_one_event_more_or_less_is_wrong(question, where, surplus):
    with tempfile.TemporaryDirectory() as folder:
        right, stored = judged(question, Path(folder))
        assert right.outcome is Outcome.PASS, f"{right.sentence}\n{question}"
        assert right.slack == 0

        rows = answers(stored)
        row = rows[int(where * len(rows))]
        field = int(row.field) + (question.length_ms if question.window_key == "end" else 0)
        wrong, _ = judged(question, Path(folder), Wrong(row.key, str(field), surplus))
        assert wrong.outcome is Outcome.FAIL, f"{wrong.sentence}\n{row}\n{question}"
