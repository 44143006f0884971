"""The reference engine on a real Kafka and a real Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.host import cgroup, quota
from harness.rundir.store import Store
from harness.util.wait import wait_until
from tests.engines.odd import send_odd_records
from tests.engines.test_runs import BRIEF, run

SINK = "transaction"


def test_it_counts_what_counts_and_survives_the_rest(trial, started):
    send_odd_records(trial)
    trial.send(5000, late_ms=60_000)
    engine = started("reference", SINK)
    trial.await_drained(engine)

    engine.stop()

    assert trial.results() == trial.expected()
    assert engine.exit_code() == 0
    assert engine.notes() == ()


def test_it_is_exact_after_kills(trial, started):
    engine = started("reference", SINK)
    for share in (25, 50, 75):
        report = trial.suffer(engine, SINK, f"kill@offset={share}%", total=20_000)
        assert (report.landed, report.healed) == (True, True), report
    trial.await_drained(engine)

    assert trial.results() == trial.expected()


def test_it_ends_with_a_reason_when_redis_is_gone(trial, started):
    trial.redis = type(trial.redis)("redis://127.0.0.1:1/0")
    engine = started("reference", SINK)
    wait_until(lambda: not engine.alive(), deadline_s=30, what="the end of an engine without Redis")

    assert engine.exit_code() == 1
    assert "127.0.0.1:1" in engine.tail(1)[0]


def test_it_passes_in_a_storm_with_a_warm_up_that_is_sent_before_the_load_and_judged_with_it(tmp_path):
    answer = run(tmp_path, *BRIEF, "--engine", "reference", "--disorder", "storm", "--warm-up", "2s")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    store = Store.open(Path(answer["run"]))
    sealed, sends = store.read_json("plan.json"), store.read_table("sends.parquet")
    due_us, sent = (sends.column(name).to_pylist() for name in ("intended_us", "sent"))
    in_time = {early: sum(n for due, n in zip(due_us, sent, strict=True) if (due <= 0) == early) for early in (0, 1)}
    assert in_time == {1: sealed["warm_up"]["total"], 0: sealed["tape"]["total"]}
    assert min(due_us) < -1_900_000
    counted = sum(in_time.values()) + 2 * 4
    assert answer["totals"]["in_log"] == answer["totals"]["planned"] == counted


@pytest.mark.thorough
def test_with_a_part_of_a_core_its_quota_is_in_the_notes_and_it_counts_right(tmp_path):
    if why := quota.impossible(0.5):
        pytest.skip(f"NO QUOTA IS TRIED: {why}")
    answer = run(tmp_path, *BRIEF, "--engine", "reference", "--cores", "0.5", "--patience", "3")

    assert answer["verdict"] == "PASS", answer["sentence"]
    notes = [note for entry in Store.open(Path(answer["run"])).history("closed") for note in entry["notes"]]
    assert any(note.startswith("its quota of 0.5 cores ") for note in notes), notes
    (own,) = cgroup.own_groups("cpu")[:1]
    left = [each.name for each in own.glob(f"{quota.NAME}-*") if not Path("/proc", each.name.split("-")[1]).exists()]
    assert left == []
