"""The kafka family: harm to the broker, and to the topic under its reader. An external Kafka is never harmed.

Proofs come from the process and from Kafka's own metadata: the process is gone and its port is closed, it is in state
T, the log begins after the engine's read position, the topic has another id, a transaction is open or aborted. Records
that a fault removes from the log are read and kept before, so that each lost event is known.
"""

from __future__ import annotations

import re
import signal
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress

import psutil

from harness.faults.base import Context, Kind
from harness.faults.run_at_poll import Field, Log, Moment
from harness.faults.strike import CannotStrikeError, Lacks, Strike, length_ms, need_more_to_do, struck_by, unresumed
from harness.model import FaultSpec, HarnessError, KafkaAddress, UsageError
from harness.services import kafka
from harness.services.kafka import EmbeddedKafka
from harness.services.kafka_cluster import EmbeddedCluster
from harness.util.texts import many
from harness.util.wait import wait_until

NEEDS = "an embedded Kafka"
SLOW_MS = 60_000.0  # to end, to be written or to be started, on a busy machine
END_DEADLINE_S = 60.0
STOP_DEADLINE_S = 10.0
ORDERLY_END = 143  # exit code of a Java program after SIGTERM
STILL_S = 0.3
SHARE = re.compile(r"(\d+)%")

Offsets = dict[int, int]


class KafkaStrike(Strike):
    """The base class of the family."""

    colour = "tab:brown"
    land_within_ms = SLOW_MS
    heal_within_ms = SLOW_MS


def field_of(now: Moment) -> tuple[Field, EmbeddedKafka, Log]:
    field = now.field
    if field is None or field.kafka is None or field.log is None:
        raise CannotStrikeError("this run has no embedded Kafka")
    return field, field.kafka, field.log


def server_of(now: Moment) -> EmbeddedKafka:
    return field_of(now)[1]


def broker_of(now: Moment) -> EmbeddedKafka:
    """Return the single broker; raise if the plan has a cluster of three."""
    server = server_of(now)
    if isinstance(server, EmbeddedCluster):
        raise CannotStrikeError("another fault of this plan needs three brokers; kafka-leader-change kills one of them")
    return server


def log_of(now: Moment) -> Log:
    return field_of(now)[2]


def topic_of(now: Moment) -> tuple[KafkaAddress, str]:
    field = field_of(now)[0]
    return field.kafka_address, field.topic


def ends_of(now: Moment) -> Offsets:
    return kafka.end_offsets(*topic_of(now))


def standing_still(now: Moment) -> Offsets:
    """Return where the log ends while the ad servers are paused; records in transit take a moment to arrive."""
    seen: list[Offsets] = []

    def still() -> Offsets | None:
        seen.append(ends_of(now))
        return seen[-1] if seen[-2:-1] == seen[-1:] else None

    return wait_until(still, deadline_s=END_DEADLINE_S, what="the log to stop growing", every_s=STILL_S)


class Down(KafkaStrike):
    """The broker ends, and is started again at the same port with its data."""

    def __init__(self, hold_ms: float = 0.0) -> None:
        super().__init__(hold_ms)
        self._pid = self._before = 0

    @abstractmethod
    def end(self, server: EmbeddedKafka) -> str: ...

    def inject(self, now: Moment) -> str:
        server = broker_of(now)
        self._pid, self._before = server.child.pid, sum(ends_of(now).values())
        return f"{self.end(server)} to process {self._pid} when the log ended at {many(self._before, 'record')}"

    def landed(self, now: Moment) -> str:
        server = server_of(now)
        if server.child.alive() or server.listens():
            return ""
        return f"it ended with exit code {server.child.returncode()}, and nothing listens at {server.address.bootstrap}"

    def heal(self, now: Moment) -> None:
        server = server_of(now)
        if not server.child.alive():
            server.restart()

    def healed(self, now: Moment) -> str:
        with suppress(HarnessError):
            records = sum(ends_of(now).values())
            return f"process {server_of(now).child.pid} answers at the same port, and the log ends at {records:,}"
        return ""


class Kill(Down):
    """SIGKILL. The data that the broker had written is in the page cache, and so survives."""

    def end(self, server: EmbeddedKafka) -> str:
        server.child.kill_group()
        return "SIGKILL"


class Restart(Down):
    """SIGTERM: the broker hands over, writes its data, and ends by itself."""

    def end(self, server: EmbeddedKafka) -> str:
        server.child.stop(END_DEADLINE_S)
        return "SIGTERM"

    def landed(self, now: Moment) -> str:
        seen = super().landed(now)
        orderly = server_of(now).child.returncode() == ORDERLY_END
        return f"{seen}: a clean stop" if seen and orderly else ""


