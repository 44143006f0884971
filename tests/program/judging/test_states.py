"""Whole runs of the fake engine whose state is kept, read and judged."""

from __future__ import annotations

import pytest

from harness.engines.fake import FakeEngine
from harness.engines.misbehaviour import MISBEHAVIOURS
from harness.judging.judge import judge
from harness.judging.stored_run import STATES, StoredRun
from harness.model import HarnessError, Outcome
from harness.rundir.store import Store
from harness.selftest import cheat, sinks
from harness.selftest.report import words_of
from reports.evidence import Evidence
from reports.sections import state as state_section
from reports.sections.state import held, section
from tests.program.runner.test_run import fake_run

KEPT = {"sink": "absolute", "states": 10, "duration": "30s", "disorder": "mobile", "fault": "none"}


def state_check(verdict):
    return next(check for check in verdict.checks if check.name == "state")


def test_ten_states_are_kept_read_and_judged_again_from_the_files(tmp_path):
    verdict, store, screen = fake_run(tmp_path, **KEPT)
    told = [line["kept"] for line in store.history("state")]

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert " cells in 10 states match the log, after batches " in state_check(verdict).sentence
    assert [each["number"] for each in told] == [*range(1, 11)]
    assert "state" in screen.phases
    assert judge(StoredRun(store)) == verdict


def test_a_kill_leaves_states_on_both_sides_of_it(tmp_path):
    verdict, store, _ = fake_run(tmp_path, **{**KEPT, "fault": "kill@c3:batch=20"})
    batches = [line["kept"]["batch"] for line in store.history("state")]

    assert verdict.outcome is Outcome.PASS, verdict.sentence
    assert min(batches) < 20 < max(batches)


def test_nobody_asked_and_nothing_is_kept(tmp_path):
    verdict, store, screen = fake_run(tmp_path, **{**KEPT, "states": 0})

    assert state_check(verdict).sentence == "not requested"
    assert not store.has(STATES)
    assert "state" not in screen.phases


def test_a_state_that_can_not_be_read_is_unknown_and_says_why(tmp_path, monkeypatch):
    def refuse(_):
        raise HarnessError("The state can't be read (exit code 1).")

    monkeypatch.setattr(FakeEngine, "read_states", refuse)
    verdict, store, _ = fake_run(tmp_path, **KEPT)

    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.words == ("no state",)
    assert "can't be read (exit code 1)" in state_check(verdict).sentence
    assert not store.has(STATES)


def test_a_table_that_is_gone_is_no_state_that_is_right(tmp_path):
    _, store, _ = fake_run(tmp_path, **KEPT)
    (store.path / STATES).unlink()
    cheat.recompute_all(store)

    verdict = judge(StoredRun(Store(store.path)))

    assert (verdict.outcome, verdict.words) == (Outcome.UNKNOWN, ("no evidence",))


@pytest.mark.parametrize(("name", "word"), [("old-copies", "old state"), ("leaky-copies", "forgotten")])
def test_a_state_that_is_wrong_fails_while_all_counts_are_right(tmp_path, name, word):
    verdict, _, _ = fake_run(tmp_path, conf={"misbehave": name}, **KEPT)

    assert words_of(verdict) == f"FAIL {word}"
    assert state_check(verdict).witnesses[0].detail.startswith("after batch ")


def test_a_cell_that_is_in_the_state_and_never_in_the_results_has_its_own_word(tmp_path):
    verdict, _, _ = fake_run(tmp_path, conf={"misbehave": "withhold"}, **KEPT)

    assert verdict.words[0] == "held back"
    assert verdict.sentence.startswith("held back: the state held 1 cell that the results do not have")


def test_each_way_in_which_the_fake_is_wrong_is_tried():
    tried = {dials["conf"]["misbehave"] for _, dials in sinks.looked_into() if "conf" in dials}

    assert tried == {"old-copies", "leaky-copies", "evict-nothing", "withhold"}
    assert tried <= set(MISBEHAVIOURS)


def test_the_page_shows_what_lay_in_each_state(tmp_path):
    _, store, _ = fake_run(tmp_path, **KEPT)
    evidence = Evidence(store)

    shown = section(evidence)

    assert shown is not None
    [table] = shown.tables
    assert [row[0] for row in table.rows] == [str(state.kept.batch) for state in evidence.states]
    assert [row[2] for row in table.rows] == [str(len(state.held.counts)) for state in evidence.states]
    assert all(float(str(row[1])) > 0 for row in table.rows[1:])


def test_the_page_draws_what_had_to_be_in_each_state_and_what_was(tmp_path):
    _, store, _ = fake_run(tmp_path, **KEPT)
    evidence = Evidence(store)

    shown = section(evidence)

    assert shown is not None
    assert shown.picture is not None
    assert shown.picture.alt.endswith("in the results; all equal")
    for state in evidence.states:
        drawn = held(evidence.case, state, 0.0)
        assert drawn.expected == drawn.held == drawn.shown == len(state.held.counts)


@pytest.mark.parametrize(
    ("bug", "word", "differ"),
    [
        ("leaky-copies", "forgotten", lambda drawn: drawn.expected > drawn.held == drawn.shown),
        ("evict-nothing", "not evicted", lambda drawn: drawn.expected < drawn.held == drawn.shown),
        ("withhold", "held back", lambda drawn: drawn.expected == drawn.held > drawn.shown),
    ],
)
def test_what_is_wrong_is_named_above_its_state(tmp_path, bug, word, differ):
    _, store, _ = fake_run(tmp_path, conf={"misbehave": bug}, **KEPT)
    evidence = Evidence(store)

    shown = section(evidence)
    drawn = [held(evidence.case, state, 0.0) for state in evidence.states]
    wrong = [each for each in drawn if each.wrong]

    assert wrong
    assert shown is not None
    assert [row[-1] for row in shown.tables[0].rows if row[-1]] == [f"{each.wrong[word]} {word}" for each in wrong]
    assert all({*each.wrong} == {word} and differ(each) for each in wrong)


def test_where_nobody_knows_what_had_to_be_in_it_nothing_is_drawn(tmp_path, monkeypatch):
    _, store, _ = fake_run(tmp_path, **KEPT)
    monkeypatch.setattr(state_section, "unknown", lambda _: "nobody says which events were dropped as late")

    shown = section(Evidence(store))

    assert shown is not None
    assert shown.picture is None
    assert shown.tables
