"""Capping: jobs, plain words and the oracle agree, whatever is killed."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from harness.model import UsageError
from harness.selftest import requests as planted
from harness.selftest.by_hand import EPOCH_MS
from harness.selftest.capping_model import SHOW, SUPPRESS, Action, Rule, actions
from tests.quick.workloads.crashes import NOTHING_PLANNED, TimersUnderCrashes, left_by, right_values
from tests.quick.workloads.test_enrichment import OneUser
from tests.quick.workloads.test_page_visits import Planned
from workloads.capping.jobs.capped import Answer, Cap, User, read_caps
from workloads.capping.jobs.reference import Requests
from workloads.capping.jobs.spark_tws import Capping
from workloads.declared import checked
from workloads.declared.declaration import unsealed
from workloads.declared.oracle import Limits, Oracle
from workloads.registry import codec_of
from workloads.shipped import folder_of

SENT = planted.requests()
ROWS = list(zip(*(SENT[name].tolist() for name in ("event_time_ms", "event_id", planted.USER)), strict=True))
CAPS = {f"user-{user:02}": Cap(*rule) for user, rule in planted.rules().items()}
ALLOWED_MS = 10_000


def test_a_cap_is_reset_an_hour_after_the_first_ad_and_each_ad_has_its_cool_down():
    asked = [(0, 1), (99, 2), (100, 3), (200, 4), (999, 5), (1000, 6), (1099, 7), (2000, 8)]

    answers = actions(reversed(asked), Rule(cap=2, hour_ms=1000, cool_down_ms=100))

    shown = {event: answer.shown for event, answer in answers.items() if answer.action == SHOW}
    assert shown == {1: 1, 3: 2, 6: 1, 8: 1}
    assert [answers[event] for event in (2, 4, 5, 7)] == [Action(SUPPRESS, count) for count in (1, 2, 2, 1)]


def test_a_cool_down_may_outlast_the_hour():
    answers = actions([(0, 1), (50, 2), (150, 3), (300, 4)], Rule(cap=1, hour_ms=100, cool_down_ms=300))

    assert answers == {1: (SHOW, 1), 2: (SUPPRESS, 1), 3: (SUPPRESS, 0), 4: (SHOW, 1)}


class RequestsUnderCrashes(TimersUnderCrashes):
    """The requests of one user."""

    def __init__(self) -> None:
        super().__init__(state=(0, 0, 0, ()))
        self.cap = Cap(ads=2, hour_ms=20, cool_down_ms=6)

    def restored(self) -> User:
        return User(self.cap, *self.state)

    def stored(self, state: User) -> tuple[Any, ...]:
        return state.shown, state.hour_ends, state.cools_until, tuple(state.waiting)

    def wait(self, state: User, event: tuple[int, int]) -> None:
        state.ask(*event)

    @NOTHING_PLANNED
    @rule(data=st.data(), forward=st.integers(0, 25))
    def plan(self, data: Any, forward: int) -> None:
        times = st.integers(max(self.watermark - 5, 1), self.watermark + 40)
        asked = [(at_ms, self.came + n) for n, at_ms in enumerate(data.draw(st.lists(times, max_size=6)))]
        self.planned(asked, lambda waiting: data.draw(st.lists(st.sampled_from(waiting), max_size=2)), forward)

    @invariant()
    def each_request_that_the_watermark_has_passed_is_answered_once_as_the_model_says(self) -> None:
        right = actions(self.due, Rule(*self.cap))
        assert self.left == [Answer(event, *right[event]) for _, event in self.due]

    @invariant()
    def no_timer_is_behind_the_watermark_and_an_idle_user_has_no_state(self) -> None:
        user = self.restored()
        assert user.next_ms is None or user.next_ms > self.watermark
        assert user.next_ms is not None or user.shown == 0


RequestsUnderCrashes.TestCase.settings = settings(stateful_step_count=30)
TestRequestsUnderCrashes = RequestsUnderCrashes.TestCase


def in_records(seed):
    """Return key, value, user and number of each request, in a random order that the watermark allows."""
    draw = random.Random(seed)
    values = [*codec_of(planted.ASKED.tape).write(Planned(SENT), EPOCH_MS)]
    arriving = sorted(range(len(ROWS)), key=lambda row: ROWS[row][0] + draw.randrange(ALLOWED_MS))
    return [(f"{ROWS[row][1]:012x}".encode(), values[row]) for row in arriving]


def judged(outputs):
    """Return the values of each cell by what a job put out."""
    answers = [json.loads(output) for output in outputs]
    cells = Counter((f"outputs:{each['campaign']}", each["window"]) for each in answers)
    for each in answers:
        cells |= {(f"{name}:{each['campaign']}", each["window"]): value for name, value in each["output"].items()}
    return dict(cells)


def end(job, offset):
    """Let the watermark pass all requests. Return what left, but for the request that does it."""
    last = json.dumps({"user": "user-00", "asked_at": EPOCH_MS * 2}).encode()
    job.add((0, offset), b"0" * 12, last)
    return job.answered(idle=False)


@pytest.mark.parametrize("seed", range(3))
def test_the_reference_says_what_the_oracle_says_wherever_it_is_killed(seed, tmp_path):
    records, draw = in_records(seed), random.Random(seed)
    late = tmp_path / "late.jsonl"
    job, left = left_by(lambda out: Requests(out, CAPS, ALLOWED_MS, late), records, draw)
    left += end(job, len(records))

    assert judged(left) == right_values(planted.ASKED, SENT)
    assert late.read_text() == ""
    assert job.done({0: 7}) == {0: 7}
    time_of = {event: at_ms for at_ms, event, _ in ROWS}
    for user in CAPS:
        times = [time_of[each["window"]] for each in map(json.loads, left) if each["campaign"] == user]
        assert times == sorted(times)


def test_a_request_behind_an_answered_one_is_late_and_named_also_after_a_crash(tmp_path):
    late = tmp_path / "late.jsonl"
    asked = [json.dumps({"user": "user-01", "asked_at": at}).encode() for at in (20_000, 40_000, 15_000, 39_000)]
    job = Requests(set(), CAPS, ALLOWED_MS, late)
    for offset in (0, 1):
        job.add((0, offset), f"{offset:012x}".encode(), asked[offset])
    first = [json.loads(each) for each in job.answered(idle=False)]
    for offset in (2, 3):
        job.add((0, offset), f"{offset:012x}".encode(), asked[offset])
    assert job.answered(idle=False) == []

    again = Requests({(0, 0)}, CAPS, ALLOWED_MS, late)
    for offset, value in enumerate(asked):
        again.add((0, offset), f"{offset:012x}".encode(), value)
    again.add((0, 9), b"not a number", b"{}")

    assert [each["output"] for each in first] == [{"action": SHOW, "shown": 1}]
    assert again.answered(idle=False) == []
    assert [json.loads(line) for line in late.read_text().splitlines()] == [[0, 2], [0, 2]]
    assert [json.loads(each)["window"] for each in end(again, 10)] == [3, 1]
    assert again.unusable == 1


@pytest.mark.parametrize("seed", range(3))
def test_the_state_of_spark_says_what_the_oracle_says_in_order_and_is_gone_in_the_end(seed):
    draw, known, answers = random.Random(seed), {user: OneUser(user, Capping(CAPS)) for user in CAPS}, []
    arriving = sorted(ROWS, key=lambda row: row[0] + draw.randrange(ALLOWED_MS))
    for begin in range(0, len(arriving), 50):
        batch = arriving[begin : begin + 50]
        newest_ms = max(at_ms for at_ms, *_ in arriving[: begin + 50])
        for user, one in known.items():
            mine = [{"asked_at": at_ms, "event": event} for at_ms, event, of in batch if f"user-{of:02}" == user]
            answers += one.batch(mine, newest_ms - ALLOWED_MS)
    answers += [each for one in known.values() for each in one.batch([], 1 << 60)]
    outputs = [
        json.dumps(
            {
                "campaign": each["user"],
                "window": each["event"],
                "output": {name: each[name] for name in ("action", "shown")},
            }
        )
        for each in answers
    ]

    assert judged(outputs) == right_values(planted.ASKED, SENT)
    assert {one.handle.state for one in known.values()} == {None}


def test_rules_are_read_from_the_table():
    assert read_caps({"user-01": "3 9000 500"}) == {"user-01": Cap(3, 9000, 500)}


@pytest.mark.parametrize("column", ["cap", "hour_ms", "cool_down_ms"])
def test_a_rule_of_0_is_refused_in_one_sentence(column, tmp_path):
    lines = (folder_of("capping") / "workload.toml").read_text().splitlines()
    zero = [
        f'{column} = {{ kind = "integer", from = 0, to = 1 }}' if line.startswith(f"{column} =") else line
        for line in lines
    ]
    (tmp_path / "workload.toml").write_text("\n".join(zero).replace('id = "capping"', 'id = "capping-of-mine"'))

    with pytest.raises(
        UsageError, match="the cap, the hour and the cool-down of a user are 1 or more, and those of user-"
    ):
        checked.load(tmp_path)


def test_the_oracle_and_the_model_agree_where_cool_downs_outlast_hours():
    draw = np.random.default_rng(1)
    hour_ms, cool_down_ms = draw.integers(1, 3_000, 61), draw.integers(1, 4_000, 61)
    rules = [
        Rule(*rule)
        for rule in zip(draw.integers(1, 4, 61).tolist(), hour_ms.tolist(), cool_down_ms.tolist(), strict=True)
    ]

    assert agreed(3_000, 60_000, rules) > {(SHOW, 1), (SHOW, 3), (SUPPRESS, 3), (SUPPRESS, 0)}


@pytest.mark.thorough
def test_the_oracle_and_the_model_agree_on_a_million_requests():
    assert agreed(1_000_000, 600_000, [*planted.rules().values()]) > {
        (SHOW, 1),
        (SHOW, 4),
        (SUPPRESS, 1),
        (SUPPRESS, 4),
    }


def agreed(count, span_ms, rules):
    """Compare the oracle with the model on random requests and copies of some. Return the answers that occur."""
    draw = np.random.default_rng(2)
    names = [f"user-{user:02}" for user in range(len(rules))]
    table = pa.table({"user": names, **{name: [getattr(rule, name) for rule in rules] for name in Rule._fields}})
    user, asked_at = draw.integers(0, len(rules), count), EPOCH_MS + draw.integers(0, span_ms, count)
    ids = draw.permutation(count)
    copied = np.concatenate((np.arange(count), draw.integers(0, count, count // 50)))
    events = pa.table(
        {
            "user": pa.array(names).take(user[copied]),
            "page": pa.repeat("/page/1", len(copied)),
            "asked_at": asked_at[copied],
            "event": np.arange(len(copied)),
            "event_id": ids[copied],
        }
    )
    question = unsealed(planted.ASKED.tape.declaration).question
    answer = Oracle(question, {"rules": table}, Limits(deadline_s=500)).answer(events)

    columns = (answer.column(name).to_pylist() for name in ("event_id", "action", "shown"))
    answers = {event: (action, shown) for event, action, shown in zip(*columns, strict=True)}
    by_model: dict[int, Action] = {}
    for number, by_rule in enumerate(rules):
        own = user == number
        by_model |= actions(zip(asked_at[own].tolist(), ids[own].tolist(), strict=True), by_rule)
    assert answers == by_model
    assert answer.column("outputs").to_numpy().sum() == len(copied)
    return {*by_model.values()}
