"""The catch-up of an engine with a backlog as text, and the gain of changes to its job meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.measuring.measurement import CatchUp, Lack, Quantity, Reconfiguration
from harness.util.texts import three_digits


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


def seconds(value: float) -> str:
    return f"{value:,.1f} s"


def per_s(value: float) -> str:
    return f"{value:,.0f} events/s"


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
