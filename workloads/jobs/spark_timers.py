"""A state of Spark whose rows wait for the watermark: the shared part of the processors of events with timers.

The state of a key has timers of its own, and one timer of Spark stands for the earliest of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from pyspark.sql import Row

from workloads.jobs.spark_keyed import KeyedState


class Timed(Protocol):
    @property
    def next_ms(self) -> int | None:
        """The time of the next timer; None: no timer is set, as for a key without a state."""


State = TypeVar("State", bound=Timed)


class WaitingRows(KeyedState, Generic[State]):
    """Rows wait, and answers leave when the watermark has passed them. A key without timers has no state."""

    NAME = "state"

    @abstractmethod
    def restored(self, name: str, stored: tuple[Any, ...] | None) -> State:
        """Return the state of a key from what is stored; None: there is nothing."""

    @abstractmethod
    def stored(self, state: State) -> tuple[Any, ...]: ...

    @abstractmethod
    def wait(self, state: State, row: Row) -> None: ...

    @abstractmethod
    def fired(self, name: str, state: State, until_ms: int) -> list[Row]:
        """Fire all timers up to this time, in order of their times, and return the rows that leave."""

    def rows_came(self, key: tuple[str], rows: Iterator[Row], watermark_ms: int) -> Iterable[Row]:  # noqa: ARG002
        state = self.restored(*key, self._state.get())
        for row in rows:
            self.wait(state, row)
        self._keep(state)
        return ()

    def timer_expired(self, key: tuple[str], watermark_ms: int) -> Iterable[Row]:
        """Several timers of Spark may expire at once: the first one fires for all of them."""
        state = self.restored(*key, self._state.get())
        rows = self.fired(*key, state, watermark_ms)
        self._keep(state)
        return rows

    def _keep(self, state: State) -> None:
        if state.next_ms is None:
            self._state.clear()
            return
        self._state.update(self.stored(state))
        self._handle.registerTimer(state.next_ms)
