"""The fields of a record that count, and their parsing in Python. It needs neither Spark nor pandas."""

from __future__ import annotations

import json

FIELDS = ("ad_id", "event_type", "event_time")
EVENT = ", ".join(f"{name} string" for name in FIELDS)
NOT_SURE = (None,) * len(FIELDS)


def fields_of(value: bytes) -> tuple[str | None, ...]:
    """Parse a record with Python's JSON. Return NOT_SURE for a record that Spark might read differently: with escapes,
    broken UTF-8, values that are no strings, or no JSON in Python's view.
    """
    if b"\\" in value:
        return NOT_SURE
    try:
        event = json.loads(value.decode())
    except (ValueError, RecursionError):  # broken JSON and broken UTF-8 alike
        return NOT_SURE
    if not isinstance(event, dict) or not all(type(each) is str for each in event.values()):
        return NOT_SURE
    return tuple(event.get(name) for name in FIELDS)
