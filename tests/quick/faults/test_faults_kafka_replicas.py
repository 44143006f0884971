"""Leader changes on a cluster of dictionaries and processes that only sleep; and the traces that a judge reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harness.evidence import observed
from harness.evidence.ledger import Ledger
from harness.evidence.observed import LogEvents
from harness.faults import kafka, kafka_replicas
from harness.faults.kafka_replicas import KINDS
from harness.faults.registry import brokers, create, parse
from harness.faults.run_at_poll import Field, Moment
from harness.judging import facts
from harness.judging.stored_run import StoredRun
from harness.kafka_log import recount
from harness.model import BatchLog, FaultReport, HarnessError, KafkaAddress, Progress, SinkClaim
from harness.rundir.store import Store
from harness.runner.world.topic import TopicLog
from harness.selftest.by_hand import ORACLE, cell, judged
from harness.services.kafka_cluster import BROKERS, EmbeddedCluster
from tests.quick.cases import SPEC
from tests.quick.faults.test_faults_kafka import MANIFEST, TOTAL, Engine, ScriptedChild, ScriptedLog

Offsets = Mapping[int, int]

BEFORE = {0: 100, 1: 100}
ALONE = {0: 145, 1: 145}


class ScriptedCluster(EmbeddedCluster):
    """Three brokers; each knows how far it has the log."""

    def __init__(self) -> None:
        self.brokers: Any = {node: ScriptedChild() for node in BROKERS}
        self._address = KafkaAddress("nobody:1")
        self.restarted: list[int] = []

    def restart_broker(self, node: int) -> None:
        self.restarted.append(node)
        self.brokers[node] = ScriptedChild()


class ScriptedReplicas(ScriptedLog):
    """Who leads and who is in sync, as it follows from who lives."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        super().__init__(ends=dict(BEFORE))
        self.cluster = cluster
        self.led_by: dict[int, int] = {0: 3, 1: 2}
        self.elected = False

    def leaders(self, *_: object) -> dict[int, int]:
        living = self._living()
        if not living:
            raise HarnessError("nobody listens there")
        if not self.elected and self.led_by[0] in living | {3}:
            clean = [node for node in living if node not in self.cluster.restarted]
            self.led_by = {p: node if node in living else next(iter(clean), -1) for p, node in self.led_by.items()}
        return dict(self.led_by)

    def in_sync(self, *_: object) -> dict[int, set[int]]:
        living = self._living()
        if "follow" in self.deaf and len(living) == 1:
            return {p: set(BROKERS) for p in self.ends}
        return dict.fromkeys(self.ends, living)

    def elect_uncleanly(self, _address: object, _topic: object, partitions: Collection[int]) -> None:
        (node,) = self._living()
        self.led_by |= dict.fromkeys(partitions, node)
        self.elected, self.ends = True, dict(self.ends if "lose" in self.deaf else BEFORE)

    def keep(self, below: Offsets, done: Offsets, *, since: Offsets | None = None, anew: bool = False) -> int:
        since = since or {}
        self.story.append(("keep", dict(since), dict(below)))
        return sum(below.values()) - sum(since.values())

    def send(self, partitions: Sequence[int], each: int = 1) -> None:
        super().send(partitions, each)
        self.ends = {p: end + each for p, end in BEFORE.items()}

    def _living(self) -> set[int]:
        return {node for node, broker in self.cluster.brokers.items() if broker.alive()}


@pytest.fixture
def cluster():
    scripted = ScriptedCluster()
    yield scripted
    for child in scripted.brokers.values():
        child.kill_group()


@pytest.fixture
def replicas(cluster, monkeypatch):
    scripted = ScriptedReplicas(cluster)
    for module in (kafka, kafka_replicas):
        monkeypatch.setattr(module, "kafka", scripted)
    return scripted


def drive(text: str, server: Any, log: Any) -> FaultReport:
    engine: Any = Engine(newest=Progress(1, 3, 1, {0: 90, 1: 100}))
    fault = create(replace(SPEC, engine="scripted", sink="default", fault=parse(f"{text}@now")), MANIFEST)
    place = Field(server, None, KafkaAddress("nobody:1"), "topic", None, (), lambda _: None, log=log)  # type: ignore[arg-type]
    for now_ms in range(1000, 400_000, 200):
        fault.poll(Moment(now_ms, 1, engine, engine.newest, TOTAL, place))
        if fault.over():
            break
    (report,) = fault.reports()
    return report


def test_only_plans_that_need_three_brokers_get_them():
    assert of_plan("kafka-kill@now; kill@now") == 1
    assert {of_plan(f"kill@now; {each.name}@now") for each in KINDS} == {3}


@pytest.mark.parametrize(
    ("plan", "count"),
    [
        ("none", 3),
        ("kill-worker@now", 3),
        ("net-latency@now", 3),
        ("kafka-leader-change@now", 3),
        ("kafka-kill@now", 1),
        ("net-latency(link=kafka)@now", 1),
    ],
)
def test_beside_a_cluster_there_are_three_unless_one_is_struck(plan, count):
    assert of_plan(plan, "cluster[2]") == count


def of_plan(text, master="local[*]"):
    return brokers(replace(SPEC, fault=parse(text), master=master))


def test_a_leader_is_killed_others_lead_and_it_comes_back(cluster, replicas):
    report = drive("kafka-leader-change(for=1s)", cluster, replicas)

    assert (report.landed, report.healed) == (True, True), report.proof
    assert "SIGKILL to broker 3, which led partitions 0; partition 0 is led by broker " in report.proof
    assert "in sync again" in report.proof
    assert cluster.restarted == [3]


