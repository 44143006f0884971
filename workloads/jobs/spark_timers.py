"""A state of Spark whose rows wait for the watermark: the shared part of the processors of events with timers.

The state of a key has timers of its own, and one timer of Spark stands for the earliest of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)


class Timed(Protocol):
    @property
    def next_ms(self) -> int | None:
        """The time of the next timer; None: no timer is set, as for a key without a state."""


State = TypeVar("State", bound=Timed)


class WaitingRows(StatefulProcessor, Generic[State]):
    """Rows wait, and answers leave when the watermark has passed them. A key without timers has no state."""

    SCHEMA: str  # of the state

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("state", self.SCHEMA)

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

    def handleInputRows(  # noqa: N802
        self,
        key: tuple[str],
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        state = self.restored(*key, self._state.get())
        for row in rows:
            self.wait(state, row)
        self._keep(state)
        return iter(())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[str],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        """Several timers of Spark may expire at once: the first one fires for all of them."""
        state = self.restored(*key, self._state.get())
        rows = self.fired(*key, state, timerValues.getCurrentWatermarkInMs())
        self._keep(state)
        return iter(rows)

    def _keep(self, state: State) -> None:
        if state.next_ms is None:
            self._state.clear()
            return
        self._state.update(self.stored(state))
        self._handle.registerTimer(state.next_ms)
