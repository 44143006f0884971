"""The send log: one row for each slice that had events. Times are relative to the load start."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

SENDS: Mapping[str, pa.DataType] = {
    "server": pa.int16(),
    "slice": pa.int32(),
    "slot_lo": pa.int64(),
    "slot_hi": pa.int64(),
    "intended_us": pa.int64(),  # when the slice was due: at its end
    "sent_us": pa.int64(),  # when the slice was offered to the client
    "finished_us": pa.int64(),  # when the client had all of it
    "sent": pa.int64(),
    "acked": pa.int64(),
}
