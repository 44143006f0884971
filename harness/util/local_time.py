"""Times as people read them: in the zone of this machine, with the offset from UTC.

Files, sentences of verdicts and names of cells hold UTC. A screen or a page translates them when it shows them, and
nothing else does: so equal runs have equal files wherever they are made.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

MOMENT = re.compile(r"(?<![\d:.T-])(?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d)(:\d\d)? UTC\b(?! \d)")


def minute(moment_ms: int) -> str:
    """Return a date with hour and minute, such as `2026-11-28 16:41 +01:00`."""
    return local(f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC")


def local(text: str, at_ms: int | None = None) -> str:
    """Translate all times of a text that end in UTC. One without a date gets the offset of `at_ms`, or of now."""
    return MOMENT.sub(lambda found: _translated(found, at_ms), text)


def _translated(found: re.Match[str], at_ms: int | None) -> str:
    day, minute_, second = found[1], found[2], found[3] or ""
    try:
        if day:
            moment = datetime.fromisoformat(f"{day}T{minute_}{second or ':00'}+00:00").astimezone()
        else:
            moment = _of_that_day(f"{minute_}{second or ':00'}", at_ms)
    except (ValueError, OverflowError, OSError):  # no such time, or no such year
        return found[0]
    shown = f"{'%Y-%m-%d ' if day else ''}%H:%M{':%S' if second else ''}"
    return f"{moment.strftime(shown)} {offset(moment)}"


def _of_that_day(time: str, at_ms: int | None) -> datetime:
    then = datetime.now(UTC) if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
    return datetime.fromisoformat(f"{then:%Y-%m-%d}T{time}+00:00").astimezone(then.astimezone().tzinfo)


def offset(moment: datetime) -> str:
    """Return the offset of a local time, such as `+05:30`; `UTC` if there is none."""
    minutes = round((moment.utcoffset() or timedelta()) / timedelta(minutes=1))
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}" if minutes else "UTC"
