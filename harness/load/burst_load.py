"""A load without a schedule: parts of the tape, each sent at once on request.

A gate measures what a burst costs an engine, so it sends when the engine is ready for the next one. The harness sends
from its own process, generates the records in advance, and records a burst as due at the moment it began.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from generators.fleet import Fleet, LoadConfig, Slice
from harness.load.fleet import Load
from harness.model import Certificate, HarnessError, KafkaAddress, LoadStatus
from harness.util.clock import Clock

CLIENT = "confluent"
NO_SCHEDULE = "the load came in bursts, which a gate measures one by one"
# Longer than a request may take (30 s), so that the client can retry a request that a broker never answered: seen
# once in some hundred bursts, with the first records of a topic.
QUEUE_DEADLINE_S = 90.0
QUEUE_FULL_S = 0.002


@dataclass(frozen=True)
class Sent:
    """One burst, acknowledged by Kafka."""

    events: int
    begun_ms: float  # on the clock of the run


class Bursts(Load):
    """Replaces the ad servers. `write` and `send` belong to the measuring thread, all else to the thread of the run."""

    def start(self) -> None:
        self._folder.mkdir(mode=0o700)
        self._fleet: Fleet | None = None
        self._epoch_ms = 0
        self._plans: list[Iterator[Slice | None]] = []
        self._next: list[Slice | None] = []
        self._finished = False
        self._ending = threading.Lock()

    def tell(self, kafka: KafkaAddress) -> None:
        """Open the producer. The client's own log is dropped: each record that fails is reported by name."""
        settings = {**kafka.librdkafka, "log_level": "2"}
        folder = str(self._folder)
        self._fleet = Fleet(LoadConfig(self._spec.tape, CLIENT, kafka.bootstrap, self._topic, settings, folder))

    def wait_ready(self) -> None:
        for _ in range(self._spec.tape.senders):
            self._sender.join()

    def go(self, epoch_ms: int, clock: Clock) -> None:
        super().go(epoch_ms, clock)
        self._sender.started()
        self._epoch_ms = epoch_ms
        self._plans = [self._sender.slices(server) for server in range(self._spec.tape.senders)]
        self._next = [next(plan, None) for plan in self._plans]

    def write(self, until_ms: int) -> list[Slice]:
        """Return the unsent slices that are due by then, in due order."""
        due: list[Slice] = []
        for server, plan in enumerate(self._plans):
            while (part := self._next[server]) and part.due_us <= until_ms * 1000:
                due.append(part)
                self._next[server] = next(plan, None)
        return sorted(due, key=lambda part: (part.due_us, part.server))

    def send(self, burst: list[Slice]) -> Sent:
        """Send all slices as fast as Kafka takes them."""
        sender, events = self._sender, 0
        begun_us = sender.now_us()
        for part in burst:
            rest = sender.producer.offer(part.partition, part.messages)
            while rest:
                time.sleep(QUEUE_FULL_S)
                rest = sender.producer.offer(part.partition, rest)
            events += part.hi - part.lo
            sender.book(replace(part, due_us=begun_us), begun_us, sender.now_us(), part.hi - part.lo)
        if unresolved := sender.producer.finish(QUEUE_DEADLINE_S):
            raise HarnessError(f"Kafka did not confirm {unresolved:,} of {events:,} events in {QUEUE_DEADLINE_S:g} s.")
        return Sent(events, self._epoch_ms + begun_us / 1000)

    def end(self) -> None:
        """Finish the load. When the whole run stops, both threads call this; the send records are written once."""
        with self._ending:
            if not self._finished:
                self._sender.close()
                self._finished = True

    def status(self) -> LoadStatus:
        sent = self._sender.sent
        return LoadStatus(sent, sent, sent, self._finished)

    def certify(self) -> Certificate:
        """Void the load check: all requested records were sent, but there was no schedule to keep."""
        kept = super().certify()
        return replace(kept, valid=False, reasons=(NO_SCHEDULE,), intended=kept.sent)

    def signal(self, number: signal.Signals) -> None:
        raise HarnessError(f"There are no ad servers that {number.name} could be sent to: a gate sends by itself.")

    def stop(self) -> None:
        if self._fleet:
            self.end()

    @property
    def nice(self) -> int:
        return 0

    @property
    def _sender(self) -> Fleet:
        if self._fleet is None:
            raise HarnessError("A burst was requested before Kafka was open.")
        return self._fleet
