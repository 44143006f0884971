"""The ad servers of a real run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from harness.load.adaptive_load import GrowingLoad
from harness.load.fleet import Load
from harness.load.workers import WorkersLoad
from harness.model import Certificate, HarnessError, LoadStatus, Segment
from harness.rundir.store import Store
from harness.runner.world.base import ServiceGone


class RealFleet:
    """See `harness.runner.world.base.Fleet`. `unserved` returns the service that is gone or refuses us, or ""."""

    def __init__(self, load: Load, senders: int, store: Store, unserved: Callable[[], str]) -> None:
        self.load, self._senders, self._store, self._unserved = load, senders, store, unserved

    def gather(self) -> None:
        if isinstance(self.load, WorkersLoad):
            self.load.gather()

    def await_ready(self) -> None:
        with self._without_services():
            self.load.wait_ready()
        self._store.tell("fleet", servers=self._senders, nice=self.load.nice)

    def go(self, epoch_ms: int) -> None:
        self.load.go(epoch_ms, self._store.clock)

    def extend(self, segments: Sequence[Segment]) -> None:
        self._growing.append(segments)

    def complete(self) -> None:
        self._growing.complete()

    @property
    def _growing(self) -> GrowingLoad:
        if not isinstance(self.load, GrowingLoad):
            raise HarnessError("A load with a fixed plan can't grow.")
        return self.load

    def status(self) -> LoadStatus:
        with self._without_services():
            return self.load.status()

    def certify(self) -> Certificate:
        return self.load.certify()

    @contextmanager
    def _without_services(self) -> Iterator[None]:
        """Ad servers may break off because Kafka is gone: then raise ServiceGone."""
        try:
            yield
        except HarnessError as error:
            if not (seen := self._unserved()):
                raise
            raise ServiceGone(f"{seen}; {error}") from error
