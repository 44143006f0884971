"""The kafka family on a broker of a dictionary and a process that sleeps; and what the checks make of its traces."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psutil
import pytest

from harness.evidence.observed import LogEvents, Observed
from harness.faults import kafka as family
from harness.faults.base import Context
from harness.faults.kafka import KINDS
from harness.faults.registry import create, parse
from harness.faults.run_at_poll import Field, Moment
from harness.judging.checks import duplicated, log, lost
from harness.model import (
    EngineManifest,
    FaultReport,
    HarnessError,
    KafkaAddress,
    Outcome,
    Progress,
    UsageError,
)
from harness.selftest.by_hand import ledger
from tests.quick.cases import SCRIPTED, SPEC, case, events
from tests.quick.faults.test_faults import ScriptedEngine

MANIFEST = SCRIPTED
TOTAL = 1000
ABORT_MARKER = 1


class ScriptedChild:
    """A real process, so that signals and their proofs are real."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(["sleep", "600"])
        self.pid = self._process.pid
        self.orderly = True

    def alive(self) -> bool:
        return self._process.poll() is None

    def returncode(self) -> int | None:
        code = self._process.poll()
        return 143 if code == -signal.SIGTERM and self.orderly else code

    def signal_group(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        while number is signal.SIGSTOP and psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:
            pass  # it is on its way for a moment

    def kill_group(self) -> None:
        self._process.kill()
        self._process.wait(20)

    def stop(self, deadline_s: float) -> None:
        self._process.terminate()
        self._process.wait(deadline_s)


class ScriptedBroker:
    def __init__(self) -> None:
        self.child = ScriptedChild()
        self.address = KafkaAddress("nobody:1")

    def listens(self) -> bool:
        return self.child.alive()

    def restart(self) -> None:
        self.child = ScriptedChild()


@dataclass
class ScriptedLog:
    """As much of Kafka and of the run's topic as the family uses. What is in `deaf` is not done."""

    first: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})
    ends: dict[int, int] = field(default_factory=lambda: {0: 225, 1: 250})
    open_records: dict[int, int] = field(default_factory=dict)
    id: str = "first"
    story: list[Any] = field(default_factory=list)
    deaf: set[str] = field(default_factory=set)

    # The control plane.
    def end_offsets(self, *_: object) -> dict[int, int]:
        return dict(self.ends)

    def beginning_offsets(self, *_: object) -> dict[int, int]:
        return dict(self.first)

    def stable_offsets(self, *_: object) -> dict[int, int]:
        return {p: end - self.open_records.get(p, 0) for p, end in self.ends.items()}

    def delete_records(self, _address: object, _topic: str, below: Mapping[int, int]) -> None:
        if "delete" not in self.deaf:
            self.first |= below

    def topic_id(self, *_: object) -> str:
        return self.id

    def delete_topic(self, *_: object) -> None:
        self.story.append("delete topic")

    def create_topic(self, _address: object, _topic: str, partitions: int) -> None:
        self.ends = dict.fromkeys(range(partitions), 3)  # the load goes on
        if "recreate" not in self.deaf:
            self.id = "second"

    def add_partitions(self, _address: object, _topic: str, total: int) -> None:
        if "add" not in self.deaf:
            self.ends |= {p: 0 for p in range(total) if p not in self.ends}

    # What the run's topic takes and keeps.
    def keep(self, below: Mapping[int, int], done: Mapping[int, int], *, anew: bool = False) -> int:
        self.story.append(("keep", dict(below), anew))
        return sum(end - done.get(p, 0) for p, end in below.items())

    def send(self, partitions: Sequence[int], each: int = 1) -> None:
        self.story.append(("send", list(partitions), each))
        for p in partitions:
            self.ends[p] += 1

    def begin(self, records: int) -> Callable[[], None]:
        if "begin" in self.deaf:
            return self._abort
        self.open_records = {0: records // 2, 1: records - records // 2}
        for p, more in self.open_records.items():
            self.ends[p] += more
        return self._abort

    def _abort(self) -> None:
        if "abort" not in self.deaf:
            self.open_records = {}
            self.ends = {p: end + ABORT_MARKER for p, end in self.ends.items()}

    def signal_fleet(self, number: signal.Signals) -> None:
        self.story.append(number.name)


class Engine(ScriptedEngine):
    starts = 1

    def restart(self) -> None:
        self.starts += 1
        super().restart()


@pytest.fixture
def topic(monkeypatch):
    scripted = ScriptedLog()
    monkeypatch.setattr(family, "kafka", scripted)
    return scripted


@pytest.fixture
def broker():
    server = ScriptedBroker()
    yield server
    server.child.kill_group()


def drive(
    text: str,
    broker: Any,
    topic: Any,
    done: int = 25,
    manifest: EngineManifest = MANIFEST,
    second: Mapping[int, int] | None = None,
) -> FaultReport:
    """Its whole course, a look each 100 ms. `second`: how far partition 1 was processed."""
    engine: Any = Engine(newest=Progress(1, 3, 1, {0: done} | ({1: 50} if second is None else dict(second))))
    fault = create(replace(SPEC, engine="scripted", sink="default", fault=parse(f"{text}@now")), manifest)
    place = Field(broker, None, broker.address, "topic", None, (), lambda _: None, log=topic)  # type: ignore[arg-type]
    for now_ms in range(1000, 200_000, 100):
        fault.poll(Moment(now_ms, 1, engine, engine.newest, TOTAL, place))
        if fault.over():
            break
    (report,) = fault.reports()
    return report


TRIED = [
    ("kafka-kill(for=1s)", "it ended with exit code -9, and nothing listens at nobody:1; process "),
    ("kafka-restart", "it ended with exit code 143, and nothing listens at nobody:1: a clean stop; process "),
    ("kafka-pause(for=1s)", "it is in state T; SIGCONT, and it answers"),
    (
        "kafka-delete-records(share=25%, for=1s)",
        "100 records that it had not processed are gone: partition 0 begins at 75 and was processed to 25; "
        "1 begins at 100 and was processed to 50; the engine was started again (start 2)",
    ),
    (
        "kafka-topic-recreate",
        "its id changed from first to second; of the records 400 had not been processed; the new topic",
    ),
    ("kafka-add-partitions(count=2)", "each new one holds an event of the harness: 2 (1 record), 3 (1 record)"),
    ("kafka-aborted-transaction(records=100)", "to the end of partitions 0 (225 of 275), 1 (250 of 300); it"),
]


@pytest.mark.parametrize("text", ["kafka-topic-recreate", "kafka-unclean-election"])
def test_a_load_that_comes_from_other_hosts_is_not_paused(text):
    here = replace(SPEC, engine="scripted", sink="default", fault=parse(f"{text}@t>=2s"), workers=2)

    assert create(here, MANIFEST).needs == ()
    (why,) = create(replace(here, bind="127.0.0.1:5557"), MANIFEST).needs
    assert why == "it pauses the load, and the workers of --bind are no processes of this run"


def test_all_of_the_family_are_tried_here():
    assert {each.name for each in KINDS} == {text.partition("(")[0] for text, _ in TRIED}


@pytest.mark.parametrize(("text", "proof"), TRIED)
def test_each_lands_with_its_proof_and_is_healed(broker, topic, text, proof):
    report = drive(text, broker, topic)

    assert (report.landed, report.healed) == (True, True), report.proof
    assert proof in report.proof
    assert broker.child.alive()
    assert psutil.Process(broker.child.pid).status() != psutil.STATUS_STOPPED


@pytest.mark.parametrize(
    ("text", "deaf"),
    [
        ("kafka-delete-records", "delete"),
        ("kafka-topic-recreate", "recreate"),
        ("kafka-add-partitions", "add"),
        ("kafka-aborted-transaction", "begin"),
    ],
)
def test_what_kafka_does_not_show_has_not_landed(broker, topic, text, deaf):
    topic.deaf.add(deaf)
    report = drive(text, broker, topic)

    assert not report.landed
    assert "no effect was seen" in report.proof


def grow(broker: Any, topic: Any, reads: Callable[[int, Mapping[int, int]], Mapping[int, int]]) -> FaultReport:
    """Two partitions are added at 1 s. `reads`: the new offsets that the job reports, by the time and the ends."""
    engine: Any = Engine(newest=Progress(1, 3, 1, {0: 25, 1: 50}))
    fault = create(
        replace(SPEC, engine="scripted", sink="default", fault=parse("add-partitions(for=3s)@now")), MANIFEST
    )
    place = Field(broker, None, broker.address, "topic", None, (), lambda _: None, log=topic)  # type: ignore[arg-type]
    for now_ms in range(1000, 30_000, 100):
        new = {p: end for p, end in topic.ends.items() if p > 1}
        engine.newest = Progress(1, 3, 1, {0: 25, 1: 50, **reads(now_ms, new)})
        fault.poll(Moment(now_ms, 1, engine, engine.newest, TOTAL, place))
        if fault.over():
            break
    (report,) = fault.reports()
    return report


def test_partitions_that_are_added_get_events_for_a_while_and_the_job_finds_them(broker, topic):
    report = grow(broker, topic, lambda now_ms, ends: ends if now_ms >= 3_000 else {})

    assert (report.landed, report.healed) == (True, True)
    assert [each for each in topic.story if each[0] == "send"] == [("send", [2, 3], 1), *[("send", [2, 3], 100)] * 3]
    assert "the topic had 2 partitions, 2 were added; it has 4" in report.proof
    assert "the job has read 8 of 8 events in them, the first of them 2.0 s after they were there" in report.proof


def test_a_job_that_never_finds_new_partitions_is_left_to_its_counts(broker, topic):
    report = grow(broker, topic, lambda now_ms, ends: {})

    assert (report.landed, report.healed) == (True, True)
    assert report.proof.endswith("the job has read 0 of 8 events in them")
    assert report.healed_ms - report.landed_ms > 10_000  # it had time to


def test_an_end_that_was_not_in_order_is_no_orderly_restart(broker, topic):
    broker.child.orderly = False
    report = drive("kafka-restart", broker, topic)

    assert (report.landed, report.healed) == (False, True)
    assert broker.child.alive()


def test_a_transaction_that_stays_open_is_not_healed(broker, topic):
    topic.deaf.add("abort")
    report = drive("kafka-aborted-transaction(records=10)", broker, topic)

    assert (report.landed, report.healed) == (True, False)


def test_the_fleet_is_held_while_the_topic_goes_and_all_of_it_is_kept(broker, topic):
    drive("kafka-topic-recreate", broker, topic)

    assert topic.story == ["SIGSTOP", ("keep", {0: 225, 1: 250}, True), "delete topic", "SIGCONT"]


def test_the_fleet_is_let_go_when_the_topic_cannot_be_deleted(broker, topic, monkeypatch):
    def refused(*_: object) -> None:
        raise HarnessError("not today")

    monkeypatch.setattr(topic, "delete_topic", refused)
    with pytest.raises(HarnessError, match="not today"):
        drive("kafka-topic-recreate", broker, topic)

    assert topic.story[-1] == "SIGCONT"


@pytest.mark.parametrize("text", ["kafka-delete-records", "kafka-topic-recreate", "kafka-add-partitions"])
def test_when_all_is_done_nothing_is_taken_or_added(broker, topic, text):
    report = drive(text, broker, topic, done=TOTAL)

    assert not report.reachable
    assert "already been processed" in report.proof
    assert topic.story == []


def test_of_a_partition_that_the_job_has_not_begun_the_first_records_are_deleted(broker, topic):
    report = drive("kafka-delete-records(share=40%, for=1s)", broker, topic, second={})

    assert report.landed
    assert topic.first == {0: 25 + 80, 1: 100}


def test_what_a_run_cannot_have_is_not_applicable(broker, topic):
    silent = drive("kafka-delete-records", broker, topic, manifest=replace(MANIFEST, progress=False, resumes=False))
    context = Context(replace(SPEC, kafka="theirs:9092"), MANIFEST, MANIFEST.sinks[0])

    assert "does not resume" in silent.proof
    assert "not known what it has read" in silent.proof
    assert all("only an embedded one" in each.make(parse(f"{each.name}@now"), context).needs[0] for each in KINDS)


@pytest.mark.parametrize("share", ["50", "0%", "101%", "half"])
def test_a_share_that_is_none_is_refused(broker, topic, share):
    with pytest.raises(UsageError, match="not a share from 1% to 100%"):
        drive(f"kafka-delete-records(share={share})", broker, topic)


# What the checks make of it.


def some(count: int) -> LogEvents:
    all_events = events()
    return all_events.only(all_events.id < count)


def test_a_loss_of_just_what_was_deleted_is_named_with_its_place():
    gone = ledger(some(7))
    place = "partition 0 offsets 0 to 3"
    result = lost.check(case(observed=Observed(ledger(events()) - gone, ()), unread=gone, unread_at=place))

    assert (result.outcome, result.count) == (Outcome.FAIL, 7)
    assert result.sentence.endswith(f": exactly the 7 that were deleted before it had read them, {place}")


def test_a_further_loss_is_not_hidden_behind_what_was_deleted():
    gone, more = ledger(some(7)), ledger(some(9))
    result = lost.check(case(observed=Observed(ledger(events()) - more, ()), unread=gone, unread_at="there"))

    assert (result.outcome, result.count) == (Outcome.FAIL, 9)
    assert "not just the 7 that were deleted" in result.sentence


def test_events_of_an_aborted_transaction_that_were_counted_are_named():
    aborted = ledger(some(12))
    counted = case(observed=Observed(ledger(events()) + aborted, ()), aborted=aborted)

    assert "exactly the 12 of a transaction that was aborted" in duplicated.check(counted).sentence
    assert "transaction" not in duplicated.check(replace(counted, aborted=ledger(some(11)))).sentence


def test_records_that_a_fault_removed_were_in_the_log():
    honest = case()
    removed = log.check(replace(honest, audit=replace(honest.audit, removed=40)))

    assert removed.outcome is Outcome.PASS
    assert "were in the Kafka log, once each; 40 of them were removed by the planned fault" in removed.sentence
    assert log.check(honest).sentence == "all 300 planned records are in the Kafka log, once each"
