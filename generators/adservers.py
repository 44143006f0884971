"""The locustfile: each ad server of the tape is one Locust user. The only module that imports Locust.

A user's wait_time() is the time until its next slice is due. Debt is kept: a late slice is sent at once and none is
skipped, so the load does not slow down when the system under test does. Each slice is one `request` row. Its response
time is the slice's lag, from its due time until the client had all of it, and its length is the number of events, so
that Locust's figures show how well the schedule was kept.

harness/load/fleet.py starts it. Greenlets share one thread, and a blocking call of the Kafka client would stop them
all: so the client is only polled here, and flushed after the last user has ended.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any

import gevent  # type: ignore[import-untyped]
from locust import LoadTestShape, User, events, task
from locust.env import Environment
from locust.exception import StopUser

from generators.fleet import CONFIG_VARIABLE, Fleet, LoadConfig, Slice, go_first

POLL_S = 0.02
STATUS_S = 0.5
QUEUE_FULL_S = 0.002
SLICES_IN_A_ROW = 100  # of a backlog; then other greenlets get their turn
FAILED = 1

FLEET = Fleet(LoadConfig.read(Path(os.environ[CONFIG_VARIABLE])))
go_first()


class AdServer(User):
    """One sender of the tape."""

    def on_start(self) -> None:
        self.server = FLEET.join()
        while not FLEET.started():
            gevent.sleep(POLL_S)
        if self.server == 0 and FLEET.owes_backlog:
            send_backlog()
        while FLEET.owes_backlog:
            gevent.sleep(POLL_S)
        self.plan = FLEET.slices(self.server)
        self.next: Slice | None = None  # None until the next slice is known
        self.ended = False
        self._turn()
        gevent.sleep(self.wait_time())

    def wait_time(self) -> float:
        if self.ended:
            return 0.0
        return max(0, self.next.due_us - FLEET.now_us()) / 1e6 if self.next else POLL_S

    @task
    def send_slice(self) -> None:
        if self.ended:
            FLEET.leave()
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
        refused = FLEET.producer.failures.count
        finished_us = hand_over(part)
        self._report(part, finished_us, FLEET.producer.failures.count - refused)

    def _report(self, part: Slice, finished_us: int, failed: int) -> None:
        self.environment.events.request.fire(
            request_type="slice",
            name="ad servers",
            response_time=(finished_us - part.due_us) / 1000,
            response_length=part.hi - part.lo,
            exception=RuntimeError(f"{failed} records failed") if failed else None,
            context={},
        )


def hand_over(part: Slice) -> int:
    """Give a slice to the client. Return the time at which the client had all of it."""
    sent_us = FLEET.now_us()
    rest = FLEET.producer.offer(part.partition, part.messages)
    while rest:
        gevent.sleep(QUEUE_FULL_S)
        rest = FLEET.producer.offer(part.partition, rest)
    finished_us = FLEET.now_us()
    FLEET.book(part, sent_us, finished_us, part.hi - part.lo)
    return finished_us


def send_backlog() -> None:
    """Send at full speed in one greenlet: Locust's cost per slice is higher than that of sending it."""
    for number, part in enumerate(FLEET.backlog()):
        hand_over(part)
        if number % SLICES_IN_A_ROW == 0:
            gevent.sleep(0)
    FLEET.owes_backlog = False


class Tape(LoadTestShape):
    """A load shape with all ad servers at once; it ends when the tape does."""

    def tick(self) -> tuple[int, float] | None:
        servers = FLEET.config.tape.senders
        return None if FLEET.ended else (servers, servers)


@events.init.add_listener  # type: ignore[untyped-decorator]
def begin(environment: Environment, **_: Any) -> None:
    """Switch the garbage collector off: its pauses would be lag, and the send log holds no cycles.

    Handle SIGTERM here: Locust handles it only after a headless shape has ended, and the harness must be able to stop
    it before.
    """
    gevent.signal_handler(signal.SIGTERM, _quit, environment)
    gevent.spawn(_keep_status)
    gc.collect()
    gc.freeze()
    gc.disable()


@events.user_error.add_listener  # type: ignore[untyped-decorator]
def give_up(user_instance: User, exception: BaseException, **_: Any) -> None:
    """End the process if an ad server fails: with fewer servers the load would not be the planned one."""
    FLEET.fail(f"an ad server failed: {type(exception).__name__}: {exception}")
    print(f"An ad server failed, so the load is broken off: {exception!r}", file=sys.stderr, flush=True)
    gevent.spawn(_quit, user_instance.environment)


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def end(environment: Environment, **_: Any) -> None:
    well = FLEET.close()
    environment.process_exit_code = 0 if well and FLEET.ended else FAILED


def _quit(environment: Environment) -> None:
    """Quit before the end of the tape. The harness waits for the send log, but not for a broker that is down."""
    FLEET.hurry()
    if environment.runner is not None:
        environment.runner.quit()


def _keep_status() -> None:
    while True:
        FLEET.producer.poll()
        FLEET.write_status()
        gevent.sleep(STATUS_S)
