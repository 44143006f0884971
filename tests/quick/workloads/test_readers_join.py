"""Reads with the articles of the last minute: job, plain words and oracle agree."""

from __future__ import annotations

import json
import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaError
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harness.selftest import joins as planted
from harness.selftest.by_hand import EPOCH_MS
from harness.util.seeded_draws import Lane, between
from tests.quick.workloads.crashes import left_by, right_values
from tests.quick.workloads.test_page_visits import Planned
from workloads.declared.declaration import load
from workloads.declared.draws import content
from workloads.declared.fields import time_path
from workloads.declared.oracle import Oracle
from workloads.declared.sample import relation
from workloads.jobs import waiting_process
from workloads.jobs.waiting_process import OutputTopic, _Job
from workloads.readers_join.jobs.joined import Joined, Read, ends_of
from workloads.readers_join.jobs.reference import Waiting
from workloads.registry import codec_of
from workloads.shipped import folder_of

SENT = planted.reads()
ALLOWED_MS = 10_000


def by_numbers(reader: np.ndarray, article: np.ndarray, read_at: np.ndarray) -> np.ndarray:
    """Return the articles of each read: in each second, an article counts from its read to a minute after it, or to
    the next one.
    """
    second = read_at // planted.STEP_MS
    first = int(second.min())
    known = np.unique(np.column_stack((reader, article, second - first)), axis=0)
    same = (known[1:, :2] == known[:-1, :2]).all(axis=1)
    until = known[:, 2] + planted.WINDOWS
    until[:-1] = np.where(same, np.minimum(until[:-1], known[1:, 2]), until[:-1])
    change = np.zeros((int(reader.max()) + 1, int(until.max()) + 1), dtype=np.int64)
    np.add.at(change, (known[:, 0], known[:, 2]), 1)
    np.add.at(change, (known[:, 0], until), -1)
    return np.asarray(change.cumsum(axis=1)[reader, second - first])