def test_an_unclean_election_keeps_what_the_old_leader_had_alone(cluster, replicas):
    report = drive("kafka-unclean-election(records=90, for=1s)", cluster, replicas)

    assert (report.landed, report.healed) == (True, True), report.proof
    assert "broker 3 alone had the log up to 290" in report.proof
    assert "elected uncleanly and ends at 200: 90 confirmed records are gone" in report.proof
    assert replicas.story == ["SIGSTOP", ("send", [0, 1], 45), ("keep", BEFORE, ALONE), "SIGCONT"]
    assert all(broker.alive() for broker in cluster.brokers.values())


@pytest.mark.parametrize("deaf", ["follow", "lose"])
def test_without_records_that_one_broker_had_alone_there_is_no_unclean_election(cluster, replicas, deaf):
    replicas.deaf.add(deaf)
    report = drive("kafka-unclean-election(records=90, for=1s)", cluster, replicas)

    assert not report.landed
    assert replicas.elected == (deaf == "lose")
    assert replicas.story[-1] == "SIGCONT"
    assert all(broker.alive() for broker in cluster.brokers.values())


def test_one_broker_has_nobody_to_hand_over_to_and_of_three_none_is_all_of_kafka(cluster, replicas):
    one = drive("kafka-leader-change", object(), replicas)
    three = drive("kafka-kill", cluster, replicas)

    assert (one.reachable, three.reachable) == (False, False)
    assert "has one broker" in one.proof
    assert "needs three brokers" in three.proof


# What is left behind for the judge.


def topic_log(tmp_path) -> TopicLog:
    return TopicLog(SPEC, KafkaAddress("nobody:1"), "topic", lambda _: None, Store.create(tmp_path, "run"))


def table(*places: tuple[int, int]) -> dict[str, Any]:
    partition, offset = np.array(places).T
    return {"partition": partition.astype(np.int16), "offset": offset, "event_id": offset * 10 + partition}


def test_what_was_kept_is_in_the_log_again_in_its_place(tmp_path, monkeypatch):
    log = topic_log(tmp_path)
    monkeypatch.setattr(recount, "read", lambda *_, **__: table((0, 0), (0, 1), (0, 2), (1, 0)))
    unread = log.keep({0: 3, 1: 1}, {0: 2})
    (whole,) = log.all_records([table((0, 3)), table((1, 1))])

    assert unread == 2
    assert whole["event_id"].tolist() == [0, 10, 20, 30, 1, 11]
    assert whole[observed.FATE].tolist() == [observed.DONE, observed.DONE, observed.UNREAD, 0, observed.UNREAD, 0]


def test_only_what_goes_is_kept(tmp_path, monkeypatch):
    log = topic_log(tmp_path)
    monkeypatch.setattr(recount, "read", lambda *_, **__: table((0, 0), (0, 1), (0, 2)))

    assert log.keep({0: 3}, {}, since={0: 2}) == 1
    (whole,) = log.all_records([table((0, 0))])
    assert whole["offset"].tolist() == [0, 2]


def test_a_topic_made_anew_comes_after_the_one_before_it_and_batches_cannot_be_told(tmp_path, monkeypatch):
    log = topic_log(tmp_path)
    monkeypatch.setattr(recount, "read", lambda *_, **__: table((0, 0), (0, 1)))
    log.keep({0: 2}, {0: 1}, anew=True)
    (store,) = [Store(path) for path in tmp_path.iterdir()]
    store.write_json("batches.json", BatchLog((), drops_late=True, complete=True))
    run = StoredRun(store)
    run.claim = SinkClaim("x", "drop", "none")
    found = run.batch_log

    (whole,) = log.all_records([table((0, 0))])
    assert whole["offset"].tolist() == [-2, -1, 0]
    assert found is not None
    assert not found.complete


def test_a_log_that_nothing_was_taken_from_is_as_it_was(tmp_path):
    parts = [table((0, 0))]

    assert topic_log(tmp_path).all_records(parts) is parts


def test_the_judge_knows_what_was_removed_unread_and_where():
    log = pa.table({**table((0, 0), (0, 1), (0, 2), (1, 0)), observed.FATE: np.array([1, 2, 2, 0], dtype=np.int8)})
    zero = np.zeros(3, dtype=np.int64)
    events = LogEvents(np.array([0, 0, 1], dtype=np.int16), np.array([0, 2, 0]), zero, zero, zero, zero)

    assert facts._unread(log)(judged(events).whole).tolist() == [False, True, False]
    assert facts._places(log) == "partition 0 offsets 1 to 2"
    assert not facts._unread(log.drop_columns([observed.FATE]))(judged(events).whole).any()


def test_the_judge_knows_what_was_aborted(tmp_path):
    store = Store.create(tmp_path, "run")
    assert facts._aborted(store, ORACLE) == Ledger()
    store.tell("aborted", cells=[(1, 10_000, 3), (2, 10_000, 4)])
    store.tell("aborted", cells=[(1, 10_000, 2)])

    assert facts._aborted(store, ORACLE) == Ledger({cell(1, 10_000): 5, cell(2, 10_000): 4})


def test_brokers_are_in_sync_again_when_they_are_in_all_partitions(monkeypatch):
    in_sync = {0: set(BROKERS), 1: {BROKERS[0]}}
    monkeypatch.setattr(kafka_replicas, "topic_of", lambda _: ())
    monkeypatch.setattr(kafka_replicas, "kafka", SimpleNamespace(in_sync=lambda: in_sync))
    now: Any = None
    assert kafka_replicas.in_sync_again(now) == ""
    in_sync[1] = set(BROKERS)

    assert kafka_replicas.in_sync_again(now)
