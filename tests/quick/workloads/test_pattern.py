"""Patterns: jobs, plain words and the oracle agree, whatever is killed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from redis import Redis
from redis.client import Pipeline

from harness.model import UsageError
from harness.selftest import matches as planted
from harness.selftest.by_hand import EPOCH_MS
from harness.selftest.pattern_model import matches
from tests.quick.workloads.crashes import NOTHING_PLANNED, TimersUnderCrashes, right_values
from tests.quick.workloads.test_enrichment import OneUser
from tests.quick.workloads.test_page_visits import Planned
from workloads.declared import checked
from workloads.declared.declaration import unsealed
from workloads.declared.oracle import Limits, Oracle
from workloads.jobs.plain_process import Record
from workloads.pattern.jobs.matched import LARGE_FROM, SMALL_BELOW, WITHIN_MS, Card, Match, is_asked
from workloads.pattern.jobs.reference import CARDS, NEWEST, Payments
from workloads.pattern.jobs.spark_tws import Pattern
from workloads.registry import codec_of, oracle_of
from workloads.sentinels import as_events, group_of
from workloads.shipped import folder_of

SENT = planted.payments()
OF_CARDS = {f"card-{card + 1}": payments for card, payments in planted.of_cards(SENT).items()}
ALLOWED_MS = 10_000


def test_the_numbers_of_the_jobs_are_those_of_the_planted_payments():
    assert (100 * SMALL_BELOW, 100 * LARGE_FROM) == (planted.CENTS_BELOW, planted.CENTS_FROM)
    assert WITHIN_MS == planted.WITHIN_MS


def test_a_large_payment_matches_its_neighbour_if_that_is_small_and_near():
    paid = [(0, 1, True), (0, 2, True), (999, 3, False), (1000, 4, False)]
    too_far = [(5000, 5, True), (6000, 6, False), (6000, 8, False), (6000, 7, True)]

    assert matches(reversed([*paid, *too_far, *paid]), 1000) == {3: 2, 8: 7}
    assert matches(too_far, 1001) == {6: 5, 8: 7}


class PaymentsUnderCrashes(TimersUnderCrashes):
    """The payments of one card."""

    def __init__(self) -> None:
        super().__init__(state=(0, 0, ()))

    def restored(self) -> Card:
        return Card(*self.state)

    def stored(self, state: Card) -> tuple[Any, ...]:
        return state.small_at, state.small, tuple(state.waiting)

    def wait(self, state: Card, event: tuple[int, int, bool]) -> None:
        state.pay(event)

    @NOTHING_PLANNED
    @rule(data=st.data(), forward=st.integers(0, 2 * WITHIN_MS))
    def plan(self, data: Any, forward: int) -> None:
        # Few different times, of which some are as far apart as the bound.
        times = st.integers(max(self.watermark - 5, 1) // 250, (self.watermark + 3 * WITHIN_MS) // 250)
        drawn = data.draw(st.lists(st.tuples(times, st.booleans()), max_size=6))
        paid = [(max(1, 250 * at), self.came + n, small) for n, (at, small) in enumerate(drawn)]
        self.planned(paid, lambda waiting: data.draw(st.lists(st.sampled_from(waiting), max_size=2)), forward)

    @invariant()
    def each_match_that_the_watermark_has_passed_came_once_in_order_as_the_model_says(self) -> None:
        right = matches(self.due, WITHIN_MS)
        events = dict.fromkeys(event for _, event, _ in self.due)
        assert self.left == [Match(right[event], event) for event in events if event in right]

    @invariant()
    def no_timer_is_behind_the_watermark_and_an_idle_card_has_no_state(self) -> None:
        card = self.restored()
        assert card.next_ms is None or card.next_ms > self.watermark
        assert card.next_ms is not None or card.small == 0


PaymentsUnderCrashes.TestCase.settings = settings(stateful_step_count=30)
TestPaymentsUnderCrashes = PaymentsUnderCrashes.TestCase


class Store:
    """Redis for one job: hashes, which a transaction changes."""

    def __init__(self) -> None:
        self.hashes: dict[str, dict[str, Any]] = {}

    def hgetall(self, key: str) -> dict[str, str]:
        return {field: str(value) for field, value in self.hashes.get(key, {}).items()}

    def hset(self, key: str, field: Any = None, value: Any = None, mapping: Any = None) -> None:
        self.hashes.setdefault(key, {}).update(mapping or {field: value})

    def hincrby(self, key: str, field: str, by: int) -> None:
        self.hset(key, field, int(self.hashes.get(key, {}).get(field, 0)) + by)

    def results(self) -> dict[tuple[str, int], int]:
        """Return the values of all cells."""
        found = {key: each for key, each in self.hashes.items() if not key.startswith(("reference:", "updated:"))}
        return {(key, int(field)): int(value) for key, each in found.items() for field, value in each.items()}


class Transaction(Store):
    """Changes that are not in the store yet."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.hashes = {key: dict(each) for key, each in store.hashes.items()}