def agree_on(count: int, span_ms: int, seed: int) -> None:
    """Compare the oracle with `by_numbers` on events out of order, some of them twice."""
    declared = load(folder_of("readers_join"), shipped=True)
    ids = np.append(np.arange(count), np.arange(count // 100))
    late_ms = between(Lane.of(seed, "late").at(ids), 0, 5_000)  # a copy has the time of its event
    times_ms = EPOCH_MS + ids * span_ms // count - late_ms
    drawn = {**content(declared.fields, seed, Lane.of(seed, "drawn").at(ids)), time_path(declared.fields): times_ms}
    answer = Oracle(declared.question).answer(relation(declared, seed, drawn, ids))

    right = by_numbers(drawn["reader"], drawn["article"], times_ms)
    outputs = Counter(ids.tolist())
    found = {
        event: (n, m)
        for event, n, m in zip(
            *(answer.column(x).to_pylist() for x in ("event_id", "outputs", "articles")), strict=True
        )
    }
    assert found == {event: (outputs[event], right[event]) for event in range(count)}


@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_agrees_with_a_second_way(seed):
    agree_on(4_000, 150_000, seed)


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_the_oracle_agrees_with_a_second_way_on_a_million_events():
    agree_on(1_000_000, 150_000, 1)


def in_records(seed: int) -> list[tuple[bytes, bytes]]:
    """Return key and value of each read, in a random order that the watermark allows."""
    draw = random.Random(seed)
    values = [*codec_of(planted.ASKED.tape).write(Planned(SENT), EPOCH_MS)]
    times, ids = SENT["event_time_ms"].tolist(), SENT["event_id"].tolist()
    arriving = sorted(range(len(ids)), key=lambda row: times[row] + draw.randrange(ALLOWED_MS))
    return [(f"{ids[row]:012x}".encode(), values[row]) for row in arriving]


def judged(outputs: list[bytes]) -> dict[tuple[str, int], int]:
    """Return the values of each cell by what a job put out."""
    answers = [json.loads(output) for output in outputs]
    cells = Counter((f"outputs:{each['campaign']}", each["window"]) for each in answers)
    return {
        **cells,
        **{(f"articles:{each['campaign']}", each["window"]): each["output"]["articles"] for each in answers},
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_reference_says_what_the_oracle_says_wherever_it_is_killed(seed, tmp_path):
    records, draw = in_records(seed), random.Random(seed)
    late = tmp_path / "late.jsonl"
    job, left = left_by(lambda out: Waiting(out, ALLOWED_MS, late), records, draw)
    last = json.dumps({"reader": "reader-00", "article": "none", "read_at": EPOCH_MS * 2}).encode()
    job.add((0, len(records)), b"0" * 12, last)
    left += job.answered(idle=False)

    assert judged(left) == right_values(planted.ASKED, SENT)
    assert late.read_text() == ""
    assert job.done({0: 7}) == {0: 7}


def test_a_read_whose_second_is_over_counts_nowhere_and_is_named_also_after_a_crash(tmp_path):
    late = tmp_path / "late.jsonl"
    times = (20_000, 31_000, 20_999, 21_500)
    values = [json.dumps({"reader": "a", "article": f"{n}", "read_at": at}).encode() for n, at in enumerate(times)]
    job = Waiting(set(), ALLOWED_MS, late)
    for offset in (0, 1):
        job.add((0, offset), b"%d" % offset, values[offset])
    first = [json.loads(each) for each in job.answered(idle=False)]
    for offset in (2, 3):
        job.add((0, offset), b"%d" % offset, values[offset])
    assert job.answered(idle=False) == []
    assert late.read_text() == "[0, 2]\n"

    again = Waiting({(0, 0)}, ALLOWED_MS, late)
    for offset, value in enumerate(values):
        again.add((0, offset), b"%d" % offset, value)
    again.add((0, 4), b"9", json.dumps({"reader": "b", "article": "x", "read_at": 90_000}).encode())
    second = [json.loads(each) for each in again.answered(idle=False)]

    assert [(each["window"], each["output"]["articles"]) for each in first + second] == [(0, 1), (3, 2), (1, 3)]
    assert late.read_text() == "[0, 2]\n"


def test_records_that_are_no_reads_are_left_out(tmp_path):
    job = Waiting(set(), ALLOWED_MS, tmp_path / "late.jsonl")
    for key, value in ((b"1", None), (b"1", b"{"), (b"x", b'{"reader": "a", "article": "b", "read_at": 1}')):
        job.add((0, 0), key, value)

    assert (job.unusable, job.answered(idle=True)) == (3, [])


class ReadsAndWatermarks(RuleBasedStateMachine):
    """One reader whose reads come in any order, some of them late: each in time leaves once, as plain words say."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = Joined()
        self.accepted: list[Read] = []
        self.left: list[tuple[Read, int]] = []

    @rule(read_at=st.integers(0, 200_000), article=st.sampled_from("abcd"))
    def read(self, read_at: int, article: str) -> None:
        if not self.joined.is_over(read_at):
            self.accepted.append(Read("reader", article, read_at, len(self.accepted), (0, len(self.accepted))))
            self.joined.add(self.accepted[-1])

    @rule(forward_ms=st.integers(0, 20_000))
    def advance(self, forward_ms: int) -> None:
        self.left += self.joined.advance(self.joined.watermark_ms + forward_ms)

    @invariant()
    def each_read_whose_second_is_over_has_left_once_with_its_articles(self) -> None:
        due = [each for each in self.accepted if ends_of(each.read_at) <= self.joined.watermark_ms]
        assert sorted(read.event for read, _ in self.left) == sorted(each.event for each in due)
        for read, articles in self.left:
            ends = ends_of(read.read_at)
            window = {each.article for each in self.accepted if ends - planted.LENGTH_MS <= each.read_at < ends}
            assert articles == len(window)


ReadsAndWatermarks.TestCase.settings = settings(stateful_step_count=30)
TestReadsAndWatermarks: Any = ReadsAndWatermarks.TestCase


def message(value: bytes = b"", code: int = 0) -> Any:
    return SimpleNamespace(error=lambda: KafkaError(code) if code else None, value=lambda: value)


def outputs_of(monkeypatch: pytest.MonkeyPatch, *messages: Any) -> set[waiting_process.Place]:
    polled = iter(messages)
    consumer = SimpleNamespace(assign=lambda _: None, poll=lambda _: next(polled), close=lambda: None)
    monkeypatch.setattr(waiting_process, "Consumer", lambda _: consumer)
    topic = object.__new__(OutputTopic)
    topic._name, topic._group, topic._known = "out", "streamgauge-out", {}
    return topic.out()


def test_a_job_that_starts_again_reads_its_outputs_to_their_end(monkeypatch):
    first, second = message(b'{"of": [0, 7]}'), message(b'{"of": [1, 3]}')

    assert outputs_of(monkeypatch, first, second, message(code=KafkaError._PARTITION_EOF)) == {(0, 7), (1, 3)}
    with pytest.raises(TimeoutError, match="out can't be read to its end"):
        outputs_of(monkeypatch, first, None)


@pytest.mark.parametrize(
    ("outputs", "rows", "told"),
    [([b"x"], 5, ["write", "progress 5"]), ([b"x"], 0, ["write", "progress 0"]), ([], 5, ["progress 5"]), ([], 0, [])],
)
def test_what_is_due_leaves_before_the_progress_says_so(outputs, rows, told):
    story: list[str] = []
    job: Any = object.__new__(_Job)
    job._events = SimpleNamespace(answered=lambda **_: outputs, done=lambda offsets: offsets, unusable=0)
    job._topic = SimpleNamespace(write=lambda _: story.append("write"))
    job._progress = SimpleNamespace(write=lambda rows, **_: story.append(f"progress {rows}"))
    job._offsets, job._moved_s, job._rows, job._batch = {0: 3}, 0.0, rows, 2
    job._put_out()

    assert story == told
    assert (job._rows, job._batch) == (0, 3 if told else 2)


def test_reads_of_one_time_leave_in_the_order_in_which_they_came():
    joined = Joined()
    reads = [Read(reader, "article", EPOCH_MS, number, (0, number)) for number, reader in enumerate("cab")]
    for read in reads:
        joined.add(read)

    assert [read for read, _ in joined.advance(EPOCH_MS + 60_000)] == reads
