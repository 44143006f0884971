"""A workload of another kind goes the same way: its tape, its log, its two routes, and what the checks say of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from generators.disorder import PRESETS
from generators.encode import Encoder, Message
from generators.profiles import steady
from generators.schedule import Schedule
from harness.evidence.ledger import Expectation, Ledger
from harness.evidence.observed import Observed, Watched, folded
from harness.judging import checks, log_audit
from harness.judging.checks.case import RunFacts
from harness.judging.judge import conclude
from harness.judging.lateness import CountedLog
from harness.kafka_log import recount
from harness.model import Outcome, TapeSpec
from harness.selftest import by_hand
from tests.quick.payments import SHOPS, SLIDES
from workloads import shipped
from workloads.base import COUNTS, NOTHING
from workloads.registry import codec_of, oracle_of
from workloads.sentinels import mark, totals_of

EPOCH_MS = 1_763_700_000_000
TAPE = TapeSpec(3, steady(200, 20_000), 3, 20, 2, SHOPS, 1, PRESETS["storm"], workload="payments")
SPEC = replace(by_hand.SPEC, tape=TAPE, window_ms=4000, watermark_ms=2000)
MARKS = tuple(mark(p, 0, p, EPOCH_MS + 90_000, "closing") for p in range(2))


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(shipped.WORKLOADS, "payments", "tests.quick.payments")


def log_of(spec) -> pa.Table:
    encoder = Encoder(codec_of(spec.tape), EPOCH_MS)
    parts: dict[int, list[Message]] = {0: [], 1: []}
    for block in Schedule(spec.tape).blocks():
        for partition, message in zip(block.partition.tolist(), encoder.batch(block), strict=True):
            parts[partition].append(message)
    for each in MARKS:
        parts[each.partition].append(encoder.mark(each))
    columns = ((p, [m["value"] for m in some], [m["key"] for m in some]) for p, some in parts.items())
    return pa.table(recount.columns_of(columns, codec_of(spec.tape)))


def honest() -> RunFacts:
    oracle, log = oracle_of(SPEC), log_of(SPEC)
    counted = CountedLog(log, None, SPEC, oracle, codec_of(TAPE)).whole
    events, marks = counted.events, Ledger.of(totals_of(oracle, codec_of(TAPE), MARKS))
    right = folded(oracle, events)
    planned = oracle.settle(oracle.plan(Schedule(TAPE).blocks()), EPOCH_MS)
    empty = np.zeros(0, dtype=np.int64)
    return replace(
        by_hand.case(),
        spec=SPEC,
        epoch_ms=EPOCH_MS,
        oracle=oracle,
        audit=log_audit.compare(Schedule(TAPE), EPOCH_MS, log, MARKS),
        tape_ledger=Ledger.of(planned) + marks,
        log_ledger=right,
        judged=by_hand.judged(events, batch=np.full(len(events), NOTHING)),
        expectation=Expectation(right, right),
        observed=Observed(right, ()),
        watched=Watched(empty, empty, empty, 50.0),
        told=(),
    )


def test_plan_and_log_agree_in_every_cell_and_every_value():
    case = honest()

    assert not case.audit.wrong
    assert dict(case.tape_ledger) == dict(case.log_ledger)
    assert len(case.log_ledger) > 3 * SHOPS * 8
    verdict = conclude(case)
    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert "payments, cents, payers" in verdict.sentence


def test_an_event_of_many_cells_and_values_is_one_event():
    case, log = honest(), log_of(SPEC)
    ids = np.asarray(log.column("event_id"))[np.asarray(log.column("kind")) == COUNTS]

    verdict = conclude(case)

    assert len(case.events) == SLIDES * 3 * len(ids)
    assert f"of {len(ids):,} events" in verdict.sentence
    assert verdict.totals["copies"] == len(ids) - len({*ids.tolist()}) > 0


def test_an_event_may_be_late_for_one_of_its_windows_and_not_for_the_next():
    case = honest()
    counted = CountedLog(log_of(SPEC), None, SPEC, case.oracle, codec_of(TAPE)).whole
    events, late = counted.events, counted.permitted
    windows: dict[tuple[int, int], set[bool]] = {}
    for number, offset, is_late in zip(events.partition.tolist(), events.offset.tolist(), late.tolist(), strict=True):
        windows.setdefault((number, offset), set()).add(is_late)

    assert {True, False} in windows.values()


def changed(case: RunFacts, value: int, by: int) -> RunFacts:
    """The first cell of one of its values that holds enough holds so much more."""
    cell = next(c for c, n in sorted(case.log_ledger.items()) if case.oracle.codes.key(c) // SHOPS == value and n > 2)
    return replace(case, observed=Observed(case.log_ledger + Ledger({cell: by}), ()))


@pytest.mark.parametrize(
    ("value", "by", "name", "word"),
    [
        (0, -1, "lost", "lost"),
        (0, 1, "duplicated", "duplicated"),
        (1, 1, "wrong", "wrong value"),
        (1, -1, "wrong", "wrong value"),
        (2, -1, "wrong", "wrong value"),
        (2, 1, "wrong", "wrong value"),
    ],
)
def test_a_wrong_value_is_found_under_the_name_that_fits_its_kind(value, by, name, word):
    found = {each.name: each for each in checks.run_all(changed(honest(), value, by))}

    assert (found[name].outcome, found[name].word) == (Outcome.FAIL, word)
    assert found[name].witnesses[0].cell.startswith(("payments", "cents", "payers")[value])
    assert found[name].witnesses[0].event_ids
    others = {"lost", "duplicated", "wrong"} - {name}
    assert all(found[other].outcome is Outcome.PASS for other in others)


def test_a_check_says_of_which_values_it_is_not_asked():
    found = {each.name: each for each in checks.run_all(honest())}

    assert "not applied to cents: a difference of it" in found["lost"].sentence
    assert "not applied to cents: it may fall" in found["early"].sentence
    assert "not applied to cents: it may fall" in found["non-monotonic"].sentence


def test_a_sum_that_falls_is_no_step_back_and_a_count_that_falls_is_one():
    case = honest()
    holding = [c for c, n in sorted(case.log_ledger.items()) if n >= 2]
    cells = [next(c for c in holding if case.oracle.codes.key(c) // SHOPS == value) for value in (0, 1)]

    def seen(cell: int) -> RunFacts:
        at_us = np.array([EPOCH_MS * 1000 + 30_000_000, EPOCH_MS * 1000 + 31_000_000])
        return replace(case, watched=Watched(at_us, np.array([cell, cell]), np.array([2, 1]), 50.0))

    assert checks.CHECKS["non-monotonic"](seen(cells[0])).outcome is Outcome.FAIL
    assert checks.CHECKS["non-monotonic"](seen(cells[1])).outcome is Outcome.PASS