def in_records(seed):
    """Return the records of two partitions, out of order as far as the watermark allows, and one that ends each."""
    draw = random.Random(seed)
    values = [*codec_of(planted.ASKED.tape).write(Planned(SENT), EPOCH_MS)]
    rows = list(zip(SENT["event_time_ms"].tolist(), SENT["event_id"].tolist(), values, strict=True))
    rows.sort(key=lambda row: row[0] + draw.randrange(ALLOWED_MS))
    records = [Record(at % 2, at // 2, f"{event:012x}".encode(), value) for at, (_, event, value) in enumerate(rows)]
    end = json.dumps({"card": "card-50", "amount": 60, "paid_at": 2 * EPOCH_MS}).encode()
    return [*records, *(Record(partition, len(rows), b"0" * 12, end) for partition in range(2))]


@pytest.mark.parametrize("seed", range(3))
def test_the_reference_says_what_the_oracle_says_wherever_it_is_killed(seed, tmp_path):
    records, draw = in_records(seed), random.Random(seed)
    late, store = tmp_path / "late.jsonl", Store()

    def started():
        job = Payments(2, ALLOWED_MS, late)
        job.restore(cast(Redis, store))
        return job

    job, at = started(), 0
    while at < len(records):
        until = min(at + 50, len(records))
        for record in records[at:until]:
            job.add(record)
        done = Transaction(store)
        job.write(cast(Pipeline, done))
        fate = draw.random()
        if fate > 0.2:  # else it is killed before its transaction
            store, at = done, until
        if fate < 0.4:
            job = started()

    assert store.results() == right_values(planted.ASKED, SENT)
    assert late.read_text() == ""
    assert job.unusable == 0
    assert len(store.hashes[CARDS]) == planted.CARDS
    assert {*store.hashes[NEWEST].values()} == {2 * EPOCH_MS}


def test_a_payment_behind_the_watermark_is_late_and_named_also_after_a_crash(tmp_path):
    def paid(amount, at_ms):
        return json.dumps({"card": "card-1", "amount": amount, "paid_at": at_ms}).encode()

    late, store = tmp_path / "late.jsonl", Store()
    job = Payments(1, ALLOWED_MS, late)
    rows = [(30, 20_000), (500, 20_500), (60, 30_400), (30, 20_300), (400, 20_400), (400, 20_401), (50, 40_000)]
    records = [Record(0, n, f"{n:x}".encode(), paid(*row)) for n, row in enumerate(rows)]
    for record in records[:3]:
        job.add(record)
    job.write(cast(Pipeline, store))
    again = Payments(1, ALLOWED_MS, late)
    again.restore(cast(Redis, store))
    for record in [*records[3:], Record(0, 9, b"no number", paid(1, 50_000)), Record(0, 10, b"1", b"{}")]:
        again.add(record)
    again.write(cast(Pipeline, store))

    assert [json.loads(line) for line in late.read_text().splitlines()] == [[0, 3], [0, 4]]
    assert store.results() == {("outputs:card-1", 5): 1, ("first:card-1", 5): 0}
    assert again.unusable == 2


@pytest.mark.parametrize("seed", range(3))
def test_the_state_of_spark_says_what_the_oracle_says_in_order_and_is_gone_in_the_end(seed):
    draw, known = random.Random(seed), {card: OneUser(card, Pattern()) for card in OF_CARDS}
    rows = [(*payment, card) for card, payments in OF_CARDS.items() for payment in payments]
    rows.sort(key=lambda row: row[0] + draw.randrange(ALLOWED_MS))
    found = []
    for begin in range(0, len(rows), 30):
        newest_ms = max(at_ms for at_ms, *_ in rows[: begin + 30])
        for card, one in known.items():
            mine = [
                {"paid_at": at_ms, "event": event, "is_small": small}
                for at_ms, event, small, of in rows[begin : begin + 30]
                if of == card
            ]
            found += one.batch(mine, newest_ms - ALLOWED_MS)
    found += [each for one in known.values() for each in one.batch([], 1 << 60)]

    cells = {(f"outputs:{each['card']}", each["last"]): 1 for each in found}
    right = right_values(planted.ASKED, SENT)
    assert cells | {(f"first:{each['card']}", each["last"]): each["first"] for each in found} == right
    assert 2 * len(found) == len(right)
    assert {one.handle.state for one in known.values()} == {None}


def test_what_is_neither_small_nor_large_is_passed_over():
    assert [is_asked(amount) for amount in (49.99, 50, 399.99, 400)] == [True, False, False, True]


def test_sentinel_records_make_a_match_together():
    oracle, codec = oracle_of(planted.ASKED), codec_of(planted.ASKED.tape)
    marks = group_of(oracle, codec)
    places = oracle.places(as_events(codec, marks))

    assert codec.mark_size == len(marks) == 2
    assert [value for _, value in zip(*oracle.fold(places.cell, places.columns), strict=True)] == [1, marks[0].id]


def changed(folder: Path, what: str, by: str) -> Path:
    """Write the declaration with this change, as one of a user."""
    text = (folder_of("pattern") / "workload.toml").read_text().replace('id = "pattern"', 'id = "pattern-of-mine"')
    assert what in text
    (folder / "workload.toml").write_text(text.replace(what, by))
    return folder


@pytest.mark.parametrize("bound", ["0", "-1"])
def test_a_pattern_without_a_bound_is_refused_in_one_sentence(bound, tmp_path):
    with pytest.raises(UsageError, match=f"needs a bound in time of 1 ms or more, and this one has {bound} ms"):
        checked.load(changed(tmp_path, "SELECT 1000 AS", f"SELECT {bound} AS"))


def test_a_match_is_there_once(tmp_path):
    with pytest.raises(UsageError, match="the outputs 2; a match is there once"):
        checked.load(changed(tmp_path, "1 AS outputs", "2 AS outputs"))


@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_and_the_model_agree(seed):
    assert agreed(3_000, 60_000, seed)


@pytest.mark.thorough
def test_the_oracle_and_the_model_agree_on_a_million_payments():
    assert agreed(1_000_000, 2_000_000, 1)


def agreed(count, span_ms, seed):
    """Compare the oracle with the model on random payments and copies of some. Return the matches."""
    draw = np.random.default_rng(seed)
    names = pa.array([f"card-{card + 1}" for card in range(50)])
    card, paid_at = draw.integers(0, 50, count), EPOCH_MS + draw.integers(0, span_ms, count)
    cents, ids = draw.integers(1_00, 500_00, count, endpoint=True), draw.permutation(count)
    copied = np.concatenate((np.arange(count), draw.integers(0, count, count // 50)))
    events = pa.table(
        {
            "card": names.take(card[copied]),
            "shop": pa.repeat("shop-1", len(copied)),
            "amount": pa.array(cents[copied] / 100).cast(pa.decimal128(5, 2)),
            "paid_at": paid_at[copied],
            "event": np.arange(len(copied)),
            "event_id": ids[copied],
        }
    )
    question = unsealed(planted.ASKED.tape.declaration).question
    answer = Oracle(question, {}, Limits(deadline_s=500)).answer(events)

    by_model: dict[int, int] = {}
    for number in range(50):
        own = (card == number) & ((cents < planted.CENTS_BELOW) | (cents >= planted.CENTS_FROM))
        small = (cents[own] < planted.CENTS_BELOW).tolist()
        by_model |= matches(zip(paid_at[own].tolist(), ids[own].tolist(), small, strict=True), WITHIN_MS)
    found = zip(answer.column("event_id").to_pylist(), answer.column("first").to_pylist(), strict=True)
    assert dict(found) == by_model
    assert set(answer.column("outputs").to_pylist()) == {1}
    return by_model


def test_the_next_timer_of_a_card_is_its_first():
    """When a small payment ends, or when the first payment that waits is due."""
    assert Card().next_ms is None
    assert Card(1000, 7).next_ms == 1000 + WITHIN_MS
    assert Card(waiting=[(900, 2, False), (500, 3, False)]).next_ms == 500
    assert Card(1000, 7, [(1200, 2, False)]).next_ms == 1200
    assert Card(1000, 7, [(1001 + WITHIN_MS, 2, False)]).next_ms == 1000 + WITHIN_MS
