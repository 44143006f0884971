"""The fields of a record that count, and what Python makes of them: needs neither Spark nor pandas."""

from __future__ import annotations

import json

FIELDS = ("ad_id", "event_type", "event_time")
EVENT = ", ".join(f"{name} string" for name in FIELDS)
NOT_SURE = (None,) * len(FIELDS)


def fields_of(value: bytes) -> tuple[str | None, ...]:
    """What Python's own JSON makes of a record. It says nothing of one that Spark might read in another way: with
    escapes, broken UTF-8, values that are no texts, or what is no JSON to it."""
    if b"\\" in value:
        return NOT_SURE
    try:
        event = json.loads(value.decode())
    except (ValueError, RecursionError):  # broken JSON and broken UTF-8 alike
        return NOT_SURE
    if not isinstance(event, dict) or not all(type(each) is str for each in event.values()):
        return NOT_SURE
    return tuple(event.get(name) for name in FIELDS)
