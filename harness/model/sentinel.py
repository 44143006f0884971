"""The harness' own events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SentinelKind = Literal["opening", "between", "aborted", "closing"]  # faults asked for those in the middle


@dataclass(frozen=True)
class Sentinel:
    """An event of the harness itself: opening (proves that the engine answers) or closing (moves the watermark on)."""

    id: int
    campaign: int  # of the workload's keys: the number of one
    partition: int
    event_time_ms: int
    kind: SentinelKind
    # By these a codec tells marks apart. In runs of old all marks were of the first user on the first page.
    user: int = 0
    page: int = 0
    # Where one event alone lies in no cell, as of a pair, several do together: the number of the first one of its
    # group, and which of them it is.
    group: int = 0
    part: int = 0
