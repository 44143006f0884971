"""The locustfile of a worker: it sends the servers that the master (load_master.py) gives it, by the run's clock.

All that it has of its own is how its Kafka client authenticates. What it does is written to a file, a line each, for
`streamgauge worker`.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent  # type: ignore[import-untyped]
from gevent.queue import Queue  # type: ignore[import-untyped]
from locust import __version__ as locust_version
from locust import events, runners
from locust.env import Environment
from locust.runners import WorkerRunner

from generators import messages
from generators.ad_server import POLL_S, STATUS_S, AdServer, stop_collecting
from generators.clock_offset import EXCHANGES, Exchange, Offset, of
from generators.fleet import HURRIED_FLUSH_S, Fleet, LoadConfig, go_first
from generators.versions import code_digest
from generators.worker_files import OWN_VARIABLE, Own
from harness import __version__

__all__ = ["AdServer"]  # Locust looks for it here

EXCHANGE_EVERY_S = 0.01
CLOCK_DEADLINE_S = 10.0
MASTER_SILENT_S = 15.0  # the master answers a message each second; with `patience` more
# Locust would end a worker that stood still for a minute together with its master: a fault may pause the whole load.
runners.MASTER_HEARTBEAT_TIMEOUT = sys.maxsize
LAST_FLUSH_S = 1.0
FAILED = 1


class Part(Fleet):
    """The ad servers of one worker. The master gives their numbers, the load start and the clock."""

    def __init__(self, config: LoadConfig, ask: Callable[[], None], tell_backlog: Callable[[], None]) -> None:
        super().__init__(config)
        self._ask, self._tell_backlog = ask, tell_backlog
        self.numbers: Queue[int] = Queue()
        self.servers: list[int] = []

    def join(self) -> int:
        self._joined += 1
        self._ask()
        number: int = self.numbers.get()
        self.servers.append(number)
        return number

    def started(self) -> bool:
        return self._clock is not None

    def backlog_is_sent(self) -> None:
        """Wait for Kafka: the servers of other workers must not overtake it."""
        while self.producer.waiting():
            gevent.sleep(POLL_S)
        self._tell_backlog()

    def all_is_confirmed(self) -> None:
        """Wait until the deadline, and let the other greenlets run."""
        end_s = time.monotonic() + (HURRIED_FLUSH_S if self._hurried else self.config.flush_deadline_s)
        while self.producer.waiting() and time.monotonic() < end_s:
            gevent.sleep(POLL_S)


class WorkerProcess:
    """One worker, from its first message to its books."""

    def __init__(self, own: Own) -> None:
        self._own = own
        self._part: Part | None = None
        self._ahead_ns = 0  # the master's monotonic clock minus ours
        self._exchanges: list[Exchange] = []
        self._heard_s = time.monotonic()
        self._silent = False
        self._booking = False
        self.booked = False

    def listen(self, runner: Any) -> None:
        """Talk by a `WorkerRunner` of Locust. By its types a message is a dict, which it need not be."""
        self._runner = runner
        heard: dict[str, Callable[[Any], object]] = {
            messages.PLAN: lambda told: gevent.spawn(self._prepare, told),
            messages.REFUSED: self._refused,
            messages.PONG: self._pong,
            messages.NUMBER: self._take,
            messages.GO: self._go,
            messages.BACKLOG: lambda _: setattr(self._fleet, "owes_backlog", False),
            messages.END: lambda _: gevent.spawn(self._hurry),
            messages.BOOKS: self._stored,
        }
        for kind, listener in heard.items():
            self._runner.register_message(kind, _of_data(listener))
        self._runner.environment.events.heartbeat_received.add_listener(self._hear)
        versions = {"streamgauge": __version__, "code": code_digest(), "locust": locust_version}
        hello = {"host": socket.gethostname(), "versions": versions}
        self._runner.send_message(messages.HELLO, hello)
        self._own.say("joined")
        gevent.spawn(self._watch)

    def fails(self, why: str) -> None:
        """Give up, and say so to both sides."""
        self._own.say("failed", why=why)
        print(f"The worker gives up: {why}", file=sys.stderr, flush=True)
        self._runner.send_message(messages.FAILED, why)
        gevent.spawn(self._runner.quit)

    @property
    def _fleet(self) -> Part:
        if self._part is None:
            raise RuntimeError("The master spoke of servers before it sent the plan.")
        return self._part

    # Messages.

    def _prepare(self, told: dict[str, Any]) -> None:
        config = messages.config_in(told)
        settings = self._own.settings_of(config.client)
        if told["secured"] and not settings:
            self.fails("the Kafka of this run needs settings of the client: start the worker with --kafka-config FILE")
            return
        try:
            part = Part(replace(config, settings=settings), self._ask, self._tell_backlog)
            part.producer.await_topic(config.metadata_deadline_s)
        except Exception as error:  # noqa: BLE001 - a client may raise anything, and the run has to hear of it
            self.fails(f"no load can be sent from here: {error}")
            return
        AdServer.fleet = self._part = part
        go_first()
        if not (begin := self._measure_clock()):
            self.fails(f"the run answered none of {EXCHANGES} questions for its clock, so the clock is unknown")
            return
        self._ahead_ns = begin.ahead_ns
        self._own.say("prepared", topic=config.topic, error_us=begin.error_ns // 1000)
        self._runner.send_message(messages.PREPARED, {"clock": begin, "nice": os.nice(0)})

    def _refused(self, why: str) -> None:
        self._own.say("failed", why=f"the run refused it: {why}")
        gevent.spawn(self._runner.quit)

    def _pong(self, told: list[int]) -> None:
        begin_ns, other_ns = told
        self._exchanges.append(Exchange(begin_ns, other_ns, time.monotonic_ns()))

    def _take(self, number: int) -> None:
        self._fleet.numbers.put(number)

    def _go(self, told: list[int]) -> None:
        epoch_ms, zero_ns = told
        self._own.say("started", servers=sorted(self._fleet.servers))
        self._fleet.begin(epoch_ms, zero_ns + self._ahead_ns)

    def _stored(self, _: Any) -> None:
        self.booked = True
        self._own.say("ended", sent=self._fleet.sent)

    def _hear(self, **_: Any) -> None:
        self._heard_s = time.monotonic()

    def _ask(self) -> None:
        self._runner.send_message(messages.JOIN, None)

    def _tell_backlog(self) -> None:
        self._runner.send_message(messages.BACKLOG, None)

    def _hurry(self) -> None:
        self._fleet.hurry()
        self._runner.stop()
        self._book()

    # Time.

    def _measure_clock(self) -> Offset | None:
        """Exchange clocks with the master. None if it answered nothing in time. Each answer bounds its own error."""
        self._exchanges = []
        end_s = time.monotonic() + CLOCK_DEADLINE_S * self._fleet.config.patience
        for _ in range(EXCHANGES):
            self._runner.send_message(messages.PING, time.monotonic_ns())
            gevent.sleep(EXCHANGE_EVERY_S)
        while len(self._exchanges) < EXCHANGES and time.monotonic() < end_s:
            gevent.sleep(POLL_S)
        return of(self._exchanges) if self._exchanges else None

    def _watch(self) -> None:
        """Report twice a second, book at the end, and end if the master is gone."""
        while True:
            gevent.sleep(STATUS_S)
            limit_s = MASTER_SILENT_S * (self._part.config.patience if self._part else 1)
            before, self._silent = self._silent, time.monotonic() - self._heard_s > limit_s
            if before and self._silent:  # not at the first look: this process may have stood still itself
                self.fails(f"nothing was heard of the run for {limit_s:g} s")
                return
            if self._part and not self._booking:
                self._part.producer.poll()
                self._runner.send_message(messages.STATUS, self._part.status())
                if self._part.ended:
                    self._book()

    def _book(self) -> None:
        """Send the books, once."""
        if self._booking:
            return
        self._booking = True
        self._fleet.all_is_confirmed()
        books = self._fleet.finish(LAST_FLUSH_S)
        self._runner.send_message(messages.BOOKS, messages.pack(books, self._measure_clock()))


def _of_data(listener: Callable[[Any], object]) -> Callable[..., None]:
    def heard(environment: Environment, msg: Any, **_: Any) -> None:  # noqa: ARG001 - Locust's own names
        listener(msg.data)

    return heard


WORKER = WorkerProcess(Own(Path(os.environ[OWN_VARIABLE])))


@events.init.add_listener  # type: ignore[untyped-decorator]
def begin(environment: Environment, **_: Any) -> None:
    assert isinstance(environment.runner, WorkerRunner)
    gevent.signal_handler(signal.SIGTERM, environment.runner.quit)  # Locust then says so to the master
    WORKER.listen(environment.runner)
    stop_collecting()


@events.user_error.add_listener  # type: ignore[untyped-decorator]
def give_up(exception: BaseException, **_: Any) -> None:
    """End the load if an ad server fails: with fewer servers it would not be the planned one."""
    WORKER.fails(f"an ad server failed: {type(exception).__name__}: {exception}")


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def end(environment: Environment, **_: Any) -> None:
    environment.process_exit_code = 0 if WORKER.booked else FAILED
