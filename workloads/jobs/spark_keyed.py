"""A state of Spark for each key, with timers: the shared part of the processors for `transformWithState`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)


class KeyedState(StatefulProcessor):
    """The state of a key is one row. Only the watermark of a batch is given to what takes rows and timers."""

    NAME: str  # of the state
    SCHEMA: str

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState(self.NAME, self.SCHEMA)

    @abstractmethod
    def rows_came(self, key: Any, rows: Iterator[Row], watermark_ms: int) -> Iterable[Row]:
        """Take the rows of a batch, and return the rows that leave."""

    @abstractmethod
    def timer_expired(self, key: Any, watermark_ms: int) -> Iterable[Row]:
        """Return the rows that leave. Several timers of a key may expire at once."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        return iter(self.rows_came(key, rows, timerValues.getCurrentWatermarkInMs()))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        return iter(self.timer_expired(key, timerValues.getCurrentWatermarkInMs()))
