"""Late policies: jobs, plain words, the judge and a second way agree, whatever is killed, and mistakes have names."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from redis.client import Pipeline

from harness.evidence.observed import NamedLate, folded
from harness.judging.lateness import CountedLog
from harness.selftest import late_reads as planted
from harness.selftest.by_hand import EPOCH_MS
from harness.util.seeded_draws import Lane, between
from tests.quick.workloads.crashes import NOTHING_PLANNED, PLANNED, BatchesUnderCrashes
from tests.quick.workloads.test_enrichment import OneUser
from tests.quick.workloads.test_page_visits import Planned
from workloads.base import COUNTS
from workloads.declared.codec import column_of
from workloads.jobs.plain_process import Record
from workloads.readers_late.jobs.policies import (
    AGAIN,
    AGAIN_MS,
    ASIDE,
    ASIDE_MS,
    FIRST,
    LENGTH_MS,
    Counts,
    Windows,
    emitted,
    results,
)
from workloads.readers_late.jobs.reference import CLOCKS, Sections
from workloads.readers_late.jobs.spark_tws import CountReads, rows_of
from workloads.registry import codec_of, oracle_of, results_of

LATENESS_MS = planted.ASKED.watermark_ms
PARTITIONS, SECTIONS = 3, 8
ONCE_MS = -(1 << 62)


class PoliciesUnderCrashes(BatchesUnderCrashes):
    """The reads of one section."""

    def __init__(self) -> None:
        super().__init__()
        self.state: tuple[dict[int, Counts], int] = ({}, 0)  # as it lies in a checkpoint
        self.judged: list[tuple[int, int]] = []  # the time of each read, and the watermark of its batch
        self.emitted: dict[int, Counts] = {}

    def ran(self, batch: tuple[list[int], int]) -> tuple[Windows, dict[int, Counts]]:
        windows, (reads, watermark) = Windows(*self.state), batch
        for read in reads:
            windows.add(read, watermark)
        emitted = windows.emit(watermark)
        assert windows.emit(watermark) == {}, "a timer that fires in the same batch emits nothing again"
        windows.forget(watermark)
        return windows, emitted

    @NOTHING_PLANNED
    @rule(data=st.data(), forward=st.sampled_from([0, 1, 5_000, LENGTH_MS, AGAIN_MS, 65_000, ASIDE_MS]))
    def plan(self, data: Any, forward: int) -> None:
        watermark = self.watermark + forward
        ages = st.sampled_from([-15_000, -1, 0, 1, LENGTH_MS, LENGTH_MS + AGAIN_MS, LENGTH_MS + ASIDE_MS])
        near = st.builds(lambda age, more: max(0, watermark - age - more), ages, st.integers(0, LENGTH_MS))
        self.batch = data.draw(st.lists(near, max_size=6)), watermark

    @PLANNED
    @rule()
    def commit(self) -> None:
        reads, self.watermark = self.batch
        windows, emitted = self.ran(self.batch)
        self.judged += [(read, self.watermark) for read in reads]
        self.emitted |= emitted
        self.state, self.batch = (windows.counts, self.watermark), None

    @invariant()
    def each_read_is_in_one_class_by_each_policy_as_plain_words_say(self) -> None:
        right: dict[int, Counter[str]] = {}
        for read, watermark in self.judged:
            window = right.setdefault(read // LENGTH_MS * LENGTH_MS, Counter())
            window.update(classes(read, watermark))
        assert {opens: results("news", counts) for opens, counts in self.emitted.items()} == {
            opens: {f"reads:{part}:news": count[part] for part in ALL_PARTS}
            for opens, count in right.items()
            if opens + LENGTH_MS <= self.watermark and count["aside:all"]
        }

    @invariant()
    def no_window_is_kept_for_which_every_read_is_too_late(self) -> None:
        counts, _ = self.state
        assert all(opens + LENGTH_MS + ASIDE_MS > self.watermark for opens in counts)


PoliciesUnderCrashes.TestCase.settings = settings(stateful_step_count=30)
TestPoliciesUnderCrashes = PoliciesUnderCrashes.TestCase

ALL_PARTS = ("ignore:first", "again:first", "again:all", "aside:first", "aside:all")


def classes(read: int, watermark: int) -> list[str]:
    """Return in which results a read is, in plain words."""
    ends = read // LENGTH_MS * LENGTH_MS + LENGTH_MS
    if watermark < ends:
        return [*ALL_PARTS]
    return ["again:all"] * (watermark < ends + AGAIN_MS) + ["aside:all"] * (watermark < ends + ASIDE_MS)


def test_a_read_is_late_when_the_watermark_is_at_the_end_of_its_window():
    windows = Windows({}, 0)
    ends = [(0, 9_999), (5_000, 10_000), (9_999, 29_999), (0, 30_000), (0, 609_999), (0, 610_000)]

    assert [windows.add(*each) for each in ends] == [True, False, False, False, False, False]
    assert windows.counts == {0: Counts(first=1, again=2, aside=4)}
    assert windows.next_ms == 10_000
    assert windows.emit(9_999) == {}
    assert windows.emit(10_000) == windows.counts
    assert windows.next_ms == 610_000
    assert windows.forget(609_999) == []
    assert windows.forget(610_000) == [0]
    assert windows.next_ms is None


class OfFlink:
    """The windows of a section, as Flink keeps them by a policy, and what the job emits of them."""

    def __init__(self, policy: str, *, keeps: bool) -> None:
        self.policy, self.keeps = policy, keeps
        self.watermark_ms = ONCE_MS
        self.windows: dict[int, int] = {}
        self.fired: set[int] = set()
        self.emitted: dict[int, tuple[int, int]] = {}

    @property
    def allowed_ms(self) -> int:
        return AGAIN_MS if self.policy == AGAIN else 0

    def emit(self, opens: int, count: int, source: str) -> None:
        self.emitted[opens] = emitted(self.emitted.get(opens), self.policy, count, source, keeps=self.keeps)

    def read(self, read_ms: int) -> None:
        opens = read_ms // LENGTH_MS * LENGTH_MS
        if opens + LENGTH_MS + self.allowed_ms <= self.watermark_ms:
            if self.policy == ASIDE:
                self.emit(opens, 1, ASIDE)
            return
        self.windows[opens] = self.windows.get(opens, 0) + 1
        if opens + LENGTH_MS <= self.watermark_ms:
            self.fire(opens)

    def fire(self, opens: int) -> None:
        self.emit(opens, self.windows[opens], AGAIN if opens in self.fired else FIRST)
        self.fired.add(opens)

    def advance(self, watermark_ms: int) -> None:
        before_ms, self.watermark_ms = self.watermark_ms, max(watermark_ms, self.watermark_ms)
        for opens in sorted(self.windows):
            if before_ms < opens + LENGTH_MS <= self.watermark_ms:
                self.fire(opens)
            if opens + LENGTH_MS + self.allowed_ms <= self.watermark_ms:
                del self.windows[opens]
                self.fired.discard(opens)

    def restart(self) -> None:
        """The state comes back, and the watermark does not."""
        self.watermark_ms = ONCE_MS


def in_flink(policy: str, *, keeps: bool, seed: int) -> tuple[OfFlink, Counter[int]]:
    """Return the windows after reads with restarts, and how many reads each had."""
    draw, flink, sent = random.Random(seed), OfFlink(policy, keeps=keeps), Counter[int]()
    newest_ms = 0
    for number in range(400):
        read_ms = max(0, number * 250 - draw.choice([0, 0, 0, draw.randrange(60_000)]))
        newest_ms = max(newest_ms, read_ms)
        flink.read(read_ms)
        sent[read_ms // LENGTH_MS * LENGTH_MS] += 1
        if draw.random() < 0.2:
            flink.advance(newest_ms - LATENESS_MS)
        if draw.random() < 0.03:
            flink.restart()
    flink.advance(1 << 60)
    return flink, sent


@pytest.mark.parametrize("seed", range(20))
def test_what_was_emitted_stays_if_flink_forgets_its_watermark_and_begins_a_window_anew(seed):
    aside, sent = in_flink(ASIDE, keeps=True, seed=seed)
    again, _ = in_flink(AGAIN, keeps=True, seed=seed)
    without, _ = in_flink(ASIDE, keeps=False, seed=seed)

    assert {opens: whole for opens, (_, whole) in aside.emitted.items()} == sent
    assert all(first <= whole <= sent[opens] for opens, (first, whole) in again.emitted.items())
    assert sum(whole for _, whole in without.emitted.values()) < sent.total(), "results were replaced"


# Logs of reads, up to a minute late.

Log = dict[str, np.ndarray]


def log_of(count: int, span_ms: int, seed: int) -> Log:
    """Return reads in the order of partitions and offsets, one in ten of them late."""
    number = np.arange(count)
    lane = Lane.of(seed, "late reads")
    none = np.zeros(count, dtype=np.bool_)
    content = codec_of(tape(seed)).draw(lane.at(number), probes=None, hot=none, sure=none)
    is_old = between(lane.at(number + count), 0, 9) == 0
    time_ms = EPOCH_MS + number * span_ms // count - is_old * between(lane.at(number + 2 * count), 0, 60_000)
    partition = between(lane.at(number + 3 * count), 0, PARTITIONS - 1).astype(np.int16)
    order = np.lexsort((number, partition))
    offset = np.concatenate([np.arange((partition == p).sum()) for p in range(PARTITIONS)])
    columns = {**content, "event_id": number, "event_time_ms": time_ms, "sent": number}
    return {"partition": partition[order], "offset": offset, **{name: col[order] for name, col in columns.items()}}


def tape(seed: int):
    return replace(planted.ASKED.tape, seed=seed, partitions=PARTITIONS)


def watermarks(log: Log) -> np.ndarray:
    """Return the watermark of each read's partition when it was read."""
    result = np.full(len(log["offset"]), ONCE_MS)
    for p in range(PARTITIONS):
        rows = np.flatnonzero(log["partition"] == p)
        result[rows[1:]] = np.maximum.accumulate(log["event_time_ms"][rows])[:-1] - LATENESS_MS
    return result


