"""The section with the ages of sent events, made from the Kafka log and the recorded load."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness.evidence.observed import LogTable, parts_of
from harness.evidence.send_index import SendLog, Slices, column
from harness.judging.judged import JudgedLog
from harness.util.texts import many
from reports.evidence import Evidence
from reports.figures import lateness
from reports.figures.style import duration, picture
from reports.page import Section
from workloads.base import NO_EVENT

Ints = NDArray[np.int64]


def section(evidence: Evidence) -> Section:
    ages = ages_of(evidence)
    count, spec = ages.sent.events, evidence.spec
    p50, p99, most = (duration(ages.sent.quantile(share)) for share in (0.5, 0.99, 1.0))
    ahead = int(ages.sent.often[ages.sent.ms < 0].sum())
    out_of_order = f"Disorder {spec.disorder_name}: the age of an event is p50 {p50}, p99 {p99}, at most {most}"
    return Section(
        "lateness",
        "Disorder that was sent",
        picture=picture(
            "lateness",
            f"histogram of the age of {many(count, 'event')} when they were due, watermark at "
            f"{duration(spec.watermark_ms)}",
            lambda sheet: lateness.draw(ages, sheet),
        ),
        text=(
            f"{out_of_order}; {ahead:,} of {count:,} are dated ahead. "
            "An event that was sent twice has the age of its first sending.",
        ),
    )


def ages_of(evidence: Evidence) -> lateness.Ages:
    log, booked, case = evidence.log, Booked(evidence.sends, evidence.epoch_ms), evidence.case
    return lateness.Ages(
        lateness.Tally.of(_sent(log, booked)),
        lateness.Tally.of(_dropped(case.judged, booked)),
        evidence.spec.watermark_ms,
    )


def _dropped(judged: JudgedLog, booked: Booked) -> Iterator[Ints]:
    for part in judged:
        events = part.events.only(part.dropped)
        begins = events.begins_record
        yield booked.ages_ms(events.id[begins], events.time_ms[begins])


def _sent(log: LogTable, booked: Booked) -> Iterator[Ints]:
    """Read in parts, because the log may be larger than memory."""
    for part in parts_of(log.select(["event_id", "kind", "event_time_ms"])):
        is_event = part["kind"] != NO_EVENT
        yield booked.ages_ms(part["event_id"][is_event], part["event_time_ms"][is_event])


class Booked:
    """The due times of the slices of the load."""

    def __init__(self, sends: SendLog, epoch_ms: int) -> None:
        self._slices = Slices(sends)
        self._due_ms = column(sends, "intended_us") // 1000 + epoch_ms

    def ages_ms(self, ids: Ints, time_ms: Ints) -> Ints:
        """Return the due time of each event's slice minus the event time. Events of no known slice are left out."""
        row = self._slices.of(ids)
        known = row >= 0
        return np.asarray(self._due_ms[row[known]] - time_ms[known], dtype=np.int64)
