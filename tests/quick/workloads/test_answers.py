"""When marks are answered, by what kind of number their cells hold."""

from __future__ import annotations

from typing import Any, cast

import pytest

from generators.disorder import PRESETS
from generators.profiles import steady
from harness.evidence.ledger import Ledger
from harness.evidence.observed import Observed
from harness.model import FaultSpec, RunSpec, TapeSpec
from harness.results.redis_scan import HASH, Row
from harness.runner.result_polling import ExpectedSentinels, ResultPoller
from tests.quick.declared import TOML
from workloads.base import Kind, Value
from workloads.declared.declaration import load
from workloads.registry import codec_of, oracle_of, results_of
from workloads.sentinels import mark, totals_of

EPOCH_MS = 1_767_225_600_000
PARTITIONS = 3
QUESTIONS = {
    "count": TOML,
    "monotone": TOML.replace("count(*) AS orders, ", "")
    .replace('orders = "count"\n', "")
    .replace('cents = "sum"\nbuyers = "monotone"', 'buyers = "monotone"\ncents = "sum"'),
    "per event": TOML.split("[oracle]")[0]
    + """[oracle]
keys = ["event_id"]
cells = "SELECT event, event_id, NULL AS closes, pieces FROM events"
fold = "SELECT event_id, sum(pieces) AS pieces FROM cells GROUP BY ALL"
[oracle.values]
pieces = "per event"
""",
}


class Results:
    """A world of which only the results are looked at."""

    def __init__(self) -> None:
        self.held: list[Row] = []
        self.results = self.servers = self.fault = self

    def reachable(self) -> bool:
        return True

    def snapshot(self) -> object:
        return tuple(self.held)

    def rows(self) -> list[Row]:
        return self.held


def asked(question, folder):
    """The oracle, the marks, and what the results are looked at with."""
    (folder / "workload.toml").write_text(question)
    tape = TapeSpec(
        11,
        steady(500, 2000),
        3,
        20,
        PARTITIONS,
        10,
        10,
        PRESETS["none"],
        workload="orders",
        declaration=load(folder).sealed,
    )
    codec, oracle = codec_of(tape), oracle_of(RunSpec("", "", "", tape, 10_000, 10_000, "", None, FaultSpec("none")))
    marks = [mark(p, 0, p, EPOCH_MS, "opening") for p in range(PARTITIONS)]
    world, keys = Results(), results_of(tape).keys
    totals = zip(*(column.tolist() for column in totals_of(oracle, codec, marks)), strict=True)
    rows = [
        Row(keys[oracle.codes.key(cell)], str(oracle.codes.field(cell)), str(value), HASH) for cell, value in totals
    ]
    return world, ResultPoller(cast(Any, world), oracle, codec, keys), marks, rows


@pytest.mark.parametrize("kind", QUESTIONS)
def test_marks_are_answered_when_their_cells_hold_what_they_make_of_them(kind, tmp_path):
    world, answers, marks, rows = asked(QUESTIONS[kind], tmp_path)
    awaited = answers.awaited(marks)
    seen = [answers.answered(awaited)]

    for row in rows:
        world.held.append(row)
        seen.append(answers.answered(awaited))

    assert seen[0] == 0
    assert seen[-1] == PARTITIONS
    if kind == "per event":
        assert seen == [0, 1, 2, 3]
        assert answers.fields_of(awaited) == [each.id for each in marks]


def test_the_sentence_without_an_answer_names_the_window_and_its_time(tmp_path):
    _, answers, marks, _ = asked(TOML, tmp_path)

    counted = answers.counted(answers.awaited(marks), "opening")

    assert counted == f"0 of 3 opening events have been counted in window {EPOCH_MS} (00:00:00 UTC)"


def test_a_count_that_is_too_small_answers_some_of_them(tmp_path):
    world, answers, marks, rows = asked(TOML, tmp_path)
    world.held = [rows[0]._replace(value="2")]

    assert answers.answered(answers.awaited(marks)) == 2


SLIDING = TOML.replace("tumbling(ordered_at, 10000) AS opens", "unnest(sliding(ordered_at, 10000, 5000)) AS opens")


def test_one_of_several_windows_is_an_answer(tmp_path):
    """A job whose windows are off by one step is wrong, and not stuck."""
    world, answers, marks, rows = asked(SLIDING, tmp_path)
    counts = [row for row in rows if row.key.startswith("orders:")]
    world.held = counts[1:]

    assert len(counts) == 2
    assert answers.answered(answers.awaited(marks)) == PARTITIONS


def test_pairs_are_answered_by_half_as_many_rows():
    awaited = ExpectedSentinels(4, Value("pairs", Kind.COUNT), {7: 2})

    assert [awaited.answered(Observed(Ledger({7: count}), ())) for count in (0, 1, 2)] == [0, 2, 4]


@pytest.mark.parametrize("kind", [Kind.SUM, Kind.MONOTONE])
def test_a_wrong_number_is_an_answer_and_nothing_is_none(kind):
    awaited = ExpectedSentinels(4, Value("any", kind), {7: 90, 8: 80})

    assert awaited.answered(Observed(Ledger(), ())) == 0
    assert awaited.answered(Observed(Ledger({7: 3}), ())) == 4
    assert awaited.answered(Observed(Ledger(), (), zeros=(8,))) == 4
