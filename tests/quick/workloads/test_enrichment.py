"""Enrichment: reference job, plain words and the oracle agree."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.evidence.observed import folded
from harness.results.columns import OUTPUTS
from harness.results.redis_scan import LEFT, interpret
from harness.results.sampler import PlainObserver
from harness.results.topic import KafkaTopic, output_of
from harness.selftest import orders as planted
from harness.selftest.by_hand import EPOCH_MS
from harness.selftest.declared import events, in_cells
from harness.util.clock import Clock
from tests.quick.workloads.test_page_visits import Planned
from workloads.base import NULL
from workloads.enrichment.jobs.enriched import Windows
from workloads.enrichment.jobs.reference import Orders
from workloads.enrichment.jobs.spark_tws import Enrich
from workloads.jobs import event_sinks as sinks
from workloads.registry import codec_of, oracle_of, results_of


def asked(seed):
    tape = replace(planted.ASKED.tape, seed=seed)
    oracle, sent = oracle_of(replace(planted.ASKED, tape=tape)), events(tape)
    right = folded(oracle, in_cells(sent, oracle))
    codes, keys = oracle.codes, results_of(tape).keys
    return tape, sent, {(keys[codes.key(cell)], codes.field(cell)): value for cell, value in right.items()}


def as_cells(answers, users):
    cells = {(f"{OUTPUTS}:{users[event]}", event): 1 for event in answers}
    return cells | {
        (f"orders:{users[event]}", event): NULL if answer is None else answer for event, answer in answers.items()
    }


@pytest.mark.parametrize("seed", range(5))
def test_plain_words_and_the_reference_job_say_what_the_oracle_says(seed):
    tape, sent, right = asked(seed)
    records = list(zip(sent["event_id"].tolist(), codec_of(tape).write(Planned(sent), EPOCH_MS), strict=True))
    random.Random(seed).shuffle(records)
    job = Orders(set(), watermark_ms=10_000)
    for offset, (event, value) in enumerate(records):
        job.add((0, offset), f"{event:012x}".encode(), value)
    told = [json.loads(each) for each in job.answered(idle=True)]

    users = {each["window"]: each["campaign"] for each in told}
    assert as_cells(planted.answered(sent), users) == right
    assert as_cells({each["window"]: each["output"]["orders"] for each in told}, users) == right
    assert job.done({0: len(records)}) == {0: len(records)}
    assert len(told) == len(records)


class Handle:
    """Of the state of one user, as Spark gives it."""

    def __init__(self) -> None:
        self.state: Any = None
        self.timers: set[int] = set()

    def getValueState(self, _name, _schema):  # noqa: N802
        def become(state=None):
            self.state = state

        return SimpleNamespace(get=lambda: self.state, update=become, clear=become)

    def registerTimer(self, at_ms):  # noqa: N802
        self.timers.add(at_ms)


class OneUser:
    """A stateful processor, and what Spark does around it."""

    def __init__(self, user, processor: Any):
        self.user, self.handle, self.processor = user, Handle(), processor
        self.processor.init(self.handle)

    def batch(self, rows, watermark_ms):
        times = SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark_ms)
        outputs = [*self.processor.handleInputRows((self.user,), iter(rows), times)] if rows else []
        while due := sorted(each for each in self.handle.timers if each <= watermark_ms):
            self.handle.timers.remove(due[0])
            outputs += self.processor.handleExpiredTimer((self.user,), times, None)
        return outputs


@pytest.mark.parametrize("seed", range(5))
def test_the_state_of_spark_says_what_the_oracle_says_in_order_and_keeps_little(seed):
    _, sent, right = asked(seed)
    rows = list(zip(*(sent[name].tolist() for name in ("event_time_ms", "event_id", planted.USER)), strict=True))
    draw, known, told = random.Random(seed), {user: OneUser(user, Enrich()) for _, _, user in rows}, []
    arriving = sorted(rows, key=lambda row: row[0] + draw.randrange(10_000))
    for begin in range(0, len(arriving), 50):
        newest_ms = max(at_ms for at_ms, *_ in arriving[: begin + 50])
        for user, one in known.items():
            mine = [
                {"ordered_at": at_ms, "event": event} for at_ms, event, of in arriving[begin : begin + 50] if of == user
            ]
            told += one.batch(mine, newest_ms - 10_000)
    told += [each for one in known.values() for each in one.batch([], 1 << 60)]

    users = {each["event"]: f"user-{each['user']:02}" for each in told}
    assert as_cells({each["event"]: each["orders"] for each in told}, users) == right
    assert len(told) == len(rows)
    time_of = {event: at_ms for at_ms, event, _ in rows}
    for user, one in known.items():
        times = [time_of[each["event"]] for each in told if each["user"] == user]
        assert times == sorted(times)
        assert len(one.handle.state[0]) <= 2  # the newest one that was over, and the one in which the last order lies
        assert one.handle.state[1] == []


def test_windows_that_nobody_asks_for_any_more_are_forgotten():
    windows = Windows({10_000: 1, 20_000: 2, 30_000: 3})
    windows.forget(25_000)

    assert windows.orders == {20_000: 2, 30_000: 3}
    assert (windows.answer(25_000), windows.answer(30_000)) == (2, 3)
    windows.forget(5_000)
    assert windows.orders == {20_000: 2, 30_000: 3}


class Broker:
    """As much of Kafka as a sink needs: what was committed, and by which group up to where."""

    def __init__(self):
        self.values, self.position, self.open = [], -1001, []

    def producer(self, _settings):
        def commit(_timeout):
            self.values += self.open
            self.position, self.open = self.promised, []

        def promise(positions, _group, _timeout):
            self.promised = positions[0].offset

        return SimpleNamespace(
            init_transactions=lambda _timeout: self.open.clear(),
            begin_transaction=lambda: None,
            produce=lambda _topic, value, partition: self.open.append(value),
            poll=lambda _timeout: 0,
            flush=lambda _timeout: 0,
            send_offsets_to_transaction=promise,
            commit_transaction=commit,
        )

    def consumer(self, _settings):
        return SimpleNamespace(
            committed=lambda _asked, _timeout: [SimpleNamespace(offset=self.position)],
            consumer_group_metadata=lambda: None,
        )


CONFIG: Any = {"kafka": {"bootstrap": "", "librdkafka": {}}, "run": "r", "results_topic": "t"}


class KilledError(Exception):
    pass


def killed_at(wanted: str) -> Any:
    def at(point, _batch):
        if point == wanted:
            raise KilledError

    return SimpleNamespace(at=at)


@pytest.mark.parametrize("point", ["c1", "c2", "c3", "c4"])
def test_a_batch_that_comes_again_leaves_once_wherever_it_was_killed(monkeypatch, point):
    broker = Broker()
    monkeypatch.setattr(sinks, "Producer", broker.producer)
    monkeypatch.setattr(sinks, "Consumer", broker.consumer)
    sinks.Batches(CONFIG).write(0, ["a"], killed_at(""))
    with pytest.raises(KilledError):
        sinks.Batches(CONFIG).write(1, ["b", "c"], killed_at(point))
    again = sinks.Batches(CONFIG)
    again.write(1, ["b", "c"], killed_at(""))
    again.write(2, ["d"], killed_at(""))

    assert broker.values == ["a", "b", "c", "d"]


def answering(monkeypatch, *answers):
    """A broker that answers so when it is asked for the offset of the group, one after the other."""
    broker, left = Broker(), list(answers)

    def committed(*_):
        answer = left.pop(0)
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return [SimpleNamespace(offset=answer.offset)]

    monkeypatch.setattr(sinks, "AGAIN_S", 0)
    monkeypatch.setattr(sinks, "Producer", broker.producer)
    monkeypatch.setattr(sinks, "Consumer", lambda _: SimpleNamespace(committed=committed, consumer_group_metadata=dict))
    return broker, left


@pytest.mark.parametrize("loading", sinks.LOADING)
def test_a_broker_that_has_not_loaded_the_group_yet_is_asked_again(monkeypatch, loading):
    broker, left = answering(monkeypatch, loading, loading, SimpleNamespace(offset=1))

    batches = sinks.Batches(CONFIG)
    batches.write(0, ["has left already"], killed_at(""))

    assert (broker.values, left) == ([], [])


def test_any_other_complaint_of_a_broker_ends_the_job_at_once(monkeypatch):
    _, left = answering(monkeypatch, KafkaError.GROUP_AUTHORIZATION_FAILED, SimpleNamespace(offset=1))

    with pytest.raises(KafkaException):
        sinks.Batches(CONFIG)

    assert len(left) == 1


def test_an_order_waits_for_the_watermark_and_leaves_once():
    job = Orders(set(), watermark_ms=10_000)
    early, late = (json.dumps({"user": "a", "ordered_at": at}).encode() for at in (5_000, 25_000))
    job.add((0, 0), b"000000000001", early)
    waiting = job.answered(idle=False)
    job.add((1, 0), b"000000000002", late)

    assert waiting == []
    assert job.done({0: 1, 1: 1}) == {0: 0, 1: 0}
    assert [json.loads(each)["window"] for each in job.answered(idle=False)] == [1]
    assert [json.loads(each)["output"] for each in job.answered(idle=True)] == [{"orders": 1}]
    assert job.answered(idle=True) == []


def test_what_came_out_before_a_crash_does_not_leave_again_and_still_counts():
    job = Orders({(0, 0)}, watermark_ms=0)
    for offset, at in enumerate((5_000, 25_000)):
        job.add((0, offset), b"00000000000a", json.dumps({"user": "a", "ordered_at": at}).encode())

    assert [json.loads(each) for each in job.answered(idle=True)] == [
        {"campaign": "a", "window": 10, "output": {"orders": 1}, "of": [0, 1]}
    ]


def test_records_that_are_no_orders_are_left_out():
    job = Orders(set(), watermark_ms=0)
    for offset, value in enumerate((None, b"", b"not an event", b'{"u', b'{"user": 7, "ordered_at": 1}')):
        job.add((0, offset), b"000000000001", value)

    assert (job.unusable, job.answered(idle=True)) == (5, [])


@pytest.mark.parametrize(
    ("value", "output"),
    [
        (b'{"campaign": "a", "window": 7, "output": {"orders": 3}}', ("a", "7", {"orders": "3"})),
        (
            b'{"campaign": "a", "window": 7, "output": {"orders": null}, "of": [0, 1]}',
            ("a", "7", {"orders": str(NULL)}),
        ),
        (b'{"window": 7, "output": {"orders": 3}}', None),
        (b'{"campaign": 1, "window": 7, "output": {"orders": 3}}', None),
        (b'{"campaign": "a", "window": 7, "output": {"orders": 3.5}}', None),
        (b'{"campaign": "a", "window": "7", "output": {"orders": 3}}', None),
        (b'{"campaign": "a", "window": 7, "output": {"outputs": 3}}', None),
        (b'{"campaign": "a", "window": 7, "output": 3}', None),
        (b"[7]", None),
        (b"\xff", None),
    ],
)
def test_an_output_is_a_number_of_an_event_and_whole_numbers(value, output):
    assert output_of(value) == output


def test_an_event_that_comes_out_again_is_counted_again():
    results = KafkaTopic(SimpleNamespace(keys=(), parts=(), number="event_id", length_ms=None))  # type: ignore[arg-type]
    for at_ms, orders in enumerate((3, 4)):
        results._put_out("a", "7", {"orders": str(orders)}, str(at_ms))

    results._read_on = lambda: None  # type: ignore[method-assign]
    found = {(row.key, row.field): row.value for row in results.rows() if not row.key.startswith(("updated:", LEFT))}

    assert found == {("orders:a", "7"): "4", ("outputs:a", "7"): "2"}


def test_a_poll_of_outputs_has_what_changed_since_the_poll_before():
    tape = planted.ASKED.tape
    location = SimpleNamespace(
        keys=results_of(tape).keys,
        parts=(),
        number="event_id",
        length_ms=None,
        manifest=SimpleNamespace(sinks=()),
        clock=Clock(),
    )
    results = KafkaTopic(location)  # type: ignore[arg-type]
    results._read_on = lambda: None  # type: ignore[method-assign]
    observer = results.observer(tape)
    assert isinstance(observer, PlainObserver)
    polled, before = [], results.snapshot()
    for event, orders in (("7", "3"), ("7", "3"), ("8", "1")):
        results._put_out("a", event, {"orders": orders}, "0")
        polled += [(each.whole, each.replies) for each in observer._ask(("orders:a", "outputs:a"))]

    assert polled == [
        (False, [["7", "3"], ["7", "1"]]),
        (False, [[], ["7", "2"]]),
        (False, [["8", "1"], ["8", "1"]]),
    ]
    assert results.snapshot() != before


def test_an_output_has_the_place_at_which_it_left_first():
    results = KafkaTopic(SimpleNamespace(keys=(), parts=(), number="event_id", length_ms=None))  # type: ignore[arg-type]
    for event in ("7", "5", "7", "6"):
        results._put_out("a", event, {"orders": "1"}, "0")
    results._read_on = lambda: None  # type: ignore[method-assign]
    codes = oracle_of(planted.ASKED).codes
    observed = interpret(results.rows(), {f"{OUTPUTS}:a": 3, "orders:a": 4}, codes, ())

    assert observed.left == {codes.one(3, 7): 0, codes.one(3, 5): 1, codes.one(3, 6): 2}
    assert observed.strays == ()


def test_a_batch_that_spark_writes_itself_passes_each_crash_point_around_the_write(tmp_path, monkeypatch):
    passed = []

    class Outputs:
        """One row, or none."""

        def __init__(self, rows: int) -> None:
            self.rows, self.write = rows, self

        def persist(self) -> Outputs:
            return self

        def count(self) -> int:
            return self.rows

        def format(self, name: str) -> Outputs:
            return self

        def options(self, **options: str) -> Outputs:
            return self

        def save(self) -> None:
            passed.append("written")

        def unpersist(self) -> None:
            """Nothing is held."""

    monkeypatch.setattr(sinks, "CrashPoints", lambda _: SimpleNamespace(at=lambda point, _batch: passed.append(point)))
    config: Any = {"crash_path": tmp_path, "kafka": {"java": {}, "bootstrap": "there"}, "results_topic": "results"}
    write = sinks.own_writer(config)
    one, none = cast(Any, Outputs(1)), cast(Any, Outputs(0))

    write(one, 7)
    assert passed == ["c1", "written", "c3", "c4"]
    write(none, 8)
    assert passed[4:] == ["written"], "there is nothing to lose in an empty batch"
