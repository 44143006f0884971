"""The parts of `bench` that ask DuckDB or judge: what they measure is the right answer."""

from __future__ import annotations

import numpy as np
import pytest

from harness.evidence import grouping, long_rows
from harness.judging.judge import judge
from harness.judging.stored_run import OBSERVED, StoredRun
from harness.measuring import measure
from harness.measuring.timeline import FILE as TIMELINE
from harness.selftest import cheat
from tools.bench import bench_parts
from tools.bench.bench_parts import ADS_BY_SQL, PARTS
from tools.bench.bench_records import EPOCH_MS, Arguments, tape_of
from tools.bench.bench_stored import stored_run
from workloads.declared.oracle import Oracle

EVENTS = 50_000


def test_the_question_in_sql_is_that_of_the_fold_by_hand():
    tape = tape_of(EVENTS)
    planned = bench_parts._oracle(tape).settle(bench_parts._oracle(tape).plan(tape.blocks()), EPOCH_MS)

    events = bench_parts._relation(bench_parts._columns(tape))
    answer = Oracle(ADS_BY_SQL, {"ads": bench_parts._ads(tape)}).answer(events)

    assert len(answer) == len(planned.cell)
    assert sorted(answer.column("views").to_pylist()) == sorted(planned.value.tolist())
    assert np.sum(planned.value) > EVENTS // 4


@pytest.mark.parametrize("part", ["fold_by_sql", "fold_by_sql_twice", "fold_only"])
def test_a_part_says_how_many_events_it_took(part):
    cost = PARTS[part](Arguments(EVENTS))

    assert 0.9 * EVENTS < cost.events <= EVENTS
    assert cost.peak_mib > 0


def test_what_is_judged_is_a_whole_run_that_was_made_without_services(tmp_path):
    asked = Arguments(EVENTS, folder=str(tmp_path))
    made, judged = PARTS["store_run"](asked), PARTS["judge_run"](asked)

    assert made.events == judged.events > EVENTS
    assert judged.detail.keys() == {"judging", "measuring", "page"}


def test_one_event_that_is_missing_from_its_results_is_lost(tmp_path):
    store = stored_run(tmp_path, EVENTS)
    rows = store.read_table(OBSERVED).to_pylist()
    rows[0]["value"] = str(int(rows[0]["value"]) - 1)
    store.write_table(OBSERVED, {name: [row[name] for row in rows] for name in rows[0]})
    cheat.recompute_all(store)

    verdict = judge(StoredRun(store))
    assert {check.name: check.count for check in verdict.checks}["lost"] == 1
    assert verdict.words == ("lost", "only when stopped"), "the second reading holds what it was"


def test_it_is_the_same_however_many_events_are_worked_on_at_once(tmp_path, monkeypatch):
    store = stored_run(tmp_path, EVENTS)

    def answers():
        run = StoredRun(store)
        verdict = judge(run)
        return verdict, measure.save(run, verdict), store.read_table("latency.parquet"), store.read_table(TIMELINE)

    at_once = answers()
    monkeypatch.setattr(grouping, "ROWS_AT_ONCE", 1_000)
    monkeypatch.setattr(long_rows, "BYTES_HELD", 10_000)

    assert answers() == at_once
    assert at_once[1] is not None
