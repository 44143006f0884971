"""Every check has a planted bug that it catches, under its right name, and an honest case that it lets pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evidence.checksums import Checksum
from harness.evidence.ledger import Expectation, Ledger
from harness.evidence.observed import AfterStop, Glitch, Named, NamedLate, Observed, Stray, Watched
from harness.faults.registry import FAULTS
from harness.judging import checks
from harness.judging.checks import early, explained, meanwhile, stale
from harness.judging.checks.case import join
from harness.judging.checks.non_monotonic import TAKES_BACK
from harness.judging.checks.seam import wrong_events
from harness.judging.judge import conclude
from harness.model import (
    Batch,
    BatchLog,
    CheckResult,
    EngineReport,
    Expiring,
    FaultReport,
    FaultSpec,
    FileSeam,
    Outcome,
    Progress,
    When,
    Witness,
)
from harness.selftest import planted
from harness.selftest.by_hand import CODES, FIRST, LAST, SUMS, cell, changed, dated, ledger, watched
from tests.quick.cases import CAMPAIGNS, EPOCH_MS, SPEC, WINDOW_MS, case, events
from tests.quick.judging.test_planted import part_of, run_named
from workloads.base import Kind
from workloads.registry import oracle_of

KILL = FaultSpec("kill@c3:batch=3", "kill", When("point", "c3", 3))
HONEST = case()
WITNESS = Witness("a cell", "1", "2", "+1", from_ms=EPOCH_MS, until_ms=EPOCH_MS + 1)


def result(name, changed) -> CheckResult:
    return checks.CHECKS[name](changed)


def test_records_that_another_client_deleted_are_the_servers_fault():
    cut = "records of topic t in Kafka were deleted, but not by this run: partition 0 starts at offset 500"
    lacking = replace(HONEST.audit, missing=Named(500, ("000000000001",)))
    found = result("log", case(audit=lacking, cut=cut))

    assert (found.outcome, found.word) == (Outcome.UNKNOWN, "unserved")
    assert found.sentence.startswith(f"{cut}; of ")
    assert found.sentence.endswith(" planned records the Kafka log has 500 missing")
    assert result("log", case(audit=lacking)).word == "producer-lost"
    doubled = replace(lacking, missing=Named(), doubled=Named(1, ("000000000001",)))
    assert result("log", case(audit=doubled, cut=cut)).word == "producer-dup"


def test_a_wrong_zero_is_a_value_and_nothing_is_none():
    honest = part_of("payments")["payments, all of them right"]
    cells = np.array([*honest.observed.counts])
    summed = int(cells[honest.are(cells, {Kind.SUM})][0])
    left = Ledger({cell: value for cell, value in honest.observed.counts.items() if cell != summed})

    zero = result("wrong", replace(honest, observed=Observed(left, (), zeros=(summed,))))
    nothing = result("wrong", replace(honest, observed=Observed(left, ())))

    assert (zero.count, nothing.count) == (1, 1)
    assert "none" not in zero.sentence
    assert ", 1 of them holds none" in nothing.sentence


def test_an_honest_run_passes_every_check():
    verdict = conclude(HONEST)

    assert verdict.outcome is Outcome.PASS
    assert [check.outcome for check in verdict.checks] == [Outcome.PASS] * len(checks.CHECKS)
    assert verdict.slack == 0
    assert verdict.words == ()


@given(st.dictionaries(st.sampled_from(sorted(HONEST.log_ledger)), st.integers(-20, 20).filter(bool), max_size=5))
def test_mutated_counts_are_named_to_the_single_event(changes):
    changes = {cell: max(by, -HONEST.log_ledger.count(cell)) for cell, by in changes.items()}
    seen = HONEST.log_ledger + Ledger(changes)

    verdict = conclude(case(observed=Observed(seen, ())))

    by_name = {check.name: check for check in verdict.checks}
    assert by_name["lost"].count == -sum(by for by in changes.values() if by < 0)
    assert by_name["duplicated"].count == sum(by for by in changes.values() if by > 0)
    assert (verdict.outcome is Outcome.PASS) == (not changes)
    words = set()
    words |= {"lost"} if any(by < 0 for by in changes.values()) else set()
    words |= {"duplicated"} if any(by > 0 for by in changes.values()) else set()
    assert set(verdict.words) == words


def test_a_lost_event_is_found_with_its_campaign_window_and_candidates():
    code = cell(2, EPOCH_MS + WINDOW_MS)
    changed = case(observed=Observed(HONEST.log_ledger - Ledger({code: 1}), ()))

    found = result("lost", changed)

    assert (found.outcome, found.word, found.count, found.blame) == (Outcome.FAIL, "lost", 1, "engine")
    assert "campaign 2 (" in found.witnesses[0].cell
    assert "(+10 s)" in found.witnesses[0].cell
    assert set(found.witnesses[0].event_ids) <= {f"{i:012x}" for i in range(300) if i % 3 == 2}


def test_what_a_stuck_engine_has_not_reached_is_unseen_not_lost():
    stuck = EngineReport("stuck", "nothing has moved for 30 s", last_lines=("last words",))
    changed = case(observed=Observed(Ledger(), ()), engine=stuck)

    verdict = conclude(changed)

    assert verdict.outcome is Outcome.FAIL
    assert verdict.words == ("stuck",)
    assert result("lost", changed).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("state", ["stuck", "crashed"])
def test_an_engine_that_does_not_come_through_fails_under_its_word(state):
    found = result("engine", case(engine=EngineReport(state, "it ended", last_lines=("boom",))))

    assert (found.outcome, found.word) == (Outcome.FAIL, state)
    assert found.witnesses[0].detail == "boom"


@pytest.mark.parametrize(("times", "more"), [(1, "once"), (2, "twice"), (3, "3 times")])
def test_a_batch_that_was_counted_again_is_named_with_its_fault(times, more):
    log = events()
    batch = np.where(log.time_ms < EPOCH_MS + 15_000, 3, 4)
    again = ledger(log, batch == 3)
    seen = sum([again] * times, start=HONEST.log_ledger)
    report = FaultReport(KILL, True, True, "seen", batch=3, replayed=True)
    changed = case(log, batch=batch, observed=Observed(seen, ()), faults=(report,))

    found = result("duplicated", changed)

    assert (found.outcome, found.count) == (Outcome.FAIL, times * again.total)
    assert f"exactly batch 3 {more} more, which was replayed after kill@c3:batch=3" in found.sentence
    assert found.witnesses[0].batches == (3,)


def test_a_window_and_a_campaign_that_nobody_expects_are_phantoms():
    window = Ledger({cell(0, EPOCH_MS + 3_600_000): 5})
    stray = Stray("nobody[1750000000000]", "7", "campaign")

    assert result("phantom", case(observed=Observed(HONEST.log_ledger + window, ()))).word == "phantom"
    unknown = result("phantom", case(observed=Observed(HONEST.log_ledger, (stray,))))
    assert unknown.word == "phantom"
    assert "bookkeeping = ['nobody'] in its manifest" in unknown.sentence
    assert result("duplicated", case(observed=Observed(HONEST.log_ledger + window, ()))).outcome is Outcome.PASS


def test_a_count_that_is_no_number_is_named():
    found = result("readable", case(observed=Observed(HONEST.log_ledger, (Stray("c[w]", "12?", "number"),))))

    assert (found.outcome, found.word) == (Outcome.FAIL, "unreadable")
    assert "'12?' at c[w]" in found.sentence


@pytest.mark.parametrize(
    ("keys", "pattern"),
    [(("stats:1", "stats:20"), "'stats:*'"), (("a1", "a2"), "'a1'"), (("stats",), "'stats'")],
)
def test_keys_of_its_own_are_suggested_as_one_pattern_if_they_begin_alike(keys, pattern):
    strays = tuple(Stray(f"{key}[n]", "1", "campaign") for key in keys)
    found = result("phantom", case(observed=Observed(HONEST.log_ledger, strays)))

    assert f"bookkeeping = [{pattern}] in its manifest" in found.sentence


@pytest.mark.parametrize("kind", ["missing", "doubled", "foreign", "altered"])
def test_a_log_that_differs_from_the_tape_makes_the_run_unknown_never_the_engine_guilty(kind):
    wrong: dict[str, Any] = {kind: Named(2, ("00000000002a (partition 3, offset 17)", "an unknown key (x)"))}
    changed = case(audit=replace(HONEST.audit, **wrong))

    found = result("log", changed)

    assert (found.outcome, found.count, found.blame) == (Outcome.UNKNOWN, 2, "producer or Kafka")
    assert [(w.cell, w.detail, w.event_ids) for w in found.witnesses] == [
        ("event 00000000002a", "partition 3, offset 17", ("00000000002a",)),
        ("event an unknown key", "x", ("an unknown key",)),
    ]
    assert conclude(changed).outcome is Outcome.UNKNOWN


def struck(at_s, healed_s, **changes):
    """A kill that was on from the one second of the load to the other; 0: it was never healed."""
    healed_ms = EPOCH_MS + round(healed_s * 1000) if healed_s else 0
    return replace(
        FaultReport(KILL, True, True, "SIGKILL", EPOCH_MS + round(at_s * 1000), healed_ms=healed_ms), **changes
    )


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (struck(12.4, 13), "; kill@c3:batch=3 was active from 12.4 s to 13.0 s"),
        (struck(1, 2), ""),
        (struck(1, 0), "; kill@c3:batch=3 was active from 1.0 s on"),
        (struck(29, 29.5), "; kill@c3:batch=3 was active from 29.0 s to 29.5 s"),
        (struck(30.5, 31), ""),
        (struck(12.4, 13, landed=False), ""),
    ],
    ids=["in it", "before", "never healed", "while late events come", "after", "did not land"],
)
def test_a_fail_names_the_fault_that_was_on_while_its_cells_were_counted(by, fault, words):
    code = cell(2, EPOCH_MS + WINDOW_MS)
    changed = case(observed=Observed(HONEST.log_ledger + Ledger({code: by}), ()), faults=(fault,))

    found = result("lost" if by < 0 else "duplicated", changed)
    judged = {check.name: check for check in checks.run_all(changed)}[found.name]

    assert judged.sentence == found.sentence + words


def test_a_fault_that_a_fail_names_already_is_not_named_twice():
    seen = CheckResult("lost", Outcome.FAIL, "after kill@c3:batch=3", witnesses=(WITNESS,))

    assert meanwhile.with_faults(case(faults=(struck(0, 30),)), seen).sentence == "after kill@c3:batch=3"


def test_what_is_right_or_unknown_names_no_fault():
    for outcome in (Outcome.PASS, Outcome.UNKNOWN):
        seen = CheckResult("lost", outcome, "as it is", witnesses=(WITNESS,))
        assert meanwhile.with_faults(case(faults=(struck(0, 30),)), seen) is seen


def test_an_engine_that_does_not_go_on_names_all_faults_that_struck():
    report = EngineReport("crashed", "it ended by itself")
    judged = {c.name: c for c in checks.run_all(case(engine=report, faults=(struck(1, 2), struck(3, 0))))}["engine"]

    assert judged.sentence == (
        "it ended by itself; kill@c3:batch=3 was active from 1.0 s to 2.0 s; kill@c3:batch=3 was active from 3.0 s on"
    )


def test_a_step_back_names_the_fault_of_its_moment():
    watched = HONEST.watched
    assert watched is not None
    count = watched.count.copy()
    row = int(np.flatnonzero(watched.at_us >= (EPOCH_MS + 15_000) * 1000)[0])
    count[row] = -1
    changed = case(watched=replace(watched, count=count), faults=(struck(14.9, 15.4), struck(20, 21)))

    judged = {check.name: check for check in checks.run_all(changed)}["non-monotonic"]

    assert judged.outcome is Outcome.FAIL
    assert judged.sentence.count("was active from 14.9 s to 15.4 s") == 1
    assert "20.0" not in judged.sentence


def with_copies(count):
    """Some events are in the log twice, as the tape had planned, each time with the id of the first one."""
    log, again = events(), events().only(np.arange(300) < count)
    pairs = ((getattr(log, name), getattr(again, name)) for name in ("partition", "offset", "id", "time_ms", "cell"))
    partition, offset, ids, time_ms, cells = map(np.concatenate, pairs)
    offset[300:] += 300  # each a record of its own
    rows = np.lexsort((offset, partition))
    return dated(*(each[rows] for each in (partition, offset, ids, CODES.keys(cells), time_ms)))


def test_copies_that_count_twice_by_the_rules_are_said():
    verdict = conclude(case(with_copies(7), told=HONEST.told))

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert verdict.sentence.endswith("; 7 copies in the tape count twice, by the rules")
    assert verdict.totals["copies"] == 7
    assert "copies" not in conclude(HONEST).sentence


def test_a_job_that_leaves_copies_out_is_told_that_they_count():
    log = with_copies(7)

    verdict = conclude(case(log, observed=Observed(HONEST.log_ledger, ())))
    other = conclude(case(log, observed=Observed(HONEST.log_ledger - Ledger({cell(2, EPOCH_MS): 1}), ())))

    assert "7 events are missing" in verdict.sentence
    assert "exactly the 7 copies in the tape, which count twice by the rules" in verdict.sentence
    assert "copies" not in other.sentence


def test_two_oracles_that_disagree_make_the_run_unknown():
    changed = case(tape_ledger=HONEST.log_ledger + Ledger({cell(0, EPOCH_MS): 1}))

    assert result("oracle", changed).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("by", [1, 2])
def test_an_engine_that_holds_what_only_the_tape_knows_is_to_blame_for_nothing(by):
    """It may have read a record that the log lost: nobody can tell, and nobody is accused."""
    code = cell(0, EPOCH_MS)
    more = HONEST.log_ledger + Ledger({code: by})
    changed = case(tape_ledger=more, observed=Observed(more, ()))

    verdict = conclude(changed)

    assert dict(changed.doubt_in_all.missing) == {code: by}
    assert (verdict.outcome, result("duplicated", changed).outcome) == (Outcome.UNKNOWN, Outcome.PASS)


@pytest.mark.parametrize("by", [1, 2])
def test_an_engine_that_does_not_hold_what_only_the_log_knows_is_to_blame_for_nothing(by):
    code = cell(0, EPOCH_MS)
    fewer = HONEST.log_ledger - Ledger({code: by})
    changed = case(tape_ledger=fewer, observed=Observed(fewer, ()))

    assert dict(changed.doubt_in_all.extra) == {code: by}
    assert (conclude(changed).outcome, result("lost", changed).outcome) == (Outcome.UNKNOWN, Outcome.PASS)


@pytest.mark.parametrize(
    "report",
    [
        FaultReport(KILL, False, True, "batch=3 never came"),
        FaultReport(KILL, True, False, "still down"),
        FaultReport(KILL, False, True, "no such point", reachable=False),
    ],
)
def test_a_fault_that_did_not_land_or_heal_is_unknown(report):
    planned = replace(SPEC, fault=KILL)

    assert result("fault", case(spec=planned, faults=(report,))).outcome is Outcome.UNKNOWN
    assert result("fault", case(spec=planned, faults=())).outcome is Outcome.UNKNOWN


def test_a_run_that_could_not_have_failed_is_unknown():
    nothing = events(0)
    one_window = events(20)

    assert result("vacuity", case(nothing, audit=replace(HONEST.audit, found=0))).outcome is Outcome.UNKNOWN
    assert result("vacuity", case(nothing)).outcome is Outcome.UNKNOWN
    assert result("vacuity", case(sent=0)).outcome is Outcome.UNKNOWN
    assert result("vacuity", case(one_window)).outcome is Outcome.UNKNOWN


def late_case(limit, *, by_us=False):
    """The first five events dropped, as the batch log says."""
    log = events()
    gone = np.zeros(len(log), dtype=np.bool_)
    gone[:5] = True
    kept = ledger(log, ~gone)
    evidence = BatchLog((Batch(0, {0: 150, 1: 150}, EPOCH_MS + 20_000),), drops_late=True, complete=True)
    return case(
        log,
        spec=replace(SPEC, late_dropped_max=limit),
        dropped=gone,
        permitted=gone,
        sent_late=gone if by_us else np.zeros(len(log), dtype=np.bool_),
        batch=np.zeros(len(log), dtype=np.int64),
        expectation=Expectation(kept, kept),
        observed=Observed(kept, ()),
        drops_late=True,
        batch_log=evidence,
        exact=True,
    )


def test_late_events_are_counted_exactly_and_bounded():
    assert result("late", late_case(None)).outcome is Outcome.PASS
    assert result("late", late_case(5)).outcome is Outcome.PASS
    assert result("late", late_case(None)).count == 5
    found = result("late", late_case(4))
    assert (found.outcome, found.word, found.count) == (Outcome.FAIL, "late-dropped", 5)
    assert "10.0 s before the watermark of batch 0" in found.witnesses[0].detail


def test_events_that_we_sent_late_ourselves_are_not_held_against_the_engine():
    found = result("late", late_case(0, by_us=True))

    assert (found.outcome, found.blame) == (Outcome.UNKNOWN, "generator")


def test_without_a_batch_log_what_the_cells_lack_is_counted_as_late():
    cell = min(HONEST.log_ledger)
    must = HONEST.log_ledger - Ledger({cell: 4})
    permitted = np.zeros(len(HONEST.events), dtype=np.bool_)
    permitted[np.flatnonzero(HONEST.rows_of(cell))[:4]] = True
    changed = case(
        permitted=permitted,
        expectation=Expectation(must, HONEST.log_ledger),
        observed=Observed(HONEST.log_ledger - Ledger({cell: 3}), ()),
        drops_late=True,
    )

    found = result("late", changed)

    assert (found.outcome, found.count) == (Outcome.FAIL, 3)
    assert (found.witnesses[0].expected, found.witnesses[0].seen) == ("34", "31")
    assert (conclude(changed).slack, conclude(changed).totals["late_dropped"]) == (4, 3)
    assert result("unaccounted", changed).sentence == "300 records = 297 counted + 3 late, to 4"


def test_what_an_engine_did_not_reach_is_not_called_late():
    cell = min(HONEST.log_ledger)
    stuck = case(
        expectation=Expectation(HONEST.log_ledger - Ledger({cell: 4}), HONEST.log_ledger),
        observed=Observed(HONEST.log_ledger - Ledger({cell: 3}), ()),
        drops_late=True,
        engine=EngineReport("stuck", "nothing has moved for 60 s"),
    )

    assert (result("late", stuck).outcome, result("late", stuck).count) == (Outcome.UNKNOWN, 0)


def test_a_check_that_breaks_is_unknown(monkeypatch):
    def broken(_case):
        raise ZeroDivisionError("planted")

    monkeypatch.setitem(checks.CHECKS, "lost", broken)

    verdict = conclude(HONEST)

    assert verdict.outcome is Outcome.UNKNOWN
    assert "planted" in verdict.sentence


def test_severity_has_one_order():
    assert Outcome.worst([Outcome.PASS, Outcome.UNKNOWN, Outcome.FAIL]) is Outcome.FAIL
    assert Outcome.worst([Outcome.PASS, Outcome.UNKNOWN]) is Outcome.UNKNOWN
    assert Outcome.worst([Outcome.PASS]) is Outcome.PASS
    assert Outcome.worst([]) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        (
            "rides in windows that are named one step late",
            "shifted: the results are those of the window one step earlier",
        ),
        (
            "rides in windows that are named one step early",
            "shifted: the results are those of the window one step later",
        ),
        (
            "rides in windows that are named by their end",
            "shifted: the results are those of the window 3 steps earlier",
        ),
        ("rides in the newest of their windows only", "lost: 1,112 counts of events are missing"),
        ("rides that come late are dropped", "late-dropped: 174 counts of events are missing"),
        ("rides that have only started", "phantom: 132 counts of events too many"),
        (
            "all rides for drivers",
            "wrong value: 16 cells hold another value than the log explains: drivers in 16 too large "
            "(each is the number of trips)",
        ),
        (
            "the first fare and not the largest",
            "wrong value: 16 cells hold another value than the log explains: largest",
        ),
        ("a ride lost", "lost: 3 counts of events are missing from 3 cells (each event counts in up to 3 cells)"),
        ("a ride twice", "duplicated: 3 counts of events too many in 3 cells"),
    ],
)
def test_a_wrong_job_stands_under_its_right_name(name, headline):
    verdict = conclude(part_of("rides")[name])

    assert verdict.sentence.startswith(headline), verdict.sentence


def test_the_books_count_records_where_an_event_lies_in_several_cells():
    lost = part_of("rides")["a ride lost"]

    assert result("unaccounted", lost).sentence.startswith("5,004 records = 556 that count + 4,448 that do not count; ")
    assert result("unaccounted", lost).sentence.endswith("; the 556 count 1,668 times = 1,665 counted + 3 missing")
    assert lost.events_said(1_665) == "1,665 counts of events"


def test_of_several_values_the_one_that_is_wrong_by_the_largest_share_is_shown_first():
    wrong = conclude(part_of("rides")["a fare too large by much, and drivers by a larger share"])

    assert [check.witnesses[0].cell.split()[0] for check in wrong.checks if check.witnesses] == ["drivers"]


def test_whatever_is_held_to_take_counts_back_is_a_fault_that_can_be_planned():
    assert set(FAULTS) >= TAKES_BACK


def of(name, planted_bug):
    return result(name, run_named(planted_bug))


def test_a_count_that_went_back_is_told_with_its_step_and_its_length():
    found = of("non-monotonic", "a count went back")

    assert found.sentence == "1 time a count went back, in 1 cell, for up to 0.1 s"
    assert found.witnesses[0].detail == "12.0 s into the load, and was back after 0.1 s"


def test_what_a_planned_fault_took_back_is_told_as_exposure():
    assert of("non-monotonic", "a count went back after a zombie").sentence == (
        "1 cell went back after zombie@c1, which explains it: for up to 0.1 s"
    )


def test_a_final_result_may_wait_for_the_batch_after_one_that_its_table_skipped():
    """A replayed batch that the table knows is skipped, and so its events set no watermark."""
    at = [EPOCH_MS + ms for ms in (1_000, 2_000, 30_000, 60_000)]
    first, replayed, later, last = (Progress(ms, batch, 0, {0: 10 * batch}) for batch, ms in enumerate(at, 1))
    lines = [replace(line, rows=10) for line in (first, replayed, later, last)]

    assert [*stale._a_step_later_ms(lines, at)] == [*at[1:], stale.NEVER]
    assert [*stale._a_step_later_ms([lines[0], replayed, *lines[2:]], at)] == [at[1], at[3], at[3], stale.NEVER]
    assert [*stale._a_step_later_ms([first, replayed, later, last], at)] == [*at[1:], stale.NEVER], (
        "it tells no rows at all"
    )
    no_data = replace(lines[1], rows=0, offsets=lines[0].offsets)
    assert [*stale._a_step_later_ms([lines[0], no_data, *lines[2:]], at)] == [*at[1:], stale.NEVER]


def test_a_stale_cell_is_told_with_both_moments():
    (witness,) = of("stale", "done, and shown much later").witnesses

    assert (witness.expected, witness.seen) == ("34 by 21.3 s", "right at 35.0 s")


def test_an_engine_that_claims_all_before_it_is_sent_is_held_to_nothing_before_it_is_closed():
    """A window that is shown five seconds after its last event is not late by the fifteen since that claim."""
    log = HONEST.events
    ahead = Progress(EPOCH_MS, 0, 0, {0: len(log), 1: len(log)})

    found = result("stale", case(told=(ahead,), watched=watched(log, log.time_ms + 5_000)))

    assert (found.outcome, found.asked) == (Outcome.PASS, True)
    assert result("stale", case(told=(ahead,), watched=watched(log, log.time_ms + 30_000))).outcome is Outcome.FAIL


def test_each_sum_that_need_not_be_there_is_one_event_of_slack():
    first, *_ = HONEST.log_ledger
    optional = Expectation(HONEST.log_ledger - Ledger({first: HONEST.log_ledger.count(first)}), HONEST.log_ledger)

    assert case(oracle=SUMS, expectation=optional).slack == 1
    assert case(oracle=SUMS).slack == 0


def test_an_output_that_left_behind_a_newer_one_is_told_with_the_time_between_them():
    old, new, unknown = (cell(0, EPOCH_MS + ms) for ms in (0, 10_000, 9_000_000))
    first_ms = {each: int(HONEST.events.time_ms[HONEST.events.cell == each].min()) for each in (old, new)}
    left = {new: 0, old: 1, unknown: 2}

    found = result("order", case(in_order=True, observed=replace(HONEST.observed, left=left)))

    assert (found.word, found.count) == ("out of order", 1)
    assert found.witnesses[0].detail == f"that is {(first_ms[new] - first_ms[old]) / 1000:.3f} s newer"


def test_a_key_that_will_expire_vanishes_unless_the_manifest_declares_it():
    soon = (Expiring(keys=3, soonest_ms=5000, example="stats"),)

    assert result("vanishing", case(expiring=soon)).outcome is Outcome.FAIL
    assert result("vanishing", case(expiring=soon, retention_ms=60_000)).outcome is Outcome.PASS
    assert result("vanishing", case(expiring=())).outcome is Outcome.PASS


def test_the_events_of_a_wrong_cell_are_those_that_no_seam_explains():
    code = min(HONEST.log_ledger)
    wrong = case(observed=Observed(HONEST.log_ledger - Ledger({code: 1}), ()))

    assert (wrong_events(wrong) == (HONEST.events.cell == code)).all()
    assert not wrong_events(HONEST).any()


@pytest.mark.parametrize("sign", [1, -1])
def test_the_wrong_events_of_a_seam_are_the_records_that_it_explains(sign):
    """Its first record behind the files of each partition, counted twice or passed over."""
    log = HONEST.events
    rows = (log.offset == 75) & np.isin(log.partition, (0, 1))
    error = Ledger({int(code): sign * int((log.cell[rows] == code).sum()) for code in np.unique(log.cell[rows])})
    wrong = case(seam=FileSeam((75, 75), (75, 75)), observed=Observed(HONEST.log_ledger + error, ()))

    assert rows.sum() == 2
    assert (wrong_events(wrong) == rows).all()


def test_a_batch_that_has_too_many_by_what_it_had_written_when_it_was_killed_adds_to_what_it_finds():
    code = min(HONEST.log_ledger)
    adds = "so it adds to the results that it finds"

    assert result("backfill", planted._killed({code: 5}, {code: 5})).sentence.endswith(adds)
    assert adds not in result("backfill", planted._killed({code: 5}, {code: 4})).sentence


def test_a_loss_of_all_that_may_have_been_late_is_told_with_the_names_that_are_missing():
    code = min(HONEST.log_ledger)
    count = HONEST.log_ledger.count(code)
    told = {
        "exact": True,
        "drops_late": True,
        "named": NamedLate(np.empty(0, dtype=np.int64)),
        "permitted": HONEST.events.cell == code,
    }
    lost = case(observed=Observed(HONEST.log_ledger - Ledger({code: count}), ()), **told)

    assert "late.jsonl does not name it" in result("lost", lost).sentence
    assert "late.jsonl" not in result("lost", changed(lost, permitted=HONEST.permitted)).sentence


def test_the_longest_pause_between_two_polls_is_not_held_against_the_engine():
    log = HONEST.events
    ahead = Progress(EPOCH_MS, 0, 0, {0: len(log), 1: len(log)})
    looks = watched(log, log.time_ms + 30_000)

    assert result("stale", case(told=(ahead,), watched=looks)).outcome is Outcome.FAIL
    rare = replace(looks, longest_gap_ms=25_000.0)
    assert result("stale", case(told=(ahead,), watched=rare)).outcome is Outcome.PASS


def test_a_count_that_came_early_says_when():
    """All of a cell is there in its first second, eight seconds before its last event."""
    seen_ms = EPOCH_MS + 1_500
    code = cell(2, EPOCH_MS)
    all_of_it = HONEST.log_ledger.count(code)
    looks = Watched(np.array([seen_ms * 1000]), np.array([code]), np.array([all_of_it]), longest_gap_ms=50.0)

    found = result("early", case(watched=looks))

    assert (found.word, found.count, found.witnesses[0].seen) == ("early", 1, str(all_of_it))
    assert (found.witnesses[0].from_ms, found.witnesses[0].until_ms) == (seen_ms, seen_ms)


def test_a_count_that_no_events_could_make_is_early_and_its_end_is_no_step_back():
    code = cell(2, EPOCH_MS)
    right = HONEST.log_ledger.count(code)
    at_us = np.array([EPOCH_MS + 500, EPOCH_MS + 20_000]) * 1000
    looks = Watched(at_us, np.array([code, code]), np.array([right + 5, right]), longest_gap_ms=50.0)

    assert result("early", case(watched=looks)).outcome is Outcome.FAIL
    assert result("non-monotonic", case(watched=looks)).outcome is Outcome.PASS


FEW = events(6)  # two of each of three cells
MOMENTS = st.integers(0, 3)


@given(
    st.lists(MOMENTS, min_size=6, max_size=6),
    st.lists(st.tuples(st.sampled_from(FEW.cell.tolist()), MOMENTS), min_size=1, max_size=4),
)
def test_how_many_events_of_a_cell_were_sent_by_then_is_what_counting_says(sent_us, asked):
    changed = case(FEW, sent_us=np.array(sent_us, dtype=np.int64))
    code, at_us = (np.array(column, dtype=np.int64) for column in zip(*asked, strict=True))

    counted = [
        sum(sent <= at for own, sent in zip(FEW.cell, sent_us, strict=True) if own == each) for each, at in asked
    ]
    assert early._sent_by(changed, code, at_us).tolist() == counted


def test_an_event_of_another_cell_in_the_place_of_one_of_this_is_named():
    mine, other = (HONEST.events.id[HONEST.rows_of(cell(2, EPOCH_MS + at))] for at in (0, WINDOW_MS))
    lost, extra = int(mine[3]), int(other[5])
    sums = dict(HONEST.observed.sums)
    code = cell(2, EPOCH_MS)
    sums[code] = Checksum.of([*(each for each in mine.tolist() if each != lost), extra])
    summed = replace(SPEC, tape=replace(SPEC.tape, checksum=True))

    found = result("masked", case(spec=summed, observed=replace(HONEST.observed, sums=sums)))

    assert (found.word, found.count) == ("masked", 1)
    assert found.witnesses[0].event_ids == (f"{lost:012x}", f"{extra:012x}")


def test_a_masked_cell_names_the_event_that_is_missing_and_the_one_in_its_place():
    (witness,) = of("masked", "one lost, one doubled, with sums").witnesses

    assert witness.event_ids == ("000000000000", "000000000006")
    assert witness.detail.startswith("S1 is off by +6, which 32 pairs explain, and S2 says: 000000000000 is missing")


def test_a_pass_without_sums_says_that_it_does_not_cover_what_cancels_in_a_cell():
    hidden, summed = (conclude(run_named(name)) for name in ("one lost, one doubled, without", "honest, with sums"))

    assert (hidden.outcome, hidden.slack) == (Outcome.PASS, 0)
    assert hidden.covers == "by the counts; one lost and one doubled in a cell cancel unseen"
    assert summed.covers == "to the single event"
    asked = [{each.name: each.asked for each in verdict.checks}["masked"] for verdict in (hidden, summed)]
    assert asked == [False, True]


def test_without_sums_nothing_more_is_claimed_than_what_probes_can_show():
    spec = replace(SPEC, tape=replace(SPEC.tape, campaigns=CAMPAIGNS - 1, probes=1))
    probed = case(spec=spec, oracle=oracle_of(spec), observed=HONEST.observed)
    single = Ledger({cell(CAMPAIGNS - 1, EPOCH_MS): 1})

    assert result("masked", probed).sentence.endswith("cancel unseen")
    assert result("masked", replace(probed, expectation=Expectation(single, single))).sentence.endswith(
        "but not in the 1 cell of a probe, which holds one event"
    )


def test_the_books_are_told_as_a_sum():
    assert of("unaccounted", "late, allowed").sentence == "300 records = 290 counted + 10 late"
    assert of("unaccounted", "one lost").sentence == "300 records = 299 counted + 1 missing"
    assert of("unaccounted", "one doubled").sentence == "300 records = 301 counted - 1 too many"


def test_moments_in_another_unit_are_named_with_the_unit_and_the_first_line():
    result = of("stale", "done by moments in seconds")

    assert result.outcome is Outcome.UNKNOWN
    assert "milliseconds since 1970" in result.sentence
    assert f'"at": {HONEST.told[0].at_ms // 1000}' in result.sentence


@pytest.mark.parametrize(
    ("held", "told"),
    [(("3", "1"), "exactly as many lie in 2 orphaned hashes"), (("2",), "2 events lie in 1 orphaned hash")],
)
def test_events_that_lie_in_orphaned_hashes_are_said_to(held, told):
    orphans = tuple(Stray(f"orphan-{number}[seen_count]", text, "orphan") for number, text in enumerate(held))
    changed = case(observed=Observed(HONEST.log_ledger - Ledger({min(HONEST.log_ledger): 4}), orphans))

    assert result("lost", changed).sentence.endswith(f": {told}, to which no campaign refers")
    assert result("phantom", changed).count == len(held)


def test_a_list_says_how_many_more_there_are_if_there_are_more():
    assert join(range(8)) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert join(range(9)) == "0, 1, 2, 3, 4, 5, 6, 7 and 1 more"


@pytest.mark.parametrize(("log", "where"), [("engine.log", "engine.log"), ("", "engine")])
def test_the_last_words_of_an_engine_stand_under_the_name_of_its_log(log, where):
    crashed = EngineReport("crashed", "it ended by itself", last_lines=("boom",), log=log)

    assert [(each.cell, each.detail) for each in result("engine", case(engine=crashed)).witnesses] == [(where, "boom")]


def test_unexpected_results_are_counted_whatever_they_are():
    window, zero = (cell(0, EPOCH_MS + ms) for ms in (3_600_000, 7_200_000))
    seen = replace(
        HONEST.observed,
        counts=HONEST.log_ledger + Ledger({window: 5}),
        zeros=(zero,),
        strays=(Stray("a", "7", "campaign"),),
    )

    assert result("phantom", case(observed=seen)).count == 3


def test_keys_that_share_three_characters_are_one_pattern():
    strays = tuple(Stray(f"{key}[n]", "1", "campaign") for key in ("abc1", "abc2"))

    assert "bookkeeping = ['abc*']" in result("phantom", case(observed=Observed(HONEST.log_ledger, strays))).sentence


def test_a_key_is_kept_as_declared_if_it_was_written_at_the_start_of_the_run():
    assert HONEST.span_ms
    begun_ms, ended_ms = HONEST.span_ms
    soon = (Expiring(keys=3, soonest_ms=5000, example="stats"),)
    kept_ms = 5000 + ended_ms - begun_ms

    assert result("vanishing", case(expiring=soon, retention_ms=kept_ms)).outcome is Outcome.PASS
    found = result("vanishing", case(expiring=soon, retention_ms=kept_ms + 1))
    assert found.outcome is Outcome.FAIL
    assert (found.witnesses[0].cell, found.witnesses[0].expected) == ("stats", f"kept for {(kept_ms + 1) / 1000:g} s")


def test_results_under_names_that_are_one_millisecond_off_are_shifted():
    codes = HONEST.oracle.codes
    moved = {
        codes.one(int(codes.keys(np.array([each]))[0]), int(codes.fields(np.array([each]))[0]) + 1): count
        for each, count in HONEST.log_ledger.items()
    }

    assert "0.001 s earlier" in result("shifted", case(observed=Observed(Ledger(moved), ()))).sentence


def test_what_files_held_of_cells_that_go_on_is_named_if_just_that_is_missing():
    """A reader that begins in Kafka without what its files held."""
    log = HONEST.events
    gone = ledger(log, (log.offset < 75) & (log.time_ms >= EPOCH_MS + WINDOW_MS))
    found = result("lost", case(seam=FileSeam((75, 75), (75, 75)), observed=Observed(HONEST.log_ledger - gone, ())))

    assert "exactly what the files held of cells that go on in Kafka, passed over at the seam" in found.sentence


def test_polls_alone_do_not_show_that_there_was_nothing_wrong_in_the_end():
    judged = {each.name: each for each in checks.run_all(case(results_unread="Redis was down"))}

    for name in ("phantom", "readable"):
        assert judged[name].outcome is Outcome.UNKNOWN
        assert judged[name].sentence.startswith("the polls showed nothing, and the results were not read")


def test_an_entry_that_is_there_only_after_the_stop_was_made_by_it():
    """A key that is no result in any form is nobody's."""
    strays = (Stray("nobody[1]", "7", "campaign"), Stray("own", "1", "key"))
    after = AfterStop(replace(HONEST.observed, strays=strays))
    found = result("stopped", case(after_stop=after))

    assert (found.word, found.count) == ("changed when stopped", 1)
    assert [(each.cell, each.seen) for each in found.witnesses] == [("nobody[1]", "7")]
    known = case(after_stop=after, observed=replace(HONEST.observed, strays=strays[:1]))
    assert result("stopped", known).outcome is Outcome.PASS


