"""Every source of results by the word that a manifest uses for it. Add one: a file, and its line here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from harness.model import Source, TapeSpec
from harness.observe import HASH, ORPHAN, strangers
from harness.results.base import Observer, Place, Results, by_campaign
from harness.results.command import Command
from harness.results.compact import Compact
from harness.results.template import Template
from harness.results.topic import Topic
from harness.results.yahoo import NO_COUNT, Yahoo
from harness.watching.sampler import PlainObserver, RedisObserver

SOURCES: dict[Source, Callable[[Place], Results]] = {
    "redis:compact": Compact,
    "redis:yahoo": Yahoo,
    "redis:template": Template,
    "kafka": Topic,
    "command": Command,
}


def open_results(place: Place) -> Results:
    return SOURCES[place.manifest.source](place)


def observer_of(place: Place, tape: TapeSpec) -> Observer | None:
    """Our own schema is read past all clients, others as their source gives them; None: nobody looks."""
    if place.manifest.blind:
        return None
    bookkeeping = [pattern for claim in place.manifest.sinks for pattern in claim.bookkeeping]
    if place.manifest.source == "redis:compact" and place.manifest.window_key == "start":
        return RedisObserver(
            place.client,
            place.campaigns,
            tape,
            place.window_ms,
            place.watermark_ms,
            clock=place.clock,
            bookkeeping=bookkeeping,
        )
    results, known = open_results(place), frozenset(place.campaigns)  # of its own: it is read by another thread

    def look(names: Sequence[str]) -> tuple[Sequence[object], Collection[str]]:
        # Nothing is read in one moment: a window whose hash was not there yet has no count yet.
        rows = [row for row in results.rows() if row.value != NO_COUNT]
        hashes = (row.key for row in rows if row.kind in (HASH, ORPHAN))
        return by_campaign(rows, names), strangers(hashes, known, bookkeeping)

    return PlainObserver(look, results.close, place.campaigns, tape, place.clock)
