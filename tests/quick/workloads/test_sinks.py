"""The sinks of the Spark job under crash and replay, on a Redis of a few lines.

The law: whatever dies where and however often, `absolute` and `fenced` end right, and `increment` is wrong by exactly
what was written again. Sinks that set their mark in a step of its own are the planted bugs: they must be caught.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.redis_results import updated_key
from workloads.jobs.redis_sinks import FENCED_ADD, SINKS, fence_key, write_batch

CAMPAIGNS = ["a", "b", "c", "d", "e"]


class Died(Exception):  # noqa: N818  (it is what happened)
    """The job is dead: nothing after this line was executed."""


@dataclass
class FakeRedis:
    """Hashes and strings; commands of a pipeline are executed one by one, and the job may die between two of them."""

    hashes: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    strings: dict[str, int] = field(default_factory=dict)
    lives_for: int | None = None  # so many commands

    def pipeline(self, transaction: bool = True) -> FakePipeline:
        assert not transaction
        return FakePipeline(self)

    def execute(self, name, *arguments) -> None:
        if self.lives_for is not None:
            if self.lives_for == 0:
                raise Died
            self.lives_for -= 1
        getattr(self, f"_{name}")(*arguments)

    def counts(self) -> Counter[tuple[str, int]]:
        return Counter({(c, int(w)): n for c in CAMPAIGNS for w, n in self.hashes[c].items()})

    def _hset(self, key, mapping) -> None:
        self.hashes[key].update(mapping)

    def _hincrby(self, key, name, amount) -> None:
        self.hashes[key][name] = self.hashes[key].get(name, 0) + amount

    def _set(self, key, value) -> None:
        self.strings[key] = value

    def _eval(self, script, _key_count, counts, updated, fence, batch, at_ms, *pairs) -> None:
        """What the script does, in Python; the engine tests run the script itself on a real Redis."""
        assert script == FENCED_ADD
        if batch <= self.strings.get(fence, -1):
            return
        for window, count in zip(pairs[::2], pairs[1::2], strict=True):
            self._hincrby(counts, str(window), count)
            self._hset(updated, {str(window): at_ms})
        self.strings[fence] = batch


class FakePipeline:
    def __init__(self, redis: FakeRedis) -> None:
        self._redis = redis
        self._commands: list[tuple[object, ...]] = []

    def hset(self, key, mapping):
        self._commands.append(("hset", key, mapping))

    def hincrby(self, key, name, amount):
        self._commands.append(("hincrby", key, name, amount))

    def set(self, key, value):
        self._commands.append(("set", key, value))

    def eval(self, *arguments):
        self._commands.append(("eval", *arguments))

    def execute(self):
        for command in self._commands:
            self._redis.execute(*command)


@dataclass
class DieAt:
    point: str

    def at(self, point, batch):
        if point == self.point:
            raise Died


def rows(cells: dict[tuple[str, int], int]) -> list[tuple[str, int, int]]:
    return [(campaign, window, count) for (campaign, window), count in cells.items()]


def run_batch(sink, redis, batch, cells, crashes) -> None:
    """As Spark does: again and again until it is committed. At c4 it is committed already."""
    for crash in crashes:
        point = crash if isinstance(crash, str) else "nowhere"
        redis.lives_for = None if isinstance(crash, str) else crash
        try:
            write_batch(sink, redis, batch, rows(cells), DieAt(point))
        except Died:
            if point == "c4":
                return
    redis.lives_for = None
    write_batch(sink, redis, batch, rows(cells), DieAt("nowhere"))


def written_at(point, cells) -> Counter[tuple[str, int]]:
    """What of a batch is in Redis when the job dies at a point."""
    campaigns = sorted({campaign for campaign, _ in cells})
    share = {"c1": 0, "c2": len(campaigns) // 2, "c3": len(campaigns)}[point] if len(campaigns) > 1 else len(campaigns)
    return Counter({cell: count for cell, count in cells.items() if cell[0] in campaigns[:share]})


cells_of_a_batch = st.dictionaries(
    st.tuples(st.sampled_from(CAMPAIGNS), st.sampled_from([0, 10_000, 20_000])), st.integers(1, 9), max_size=12
)
points = st.lists(st.sampled_from(["c1", "c2", "c3"]), max_size=3)
anywhere = st.lists(st.one_of(st.integers(0, 12), st.sampled_from(["c1", "c2", "c3", "c4"])), max_size=3)


class SinksUnderCrashes(RuleBasedStateMachine):
    """Three sinks get the same batches; the model is a Counter."""

    def __init__(self) -> None:
        super().__init__()
        self.batch = 0
        self.truth: Counter[tuple[str, int]] = Counter()
        self.twice: Counter[tuple[str, int]] = Counter()
        self.redis = {name: FakeRedis() for name in SINKS}

    @rule(cells=cells_of_a_batch, exact=anywhere, by_point=points)
    def one_batch(self, cells, exact, by_point):
        self.truth.update(cells)
        for point in by_point:
            self.twice.update(written_at(point, cells))
        totals = {cell: self.truth[cell] for cell in cells}
        run_batch(SINKS["absolute"], self.redis["absolute"], self.batch, totals, exact)
        run_batch(SINKS["fenced"], self.redis["fenced"], self.batch, cells, exact)
        run_batch(SINKS["increment"], self.redis["increment"], self.batch, cells, by_point)
        self.batch += 1

    @invariant()
    def absolute_and_fenced_are_right(self):
        assert self.redis["absolute"].counts() == self.truth
        assert self.redis["fenced"].counts() == self.truth

    @invariant()
    def increment_is_wrong_by_what_was_written_twice(self):
        assert self.redis["increment"].counts() == self.truth + self.twice

    @invariant()
    def every_count_says_when_it_was_updated(self):
        for redis in self.redis.values():
            assert all(
                redis.hashes[campaign].keys() == redis.hashes[updated_key(campaign)].keys() for campaign in CAMPAIGNS
            )


SinksUnderCrashes.TestCase.settings = settings(stateful_step_count=10)
TestSinksUnderCrashes = SinksUnderCrashes.TestCase


def test_a_batch_of_one_campaign_has_no_halves_and_is_not_crashed_in():
    redis = FakeRedis()

    write_batch(SINKS["increment"], redis, 0, rows({("a", 0): 1}), DieAt("c3"))

    assert redis.counts() == {("a", 0): 1}


def marker_first(redis, batch, increments) -> None:
    """Planted bug: the mark, then the counts."""
    for campaign, windows in increments.items():
        if redis.strings.get(fence_key(campaign), -1) < batch:
            pipeline = redis.pipeline(transaction=False)
            pipeline.set(fence_key(campaign), batch)
            for window, count in windows.items():
                pipeline.hincrby(campaign, str(window), count)
            pipeline.execute()


def marker_last(redis, batch, increments) -> None:
    """Planted bug: the counts, then the mark."""
    for campaign, windows in increments.items():
        if redis.strings.get(fence_key(campaign), -1) < batch:
            pipeline = redis.pipeline(transaction=False)
            for window, count in windows.items():
                pipeline.hincrby(campaign, str(window), count)
            pipeline.set(fence_key(campaign), batch)
            pipeline.execute()


@pytest.mark.parametrize(("sink", "count"), [(marker_first, 0), (marker_last, 10)])
def test_a_mark_in_a_step_of_its_own_is_caught(sink, count):
    redis = FakeRedis()

    run_batch(sink, redis, 0, {("a", 0): 5, ("b", 0): 5}, [1])

    assert redis.counts()["a", 0] == count != 5


@pytest.mark.parametrize(("point", "waited"), [("c1", 1), ("c2", 1), ("c4", 0)])
def test_a_job_waits_at_a_crash_point_until_the_order_is_withdrawn_and_not_at_the_last(
    tmp_path, monkeypatch, point, waited
):
    order = tmp_path / "crash.json"
    slept: list[float] = []
    order.write_text(json.dumps({"point": point, "batch": 3}))

    def sleep(seconds):
        slept.append(seconds)
        order.unlink()

    monkeypatch.setattr(time, "sleep", sleep)
    points = CrashPoints(order)
    points.at(point, 2)
    assert not order.with_name("crash.json.reached").exists()
    points.at(point, 3)

    assert json.loads(order.with_name("crash.json.reached").read_text())["batch"] == 3
    assert len(slept) == waited
