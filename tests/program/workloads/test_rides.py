"""Windows that overlap, with a count, a maximum and different drivers: a right job of examples/rides is right to the
single value, whatever comes late. Pairs of events, of which one alone lies in no cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import Outcome, UsageError
from reports.evidence import Evidence
from reports.sections.lateness import ages_of
from tests.program.questions import DrawnQuestion
from tests.program.right_jobs import Wrong
from tests.program.workloads.test_questions import answers, judged
from tests.quick.workloads.test_sentinels import PAIRS, asking

RIDES = (Path(__file__).parents[3] / "examples/rides/workload.toml").read_text(encoding="utf-8")
# All orders of such a buyer, whenever they came: a pair may be one of the load and of the harness.
EVER = (
    asking(PAIRS)
    .replace("opens + 10000 AS closes", "NULL AS closes")
    .replace("(a.buyer, a.opens) = (b.buyer, b.opens)", "a.buyer = b.buyer")
)


@pytest.mark.parametrize("sink", ["keeps", "drops", "final"])
@pytest.mark.parametrize("disorder", ["mobile", "late"])
def test_a_sliding_maximum_is_right_to_the_single_value(tmp_path, disorder, sink):
    verdict, _ = judged(DrawnQuestion(RIDES, disorder, sink, True, "end", 30_000), tmp_path)

    assert (verdict.outcome, verdict.slack) == (Outcome.PASS, 0), verdict.sentence


def test_the_picture_of_disorder_counts_events_and_not_their_windows(tmp_path):
    _, stored = judged(DrawnQuestion(RIDES, "late", "drops", False, "end", 30_000), tmp_path)
    evidence = Evidence(stored.store)
    dropped = evidence.case.events.only(evidence.case.dropped)
    ages = ages_of(evidence)

    assert ages.sent.events == evidence.certificate.sent
    assert ages.dropped.events == len(set(dropped.record.tolist()))
    assert 0 < ages.dropped.events < len(dropped), "some of them are late for several windows"


@pytest.mark.parametrize("text", [asking(PAIRS), EVER], ids=["in a window", "ever"])
def test_pairs_are_right_and_one_too_few_is_wrong(tmp_path, text):
    question = DrawnQuestion(text, "mobile", "keeps", True, "start", 10_000)
    right, stored = judged(question, tmp_path)

    assert (right.outcome, right.slack) == (Outcome.PASS, 0), right.sentence

    row = max(answers(stored), key=lambda row: int(row.value))
    wrong, _ = judged(question, tmp_path, Wrong(row.key, row.field, -1))
    assert (wrong.outcome, wrong.words) == (Outcome.FAIL, ("lost",)), wrong.sentence


def test_results_that_wait_for_a_window_that_never_closes_are_refused(tmp_path):
    never = RIDES.replace("opens + 30000 AS closes", "NULL AS closes")

    with pytest.raises(UsageError, match="the cells of rides never close"):
        judged(DrawnQuestion(never, "none", "final", False, "start", 0), tmp_path)
