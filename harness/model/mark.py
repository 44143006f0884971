"""The harness' own events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MarkKind = Literal["opening", "between", "aborted", "closing"]  # faults asked for those in the middle


@dataclass(frozen=True)
class Mark:
    """An event of the harness itself: opening (proves that the engine answers) or closing (moves the watermark on)."""

    id: int
    campaign: int  # of the workload's keys: the number of one
    partition: int
    event_time_ms: int
    kind: MarkKind
    # By these a codec tells marks apart. In runs of old all marks were of the first user on the first page.
    user: int = 0
    page: int = 0
