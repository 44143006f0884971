"""The parts of `bench` that ask DuckDB: what they measure is the same answer."""

from __future__ import annotations

import numpy as np
import pytest

from harness.experiments import bench_parts
from harness.experiments.bench_parts import ADS_BY_SQL, PARTS
from harness.experiments.bench_records import EPOCH_MS, Arguments, tape_of
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