def by_arithmetic(log: Log, watermark_ms: np.ndarray) -> dict[tuple[str, int], int]:
    """Return the results by a second way: no SQL, and no class of a job's. A histogram of each class."""
    window = log["event_time_ms"] // LENGTH_MS
    lateness_ms = watermark_ms - (window + 1) * LENGTH_MS
    first_window = int(window.min())
    width = int(window.max()) - first_window + 1
    place = log[column_of("section")] * width + window - first_window
    bounds_ms = {"again": AGAIN_MS, "aside": ASIDE_MS}
    parts = {f"{policy}:first": lateness_ms < 0 for policy in ("ignore", "again", "aside")}
    parts |= {f"{policy}:all": lateness_ms < bound_ms for policy, bound_ms in bounds_ms.items()}
    found = {}
    for part, rows in parts.items():
        histogram = np.bincount(place[rows], minlength=SECTIONS * width)
        for at in np.flatnonzero(histogram).tolist():
            section, opens = at // width, (at % width + first_window) * LENGTH_MS
            found[f"reads:{part}:section-{section + 1}", opens] = int(histogram[at])
    return found


def by_the_judge(log: Log, watermark_ms: np.ndarray, seed: int) -> dict[tuple[str, int], int]:
    """Return what a run expects of an engine that names late reads with these watermarks."""
    spec = replace(planted.ASKED, tape=tape(seed))
    oracle, keys = oracle_of(spec), results_of(spec.tape).keys
    table = pa.table({**log, "kind": np.full(len(log["offset"]), COUNTS, dtype=np.int8)})
    named = NamedLate(np.empty(0, dtype=np.int64), watermarks=names(log, watermark_ms))
    known = CountedLog(table, None, spec, oracle, codec_of(spec.tape), named=named).whole
    assert known.exact
    ledger, codes = folded(oracle, known.events, ~known.dropped), oracle.codes
    return {(keys[codes.key(cell)], codes.field(cell)): count for cell, count in ledger.items()}


