"""The settings for events that are out of order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Disorder:
    """The settings of disorder; all zero means none. Shares are probabilities per event, drawn from the seed.

    event time = due time - delay - late + skew + the server's clock offset + future
    """

    delay_scale_ms: int = 0  # heavy-tailed delay scale*(1/sqrt(u)-1): median 0.41 x scale
    delay_max_ms: int = 0  # ... its tail is cut here
    skew_min_ms: int = 0  # uniform whole number in [min, max]
    skew_max_ms: int = 0
    late_share: float = 0.0  # this share of events is late by a further delay, which is ...
    late_min_ms: int = 0  # ... a uniform whole number in [min, max]
    late_max_ms: int = 0
    duplicate_share: float = 0.0  # this share of slots sends an earlier event of the same server again
    duplicate_gap: int = 0  # ... 1 to this many slots back
    duplicate_max_ms: int = 1000  # ... but only if it was due within this time
    silent_servers: int = 0  # this many servers fall silent
    silent_start_ms: int = 0  # ... at this time of the run (staggered a little by the seed)
    silent_ms: int = 0  # ... for this long, and come back with the whole backlog at once
    clock_offset_ms: int = 0  # each server's clock is wrong by a fixed whole number in [-x, +x]
    future_share: float = 0.0  # this share of events is dated ...
    future_ms: int = 0  # ... this far in the future
    poison_share: float = 0.0  # this share of records is not an event (bad JSON, null, unknown ad, ...)

    @property
    def reach_ms(self) -> int:
        """The largest distance by which an event's time can be behind the newest event time sent before it."""
        behind = (self.delay_max_ms if self.delay_scale_ms else 0) + (self.late_max_ms if self.late_share else 0)
        silent = self.silent_ms if self.silent_servers else 0
        future = self.future_ms if self.future_share else 0
        again = self.duplicate_max_ms if self.duplicate_share else 0
        return behind + silent + future + again + self.skew_max_ms - self.skew_min_ms + 2 * self.clock_offset_ms