def test_without_the_log_what_does_not_need_it_is_judged_all_the_same():
    crashed = EngineReport("crashed", "it ended by itself")
    judged = {each.name: each for each in checks.run_all(case(log_unread="Kafka was down", engine=crashed))}

    assert judged["engine"].outcome is Outcome.FAIL
    assert judged["lost"].sentence == "not known: the Kafka log was not read"


def test_what_kept_the_engine_from_going_on_leads_the_headline():
    """It explains all else that is unknown."""
    assert conclude(case(sent=0)).sentence.startswith("vacuous: ")
    assert conclude(case(sent=0, engine=EngineReport("starved", "it got no CPU"))).sentence == "starved: it got no CPU"


@pytest.mark.parametrize("change", ["sums", "zeros"])
def test_a_stop_that_changed_no_count_may_have_changed_a_cell_all_the_same(change):
    code = cell(2, EPOCH_MS)
    changes: dict[str, dict[str, Any]] = {
        "sums": {"sums": {**HONEST.observed.sums, code: Checksum(1, 1)}},
        "zeros": {"zeros": (cell(0, EPOCH_MS + 3_600_000),)},
    }
    seen = changes[change]
    found = result("stopped", case(after_stop=AfterStop(replace(HONEST.observed, **seen))))

    assert (found.word, found.count) == ("changed when stopped", 1)


