"""The section of a run over time: panels over one time axis, with faults and other events marked in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.judging.progress_curve import progress_lines
from harness.model import FaultReport, Progress
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, GREEN, INK, ORANGE, PURPLE, RED, SKY, picture
from reports.page import Section

# Panel: title, unit, {column: (label, colour, dashed)}. A column without any value is left out, and named in the text.
Wanted = tuple[str, str, dict[str, tuple[str, str, bool]]]
LOAD: tuple[Wanted, ...] = (
    ("events per second", "1/s", {"offered_per_s": ("offered", INK, True), "sent_per_s": ("sent", ORANGE, False)}),
)
SPEED: tuple[Wanted, ...] = (
    (
        "events per second",
        "1/s",
        {"offered_per_s": ("offered", INK, True), "processed_per_s": ("processed", BLUE, False)},
    ),
    ("latency", "ms", {"latency_p50_ms": ("p50", BLUE, False), "latency_p99_ms": ("p99", ORANGE, False)}),
    ("backlog, events due and not done", "events", {"backlog": ("backlog", BLUE, False)}),
    ("watermark lag", "ms", {"watermark_lag_ms": ("lag", BLUE, False)}),
    (
        "CPU, cores",
        "cores",
        {
            "cpu_engine": ("engine", BLUE, False),
            "cpu_kafka": ("Kafka", ORANGE, False),
            "cpu_redis": ("Redis", GREEN, False),
            "cpu_generator": ("generator", PURPLE, False),
            "cpu_harness": ("harness", SKY, False),
        },
    ),
)


# From the colours of faults to the page's palette.
COLOURS = {
    "tab:red": RED,
    "tab:orange": ORANGE,
    "tab:green": GREEN,
    "tab:blue": BLUE,
    "tab:purple": PURPLE,
    "tab:cyan": SKY,
}


def section(evidence: Evidence) -> Section:
    table, wanted = shown_of(evidence), LOAD if evidence.withheld else SPEED
    panels = panels_of(table, wanted)
    bands = tuple(bands_of(evidence))
    seconds = np.asarray(table.column("second").to_numpy(), dtype=np.float64) + 0.5
    shown = [band for band in bands if seconds[0] - 1 <= band.from_s <= seconds[-1] + 1]
    alt = f"over {len(seconds)} seconds: {', '.join(panel.title for panel in panels)}"
    if shown:
        alt += f"; marked: {', '.join(band.label for band in shown)}"
    return Section(
        "timeline",
        "The run over time",
        picture=picture("timeline", alt, lambda sheet: figure.draw(seconds, panels, shown, sheet)),
        text=tuple(_text(evidence, table, wanted, [band for band in bands if band not in shown])),
    )


def shown_of(evidence: Evidence) -> pa.Table:
    """Return the seconds to show. If speed is withheld the table ends with the load, because the time of the work after
    it would reveal the speed.
    """
    table = evidence.timeline
    if not evidence.withheld:
        return table
    sent = np.nan_to_num(column(table, "offered_per_s")) + np.nan_to_num(column(table, "sent_per_s"))
    return table.slice(0, int(np.flatnonzero(sent > 0).max(initial=0)) + 1)


def panels_of(table: pa.Table, wanted: Sequence[Wanted]) -> tuple[figure.Panel, ...]:
    """Return the panels with known columns."""
    found = []
    for title, unit, columns in wanted:
        known = {name: values for name in columns if np.isfinite(values := column(table, name)).any()}
        lines = tuple(figure.Line(columns[n][0], values, columns[n][1], columns[n][2]) for n, values in known.items())
        if lines:
            found.append(figure.Panel(title, unit, lines))
    return tuple(found)


def column(table: pa.Table, name: str) -> NDArray[np.float64]:
    """Return a column as floats; NaN where it is unknown."""
    return np.asarray(table.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def bands_of(evidence: Evidence) -> Iterator[figure.Band]:
    """Yield each fault from when it struck until it was undone, and the batch that ran again because of it.

    If speed is withheld, only the moments when a fault struck and took effect are shown: a kill is undone when the
    engine goes on.
    """
    for fault in evidence.faults:
        if not fault.landed:
            continue
        yield _fault(fault, evidence)
        if not evidence.withheld:
            later = [line for line in progress_lines(evidence.store) if line.at_ms > fault.at_ms]
            yield from _again(fault, later, evidence.epoch_ms)
    for entry in evidence.store.history("loaded"):
        yield _moment(entry["at_ms"] - evidence.epoch_ms, "last event sent")


def _fault(fault: FaultReport, evidence: Evidence) -> figure.Band:
    begin_s, landed_s, healed_s = (
        (ms - evidence.epoch_ms) / 1000 for ms in (fault.at_ms, fault.landed_ms or fault.at_ms, fault.healed_ms)
    )
    told = fault.healed_ms > 0 and not evidence.withheld
    words = f"landed after {landed_s - begin_s:.1f} s"
    words += f", over after {healed_s - begin_s:.1f} s" if told else ""
    colour = COLOURS.get(fault.colour, RED)
    return figure.Band(begin_s, healed_s if told else begin_s, f"{fault.spec.text} {words}", True, landed_s, colour)


def _again(fault: FaultReport, after: Sequence[Progress], epoch_ms: int) -> Iterator[figure.Band]:
    for line in after:
        if fault.replayed and line.batch == fault.batch:
            yield _moment(line.at_ms - epoch_ms, f"batch {fault.batch} again")
            return


def _moment(at_rel_ms: int, label: str) -> figure.Band:
    return figure.Band(at_rel_ms / 1000, at_rel_ms / 1000, label)


def _text(
    evidence: Evidence, table: pa.Table, wanted: Sequence[Wanted], unplaced: Sequence[figure.Band]
) -> Iterator[str]:
    unknown = list(_unknown(table, wanted))
    if evidence.withheld:
        yield "Only the sent events are shown, because the engine's speed has no meaning in this run."
    elif (steady := evidence.measurement.steady) is not None:
        yield f"{steady.sentence[:1].upper()}{steady.sentence[1:]}."
    if unknown:
        yield f"Not known in this run: {', '.join(unknown)}."
    if unplaced:
        yield f"Not on this time axis: {', '.join(band.label for band in unplaced)}."


def _unknown(table: pa.Table, wanted: Sequence[Wanted]) -> Iterator[str]:
    """A panel without any known value is named by its title, else each unknown line."""
    for title, _, columns in wanted:
        missing = [label for name, (label, _, _) in columns.items() if not np.isfinite(column(table, name)).any()]
        if len(missing) == len(columns):
            yield title.partition(",")[0]
        else:
            yield from (f"{title.partition(',')[0]} of {label}" for label in missing)
