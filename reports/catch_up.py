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


def rows_of(orders: NewOrders) -> Iterator[tuple[str, str, str]]:
    yield "changed", seconds(orders.at_s), f"{orders.fault}, at the last progress under the old config"
    yield "to do then", f"{orders.to_do:,.0f} events", ""
    yield "away", orders.away.text(seconds), orders.away.note or _missed(orders)
    yield "rate before", orders.before_per_s.text(per_s), orders.before_per_s.note
    yield "rate after", orders.after_per_s.text(per_s), orders.after_per_s.note
    yield "paid", orders.paid.text(seconds), orders.paid.note or "after the change; more was done from then on"
    yield "would have caught up", orders.without.text(seconds), orders.without.note or "at the rate before"


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
    to_do = f"{orders.to_do:,.0f} events to do, of {largest:,.0f} at the most"
    said = [f"{orders.fault} {seconds(orders.at_s)} after its start with {to_do}"]
    said.append(f"{_after(orders.away)} away")
    if orders.before_per_s.lack is Lack.UNKNOWN:
        said.append(f"its benefit is not known ({orders.before_per_s.note})")
    else:
        said.append(f"{orders.before_per_s.text(per_s)} before, {_after(orders.after_per_s, text=per_s)} after")
        said.append(f"paid: {_after(orders.paid, 'it')}")
        said.append(f"would have caught up: {_after(orders.without, 'its start')}")
    return ", ".join(said)


def _missed(change: Reconfiguration) -> str:
    if change.before_per_s.value is None or change.away.value is None:
        return ""
    return f"in which the old config would have processed {orders.before_per_s.value * orders.away.value:,.0f} events"


def _after(found: Quantity, moment: str = "", text: Callable[[float], str] = seconds) -> str:
    if found.value is None:
        return f"{found.text(text)} ({found.note})"
    return f"{text(found.value)} after {moment}" if moment else text(found.value)
