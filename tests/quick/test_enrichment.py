"""Enrichment: reference job, plain words and the oracle agree, and planted mistakes name their events."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.experiments.selftest import orders as planted
from harness.experiments.selftest.by_hand import EPOCH_MS
from harness.experiments.selftest.visits import events, in_cells
from harness.judging.judge import conclude
from harness.judging.readings import folded
from harness.results.topic import OUTPUTS, Topic, output_of
from tests.quick.test_page_visits import Planned
from workloads.enrichment.jobs.reference import Orders
from workloads.registry import codec_of, oracle_of, results_of


def asked(seed):
    tape = replace(planted.TAPE, seed=seed)
    oracle, sent = oracle_of(replace(planted.ASKED, tape=tape)), events(tape)
    right = folded(oracle, in_cells(sent, oracle))
    codes, keys = oracle.codes, results_of(tape).keys
    return tape, sent, {(keys[codes.key(cell)], codes.field(cell)): value for cell, value in right.items()}


def as_cells(answers, users):
    cells = {(f"{OUTPUTS}:{users[event]}", event): 1 for event in answers}
    return cells | {(f"orders:{users[event]}", event): answer for event, answer in answers.items() if answer}


@pytest.mark.parametrize("seed", range(5))
def test_plain_words_and_the_reference_job_say_what_the_oracle_says(seed):
    tape, sent, right = asked(seed)
    records = list(zip(sent["event_id"].tolist(), codec_of(tape).write(Planned(sent), EPOCH_MS), strict=True))
    random.Random(seed).shuffle(records)
    job = Orders(set(), watermark_ms=10_000)
    for offset, (event, value) in enumerate(records):
        job.add((0, offset), f"{event:012x}".encode(), value)
    told = [json.loads(each) for each in job.answered(idle=True)]

    users = {each["window"]: each["campaign"] for each in told}
    assert as_cells(planted.answered(sent), users) == right
    assert as_cells({each["window"]: each["output"]["orders"] for each in told}, users) == right
    assert job.done({0: len(records)}) == {0: len(records)}
    assert len(told) == len(records)


def test_an_order_waits_for_the_watermark_and_leaves_once():
    job = Orders(set(), watermark_ms=10_000)
    early, late = (json.dumps({"user": "a", "ordered_at": at}).encode() for at in (5_000, 25_000))
    job.add((0, 0), b"000000000001", early)
    waiting = job.answered(idle=False)
    job.add((1, 0), b"000000000002", late)

    assert waiting == []
    assert job.done({0: 1, 1: 1}) == {0: 0, 1: 0}
    assert [json.loads(each)["window"] for each in job.answered(idle=False)] == [1]
    assert [json.loads(each)["output"] for each in job.answered(idle=True)] == [{"orders": 1}]
    assert job.answered(idle=True) == []


def test_what_came_out_before_a_crash_does_not_leave_again_and_still_counts():
    job = Orders({(0, 0)}, watermark_ms=0)
    for offset, at in enumerate((5_000, 25_000)):
        job.add((0, offset), b"00000000000a", json.dumps({"user": "a", "ordered_at": at}).encode())

    assert [json.loads(each) for each in job.answered(idle=True)] == [
        {"campaign": "a", "window": 10, "output": {"orders": 1}, "of": [0, 1]}
    ]


def test_records_that_are_no_orders_are_left_out():
    job = Orders(set(), watermark_ms=0)
    for offset, value in enumerate((None, b"", b"not an event", b'{"u', b'{"user": 7, "ordered_at": 1}')):
        job.add((0, offset), b"000000000001", value)

    assert (job.unusable, job.answered(idle=True)) == (5, [])


def test_planted_mistakes_name_their_events():
    for name, case in planted.planted():
        wrong = [witness for check in conclude(case).checks for witness in check.witnesses]

        assert wrong or "all of them right" in name, name
        assert all(witness.event_ids and witness.event_ids[0] in witness.cell for witness in wrong), name


@pytest.mark.parametrize(
    ("value", "output"),
    [
        (b'{"campaign": "a", "window": 7, "output": {"orders": 3}}', ("a", "7", {"orders": "3"})),
        (b'{"campaign": "a", "window": 7, "output": {"orders": null}, "of": [0, 1]}', ("a", "7", {})),
        (b'{"window": 7, "output": {"orders": 3}}', None),
        (b'{"campaign": 1, "window": 7, "output": {"orders": 3}}', None),
        (b'{"campaign": "a", "window": 7, "output": {"orders": 3.5}}', None),
        (b'{"campaign": "a", "window": "7", "output": {"orders": 3}}', None),
        (b'{"campaign": "a", "window": 7, "output": {"outputs": 3}}', None),
        (b'{"campaign": "a", "window": 7, "output": 3}', None),
        (b"[7]", None),
        (b"\xff", None),
    ],
)
def test_an_output_is_a_number_of_an_event_and_whole_numbers(value, output):
    assert output_of(value) == output


def test_an_event_that_comes_out_again_is_counted_again():
    results = Topic(SimpleNamespace())  # type: ignore[arg-type]
    for at_ms, orders in enumerate((3, 4)):
        results._put_out("a", "7", {"orders": str(orders)}, str(at_ms))

    assert results._cells == {("orders:a", "7"): "4", ("outputs:a", "7"): "2"}
