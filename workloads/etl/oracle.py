"""The rows that events have to become: how many each has, and the value of each of its columns.

The hour of a partition is as long as the window of the run, ten seconds by default: an hour of a run that stays short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.base import NEVER, Columns, Ints, Kind, Places, Planned, Totals, Value
from workloads.cells import Codes
from workloads.text_values import text_value

# The values of an event, in the order of their keys: how many rows, and the columns of a row.
ROWS, HOUR, TIME, CAMPAIGN, TYPE = "outputs", "hour", "event_time", "campaign_id", "event_type"
VALUES = (Value(ROWS, Kind.COUNT), *(Value(name, Kind.PER_EVENT) for name in (HOUR, TIME, CAMPAIGN, TYPE)))
EVENT_TYPES = ("view", "click", "purchase")  # of events, by their numbers
IS_TIME = np.array([value.name in (HOUR, TIME) for value in VALUES])
CONTENT = "content"  # of a place: what the event adds to its cell


def value_names() -> tuple[str, ...]:
    return tuple(value.name for value in VALUES)


class EtlOracle:
    """An oracle with a key for each value, whose fields are ids of events. See `workloads.base.Oracle`."""

    values = VALUES
    merges = keeps_rows = False
    groups = probed_from = 1

    def __init__(self, hour_ms: int, campaigns: Sequence[str]) -> None:
        """`campaigns`: of each ad."""
        self.codes = Codes()
        self.part_ms = hour_ms
        self._campaigns = np.array([text_value(name) for name in campaigns], dtype=np.int64)
        self._types = np.array([text_value(name) for name in EVENT_TYPES], dtype=np.int64)

    def plan(self, blocks: Iterable[Planned]) -> Columns:
        """List the rows one by one. The columns of a row are laid out as the cells are: value by value."""
        rows: dict[tuple[int, int], int] = {}
        for block in blocks:
            for row in np.flatnonzero(block.poison == 0).tolist():
                event, time_ms = int(block.id[row]), int(block.event_time_rel_ms[row])
                campaign = self._campaigns[int(block.content["ad"][row])]
                kind = self._types[int(block.content["event_type"][row])]
                hour_ms = time_ms - time_ms % self.part_ms
                rows[0, event] = rows.get((0, event), 0) + 1
                rows.update({(1, event): hour_ms, (2, event): time_ms, (3, event): campaign, (4, event): kind})
        planned = np.array([(*cell, value) for cell, value in sorted(rows.items())], dtype=np.int64).reshape(-1, 3).T
        return dict(zip(("column", "event", "value"), planned, strict=True))

    def settle(self, planned: Columns, epoch_ms: int) -> Totals:
        shift = np.where(IS_TIME[planned["column"]], epoch_ms, 0)
        return Totals(self.codes.of(planned["column"], planned["event"]), planned["value"] + shift)

    def places(self, events: Columns) -> Places:
        time_ms, count = events["event_time_ms"], len(events["event_time_ms"])
        content = (
            np.ones(count, dtype=np.int64),
            np.floor_divide(time_ms, self.part_ms) * self.part_ms,
            time_ms,
            self._campaigns[events["ad"]],
            self._types[events["event_type"]],
        )
        keys = np.tile(np.arange(len(VALUES)), count)
        return Places(
            np.repeat(np.arange(count), len(VALUES)),
            self.codes.of(keys, np.repeat(events["event_id"].astype(np.int64), len(VALUES))),
            np.full(count * len(VALUES), NEVER),
            {CONTENT: np.column_stack(content).ravel()},
        )

    def fold(self, cells: Ints, columns: Columns) -> Totals:
        """Add up rows. The records of an event that was sent twice are equal, so either has the values of its row."""
        known, first, times = np.unique(cells, return_index=True, return_counts=True)
        content: NDArray[Any] = columns[CONTENT][first]
        return Totals(known, np.where(self.codes.keys(known) == 0, times, content))

    def begins_ms(self, cells: Ints) -> Ints:
        return np.zeros(len(cells), dtype=np.int64)

    def name(self, cell: int, epoch_ms: int) -> str:  # noqa: ARG002  (no window is in it)
        key = self.codes.key(cell)
        value = VALUES[key].name if 0 <= key < len(VALUES) else "?"
        return f"{value} of event {self.codes.field(cell):012x}"
