"""Planted mistakes of a question with places: the five pages with the most views in each window."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from harness.evidence.ledger import Ledger
from harness.evidence.observed import Observed, Watched
from harness.judging.checks.case import RunFacts
from harness.selftest.by_hand import EPOCH_MS
from harness.selftest.declared import Events, events, honest_run, of_question, once
from workloads.declared.codec import column_of
from workloads.shipped import shipped

ASKED = of_question("top_pages", shipped("top_pages").declaration)
PAGE = column_of("page")
LENGTH_MS, PLACES = 10_000, 5

Views = Mapping[int, Counter[int]]  # window -> page by its number -> views
Tops = dict[int, list[int]]  # window -> pages in order of their places


def views_of(sent: Events) -> Views:
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for page, at_ms in zip(sent[PAGE].tolist(), sent["event_time_ms"].tolist(), strict=True):
        found[at_ms // LENGTH_MS * LENGTH_MS][page] += 1
    return found


def name_of(page: int) -> str:
    return f"/page/{page + 1}"


def tops(views: Views) -> Tops:
    """Return the first five of each window: more views first, then the smaller name."""
    return {
        opens: sorted(counts, key=lambda page: (-counts[page], name_of(page)))[:PLACES]
        for opens, counts in views.items()
    }


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    sent = events(ASKED.tape)
    honest, views = honest_run(ASKED, sent), views_of(sent)
    oracle, right, ranked = honest.oracle, honest.log_ledger, tops(views)

    def code(value: int, page: int, opens: int) -> int:
        return oracle.codes.one(value * oracle.groups + page, opens)

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, ()))

    def saying(shown: Tops, counts: Views = views) -> RunFacts:
        """Return the run with these pages at their places."""
        places = {code(0, page, opens): at + 1 for opens, pages in shown.items() for at, page in enumerate(pages)}
        totals = {code(1, page, opens): counts[opens][page] for opens, pages in shown.items() for page in pages}
        return showing(Ledger({**places, **totals}))

    some = max(ranked)
    first, second, *others = ranked[some]
    sixth = next(page for page in sorted(views[some], key=name_of) if page not in ranked[some])
    yield "places, all of them right", saying(ranked)
    yield "ties settled by the number in the name", saying({opens: _by_number(of) for opens, of in views.items()})
    yield "ties settled by the larger name", saying({opens: _by_larger(of) for opens, of in views.items()})
    yield "a tie lost: only one page of equal views", saying({opens: _without_ties(of) for opens, of in views.items()})
    yield "a page that had a place for a while", _visited(honest, code(0, sixth, some))
    yield "a page without views, at a place for a while", _visited(honest, code(0, _unviewed(views[some]), some))
    stale = {code(0, sixth, some): PLACES, code(1, sixth, some): views[some][sixth]}
    yield "a page that lost its place, and is not taken back", showing(Ledger({**right, **stale}))
    twice = {code(0, first, some): 2, code(0, second, some): 0, code(1, second, some): 0}
    yield "a page at two places, and the second one is shown", showing(Ledger({**right, **twice}))
    yield "two pages at each other's places", saying({**ranked, some: [second, first, *others]})
    yield "a window without its last place", saying({**ranked, some: ranked[some][:-1]})
    yield "a window that was never ranked", saying({opens: pages for opens, pages in ranked.items() if opens != some})
    doubled = {**views, some: Counter({page: 2 * count for page, count in views[some].items()})}
    yield "views that count twice, and no other places", saying(ranked, doubled)
    from_0 = {cell: place - 1 for cell, place in right.items() if oracle.codes.key(cell) < oracle.groups}
    yield "places counted from 0", showing(Ledger({**right, **from_0}))


def _by_number(views: Counter[int]) -> list[int]:
    return sorted(views, key=lambda page: (-views[page], page))[:PLACES]


def _by_larger(views: Counter[int]) -> list[int]:
    return sorted(sorted(views, key=name_of, reverse=True), key=lambda page: -views[page])[:PLACES]


def _without_ties(views: Counter[int]) -> list[int]:
    """Keep the first page of each number of views."""
    of_count: dict[int, int] = {}
    for page in sorted(views, key=name_of):
        of_count.setdefault(views[page], page)
    return [of_count[count] for count in sorted(of_count, reverse=True)][:PLACES]


def _unviewed(views: Counter[int]) -> int:
    return next(page for page in range(len(views) + 1) if not views[page])


def _visited(honest: RunFacts, code: int) -> RunFacts:
    """Return the run with a value that was seen for a second."""
    at_us = (EPOCH_MS + LENGTH_MS) * 1000 + np.array([0, 1_000_000])
    return replace(honest, watched=Watched(at_us, np.repeat(code, 2), np.array([PLACES, 0]), longest_gap_ms=50.0))
