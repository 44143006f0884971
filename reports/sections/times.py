"""The section of a run that counts by another time than event time: how many events that puts into another window."""

from __future__ import annotations

from harness.measuring.misplaced import misplaced
from harness.model import EVENT_TIME, Time
from harness.util.texts import many
from reports.evidence import Evidence
from reports.figures import times
from reports.figures.style import picture
from reports.page import Section, Table

MEANS: dict[Time, str] = {
    "ingestion": "when it was handed to Kafka",
    "append": "when the broker appended it",
    "processing": "when the batch that read it began",
}


def section(evidence: Evidence) -> Section | None:
    if evidence.spec.time == EVENT_TIME:
        return None
    found = misplaced(evidence)
    count = len(found.delay_ms)
    rows = tuple(
        (time, MEANS[time], f"{int(mask.sum()):,}", f"{found.share(time):.2%}") for time, mask in found.by.items()
    )
    told = "" if "processing" in found.by else " The processing time of each event was not recorded."
    return Section(
        "times",
        "Events in another window",
        picture=picture(
            "times",
            f"share of {many(count, 'event')} that another time than their own puts into "
            "another window, by their delay",
            lambda sheet: times.draw(times.shares(found.delay_ms, found.by), sheet),
        ),
        text=(
            f"This job counts by {evidence.spec.time} time: {MEANS[evidence.spec.time]}. Compared with event time, "
            f"this share of {count:,} is in another window.{told}",
        ),
        tables=(Table(("time", "of an event", "events", "share in another window"), rows),),
    )
