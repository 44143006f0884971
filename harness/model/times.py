"""The times by which an event can be assigned to a window."""

from __future__ import annotations

from typing import Literal

# event: payload timestamp; ingestion: producer timestamp; append: broker timestamp; processing: engine clock.
Time = Literal["event", "ingestion", "append", "processing"]
EVENT_TIME: Time = "event"
