"""Page visits on real engines: distinct counts, windows that overlap, late events and kills."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run
from tests.engines.trial import SOON_UP, in_batches_of

SHORT = ["--duration", "12s", "--rate", "2000"]
KILLED = [*in_batches_of(4000), "--fault", "kill@c3:batch=3"]
INCREMENT = ["--sink", "increment"]

pytestmark = pytest.mark.timeout(400)


@pytest.mark.thorough
def test_a_visit_that_is_late_for_one_window_counts_in_the_next_and_a_kill_changes_nothing(tmp_path):
    answer = run(tmp_path, "page-visits-sliding", "--engine", "spark", *SOON_UP, *SHORT, *KILLED)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert check(answer, "late")["count"] > 0


@pytest.mark.thorough
@pytest.mark.parametrize("scenario", ["page-visits", "page-visits-late", "page-visits-sliding", "page-visits-sessions"])
@pytest.mark.parametrize("engine", ["spark", "reference"])
def test_every_scenario_is_right_without_slack(tmp_path, scenario, engine):
    fault = KILLED if engine == "spark" else ["--fault", "kill@offset=50%"]
    answer = run(tmp_path, scenario, "--engine", engine, *SHORT, *fault)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize("time", ["ingestion", "append", "processing"])
@pytest.mark.parametrize("engine", ["spark", "reference"])
def test_a_job_that_counts_by_another_time_is_judged_by_it(tmp_path, time, engine):
    """Of the reference nobody knows when it processed an event: its totals are judged."""
    fault = KILLED if engine == "spark" else ["--fault", "kill@offset=50%"]
    answer = run(tmp_path, "page-visits", "--engine", engine, "--time", time, *SHORT, *fault)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert ("all windows are judged together" in answer["sentence"]) is ((engine, time) == ("reference", "processing"))


@pytest.mark.thorough
def test_distinct_visitors_that_are_added_up_batch_by_batch_are_too_many(tmp_path):
    answer = run(tmp_path, "page-visits", "--engine", "spark", *INCREMENT, *SHORT, "--fault", "none")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["wrong value"]), answer["sentence"]
    assert all("visitors of " in witness["cell"] for witness in check(answer, "wrong")["witnesses"])
