"""The section of a run with a backlog: how the engine worked it off, and the gain of changes to its job meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from harness.measuring import backlog_catch_up
from harness.measuring.measurement import CatchUp, Lack, Quantity, Reconfiguration
from harness.measuring.stats import Floats
from harness.measuring.timeline import Lines
from harness.util.texts import three_digits
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, GREEN, MUTED, Picture, picture
from reports.page import Section, Table
from reports.sections.timeline import bands_of

seconds, per_s = "{:,.1f} s".format, "{:,.0f} events/s".format


def section(evidence: Evidence) -> Section | None:
    found = evidence.measurement.catch_up
    if found is None:
        return None
    text = f"{found.waiting:,} events of {found.oldest_s:.0f} s waited when the engine started. Times count from there."
    parts = (rows(found), *map(rows_of, found.new_orders))
    return Section(
        "backlog",
        "Backlog",
        picture=_drawn(evidence, found),
        text=(text,),
        tables=tuple(Table(("what", "value", "how"), tuple(rows)) for rows in parts),
    )


def _drawn(evidence: Evidence, found: CatchUp) -> Picture | None:
    load_s = evidence.spec.tape.load_ms // 1000
    to_do = backlog_catch_up.to_do(Lines(evidence), load_s)
    if to_do is None:
        return None
    seconds, offered_per_s = np.arange(load_s, dtype=np.float64) + 0.5, evidence.measurement.offered_per_s
    without = (at_rate_before(each, found.started_s, offered_per_s, seconds) for each in found.new_orders)
    lines = (figure.Line("to do", to_do, BLUE), *filter(None, without))
    panel = figure.Panel("backlog, events due and not done", "events", lines)
    struck = [band for band in bands_of(evidence) if band.fault and band.from_s <= load_s]
    bands = (*_moments(found), *struck)
    alt = f"events that were due and not done over {load_s} seconds of load"
    return picture("backlog", alt, lambda sheet: figure.draw(seconds, (panel,), bands, sheet))


def _moments(found: CatchUp) -> Iterator[figure.Band]:
    for moment, name in ((found.caught_up, "caught up"), (found.fresh, "fresh again")):
        if moment.value is not None:
            at_s = moment.value + found.started_s
            yield figure.Band(at_s, at_s, name, colour=GREEN)


def at_rate_before(
    change: Reconfiguration, started_s: float, offered_per_s: float, seconds: Floats
) -> figure.Line | None:
    """Return the backlog that the engine would have had without the change of its job."""
    if change.before_per_s.value is None:
        return None
    since_s = seconds - started_s - change.at_s
    to_do = np.maximum(0.0, change.to_do + (offered_per_s - change.before_per_s.value) * since_s)
    return figure.Line("at the rate before", np.where(since_s < 0, np.nan, to_do), MUTED, dashed=True)


def rows(found: CatchUp) -> Iterator[tuple[str, str, str]]:
    yield "caught up", found.caught_up.text(seconds), found.caught_up.note
    yield "fresh again", found.fresh.text(seconds), found.fresh.note
    if found.per_s is not None:
        yield "done until then", per_s(found.per_s), "its start is part of the time"
        if found.cpu_s_per_million is not None:
            cost = f"{three_digits(found.cpu_s_per_million)} CPU-s/M at {per_s(found.per_s)}"
            yield "cost until then", cost, "of the engine, its start included"


def rows_of(change: Reconfiguration) -> Iterator[tuple[str, str, str]]:
    yield "changed", seconds(change.at_s), f"{change.fault}, at the last progress under the old config"
    yield "to do then", f"{change.to_do:,.0f} events", ""
    yield "away", change.away.text(seconds), change.away.note or _missed(change)
    yield "rate before", change.before_per_s.text(per_s), change.before_per_s.note
    yield "rate after", change.after_per_s.text(per_s), change.after_per_s.note
    yield "paid", change.paid.text(seconds), change.paid.note or "after the change; more was done from then on"
    yield "would have caught up", change.without.text(seconds), change.without.note or "at the rate before"


def in_words(found: CatchUp) -> str:
    said = [f"{found.waiting:,} events of {found.oldest_s:.0f} s waited"]
    said.append(f"caught up: {_after(found.caught_up, 'its start')}")
    if found.per_s is not None:
        cost = (
            "" if found.cpu_s_per_million is None else f" at {three_digits(found.cpu_s_per_million)} CPU-s per million"
        )
        said.append(f"{found.per_s:,.0f}/s{cost} meanwhile")
    said.append(f"fresh again: {_after(found.fresh, 'its start')}")
    return ", ".join(said)


def worth_in_words(change: Reconfiguration, largest: float) -> str:
    """Summarize in one sentence when the job was changed, what the change cost, and what it gained."""
    to_do = f"{change.to_do:,.0f} events to do, of {largest:,.0f} at the most"
    said = [f"{change.fault} {seconds(change.at_s)} after its start with {to_do}"]
    said.append(f"{_after(change.away)} away")
    if change.before_per_s.lack is Lack.UNKNOWN:
        said.append(f"its benefit is not known ({change.before_per_s.note})")
    else:
        said.append(f"{change.before_per_s.text(per_s)} before, {_after(change.after_per_s, text=per_s)} after")
        said.append(f"paid: {_after(change.paid, 'it')}")
        said.append(f"would have caught up: {_after(change.without, 'its start')}")
    return ", ".join(said)


def _missed(change: Reconfiguration) -> str:
    if change.before_per_s.value is None or change.away.value is None:
        return ""
    return f"in which the old config would have processed {change.before_per_s.value * change.away.value:,.0f} events"


def _after(found: Quantity, moment: str = "", text: Callable[[float], str] = seconds) -> str:
    if found.value is None:
        return f"{found.text(text)} ({found.note})"
    return f"{text(found.value)} after {moment}" if moment else text(found.value)
