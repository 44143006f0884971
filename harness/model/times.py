"""By which of its times an event belongs to a window."""

from __future__ import annotations

from typing import Literal

# Its own; when it was handed to Kafka; when the broker appended it; when it was processed.
Time = Literal["event", "ingestion", "append", "processing"]
EVENT_TIME: Time = "event"
