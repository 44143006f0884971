"""The harness' own events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SentinelKind = Literal["opening", "between", "aborted", "closing"]  # faults request those in the middle


@dataclass(frozen=True)
class Sentinel:
    """An event of the harness: an opening one proves that the engine answers, a closing one advances the watermark."""

    id: int
    campaign: int  # the number of a key of the workload
    partition: int
    event_time_ms: int
    kind: SentinelKind
    # A codec tells sentinels apart by these. In older runs all sentinels were of the first user on the first page.
    user: int = 0
    page: int = 0
    # If one event alone is in no cell, as with a pair, several events form a group: the number of the group's first
    # event, and the place of this one in it.
    group: int = 0
    part: int = 0
