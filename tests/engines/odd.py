"""Records that are not quite events, and whether they count. Every engine has to see them alike."""

from __future__ import annotations

from tests.engines.trial import START_MS, WINDOW_MS, Trial


def odd_records(ad: str, time_ms: int) -> list[tuple[str, bytes | None, bool]]:
    """(what it is, the record, whether it counts as a view of `ad` at `time_ms`)."""
    good = f'{{"ad_id": "{ad}", "event_type": "view", "event_time": "{time_ms}"}}'
    return [
        ("an event without the fields that nobody needs", good.encode(), True),
        ("fields in another order", f'{{"event_time":"{time_ms}","event_type":"view","ad_id":"{ad}"}}'.encode(), True),
        ("an unknown field", good.replace("{", '{"new": {"a": [1]}, ', 1).encode(), True),
        ("broken UTF-8 in a field that nobody needs", good.replace("{", '{"ip": "\xff", ', 1).encode("latin-1"), True),
        ("null", None, False),
        ("nothing", b"", False),
        ("not JSON", b"hello", False),
        ("torn", good[:-5].encode(), False),
        ("a list", b"[1, 2]", False),
        ("a number", b"7", False),
        ("an unknown ad", good.replace(ad, "00000000-0000-0000-0000-000000000000").encode(), False),
        ("broken UTF-8 in the ad", good.replace(ad, "\xff").encode("latin-1"), False),
        ("no time", good.replace("event_time", "event_day").encode(), False),
        ("a time of null", good.replace(f'"{time_ms}"', "null").encode(), False),
        ("a time in words", good.replace(str(time_ms), "noon").encode(), False),
        ("a time before 1970", good.replace(str(time_ms), "-1").encode(), False),
        ("a time beyond all calendars", good.replace(str(time_ms), "9" * 18).encode(), False),
        ("a time beyond all numbers", good.replace(str(time_ms), "9" * 40).encode(), False),
        ("no ad", good.replace("ad_id", "add_id").encode(), False),
        ("no type", good.replace("event_type", "type").encode(), False),
        ("an unknown type", good.replace("view", "glance").encode(), False),
        ("bytes", b"\x00\x01\xff\xfe", False),
    ]


def send_odd_records(trial: Trial, refused: str = "") -> None:
    """Send them all; those that count do so for the first ad, but for `refused`, which this engine leaves out."""
    ad = next(iter(trial.ads))
    cell = trial.ads[ad], START_MS // WINDOW_MS * WINDOW_MS
    for what, record, counts in odd_records(ad, START_MS):
        trial.send_record(record, cell if counts and what != refused else None)
