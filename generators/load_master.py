"""The locustfile of a load with workers, on the machine of the harness: it sends nothing itself.

To the harness it is the load: it reads and writes the same files as a load in one process (harness_files.py). To the
workers it talks by messages (messages.py). What is allowed is decided in roster.py; any error there ends the load.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent  # type: ignore[import-untyped]
import msgspec
import pyarrow as pa
from locust import LoadTestShape, events
from locust import __version__ as locust_version
from locust.env import Environment
from locust.rpc import Message
from locust.runners import MasterRunner

from generators import harness_files, messages
from generators.ad_server import POLL_S, STATUS_S, AdServer, stop_collecting
from generators.clock_offset import Offset, error_ns
from generators.fleet import CONFIG_VARIABLE, HURRIED_FLUSH_S, Books, LoadConfig, done_of
from generators.roster import LoadVoidError, Roster
from generators.schedule import Schedule
from generators.sends import SENDS
from generators.versions import code_digest
from harness import __version__
from harness.util.clock import Clock

__all__ = ["AdServer", "Tape"]  # Locust looks for them here

WORKERS_VARIABLE = "STREAMGAUGE_WORKERS"  # how many
WATCH_S = 0.2
FAILED = 1


class Master:
    """The load, as the harness and the workers see it."""

    def __init__(self, size: int, config: Path) -> None:
        versions = {"streamgauge": __version__, "code": code_digest(), "locust": locust_version}
        self.roster = Roster(size, versions)
        self.over = False
        self._config_file, self._folder = config, config.parent
        self._config: LoadConfig | None = None
        self._schedule: Schedule | None = None
        self._clock: Clock | None = None
        self._epoch_us = 0
        self._books: dict[str, tuple[Books, Offset | None]] = {}
        self._strangers: dict[str, str] = {}  # workers that were refused, with the reason
        self._silent = False

    def listen(self, runner: Any) -> None:
        """Stand before Locust's `MasterRunner`, which would admit any worker at any time.

        By its types a message is a dict, which it need not be.
        """
        self._runner, self._locust = runner, runner.handle_message
        self._runner.handle_message = self._handle
        heard: dict[str, Callable[[str, Any], None]] = {
            messages.HELLO: self._introduce,
            messages.PING: self._pong,
            messages.PREPARED: self._prepare,
            messages.JOIN: self._give,
            messages.STATUS: self._note,
            messages.BACKLOG: lambda _, told: self._to_all(messages.BACKLOG, told),
            messages.BOOKS: self._store,
            messages.FAILED: lambda name, told: self.roster.leaves(name, str(told)),
        }
        for kind, listener in heard.items():
            self._runner.register_message(kind, self._guarded(listener))
        gevent.spawn(self._watch)

    @property
    def senders(self) -> int:
        return self._config.tape.senders if self._config else 0

    def stop(self) -> None:
        """End before the end of the tape: the workers hand over their books, and the harness does not wait long."""
        if not self.roster.started:
            self._end([], "the load was stopped before it started")
        self._to_all(messages.END, None)
        until_s = time.monotonic() + HURRIED_FLUSH_S + 2 * STATUS_S
        while not self.roster.all_booked and time.monotonic() < until_s:
            gevent.sleep(POLL_S)
        self._end([books for books, _ in self._books.values()], "the load was stopped")

    # Messages.

    def _handle(self, name: str, message: Message) -> None:
        if message.type == "client_ready":
            if why := self.roster.refusal(name):
                self._strangers[name] = why
                self._runner.send_message("ack", {"index": -1}, name)  # or it would ask again and not listen
                return
            self.roster.connects(name, time.monotonic())
        if name in self._strangers:
            if message.type == messages.HELLO:
                self._runner.send_message(messages.REFUSED, self._strangers[name], name)
            return
        self.roster.hears(name, time.monotonic())
        if message.type == "quit":
            self._guarded(lambda who, _: self.roster.leaves(who, "it was stopped there"))(None, message)
        self._locust(name, message)

    def _guarded(self, listener: Callable[[str, Any], None]) -> Callable[..., None]:
        """Wrap a listener, so that what is not allowed ends the load."""

        def heard(environment: Environment | None, msg: Message, **_: Any) -> None:  # noqa: ARG001 - Locust's own names
            try:
                listener(msg.node_id, msg.data)
            except LoadVoidError as error:
                gevent.spawn(self._end, [], str(error))

        return heard

    def _introduce(self, name: str, told: dict[str, Any]) -> None:
        try:
            self.roster.introduces(name, told["host"], told["versions"])
        except LoadVoidError as error:
            self._runner.send_message(messages.REFUSED, str(error), name)
            raise
        harness_files.write_workers(self._folder, self.roster.hosts)
        self._send_plan([name])

    def _send_plan(self, names: list[str]) -> None:
        if self._config is not None:
            for name in names:
                self._runner.send_message(messages.PLAN, messages.plan_of(self._config), name)

    def _prepare(self, name: str, told: dict[str, Any]) -> None:
        self.roster.prepares(name, Offset(*told["clock"]), told["nice"])

    def _pong(self, name: str, begin_ns: int) -> None:
        self._runner.send_message(messages.PONG, [begin_ns, time.monotonic_ns()], name)

    def _give(self, name: str, _: Any) -> None:
        number = self.roster.next_server(name, self.senders)
        self._runner.send_message(messages.NUMBER, number, name)
        if self.roster.have_all(self.senders):
            nice = max(worker.nice for worker in self.roster.workers.values())
            harness_files.write_ready(self._folder, self.senders, nice)

    def _note(self, name: str, told: dict[str, int]) -> None:
        worker = self.roster.workers[name]
        worker.sent, worker.acked, worker.throttled_ms = told["sent"], told["acked"], told["throttled_ms"]

    def _store(self, name: str, told: dict[str, Any]) -> None:
        self._books[name] = messages.unpack(told)
        self.roster.workers[name].booked = True
        self._runner.send_message(messages.BOOKS, None, name)

    def _to_all(self, kind: str, told: Any) -> None:
        for name in self.roster.workers:
            self._runner.send_message(kind, told, name)

    # Time.

    def _watch(self) -> None:
        """Look at the files of the harness and at the workers."""
        status_s = 0.0
        while not self.over:
            gevent.sleep(POLL_S if not self.roster.started else WATCH_S)
            self._read_config()
            self._read_go()
            try:
                self._refuse_lost()
            except LoadVoidError as error:
                self._end([], str(error))
            if time.monotonic() - status_s > STATUS_S and self._schedule:
                status_s = time.monotonic()
                self._write_status(self._schedule)
            if self.roster.all_booked and self.roster.started:
                self._finish()

    def _refuse_lost(self) -> None:
        """Raise on the second look only: this process may have stood still itself, with messages waiting."""
        try:
            self.roster.refuse_lost(time.monotonic())
        except LoadVoidError:
            if self._silent:
                raise
            self._silent = True
        else:
            self._silent = False

    def _read_config(self) -> None:
        if self._config is None and self._config_file.exists():
            self._config = msgspec.json.decode(self._config_file.read_bytes(), type=LoadConfig)
            self._schedule, self.roster.patience = Schedule(self._config.tape), self._config.patience
            self._send_plan([name for name, worker in self.roster.workers.items() if worker.accepted])

    def _read_go(self) -> None:
        if self._clock is None and (told := harness_files.read_go(self._folder)):
            self._clock, self._epoch_us = Clock(told.zero_ns), told.epoch_ms * 1000
            self.roster.started = True
            self._to_all(messages.GO, list(told))

    def _write_status(self, schedule: Schedule) -> None:
        now_us = self._clock.now_us() - self._epoch_us if self._clock else 0
        line = {"intended": schedule.due_before(now_us), **self.roster.sums()}
        harness_files.append_status(self._folder, line)

    # The end.

    def _finish(self) -> None:
        """All is sent: Locust ends its own way."""
        self._write_end([books for books, _ in self._books.values()], [])
        self.over = True

    def _end(self, books: list[Books], why: str) -> None:
        """End at once. Locust would wait for workers that are gone."""
        if self.over:
            return
        self.over = True
        print(f"The load is void: {why}", file=sys.stderr, flush=True)
        self._write_end(books, [why.rstrip(".")])
        self._runner.quit()  # tells the workers
        os._exit(FAILED)

    def _write_end(self, books: list[Books], errors: list[str]) -> None:
        tables = [each.sends for each in books] or [pa.schema(list(SENDS.items())).empty_table()]
        done = done_of(books, self._schedule.total if self._schedule else 0)
        done["errors"] = errors + done["errors"]
        harness_files.write_end(self._folder, pa.concat_tables(tables), done | {"workers": self._reports()})

    def _reports(self) -> list[dict[str, Any]]:
        return [
            {
                "host": worker.host,
                "servers": worker.servers,
                "sent": self._books[name][0].sent if name in self._books else worker.sent,
                "clock_error_ms": self._clock_error_ms(name),
            }
            for name, worker in self.roster.workers.items()
        ]

    def _clock_error_ms(self, name: str) -> float | None:
        """Return by how much the clock of a worker may have been wrong; None if it is unknown."""
        begin, (_, end) = self.roster.workers[name].begin, self._books.get(name, (None, None))
        return error_ns(begin, end) / 1e6 if begin and end else None


MASTER = Master(int(os.environ[WORKERS_VARIABLE]), Path(os.environ[CONFIG_VARIABLE]))


class Tape(LoadTestShape):
    """A load shape with all ad servers at once, when all workers are prepared; it ends when the tape does."""

    def tick(self) -> tuple[int, float] | None:
        while not (MASTER.roster.all_prepared or MASTER.over):
            gevent.sleep(POLL_S)
        if MASTER.over:
            return None
        return MASTER.senders, MASTER.senders


@events.init.add_listener  # type: ignore[untyped-decorator]
def begin(environment: Environment, **_: Any) -> None:
    """Handle SIGTERM here: the books of the workers have to be here before this process ends."""
    assert isinstance(environment.runner, MasterRunner)
    MASTER.listen(environment.runner)
    gevent.signal_handler(signal.SIGTERM, MASTER.stop)
    stop_collecting()
