"""The effects of load bursts on an engine as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.measuring.bursting import WORDS
from harness.measuring.measurement import Burst, Bursts, Lack, Quantity
from harness.util.texts import three_digits

ON_SCREEN = ("latency_ms", "memory_mib", "checkpoint_mib", "commits_s", "checkpointing_ms", "in_flight_kib")


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


def _area(value: float) -> str:
    return f"{value:,.0f} event-s"


def _seconds(value: float) -> str:
    return f"{value:,.1f} s"


def _digits(name: str, value: float) -> int:
    return 1 if WORDS[name][1] == "s" or (WORDS[name][1] == "MiB" and value < 10) else 0