def test_a_loss_by_a_restart_includes_what_may_have_been_late_too(monkeypatch):
    code, other = cell(2, EPOCH_MS), cell(1, EPOCH_MS)
    must = HONEST.log_ledger - Ledger({other: 4})
    seen = Observed(HONEST.log_ledger - Ledger({code: 1, other: 3}), ())
    lost = case(expectation=Expectation(must, HONEST.log_ledger), observed=seen)
    assert result("lost", lost).count == 1
    monkeypatch.setattr(explained, "by_restart", lambda _: "it came back without its state")

    assert result("lost", lost).count == 4


def test_no_results_at_all_are_those_of_no_other_window():
    assert (
        result("shifted", case(observed=Observed(Ledger(), ()))).sentence == "no cell has the value of another window"
    )


def test_a_batch_that_differs_from_the_stream_s_input_says_how_many_it_lacks_and_has_too_many():
    found = result("backfill", planted._backfill({FIRST: -1, LAST: 2}))

    assert found.sentence.startswith("the batch counts 1 too few and 2 too many in 2 cells")


def test_the_count_that_went_back_furthest_is_shown_first():
    shallow, deep = cell(1, EPOCH_MS), cell(2, EPOCH_MS)
    most = HONEST.log_ledger.count(deep)
    counts = np.array([2, 1, most, most - 2])
    at_us = (EPOCH_MS + 20_000 + np.array([0, 1000, 2000, 3000])) * 1000
    looks = Watched(at_us, np.array([shallow, shallow, deep, deep]), counts, longest_gap_ms=50.0)
    found = result("non-monotonic", case(watched=looks))

    assert most > 3
    assert [witness.seen for witness in found.witnesses] == [str(most - 2), "1"]


@pytest.mark.parametrize(
    ("closes_ms", "shaken", "line"),
    [(10, (), 1), (10, (1,), 3), (10, (0,), 1), (13, (1,), 3), (14, (3,), 4), (21, (1,), 5)],
)
def test_a_window_that_a_shaken_line_closed_is_closed_by_the_next_line_that_does(closes_ms, shaken, line):
    newest_ms = np.array([[0, 12, 5, 14, 20], [0, 11, 5, 15, 20]])

    assert stale._closed_again(newest_ms, np.array([closes_ms]), frozenset(shaken)).tolist() == [line]


@pytest.mark.parametrize("until_us", [EPOCH_MS * 1000 + 9_000_500, None])
def test_a_value_that_was_seen_for_a_while_is_dated_in_milliseconds(until_us):
    glitch = Glitch("a key", "text", EPOCH_MS * 1000 + 7_000_500, until_us)
    seen = HONEST.glimpsed(glitch, "a count")

    assert (seen.from_ms, seen.until_ms) == (EPOCH_MS + 7_000, until_us and EPOCH_MS + 9_000)