class Pause(KafkaStrike):
    """SIGSTOP: connections stay open, and nothing is answered."""

    def inject(self, now: Moment) -> str:
        """Stop the process and wait for state T: on a busy machine that takes a moment, and until then it answers."""
        child = broker_of(now).child
        child.signal_group(signal.SIGSTOP)
        wait_until(lambda: self._stopped(now), deadline_s=STOP_DEADLINE_S, what=f"process {child.pid} to be in state T")
        return f"SIGSTOP to process {child.pid}"

    def landed(self, now: Moment) -> str:
        return "it is in state T" if self._stopped(now) else ""

    def heal(self, now: Moment) -> None:
        server_of(now).child.signal_group(signal.SIGCONT)

    def healed(self, now: Moment) -> str:
        if self._stopped(now):
            return ""
        with suppress(HarnessError):
            return f"SIGCONT, and it answers: the log ends at {many(sum(ends_of(now).values()), 'record')}"
        return ""

    def _stopped(self, now: Moment) -> bool:
        return psutil.Process(server_of(now).child.pid).status() == psutil.STATUS_STOPPED


class DeleteRecords(KafkaStrike):
    """The engine is down for a while, and part of the records that arrive meanwhile is deleted unread."""

    stops_engine = True

    def __init__(self, down_ms: float, share: float) -> None:
        super().__init__()
        self._down_ms, self._share = down_ms, share
        self.land_within_ms = self._down_ms + SLOW_MS
        self._done: Offsets = {}
        self._since_ms = self._starts = 0

    def inject(self, now: Moment) -> str:
        server_of(now)
        need_more_to_do(now)
        killed = now.engine.kill()
        newest = now.engine.progress()  # it may have progressed between our poll and its end
        self._done = dict(newest.offsets) if newest else {}
        self._since_ms, self._starts = now.now_ms, now.engine.starts
        return f"{killed}; it had processed {many(sum(self._done.values()), 'record')}"

    def landed(self, now: Moment) -> str:
        if now.now_ms - self._since_ms < self._down_ms:
            return ""
        behind = {p: end - self._done.get(p, 0) for p, end in ends_of(now).items()}
        gone = {p: round(records * self._share) for p, records in behind.items()}
        if not all(gone.values()):
            return ""
        return self._delete(now, {p: self._done.get(p, 0) + records for p, records in gone.items()})

    def heal(self, now: Moment) -> None:
        now.engine.disarm()
        now.engine.restart()

    def healed(self, now: Moment) -> str:
        """Return that the engine runs again. Deleted records never come back; the engine has to report the loss."""
        starts = now.engine.starts
        return f"the engine was started again (start {starts})" if starts > self._starts else ""

    def _delete(self, now: Moment, below: Offsets) -> str:
        unread = log_of(now).keep(below, self._done)
        kafka.delete_records(*topic_of(now), below)
        first = kafka.beginning_offsets(*topic_of(now))
        if any(first[p] <= self._done.get(p, 0) for p in below):
            return ""
        places = "; ".join(f"{p} begins at {first[p]:,} and was processed to {self._done.get(p, 0):,}" for p in below)
        return f"{many(unread, 'record')} that it had not processed are gone: partition {places}"


class Recreate(KafkaStrike):
    """The topic is deleted with its records, and a new one gets its name. The ad servers are paused meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self._before = ""
        self._gone = self._unread = 0

    def inject(self, now: Moment) -> str:
        log = log_of(now)
        need_more_to_do(now)
        self._before = kafka.topic_id(*topic_of(now))
        log.signal_fleet(signal.SIGSTOP)
        try:
            ends = standing_still(now)
            newest = now.engine.progress()
            self._unread = log.keep(ends, newest.offsets if newest else {}, anew=True)
            self._gone = sum(ends.values())
            kafka.delete_topic(*topic_of(now))
            kafka.create_topic(*topic_of(now), len(ends))
        finally:
            log.signal_fleet(signal.SIGCONT)
        return f"the topic with {many(self._gone, 'record')} was deleted and recreated"

    def landed(self, now: Moment) -> str:
        after = kafka.topic_id(*topic_of(now))
        if after == self._before:
            return ""
        return f"its id changed from {self._before} to {after}; of the records {self._unread:,} had not been processed"

    # There is nothing to heal: the records are lost.

    def healed(self, now: Moment) -> str:
        ends = ends_of(now)
        return f"the new topic accepts records: it ends at {sum(ends.values()):,}" if any(ends.values()) else ""


class AddPartitions(KafkaStrike):
    """The topic gets more partitions than when the engine started, each with one event that counts."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._new: list[int] = []

    def inject(self, now: Moment) -> str:
        need_more_to_do(now)
        before = len(ends_of(now))
        self._new = list(range(before, before + self._count))
        kafka.add_partitions(*topic_of(now), before + self._count)
        return f"the topic had {many(before, 'partition')}, {self._count} were added"

    def landed(self, now: Moment) -> str:
        if not set(self._new) <= set(ends_of(now)):
            return ""
        log_of(now).send(self._new)
        ends = ends_of(now)
        new = ", ".join(f"{p} ({ends[p]} record)" for p in self._new)
        return f"it has {len(ends)}, and each new one holds an event of the harness: {new}"

    # There is nothing to heal: Kafka can't remove partitions.

    def healed(self, now: Moment) -> str:  # noqa: ARG002
        return "they stay"


