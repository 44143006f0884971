"""From the Kafka log and the books of the load to how old the events were that were sent."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.model import INDEX_BITS, INDEX_MASK, MARK_SERVER
from harness.texts import many
from reports.evidence import Evidence
from reports.figures import lateness
from reports.figures.style import duration, picture
from reports.page import Section
from workloads.base import BESIDE, COUNTS

Ints = NDArray[np.int64]
EVENTS = (COUNTS, BESIDE)


def section(evidence: Evidence) -> Section:
    ages = ages_of(evidence)
    count, spec = len(ages.sent_ms), evidence.spec
    p50, p99, most = (duration(float(np.quantile(ages.sent_ms, q))) for q in (0.5, 0.99, 1.0))
    ahead = int((ages.sent_ms < 0).sum())
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
    log, sends = evidence.log, evidence.sends
    ids, kind = (np.asarray(log.column(name).to_numpy()) for name in ("event_id", "kind"))
    rows = np.isin(kind, EVENTS) & (ids >> INDEX_BITS != MARK_SERVER)
    times_rel_ms = np.asarray(log.column("event_time_ms").to_numpy())[rows] - evidence.epoch_ms
    case = evidence.case
    dropped = case.dropped
    return lateness.Ages(
        ages(ids[rows], times_rel_ms, sends),
        ages(case.events.id[dropped], case.events.time_ms[dropped] - evidence.epoch_ms, sends),
        evidence.spec.watermark_ms,
    )


def ages(ids: Ints, times_rel_ms: Ints, sends: pa.Table) -> Ints:
    """Due time of an event's slice less its event time; events of no known slice are left out."""
    server, low, high, due_us = (
        np.asarray(sends.column(name).to_numpy()) for name in ("server", "slot_lo", "slot_hi", "intended_us")
    )
    order = np.lexsort((low, server))
    first = (server[order].astype(np.int64) << INDEX_BITS) | low[order]
    place = np.searchsorted(first, ids, side="right") - 1
    slices = order[np.clip(place, 0, None)]
    known = (place >= 0) & (server[slices] == ids >> INDEX_BITS) & ((ids & INDEX_MASK) < high[slices])
    return np.asarray(due_us[slices[known]] // 1000 - times_rel_ms[known], dtype=np.int64)
