"""The Spark engine on a real Kafka and a real Redis, without any fault."""

from __future__ import annotations

import json

import pytest

from harness.services.redis import connect
from harness.util.wait import wait_until
from tests.engines.odd import send_odd_records
from tests.engines.trial import DEADLINE_S, QUICK_START, Trial
from workloads.ad_impressions.jobs.spark_parse import BEST

# The whole run of test_states.py tells the same of late events, test_spark_parse.py of odd ones.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


def test_totals_are_exact_to_the_single_late_event(trial, started):
    send_odd_records(trial)
    trial.send(5_000)
    engine = started("spark", "absolute")
    trial.await_drained(engine)
    trial.send_in_batches(engine, 5)
    trial.assert_exact(engine)

    told = json.loads((trial.folder / "engine_settings.json").read_text())
    assert (told["spark.sql.shuffle.partitions"], told["streamgauge.parser"]) == ("2", BEST)
    assert QUICK_START in told["spark.driver.extraJavaOptions"], "what --conf says is in it"


def test_a_query_that_fails_says_why_on_its_last_line(trial, started):
    engine = started("spark", "fenced")
    trial.send(100)
    trial.await_drained(engine)
    spoil_a_result(trial)
    trial.send(100)
    wait_until(
        lambda: not engine.alive(), deadline_s=DEADLINE_S, what="the end of the query", state=lambda: engine.tail(5)
    )

    assert engine.exit_code() == 1
    assert "WRONGTYPE" in "\n".join(engine.tail(3))


def spoil_a_result(trial: Trial) -> None:
    with connect(trial.redis) as client:
        for campaign in trial.campaigns:
            client.set(campaign, "not a hash")