class AbortedTransaction(KafkaStrike):
    """Events in the log that must not be counted: their producer aborts the transaction."""

    def __init__(self, records: int, hold_ms: float) -> None:
        super().__init__(hold_ms)
        self._records = records
        self._abort: Callable[[], None] | None = None

    def inject(self, now: Moment) -> str:
        log = log_of(now)
        need_more_to_do(now)
        self._abort = log.begin(self._records)
        return f"a transaction with {self._records:,} views began"

    def landed(self, now: Moment) -> str:
        stable, ends = kafka.stable_offsets(*topic_of(now)), ends_of(now)
        held = {p: end - stable[p] for p, end in ends.items() if end > stable[p]}
        if sum(held.values()) < self._records:
            return ""
        places = ", ".join(f"{p} ({stable[p]:,} of {ends[p]:,})" for p in held)
        return f"it is open: a read_committed consumer can't read to the end of partitions {places}"

    def heal(self, now: Moment) -> None:  # noqa: ARG002
        if self._abort:
            self._abort()
            self._abort = None  # this releases the producer

    def healed(self, now: Moment) -> str:
        ends, stable = ends_of(now), kafka.stable_offsets(*topic_of(now))
        if any(stable[p] < end for p, end in ends.items()):
            return ""
        log_of(now).send(list(ends))  # a partition must not end in aborted records: its reader could not report the end
        return "it was aborted; the last stable offsets are the ends again, and an event of the harness follows"


def share_of(spec: FaultSpec) -> float:
    number = SHARE.fullmatch(spec.options["share"])
    if not number or not 0 < int(number[1]) <= 100:
        raise UsageError(f"share = {spec.options['share']!r} of kafka-delete-records is not a share from 1% to 100%.")
    return int(number[1]) / 100


def missing(_: FaultSpec, context: Context) -> tuple[str, ...]:
    if context.spec.kafka:
        return ("this run uses an existing Kafka (--kafka); a fault harms only an embedded one",)
    return ()


def missing_to_pause(spec: FaultSpec, context: Context) -> tuple[str, ...]:
    """Require a load that can be paused."""
    elsewhere = ("it pauses the load, and the workers of --bind are no processes of this run",)
    return (*missing(spec, context), *(elsewhere if context.spec.bind else ()))


def missing_for_deletion(spec: FaultSpec, context: Context) -> tuple[str, ...]:
    """Require a resumable engine with progress: it is killed, and its progress must be known."""
    engine = context.manifest
    tells = (
        ()
        if engine.progress
        else (f"{engine.id} reports no progress (progress = false), so it is not known what it has read",)
    )
    return (*missing(spec, context), *unresumed(engine), *tells)


def kind(
    name: str,
    what: str,
    correct: str,
    strike: Callable[[FaultSpec], Strike],
    options: Mapping[str, str] | None = None,
    *,
    needs: str = NEEDS,
    lacks: Lacks = missing,
    brokers: int = 1,
) -> Kind:
    make = struck_by(lambda spec, _: strike(spec), lacks)
    return Kind(name, what, correct, make, needs, options or {}, brokers=brokers)


KINDS = (
    kind(
        "kafka-kill",
        "SIGKILL to the broker, then a restart at the same port with its data",
        "waits, and goes on where it was; no count changes",
        lambda spec: Kill(length_ms(spec)),
        {"for": "5s"},
    ),
    kind(
        "kafka-restart",
        "SIGTERM to the broker, which shuts down cleanly, then a restart at the same port with its data",
        "waits, and goes on where it was; no count changes",
        lambda _: Restart(),
    ),
    kind(
        "kafka-pause",
        "SIGSTOP to the broker: connections stay open, and nothing is answered",
        "waits and catches up; no count changes",
        lambda spec: Pause(length_ms(spec)),
        {"for": "5s"},
    ),
    kind(
        "kafka-delete-records",
        "the engine is killed; the first part of the records that arrive meanwhile is deleted before it reads them",
        "stops loudly: if it went on, the loss would be silent",
        lambda spec: DeleteRecords(length_ms(spec), share_of(spec)),
        {"share": "50%", "for": "3s"},
        needs=f"{NEEDS}, an engine that resumes and reports its progress",
        lacks=missing_for_deletion,
    ),
    kind(
        "kafka-topic-recreate",
        "the topic is deleted with its records and recreated, with offsets from 0 on; the load pauses meanwhile",
        "stops loudly, and does not confuse new records with the old ones of the same offsets",
        lambda _: Recreate(),
        lacks=missing_to_pause,
    ),
    kind(
        "kafka-add-partitions",
        "the topic gets more partitions, each with an event that counts",
        "finds them by itself and reads them from their beginning",
        lambda spec: AddPartitions(int(spec.options["count"])),
        {"count": "2"},
    ),
    kind(
        "kafka-aborted-transaction",
        "a producer writes views in a transaction, leaves it open for a while, and aborts it",
        "counts none of them: it reads committed records only",
        lambda spec: AbortedTransaction(int(spec.options["records"]), length_ms(spec)),
        {"records": "1000", "for": "1s"},
    ),
)
