"""An ad server of the tape as a user of Locust, and what each process of such users needs.

A user's wait_time() is the time until its next slice is due. Debt is kept: a late slice is sent at once and none is
skipped, so the load does not slow down when the system under test does. Each slice is one `request` row. Its response
time is the slice's lag, from its due time until the client had all of it, and its length is the number of events, so
that Locust's figures show how well the schedule was kept.

Greenlets share one thread, and a blocking call of the Kafka client would stop them all: so the client is only polled
here, and flushed after the last user has ended.
"""

from __future__ import annotations

import gc
from typing import ClassVar

import gevent  # type: ignore[import-untyped]
from locust import User, task
from locust.exception import StopUser

from generators.fleet import Fleet, Slice

POLL_S = 0.02
STATUS_S = 0.5
QUEUE_FULL_S = 0.002
SLICES_IN_A_ROW = 100  # of a backlog; then other greenlets get their turn


class AdServer(User):
    """One sender of the tape."""

    fleet: ClassVar[Fleet]  # of this process, set before the first user is spawned

    def on_start(self) -> None:
        fleet = self.fleet
        self.server = fleet.join()
        while not fleet.started():
            gevent.sleep(POLL_S)
        if self.server == 0 and fleet.owes_backlog:
            send_backlog(fleet)
        while fleet.owes_backlog:
            gevent.sleep(POLL_S)
        self.plan = fleet.slices(self.server)
        self.next: Slice | None = None  # None until the next slice is known
        self.ended = False
        self._turn()
        gevent.sleep(self.wait_time())

    def wait_time(self) -> float:
        if self.ended:
            return 0.0
        return max(0, self.next.due_us - self.fleet.now_us()) / 1e6 if self.next else POLL_S

    @task
    def send_slice(self) -> None:
        if self.ended:
            self.fleet.leave()
            raise StopUser
        if self.next:
            self._send(self.next)
        self._turn()

    def _turn(self) -> None:
        try:
            self.next = next(self.plan)
        except StopIteration:
            self.next, self.ended = None, True

    def _send(self, part: Slice) -> None:
        failures = self.fleet.producer.failures
        refused = failures.count
        finished_us = hand_over(self.fleet, part)
        self._report(part, finished_us, failures.count - refused)

    def _report(self, part: Slice, finished_us: int, failed: int) -> None:
        self.environment.events.request.fire(
            request_type="slice",
            name="ad servers",
            response_time=(finished_us - part.due_us) / 1000,
            response_length=part.hi - part.lo,
            exception=RuntimeError(f"{failed} records failed") if failed else None,
            context={},
        )


def hand_over(fleet: Fleet, part: Slice) -> int:
    """Give a slice to the client. Return the time at which the client had all of it."""
    sent_us = fleet.now_us()
    rest = fleet.producer.offer(part.partition, part.messages)
    while rest:
        gevent.sleep(QUEUE_FULL_S)
        rest = fleet.producer.offer(part.partition, rest)
    finished_us = fleet.now_us()
    fleet.book(part, sent_us, finished_us, part.hi - part.lo)
    return finished_us


def send_backlog(fleet: Fleet) -> None:
    """Send at full speed in one greenlet: Locust's cost per slice is higher than that of sending it."""
    for number, part in enumerate(fleet.backlog()):
        hand_over(fleet, part)
        if number % SLICES_IN_A_ROW == 0:
            gevent.sleep(0)
    fleet.backlog_is_sent()


def stop_collecting() -> None:
    """Switch the garbage collector off: its pauses would be lag, and the send log holds no cycles."""
    gc.collect()
    gc.freeze()
    gc.disable()
