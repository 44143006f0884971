"""Spark in Real-Time Mode on a real Kafka and a real Redis."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from harness.engines import progress
from harness.services.redis import connect
from harness.util.wait import wait_until
from tests.engines.odd import send_odd_records
from tests.engines.test_runs import check, run
from tests.engines.trial import DEADLINE_S

# What plain `test` runs is Spark and the reference.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]  # the first use installs a Spark

NOT_CHOSEN = "local[*]"  # so that the job takes as many slots as its tasks need side by side


def test_totals_are_exact_to_the_single_late_event(trial, started):
    send_odd_records(trial)
    trial.send(15_000)
    engine = started("spark-rtm", "rising", master=NOT_CHOSEN)
    trial.await_drained(engine)
    trial.send_in_batches(engine, 2)
    trial.assert_exact(engine)

    ends = [line.end_ms for line in progress.stored(trial.folder / progress.FILE) if line.end_ms]
    assert len(ends) > 1
    assert {begin - before for (_, before), (begin, _) in pairwise(ends)} == {5_000}, "a batch takes events for so long"
    told = json.loads((trial.folder / "engine_settings.json").read_text())
    assert (told["trigger"], told["master"]) == ("5 seconds", "local[8]")


def test_a_count_that_redis_does_not_take_ends_the_job(trial, started):
    engine = started("spark-rtm", "absolute", master=NOT_CHOSEN)
    trial.send(100)
    trial.await_drained(engine)
    with connect(trial.redis) as client:
        for campaign in trial.campaigns:
            client.set(campaign, "not a hash")
    trial.send(100)
    wait_until(
        lambda: not engine.alive(), deadline_s=DEADLINE_S, what="the end of the query", state=lambda: engine.tail(5)
    )

    assert engine.exit_code() == 1
    assert "did not take the counts" in "\n".join(engine.tail(50))
    assert "WRONGTYPE" in "\n".join(engine.tail(50))


@pytest.mark.parametrize(("sink", "words"), [("rising", []), ("absolute", ["non-monotonic"])])
def test_after_a_kill_counts_come_right_and_only_one_sink_never_shows_less(tmp_path, sink, words):
    """The first batch is so long that the kill cuts it off in the middle, and all of it comes again."""
    scenario = tmp_path / "rtm.toml"
    scenario.write_text('rate = 1000\nduration = "20s"\ntrigger = "40 seconds"\nfault = "kill@t>=12s"\n')

    answer = run(tmp_path, scenario, "--engine", "spark-rtm", "--sink", sink)

    assert answer["words"] == words, answer["sentence"]
    assert check(answer, "lost")["outcome"] == check(answer, "duplicated")["outcome"] == "PASS"
