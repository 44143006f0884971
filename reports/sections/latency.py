"""The section with latency by percentile: curves from the raw samples, and a table of all ways of measuring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harness.evidence.long_rows import Ascending
from harness.evidence.observed import ROWS_AT_ONCE
from harness.measuring.measure import LATENCY
from harness.measuring.measurement import Latency, Measurement, Quantiles
from harness.model import Verdict
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.tables import LongTable
from reports import outside
from reports.evidence import Evidence
from reports.figures import percentiles
from reports.figures.style import BLUE, ORANGE, duration, picture
from reports.page import Section, Table

DRAWN = {"probes": BLUE, "rank-matched": ORANGE}
MADE = "curves of latency"  # key of the curves that a page caches
OTHERS = "Accuracy of each method"
COLUMNS = ("way", "events", "p50", "p90", "p99", "p99.9", "max", "mean", "never seen")


def why_unknown(verdict: Verdict) -> str:
    """Return why a run without a latency has none: a sum may fall, so its value at a poll shows no single event."""
    if verdict.looked:
        return "the polled values do not show when an event was counted, as a count would"
    return "the results were not polled during the run"


def section(evidence: Evidence) -> Section:
    measurement = evidence.measurement
    if not measurement.latency:
        why = f" ({evidence.manifest.blind})" if evidence.manifest.blind else ""
        raise MissingEvidence(f"the latency of this run is not known: {why_unknown(evidence.verdict)}{why}")
    curves: tuple[percentiles.Curve, ...] = ()
    missing: tuple[str, ...] = ()
    try:
        curves = curves_of(evidence)
    except MissingEvidence as error:
        missing = (f"{error}, so there are no curves.",)
    alt = "latency by percentile: " + "; ".join(f"{curve.label} up to {curve.last_share:.2%}" for curve in curves)
    return Section(
        "latency",
        "Latency by percentile",
        missing=missing,
        picture=picture("latency", alt, lambda sheet: percentiles.draw(curves, sheet)) if curves else None,
        text=tuple(_text(measurement)),
        tables=(
            Table(COLUMNS, tuple(_rows(measurement))),
            Table(
                ("way", "how exact"), tuple((each.way, _sentence(each)) for each in measurement.latency), OTHERS, True
            ),
        ),
    )


def curves_of(evidence: Evidence) -> tuple[percentiles.Curve, ...]:
    """Return the curves. They are made once for the drawing and its CSV."""
    if MADE not in evidence.made:
        evidence.made[MADE] = curves_from(evidence.store.open_table(LATENCY), evidence.store.path)
    curves: tuple[percentiles.Curve, ...] = evidence.made[MADE]
    return curves


def curves_from(raw: LongTable | pa.Table, folder: Path) -> tuple[percentiles.Curve, ...]:
    """Return a solid curve of latency from the intended time and a dashed one from the sending. Too few samples give no
    curve.
    """
    found: list[percentiles.Curve] = []
    for way, colour in DRAWN.items():
        for name, label, dashed in (("corrected_ms", way, False), ("uncorrected_ms", f"{way}, from sending", True)):
            samples, censored = samples_of(raw, way, name, folder)
            labelled = not dashed and not any(curve.labelled for curve in found)
            curve = percentiles.Curve(label, samples, censored, colour, dashed, labelled)
            if curve.last_share > 0:
                found.append(curve)
    return tuple(found)


def samples_of(raw: LongTable | pa.Table, way: str, name: str, folder: Path) -> tuple[Ascending, int]:
    """Return the sorted samples of one way of measuring, read in parts, and the number of events that were
    never seen. `folder` holds what of them does not fit into memory.
    """
    censored = 0

    def parts() -> Iterator[NDArray[np.float64]]:
        nonlocal censored
        for part in raw.select(["way", name]).to_batches(max_chunksize=ROWS_AT_ONCE):
            column = part.filter(pc.equal(part.column("way"), way)).column(name)
            censored += column.null_count
            yield column.drop_null().cast(pa.float64()).to_numpy()

    return Ascending(parts(), folder), censored


def _rows(measurement: Measurement) -> Iterator[tuple[str, ...]]:
    for each in measurement.latency:
        yield _row(f"{each.way}{_at_least(each)}", each.corrected)
        if each.uncorrected is not None:
            yield _row(f"{each.way}, from sending", each.uncorrected)
    for each in measurement.outside_ends.latency if measurement.outside_ends else ():
        yield _row(f"{each.way}, {outside.NAME}{_at_least(each)}", each.corrected)


def _at_least(each: Latency) -> str:
    return ", tail at least" if each.tail_is_lower_bound else ""


def _row(name: str, q: Quantiles) -> tuple[str, ...]:
    values = ("-" if ms is None else duration(ms) for ms in (q.p50, q.p90, q.p99, q.p999, q.max, q.mean))
    return (name, f"{q.count:,}", *values, f"{q.censored:,}")


def _text(measurement: Measurement) -> Iterator[str]:
    yield "From the moment an event was due until a reader of the results could see it; dashed: from its sending."
    for each in measurement.latency:
        if each.way in DRAWN:
            yield f"{each.way.capitalize()}: {_sentence(each)}"
    never, dipped = measurement.never_final_share, measurement.dipped_share
    if never is not None and dipped is not None:
        yield f"{never:.2%} of the cells never reached their final value, {dipped:.2%} went back at some time."
    if measurement.outside_ends:
        yield from outside.sentences(measurement.outside_ends)


def _sentence(each: Latency) -> str:
    return each.exactness if each.exactness.endswith(".") else f"{each.exactness}."
