"""Latency outside the ends of batches as text, always with the share of events that is left out."""

from __future__ import annotations

from collections.abc import Iterator

from harness.measuring.measurement import Latency, OutsideEnds
from harness.util.texts import many
from reports.figures.style import duration
from reports.outage import Outage, quantiles

NAME = "outside the ends of batches"


def headline(found: OutsideEnds) -> Latency | None:
    """Return the latency by probes, else by all counted events; None if it is withheld. The whole run uses the same
    order.
    """
    return found.latency_by("probes") or found.latency_by("rank-matched")


def clause(found: OutsideEnds, outage: Outage) -> str:
    """Write it for one line of a summary."""
    way = headline(found)
    if way is None:
        return f"{NAME} withheld: {found.withheld} ({share(found)})"
    return f"{NAME} {quantiles(way, {'p50': 0.5, 'p99': 0.99}, outage)} ({share(found)} of the events left out)"


def sentences(found: OutsideEnds) -> Iterator[str]:
    """Yield the sentences for a page."""
    yield (
        f"The load met {many(found.ends, 'end of a batch', 'ends of batches')}, by the engine's own times; the longest "
        f"took {duration(found.longest_ms)}. {share(found)} of the events were due in them."
    )
    if found.withheld:
        yield f"Latency {NAME} is withheld: {found.withheld}."
    else:
        yield f'The rows "{NAME}" leave them out; all others have them.'


def share(found: OutsideEnds) -> str:
    return f"{found.left_out_share:.1%}"
