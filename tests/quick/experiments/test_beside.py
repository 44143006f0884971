"""Which cases of a chaos may go on beside each other, in which order, and what is made again alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.experiments import chaos
from harness.experiments.chaos import ChaosCase, Ran, Seen, Wrong, next_of

SINKS, FAULTS = ("absolute", "increment"), ("kill@now", "stop@now")
WANTED = chaos.runs_of([ChaosCase("spark", sink, fault, 0) for sink in SINKS for fault in FAULTS], 1, 1, twins=True)
FIRST, *FAULTED, OTHER, _, _ = WANTED
CLAIMS = {("spark", sink): "exactly-once" for sink in SINKS}


def ran(case: ChaosCase, seen: Seen = Seen.EXACTLY_ONCE, *, beside: bool = False) -> Ran:
    return Ran(case, seen, f"it was {seen}", "runs/1", beside=beside)


def test_a_fault_waits_for_its_twin_and_others_do_not():
    assert next_of(WANTED, [], [], []) == FIRST
    assert next_of(WANTED, [], [FIRST], []) == OTHER
    assert next_of(WANTED, [], [FIRST, OTHER], []) is None
    assert next_of(WANTED, [], [OTHER], [FIRST]) is None, "a twin is judged before it is compared with"
    assert next_of(WANTED, [ran(FIRST)], [OTHER], []) == FAULTED[0]


def test_without_twins_nothing_is_waited_for():
    wanted = [case for case in WANTED if case.fault != chaos.NO_FAULT]

    assert [next_of(wanted, [], wanted[:count], []) for count in range(4)] == wanted


def test_what_decided_nothing_beside_another_is_made_again_when_all_others_are_done():
    starved, rest = ran(FAULTED[0], Seen.UNKNOWN, beside=True), [ran(case) for case in WANTED[2:]]
    done = [ran(FIRST), starved, *rest]

    assert next_of(WANTED, done[:-1], [], []) == WANTED[-1], "others first"
    assert next_of(WANTED, done[:-1], [WANTED[-1]], []) is None
    assert next_of(WANTED, done[:-1], [], [WANTED[-1]]) is None, "not even beside one that is judged"
    assert next_of(WANTED, done, [], []) == FAULTED[0]
    assert next_of(WANTED, done[:-1], [FAULTED[0]], []) is None, "nobody beside it"
    assert next_of(WANTED, [*done, ran(FAULTED[0], Seen.UNKNOWN)], [], []) is None, "once is enough"


@pytest.mark.parametrize("seen", [each for each in Seen if each is not Seen.UNKNOWN])
def test_what_was_decided_stands_whoever_went_on_beside_it(seen):
    assert not ran(FIRST, seen, beside=True).is_again
    assert chaos.pending(WANTED, [ran(FIRST, seen, beside=True)]) == WANTED[1:]


def test_both_are_told_and_one_counts():
    wrong = replace(ran(FAULTED[0], Seen.AT_MOST_ONCE), wrong=Wrong(lost=3))
    starved = ran(FAULTED[0], Seen.UNKNOWN, beside=True)

    card = chaos.card([starved, wrong], CLAIMS)
    assert [(cell.seen, cell.runs) for cell in card.cells] == [(Seen.AT_MOST_ONCE, 1)]
    assert (card.again, card.beside) == ((starved,), True)
    alone = chaos.card([starved], CLAIMS)
    assert ([cell.seen for cell in alone.cells], alone.again) == ([Seen.UNKNOWN], ()), "until it is made again"


@given(st.integers(1, 4), st.randoms(use_true_random=False), st.sets(st.sampled_from(WANTED)))
def test_all_is_made_whatever_ends_first_and_what_is_made_again_is_alone(jobs, dice, starved):
    done: list[Ran] = []
    going: list[ChaosCase] = []
    judged: list[ChaosCase] = []
    beside: set[ChaosCase] = set()
    while True:
        while len(going) < jobs and (case := next_of(WANTED, done, going, judged)):
            assert case.fault == chaos.NO_FAULT or any(each.case == case.twin and not each.is_again for each in done)
            assert case not in [each.case for each in done if each.is_again] or not [*going, *judged]
            going.append(case)
            beside |= {*going, *judged} if len(going) + len(judged) > 1 else set()
        if not going and not judged:
            break
        if going and (not judged or dice.random() < 0.5):
            judged.append(going.pop(dice.randrange(len(going))))
        else:
            case = judged.pop(dice.randrange(len(judged)))
            is_starved = case in starved and case in beside
            done.append(ran(case, Seen.UNKNOWN if is_starved else Seen.EXACTLY_ONCE, beside=case in beside))
            beside.discard(case)

    assert chaos.pending(WANTED, done) == []
    assert len(chaos.standing(done)) == len(WANTED)


@pytest.mark.parametrize(
    ("cores", "memory", "need", "jobs"),
    [(2, 8_000, 1_000, 2), (8, 64_000, 1_000, 4), (0.5, 8_000, 1_000, 1), (4, 2_500, 1_000, 2), (4, 500, 1_000, 1)],
)
def test_a_machine_carries_a_run_a_core_as_far_as_its_memory_goes(cores, memory, need, jobs):
    assert chaos.carried(cores, memory, need) == jobs
    assert chaos.carried(2, 1, 0) == 2, "of what needs nothing"
