"""The section of a run with bursts: latency and backlog over time, effects of each burst, and a sentence on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from harness.measuring import backlog_catch_up
from harness.measuring.bursting import WORDS, Checkpointing, checkpointing
from harness.measuring.measurement import Burst, Bursts, Lack, Quantity
from harness.measuring.stats import Floats
from harness.measuring.timeline import Lines
from harness.util.texts import three_digits
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, GREEN, MUTED, ORANGE, picture
from reports.page import Section, Table
from reports.sections.timeline import bands_of, column


def section(evidence: Evidence) -> Section | None:
    found = evidence.measurement.bursts
    if found is None:
        return None
    load_s = evidence.spec.tape.load_ms // 1000
    panels, seconds = tuple(panels_of(evidence, found, load_s)), np.arange(load_s, dtype=np.float64) + 0.5
    struck = [band for band in bands_of(evidence) if band.fault and band.from_s <= load_s]
    bands = (*shaded(found), *struck)
    alt = f"{', '.join(panel.title for panel in panels)} over {load_s} seconds of load, with bursts shaded"
    return Section(
        "bursts",
        "Bursts",
        picture=picture("bursts", alt, lambda sheet: figure.draw(seconds, panels, bands, sheet)) if panels else None,
        text=tuple(_text(found)),
        tables=(
            Table(("burst", "when", "rate", "area above the band", "back after", "how"), tuple(rows(found))),
            Table(("largest", *(WORDS[name][0] for name in names_of(found))), tuple(figures(found))),
        ),
    )


def panels_of(evidence: Evidence, found: Bursts, load_s: int) -> Iterator[figure.Panel]:
    """Yield the panels with known values."""
    p99_ms = column(evidence.timeline, "latency_p99_ms")[:load_s]
    if np.isfinite(p99_ms).any():
        lines = [figure.Line("p99", p99_ms, ORANGE)]
        if found.band_ms.value is not None:
            lines.append(figure.Line("band", np.full(load_s, found.band_ms.value), MUTED, dashed=True))
        yield figure.Panel("latency", "ms", tuple(lines))
    to_do = backlog_catch_up.to_do(Lines(evidence), load_s)
    if to_do is not None:
        yield figure.Panel("backlog, events due and not done", "events", (figure.Line("to do", to_do, BLUE),))
    if told := checkpointing(evidence):
        line = figure.Line("checkpoint", longest_by_second(told, load_s), GREEN)
        yield figure.Panel("the checkpoint under way took", "ms", (line,))


def longest_by_second(told: Checkpointing, load_s: int) -> Floats:
    """Return the longest checkpoint under way in each second; NaN if there was none."""
    own = [told.took_ms[told.under_way(second, second + 1)] for second in range(load_s)]
    return np.array([took_ms.max() if len(took_ms) else np.nan for took_ms in own])


def shaded(found: Bursts) -> Iterator[figure.Band]:
    for number, burst in enumerate(found.bursts, 1):
        own = f"burst {number}: " if len(found.bursts) > 1 else "burst: "
        yield figure.Band(burst.from_s, burst.until_s, f"{own}{burst.rate_per_s:,.0f}/s")


def _text(found: Bursts) -> Iterator[str]:
    if found.band_ms.value is None:
        yield f"There is no band of steady load: {found.band_ms.note}."
    else:
        yield f"The band of steady load ends at {found.band_ms.value:,.0f} ms: {found.band_ms.note}."
    if why := list(reasons(found)):
        yield f"Not known: {'; '.join(why)}."


ON_SCREEN = ("latency_ms", "memory_mib", "checkpoint_mib", "commits_s", "checkpointing_ms", "in_flight_kib")
_area, _seconds = "{:,.0f} event-s".format, "{:,.1f} s".format


def rows(found: Bursts) -> Iterator[tuple[str, ...]]:
    """Yield a row for each burst: when it came, its rate, the latency above the band, and the time back to it."""
    for number, burst in enumerate(found.bursts, 1):
        notes = dict.fromkeys(each.note for each in (burst.area, burst.back) if each.note)
        yield (
            str(number),
            f"{burst.from_s:g} to {burst.until_s:g} s",
            f"{burst.rate_per_s:,.0f}/s",
            burst.area.text(_area),
            burst.back.text(_seconds),
            "; ".join(notes),
        )


def figures(found: Bursts) -> Iterator[tuple[str, ...]]:
    """Yield a row for each stretch with the largest value of each figure. `reasons` explains the unknown ones."""
    for stretch in found.stretches:
        yield (stretch.name, *(told(name, stretch.figures[name]) for name in names_of(found)))


def names_of(found: Bursts) -> list[str]:
    """List the names of the figures that this run has."""
    return [name for name in WORDS if name in found.stretches[0].figures]


def reasons(found: Bursts) -> Iterator[str]:
    """Yield each reason for an unknown figure once."""
    for name in names_of(found):
        lacking = [each.figures[name] for each in found.stretches if each.figures[name].value is None]
        for why in dict.fromkeys(each.note for each in lacking):
            yield f"{WORDS[name][0]}: {why}"


def in_words(found: Bursts) -> str:
    """Summarize in one sentence the offered bursts, the recovery time, and the figures before, in and after."""
    return f"{_offered(found.bursts)}: {_borne(found)}; before, in and after: {_three(found)}"


def told(name: str, quantity: Quantity) -> str:
    return quantity.text(lambda value: f"{value:,.{_digits(name, value)}f} {WORDS[name][1]}")


def _offered(bursts: Sequence[Burst]) -> str:
    first = bursts[0]
    each = f"{three_digits(first.times)} times the rate for {first.until_s - first.from_s:g} s"
    return f"{each} at {first.from_s:g} s" if len(bursts) == 1 else f"{len(bursts)} of {each}"


def _borne(found: Bursts) -> str:
    if found.band_ms.value is None:
        return f"time back to the band {found.band_ms.lack} ({found.band_ms.note})"
    whole = _sum([burst.area for burst in found.bursts])
    slowest = worst([burst.back for burst in found.bursts])
    area = f"{whole.text(_area)} above the band of {found.band_ms.value:,.0f} ms{_why(whole)}"
    end = "its end" if len(found.bursts) == 1 else "the end of each, at most"
    after = f"{_seconds(slowest.value)} after {end}" if slowest.value is not None else str(slowest.lack)
    return f"{area}, back in it {after}{_why(slowest)}"


def _three(found: Bursts) -> str:
    """Values of the first stretch, then the worst of all bursts, then the worst of all stretches after a burst."""
    stretches = found.stretches
    parts = (stretches[:1], stretches[1::2], stretches[2::2])
    said = []
    for name in [each for each in names_of(found) if each in ON_SCREEN]:
        values = [told(name, worst([each.figures[name] for each in part])) for part in parts]
        if any(each.figures[name].value is not None for each in stretches):
            said.append(f"{WORDS[name][0]} {', '.join(values)}")
    return "; ".join(said)


def worst(quantities: Sequence[Quantity]) -> Quantity:
    """Return the worst of some quantities. A value that is missing because of the engine is worse than any other; an
    unknown one is ignored.
    """
    for lack in (Lack.NO_END, Lack.NEVER):
        if found := next((each for each in quantities if each.lack is lack), None):
            return found
    known = [each for each in quantities if each.value is not None]
    return max(known, key=lambda each: each.value or 0.0, default=quantities[0])


def _sum(quantities: Sequence[Quantity]) -> Quantity:
    lacking = next((each for each in quantities if each.value is None), None)
    return lacking or Quantity(sum(each.value or 0.0 for each in quantities))


def _why(quantity: Quantity) -> str:
    return f" ({quantity.note})" if quantity.value is None and quantity.note else ""


def _digits(name: str, value: float) -> int:
    return 1 if WORDS[name][1] == "s" or (WORDS[name][1] == "MiB" and value < 10) else 0
