"""Times on screens and pages: in the zone of the machine, with the offset, and the same moment as before."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from harness.util import local_time
from harness.util.local_time import local

NOON_MS = int(datetime(2026, 11, 28, 12, 0, tzinfo=UTC).timestamp() * 1000)
JULY_MS = int(datetime(2026, 7, 1, 12, 0, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def zone(monkeypatch):
    def set_to(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_to
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("UTC", "2026-11-28 12:00 UTC"),
        ("Europe/London", "2026-11-28 12:00 UTC"),
        ("Europe/Berlin", "2026-11-28 13:00 +01:00"),
        ("Asia/Kolkata", "2026-11-28 17:30 +05:30"),
        ("America/St_Johns", "2026-11-28 08:30 -03:30"),
        ("Pacific/Kiritimati", "2026-11-29 02:00 +14:00"),
    ],
)
def test_a_minute_is_told_in_the_zone_of_the_reader(zone, name, told):
    zone(name)

    assert local_time.minute(NOON_MS) == told


def test_a_time_without_a_date_has_the_offset_of_the_run(zone):
    zone("Europe/Berlin")
    text = "windows 14:39:40 UTC, 23:39:50 UTC (+10 s)"

    assert local(text, NOON_MS) == "windows 15:39:40 +01:00, 00:39:50 +01:00 (+10 s)"
    assert local(text, JULY_MS) == "windows 16:39:40 +02:00, 01:39:50 +02:00 (+10 s)"


def test_a_date_decides_itself_which_offset_it_has(zone):
    zone("Europe/Berlin")

    assert local("begun 2026-07-01 23:30 UTC", NOON_MS) == "begun 2026-07-02 01:30 +02:00"


def test_a_reader_in_utc_sees_every_text_as_it_is_stored(zone):
    zone("UTC")
    text = "windows 14:39:40 UTC, begun 2026-07-01 23:30 UTC"

    assert local(text, NOON_MS) == text


@pytest.mark.parametrize(
    "text",
    [
        "Sat Nov 28 15:41:27 UTC 2026",
        "2026-11-28 15:41:27.123 UTC [83] LOG: ready",
        "2026-11-28T15:41:27 UTC",
        "25:61:00 UTC",
        "15:41:27 UTCX",
        "a window of 10:00:00",
    ],
)
def test_what_another_program_wrote_or_is_no_time_stays(zone, text):
    zone("Asia/Kolkata")

    assert local(text, NOON_MS) == text


def test_a_year_that_no_calendar_has_stays(zone):
    zone("Pacific/Kiritimati")

    assert local("9999-12-31 23:59 UTC") == "9999-12-31 23:59 UTC"