def names(log: Log, watermark_ms: np.ndarray) -> np.ndarray:
    late = watermark_ms >= (log["event_time_ms"] // LENGTH_MS + 1) * LENGTH_MS
    record = log["partition"].astype(np.int64) << 47 | log["offset"]
    return np.column_stack((record, watermark_ms))[late]


def agree_on(count: int, span_ms: int, seed: int) -> None:
    log = log_of(count, span_ms, seed)
    found = by_arithmetic(log, watermarks(log))

    assert by_the_judge(log, watermarks(log), seed) == found
    total = Counter[str]()
    for (key, _), reads in found.items():
        total[key.rpartition(":")[0]] += reads
    assert total["reads:aside:all"] == count, "none is ten minutes late"
    assert total["reads:ignore:first"] == total["reads:again:first"] < total["reads:again:all"] < count


@pytest.mark.parametrize("seed", range(3))
def test_the_judge_agrees_with_a_second_way(seed):
    agree_on(4_000, 90_000, seed)


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_the_judge_agrees_with_a_second_way_on_a_million_reads():
    agree_on(1_000_000, 90_000, 1)


class Redis:
    """As much of Redis as the reference job uses. A transaction is kept or lost as a whole."""

    def __init__(self) -> None:
        self.hashes: dict[str, dict[str, Any]] = {}

    def hset(self, key, mapping):
        self.hashes.setdefault(key, {}).update({field: str(value) for field, value in mapping.items()})

    def hdel(self, key, *fields):
        for field in fields:
            del self.hashes[key][field]

    def hgetall(self, key):
        return self.hashes.get(key, {})

    def scan_iter(self, pattern, count):
        return [key for key in self.hashes if key.startswith(pattern.rstrip("*")) and count]

    @property
    def results(self) -> dict[tuple[str, int], int]:
        """The counts above 0: one of 0 is there for a window whose reads were all late."""
        own = {key: fields for key, fields in self.hashes.items() if key.startswith("reads:")}
        return {(key, int(opens)): int(n) for key, fields in own.items() for opens, n in fields.items() if n != "0"}


FAR_MS = EPOCH_MS + 120_000


@pytest.mark.parametrize("seed", range(4))
def test_the_reference_says_what_the_judge_expects_wherever_it_is_killed(seed, tmp_path):
    log, draw, late = log_of(3_000, 90_000, seed), random.Random(seed), tmp_path / "late.jsonl"
    values = [*codec_of(tape(seed)).write(Planned(log), EPOCH_MS)]
    of_partition = {p: np.flatnonzero(log["partition"] == p).tolist() for p in range(PARTITIONS)}
    redis, done = Redis(), dict.fromkeys(range(PARTITIONS), 0)

    def started():
        job = Sections(PARTITIONS, LATENESS_MS, late)
        job.restore(cast(Any, redis))
        return job, dict(done)

    job, read = started()
    while any(read[p] < len(rows) for p, rows in of_partition.items()):
        for p, rows in of_partition.items():  # each partition at any speed
            for row in rows[read[p] : (until := read[p] + draw.randrange(60))]:
                job.add(Record(p, int(log["offset"][row]), None, values[row]))
            read[p] = min(until, len(rows))
        transaction = copy.deepcopy(redis)
        job.write(cast(Pipeline, transaction))
        if draw.random() < 0.3:
            if draw.random() < 0.5:  # killed behind the transaction, else before it
                redis, done = transaction, read
            job, read = started()
        else:
            redis, done = transaction, dict(read)
    for p in range(PARTITIONS):
        last = json.dumps({"section": "section-1", "read_at": FAR_MS}).encode()
        job.add(Record(p, len(of_partition[p]), None, last))
    job.write(cast(Pipeline, redis))

    watermark_ms = watermarks(log)
    assert redis.results == by_arithmetic(log, watermark_ms) == by_the_judge(log, watermark_ms, seed)
    lines = {tuple(json.loads(line).values()) for line in late.read_text().splitlines()}
    assert {(p << 47 | offset, at_ms) for p, offset, at_ms in lines} == {*map(tuple, names(log, watermark_ms).tolist())}
    assert {*redis.hashes[CLOCKS].values()} == {str(FAR_MS)}


def test_records_that_are_no_reads_are_left_out(tmp_path):
    job = Sections(1, LATENESS_MS, tmp_path / "late.jsonl")
    for value in (None, b"", b"not an event", b'{"s', b'{"section": 7, "read_at": 1}'):
        job.add(Record(0, 0, None, value))
    redis = Redis()
    job.write(cast(Pipeline, redis))

    assert (job.unusable, redis.results, (tmp_path / "late.jsonl").read_text()) == (5, {}, "")


@pytest.mark.parametrize("seed", range(3))
def test_the_state_of_spark_says_what_the_second_way_says_and_is_gone_in_the_end(seed):
    log = log_of(3_000, 90_000, seed)
    section, time_ms = (log[name][np.argsort(log["sent"])] for name in (column_of("section"), "event_time_ms"))
    known = {number: OneUser(f"section-{number + 1}", CountReads()) for number in range(SECTIONS)}
    watermark_ms = np.zeros(len(time_ms), dtype=np.int64)
    shown: dict[tuple[str, int], int] = {}
    for begin in range(0, len(time_ms) + 1, 100):
        rows = slice(begin, begin + 100)
        newest_ms = max(time_ms[:begin].max(initial=0) - LATENESS_MS, 0)  # Spark's: of the batches before
        watermark_ms[rows] = newest_ms
        for number, one in known.items():
            mine = [{"read_at": each} for each in time_ms[rows][section[rows] == number].tolist()]
            for row in one.batch(mine, int(newest_ms)):
                shown |= {(key, opens): count for key, opens, count in rows_of(row.asDict())}
    shown |= {
        (key, opens): count
        for one in known.values()
        for row in one.batch([], FAR_MS)
        for key, opens, count in rows_of(row.asDict())
    }

    in_order = {"event_time_ms": time_ms, column_of("section"): section}
    assert {cell: count for cell, count in shown.items() if count} == by_arithmetic(in_order, watermark_ms)
    assert [one.batch([], FAR_MS + ASIDE_MS) for one in known.values()] == [[]] * SECTIONS
    assert {one.handle.state for one in known.values()} == {None}
