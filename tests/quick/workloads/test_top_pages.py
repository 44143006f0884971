"""Top pages: jobs, plain words, arrays and the oracle agree on each place."""

from __future__ import annotations

import random
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from redis import Redis
from redis.client import Pipeline

from harness.selftest import places as planted
from harness.selftest.by_hand import EPOCH_MS
from harness.selftest.declared import events
from tests.quick.workloads.crashes import right_values
from tests.quick.workloads.test_enrichment import OneUser
from tests.quick.workloads.test_page_visits import Planned
from tests.quick.workloads.test_pattern import Store, Transaction
from workloads.declared.declaration import unsealed
from workloads.declared.oracle import Limits, Oracle
from workloads.registry import codec_of
from workloads.top_pages.jobs.ranked import LENGTH_MS, PLACES, Ranked, opens_of, top
from workloads.top_pages.jobs.reference import Pages
from workloads.top_pages.jobs.spark_tws import TopPages

SENT = events(planted.ASKED.tape)


def test_more_views_come_first_and_then_the_smaller_name():
    views = {"/page/2": 3, "/page/10": 3, "/page/1": 2, "/page/4": 2, "/page/7": 4, "/page/3": 2}

    assert [each.page for each in top(views)] == ["/page/7", "/page/10", "/page/2", "/page/1", "/page/3"]
    assert top({"a": 1}) == [Ranked("a", 1, 1)]
    assert top({}) == []


@pytest.mark.parametrize("seed", range(3))
def test_the_reference_takes_lost_places_back_wherever_it_is_killed(seed):
    values, draw = [*codec_of(planted.ASKED.tape).write(Planned(SENT), EPOCH_MS)], random.Random(seed)
    draw.shuffle(values)
    store = Keys()

    def started():
        job = Pages()
        job.restore(cast(Redis, store))
        return job

    job, at = started(), 0
    shown: set[tuple[str, int]] = set()
    while at < len(values):
        for value in values[at : at + 50]:
            job.add(value)
        done = Keys(store)
        job.write(cast(Pipeline, done))
        fate = draw.random()
        if fate > 0.2:  # else it is killed before its transaction
            store, at = done, at + 50
            shown |= store.results().keys()
        if fate < 0.4:
            job = started()

    assert store.results() == right_values(planted.ASKED, SENT)
    assert shown > right_values(planted.ASKED, SENT).keys()
    job.add(b'{"page": 1}')
    assert job.unusable == 1


class Keys(Transaction):
    """What deletes, too."""

    def __init__(self, store: Store | None = None) -> None:
        super().__init__(store or Store())

    def scan_iter(self, pattern: str, count: int) -> list[str]:
        return [key for key in self.hashes if key.startswith(pattern.removesuffix("*"))][:count]

    def hdel(self, key: str, field: str) -> None:
        del self.hashes[key][field]


@pytest.mark.parametrize("seed", range(3))
def test_the_state_of_spark_says_what_the_oracle_says_and_is_gone_in_the_end(seed):
    draw, found = random.Random(seed), []
    known: dict[int, OneUser] = {}
    rows = list(zip(SENT["event_time_ms"].tolist(), SENT[planted.PAGE].tolist(), strict=True))
    rows.sort(key=lambda row: row[0] + draw.randrange(10_000))
    for begin in range(0, len(rows), 50):
        newest_ms = max(at_ms for at_ms, _ in rows[: begin + 50])
        batch = rows[begin : begin + 50]
        for opens in {opens_of(at_ms) for at_ms, _ in batch}:
            known.setdefault(opens, OneUser(opens, TopPages()))
        for opens, one in known.items():
            mine = [{"page": planted.name_of(page)} for at_ms, page in batch if opens_of(at_ms) == opens]
            found += one.batch(mine, newest_ms - 10_000)
    found += [each for one in known.values() for each in one.batch([], 1 << 60)]

    cells = {(f"place:{each['page']}", each["opens"]): each["place"] for each in found}
    right = right_values(planted.ASKED, SENT)
    assert cells | {(f"views:{each['page']}", each["opens"]): each["views"] for each in found} == right
    assert 2 * len(found) == len(right)
    assert {one.handle.state for one in known.values()} == {None}


@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_agrees_with_a_second_way(seed):
    assert agreed(6_000, 60_000, seed) > 0


@pytest.mark.thorough
def test_the_oracle_agrees_with_a_second_way_on_a_million_views():
    assert agreed(1_000_000, 2_000_000, 1) > 0


def agreed(count, span_ms, seed):
    """Compare the oracle with arrays that are sorted once, on random views. Return how many places were ties."""
    draw = np.random.default_rng(seed)
    page, viewed_at = draw.integers(0, 200, count), EPOCH_MS + draw.integers(0, span_ms, count)
    names = np.array([planted.name_of(each) for each in range(200)])
    viewed = pa.table(
        {
            "page": names[page],
            "visitor": pa.repeat("one", count),
            "viewed_at": viewed_at,
            "event": np.arange(count),
            "event_id": np.arange(count),
        }
    )
    question = unsealed(planted.ASKED.tape.declaration).question
    answer = Oracle(question, {}, Limits(deadline_s=500)).answer(viewed)

    by_name = np.argsort(np.argsort(names))
    window = viewed_at // LENGTH_MS
    views = np.zeros((int(window.max() - window.min()) + 1, 200), dtype=np.int64)
    np.add.at(views, (window - window.min(), by_name[page]), 1)
    first = np.argsort(-views, axis=1, kind="stable")[:, : PLACES + 1]
    ranked = np.take_along_axis(views, first, axis=1)
    sorted_names = np.sort(names)
    right = {
        (sorted_names[first[row, place]], int(window.min() + row) * LENGTH_MS, place + 1, int(ranked[row, place]))
        for row, place in zip(*np.nonzero(ranked[:, :PLACES]), strict=True)
    }
    columns = (answer.column(name).to_pylist() for name in ("page", "opens", "place", "views"))
    assert set(zip(*columns, strict=True)) == right
    return int((ranked[:, 1:] == ranked[:, :-1]).sum())
