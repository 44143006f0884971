"""The workers of a load on many hosts: who takes part, who is which server, and who is lost. Pure; times are given.

Locust accepts any worker at any time, distributes its users again when one is lost, and lets a lost one come back
without a word. A server would then be sent twice, or not at all. So each worker is admitted once and before the load,
each server is given away once, and a lost worker ends the load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from generators import versions
from generators.clock_offset import Offset
from harness.util.texts import many

LOST_S = 3.5  # without a message during the load; Locust's workers send one each second
STARTING_S = 30.0  # before it: a worker may wait for Kafka meanwhile


class LoadVoidError(Exception):
    """The load can't be what was planned. The text says why, as one sentence."""


@dataclass
class Worker:
    """One worker, by Locust's id for it."""

    heard_s: float
    host: str = ""
    nice: int = 0
    accepted: bool = False  # its versions are ours
    begin: Offset | None = None  # our clock minus its clock, before the load ...
    servers: list[int] = field(default_factory=list)
    sent: int = 0
    acked: int = 0
    throttled_ms: int = 0
    booked: bool = False  # it has sent all, and its books are here


class Roster:
    """All workers of one load."""

    def __init__(self, size: int, ours: Mapping[str, str]) -> None:
        self._size, self._ours = size, ours
        self.workers: dict[str, Worker] = {}
        self._given = 0
        self.started = False
        self.patience = 1.0  # factor on the time for which a worker may be silent

    def refusal(self, name: str) -> str:
        """Return why a worker that connects now is refused; "" if it may take part."""
        if name in self.workers:
            return "" if not self.started else "it was part of this load before, and would send its servers twice"
        if self.started:
            return "the load of this run has started"
        return f"the run already has its {many(self._size, 'worker')}" if len(self.workers) == self._size else ""

    def connects(self, name: str, now_s: float) -> None:
        self.workers.setdefault(name, Worker(now_s)).heard_s = now_s

    def hears(self, name: str, now_s: float) -> None:
        if name in self.workers:
            self.workers[name].heard_s = now_s

    def introduces(self, name: str, host: str, theirs: Mapping[str, str]) -> None:
        """Accept a worker if it has our versions."""
        if other := versions.differing(self._ours, theirs):
            raise LoadVoidError(
                f"The worker on {host} has {other}, so it might send another load. Install the same version of "
                f"streamgauge there, from the same commit."
            )
        worker = self.workers[name]
        worker.host, worker.accepted = host, True

    def prepares(self, name: str, begin: Offset, nice: int) -> None:
        """A worker is ready for servers: it has the tape, a client of Kafka, and the clock of the run."""
        self.workers[name].begin, self.workers[name].nice = begin, nice

    def next_server(self, name: str, senders: int) -> int:
        """Give away the next server."""
        if self.started or self._given == senders:
            raise LoadVoidError(
                f"The worker on {self.workers[name].host} asked for a server, and all {senders} are given away: Locust "
                f"has distributed them again. A server would be sent twice."
            )
        self.workers[name].servers.append(self._given)
        self._given += 1
        return self._given - 1

    def leaves(self, name: str, why: str) -> None:
        """A worker ends. It may, once its books are here."""
        worker = self.workers.get(name)
        if worker and not worker.booked:
            raise LoadVoidError(f"The worker on {_host(worker)} ended: {why}.{self._had(worker)}")

    def refuse_lost(self, now_s: float) -> None:
        """Raise if a worker was silent for too long."""
        limit_s = self.patience * (LOST_S if self.started else STARTING_S)
        for worker in self.workers.values():
            if not worker.booked and now_s - worker.heard_s > limit_s:
                raise LoadVoidError(
                    f"The worker on {_host(worker)} is lost: nothing was heard of it for {limit_s:g} s."
                    f"{self._had(worker)}"
                )

    @property
    def hosts(self) -> list[str]:
        """Return the host of each worker that takes part."""
        return [worker.host for worker in self.workers.values() if worker.accepted]

    @property
    def all_prepared(self) -> bool:
        return self._all("begin")

    @property
    def all_booked(self) -> bool:
        return self._all("booked")

    def have_all(self, senders: int) -> bool:
        """Return whether every server is given away."""
        return self._given == senders

    def sums(self) -> dict[str, int]:
        """Return what all workers have sent so far, by their own counts."""
        workers = self.workers.values()
        return {
            "sent": sum(worker.sent for worker in workers),
            "acked": sum(worker.acked for worker in workers),
            "throttled_ms": max((worker.throttled_ms for worker in workers), default=0),
        }

    def _all(self, what: str) -> bool:
        return len(self.workers) == self._size and all(getattr(worker, what) for worker in self.workers.values())

    def _had(self, worker: Worker) -> str:
        return f" It had the servers {', '.join(map(str, worker.servers))}." if worker.servers else ""


def _host(worker: Worker) -> str:
    return worker.host or "an unknown host"
