"""A job that came to answer another question: what is right, by rules written the slow way, and what has a name."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.disorder import PRESETS
from generators.profiles import steady
from generators.schedule import Schedule
from harness.evidence.changed_query import CutoverRule, QueryChange, asked_of
from harness.evidence.ledger import Ledger
from harness.evidence.observed import NO_BATCH, LogEvents
from harness.evidence.send_index import SentTimes
from harness.faults.registry import parse
from harness.judging import changed, facts
from harness.judging.changed import Changed
from harness.judging.checks import question
from harness.judging.lateness import Countable, below
from harness.judging.questions import keys_of
from harness.model import FaultReport, Outcome, SinkClaim, TapeSpec, UsageError
from harness.rundir.store import Store
from harness.selftest.by_hand import ORACLE, case
from harness.selftest.by_hand import SPEC as ASKED
from workloads.ad_impressions.schema import EVENT_TYPES
from workloads.cells import Codes
from workloads.registry import question_of, results_of

LONG, SHORT = 20, 10
# Partition, time, and whether the old question and the new one count it.
Event = tuple[int, int, bool, bool]
EVENTS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 60), st.booleans(), st.booleans()), max_size=25)


SENT = ("intended_us", "sent_us")


def counted(events: list[Event], which: int, window: int) -> Countable:
    """Those that one of the questions counts; a cell is named by the start of its window."""
    offsets: Counter[int] = Counter()
    rows = []
    for event in sorted(events, key=lambda event: event[0]):
        if event[which]:
            rows.append((event[0], offsets[event[0]], event[1]))
        offsets[event[0]] += 1
    partition, offset, time = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    cell, nothing = time // window * window, np.zeros(len(rows), dtype=np.bool_)
    found = LogEvents(partition.astype(np.int16), offset, partition << 40 | offset, time, cell, cell + window)
    return Countable(found, nothing, nothing, np.full(len(rows), NO_BATCH), True, nothing)


def totals(of: Countable) -> Counter[int]:
    return Counter(of.events.cell.tolist())


def by_hand(events: list[Event], means: CutoverRule, seam: tuple[int, ...]) -> Counter[int]:
    offsets: Counter[int] = Counter()
    old, new, everything = Counter[int](), Counter[int](), Counter[int]()
    for partition, time, counts, counts_anew in events:
        cell, before = time // SHORT * SHORT, offsets[partition] < seam[partition]
        offsets[partition] += 1
        old[cell] += counts and before
        new[cell] += counts_anew and not before
        everything[cell] += counts_anew
    if means is CutoverRule.FRESH:
        return +everything
    return +(old + new if means is CutoverRule.CARRY else Counter({cell: new[cell] or old[cell] for cell in old | new}))


@given(EVENTS, st.tuples(st.integers(0, 12), st.integers(0, 12)), st.sampled_from([*CutoverRule][1:]))
def test_what_counts_is_what_was_declared_on_each_side_of_the_seam(events, seam, means):
    old, new = counted(events, 2, SHORT), counted(events, 3, SHORT)
    found = changed.by_rule(means, old, new, seam)

    assert totals(found) == by_hand(events, means, seam)
    places = [*zip(found.events.partition.tolist(), found.events.offset.tolist(), strict=True)]
    assert places == sorted(places)


@given(EVENTS, st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_windows_of_two_lengths_collide_where_both_begin(events, seam):
    old, new = counted(events, 2, SHORT), counted(events, 3, LONG)
    before = {*old.events.cell[below(old.events, seam)].tolist()}
    behind = {*new.events.cell[~below(new.events, seam)].tolist()}

    assert changed.collisions(old, new, seam) == before & behind
    assert not changed.collisions(old, counted(events, 3, SHORT), seam)


def test_what_was_written_and_not_committed_is_known_for_the_cells_that_were_touched():
    old = counted([(0, 1, True, False), (0, 11, True, False), (0, 12, True, False), (0, 21, True, False)], 2, SHORT)

    assert changed.left_by(CutoverRule.CARRY, old, (2,), (3,)) == {10: {2}}
    assert changed.left_by(CutoverRule.CARRY, old, (2,), (2,)) == {}
    assert changed.left_by(CutoverRule.FRESH, old, (2,), (3,)) == {0: {1}, 10: {1, 2}}
    assert changed.left_by(CutoverRule.CARRY, old, (2,), ()) == {0: range(0), 10: range(2, 3), 20: range(1, 2)}
    assert changed.left_by(CutoverRule.FRESH, old, (2,), ()) == {0: range(1, 2), 10: range(1, 3), 20: range(1, 2)}
    assert changed.on_both_sides(old, (2,)) == 1


CELLS = Ledger({1 << 43: 3, 2 << 43: 4})
PROVEN = Changed(CutoverRule.CARRY, (5,), question.FEWEST_CELLS, frozenset(), {}, {})


@pytest.mark.parametrize(
    ("change", "outcome", "word"),
    [
        (None, Outcome.PASS, ""),
        (PROVEN, Outcome.PASS, ""),
        (replace(PROVEN, restored=()), Outcome.UNKNOWN, "no seam"),
        (replace(PROVEN, both_sides=question.FEWEST_CELLS - 1), Outcome.UNKNOWN, "vacuous"),
        (replace(PROVEN, collisions=frozenset({1 << 43})), Outcome.FAIL, "collision"),
    ],
)
def test_a_change_has_to_be_proven_and_may_collide(change, outcome, word):
    found = question.check(replace(case(), change=change))

    assert (found.outcome, found.word) == (outcome, word)


@pytest.mark.parametrize("word", ["ignored", "partial"])
def test_what_another_question_explains_has_its_name(word):
    wrong = replace(case(), observed=replace(case().observed, counts=CELLS))
    found = question.check(replace(wrong, change=replace(PROVEN, others={word: CELLS})))

    assert (found.outcome, found.word) == (Outcome.FAIL, word)
    assert found.witnesses
    assert question.check(replace(wrong, change=PROVEN)).outcome is Outcome.PASS  # then other checks name it


def test_a_write_that_was_not_committed_explains_only_what_it_touched():
    wrong = replace(case(), observed=replace(case().observed, counts=CELLS))
    seen = {each.cell: frozenset({each.seen}) for each in wrong.differences}
    first = next(iter(seen))

    assert question.check(replace(wrong, change=replace(PROVEN, left=seen))).word == "residue"
    assert not question.check(replace(wrong, change=replace(PROVEN, left={first: seen[first]}))).word


@pytest.mark.parametrize(
    ("words", "telling"),
    [
        (("collision", "lost", "non-monotonic"), ("collision",)),
        (("residue", "phantom", "stopped"), ("residue", "stopped")),
        (("lost", "duplicated"), ("lost", "duplicated")),
        ((), ()),
    ],
)
def test_what_has_a_name_is_not_named_again_by_each_check_that_sees_it(words, telling):
    assert question.telling(words) == telling


def test_a_plan_says_what_is_asked_and_what_that_means():
    fault = parse("kill@t>=2s; change-job(counts=click, window=20s, means=anew)@t>=5s")

    assert asked_of(fault) == QueryChange(CutoverRule.ANEW, {"counts": "click", "window_ms": "20000"})
    assert asked_of(parse("change-job@t>=5s")) is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"counts": "clicks"}, "counts = 'clicks' is none of view, click, purchase"),
        ({"by": "page"}, "by = 'page' is none of campaign, ad"),
        ({"window_ms": "1234"}, "no multiple of"),
    ],
)
def test_a_question_that_nobody_knows_is_refused(asked, words):
    with pytest.raises(UsageError, match=words):
        question_of(ASKED, asked, Codes())


def test_a_workload_without_another_question_says_so():
    with pytest.raises(UsageError, match="Nobody knows another question of the workload page_visits"):
        question_of(replace(ASKED, tape=replace(ASKED.tape, workload="page_visits")), {}, Codes())


@pytest.mark.parametrize("asked", [{"counts": "click+purchase"}, {"by": "ad"}, {"window_ms": "20000"}])
def test_both_routes_to_the_other_question_agree(asked):
    """Of the plan and of events of the log."""
    spec = replace(ASKED, tape=TapeSpec(11, steady(500, 4000), 2, 20, 2, 4, 3, PRESETS["mobile"]), window_ms=10_000)
    found = question_of(spec, asked, Codes())
    epoch_ms, blocks = 1_763_700_000_000, [*Schedule(spec.tape).blocks()]
    planned, seen, types = found.settle(found.plan(blocks), epoch_ms), Ledger(), set()
    for block in blocks:
        here = block.poison == 0
        columns = {name: column[here] for name, column in block.content.items()}
        places = found.places({**columns, "event_time_ms": block.event_time_rel_ms[here] + epoch_ms})
        seen += Ledger.of(found.fold(places.cell, places.columns))
        types |= {EVENT_TYPES[int(each)] for each in columns["event_type"][places.row]}

    assert Ledger.of(planned) == seen
    assert types == set(asked.get("counts", "view").split("+"))
    assert len(found.keys) == len(results_of(spec.tape).keys) * (4 if asked.get("by") == "ad" else 1)
    assert all(found.name(cell, epoch_ms).startswith(asked.get("by", "campaign")) for cell in seen)
    assert all("), window " in found.name(cell, epoch_ms) for cell in seen)


def test_results_of_ads_are_looked_for_where_they_are_asked_for():
    spec = replace(ASKED, fault=parse("change-job(by=ad, means=carry)@t>=5s"))
    campaigns = results_of(spec.tape).keys

    assert [*keys_of(spec)][: len(campaigns)] == [*campaigns]
    assert all(key.startswith("ad:") for key in keys_of(spec)[len(campaigns) :])
    assert keys_of(ASKED) == campaigns


@pytest.mark.parametrize("means", [CutoverRule.CARRY, CutoverRule.ANEW])
@pytest.mark.parametrize("exact", [(True, True), (True, False), (False, True)])
def test_what_is_exact_on_one_side_of_the_seam_only_is_not_exact(means, exact):
    events = [(0, 1, True, True), (0, 15, True, True)]
    old, new = (replace(counted(events, which, SHORT), exact=exact[which - 2]) for which in (2, 3))

    assert changed.by_rule(means, old, new, (1, 1)).exact is all(exact)


@pytest.mark.parametrize("means", [CutoverRule.CARRY, CutoverRule.FRESH, CutoverRule.ANEW])
def test_what_is_expected_after_a_change_is_what_its_rule_says(means, monkeypatch, tmp_path):
    for name in ("by_the_tape", "_expected", "_asked_of_tape"):
        monkeypatch.setattr(facts, name, lambda *_: Ledger())
    events = [(0, 1, True, True), (0, 15, True, False), (0, 17, True, True), (1, 3, False, True)]
    old, new = (counted(events, which, SHORT) for which in (2, 3))
    fault = parse(f"change-job(counts=click, means={means.value})@now")
    books = pa.table({name: pa.array([], pa.int64()) for name in ("server", "slot_lo", "slot_hi", *SENT)})
    run: Any = SimpleNamespace(
        store=Store(tmp_path),
        sends=books,
        sent_times=SentTimes(books, 0),
        in_totals=False,
        oracle=ORACLE,
        question=ORACLE,
        countable_anew=new,
        change=FaultReport(fault, True, True, "seen", restored=(2, 0)),
        claim=SinkClaim("default", "keep", "none"),
        spec=ASKED,
    )
    log: Any = pa.table({})
    whole: Any = SimpleNamespace(parts=lambda: [old], whole=old, exact=old.exact)
    found = facts._compared(run, log, whole)

    right = {rule: Ledger(totals(changed.by_rule(rule, old, new, (2, 0)))) for rule in (means, CutoverRule.ANEW)}
    assert found.expectation.may == found.expectation.must == right[means]
    assert found.change
    assert found.change.others == {"ignored": Ledger(totals(old)), "partial": right[CutoverRule.ANEW]}


def test_what_is_known_of_each_event_stays_with_it_when_two_questions_events_are_merged():
    """Each mask is another one, and says of an event whether its number is in it."""
    odd = {"permitted": (0, 3), "dropped": (1, 4), "counted_before": (2, 4)}

    def part(offsets: list[int], exact: bool) -> Countable:
        offset = np.array(offsets, dtype=np.int64)
        masks = {name: np.isin(offset, numbers) for name, numbers in odd.items()}
        found = LogEvents(np.zeros(len(offset), dtype=np.int16), offset, offset, offset, offset, offset)
        return Countable(found, batch=offset + 100, exact=exact, **masks)

    both = changed._together(part([1, 4], True), part([0, 2, 3], True))

    assert both.events.id.tolist() == [0, 1, 2, 3, 4]
    assert both.batch.tolist() == [100, 101, 102, 103, 104]
    assert {name: np.flatnonzero(getattr(both, name)).tolist() for name in odd} == {
        name: list(numbers) for name, numbers in odd.items()
    }
    assert both.exact
    assert not changed._together(part([1], True), part([0], False)).exact


def test_after_a_change_the_cells_of_both_questions_are_compared(monkeypatch):
    """By the tape as by the log, those of the new one are added to those of the old one."""
    ledgers = {name: Ledger({number: number}) for number, name in enumerate(("planned", "asked", "old", "new"), 1)}
    judged = SimpleNamespace(fold=lambda _oracle, *choices: [ledgers["old"]] * len(choices))
    parts = {
        "by_the_tape": ledgers["planned"],
        "_asked_of_tape": ledgers["asked"],
        "folded": ledgers["new"],
        "_judged": judged,
        "_changed": (SimpleNamespace(exact=True), None),
        "_expected": None,
        "_unread": None,
    }
    for name, part in parts.items():
        monkeypatch.setattr(facts, name, lambda *_, part=part: part)
    run: Any = SimpleNamespace(
        oracle=None,
        spec=SimpleNamespace(time="event"),
        in_totals=False,
        claim=SimpleNamespace(late="keep"),
        question="by ad",
        countable_anew=SimpleNamespace(events=None),
    )
    log: Any = None
    counted: Any = SimpleNamespace(parts=None, exact=True, whole=None)
    found: Any = facts._compared(run, log, counted)

    assert found.tape == ledgers["planned"] + ledgers["asked"]
    assert found.log == ledgers["old"] + ledgers["new"]
    assert found.oracle == "by ad"
    run.question = None
    assert facts._compared(run, log, counted).log == ledgers["old"]
