"""Planted mistakes of `readers_distinct` and `readers_week`: different articles in a window of 60 panes, and of 28.

Each is a way to combine panes, or to keep them in a state. A mistake is made in the events, as by a job, and the
results are folded from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from harness.evidence.ledger import Ledger
from harness.evidence.observed import LogEvents, Observed, folded
from harness.judging import times
from harness.judging.checks.case import RunFacts
from harness.selftest.by_hand import EPOCH_MS
from harness.selftest.declared import Events, events, honest_run, in_cells, of_question, once
from workloads.base import Ints, Oracle
from workloads.declared.codec import column_of
from workloads.shipped import shipped

READERS, WEEK = "readers_distinct", "readers_week"
LENGTH_MS, STEP_MS = 60_000, 1_000
SLIDE_MS = 3_000  # of a week
TIMES_AS_LONG = 3  # a week's events last 180 s
RESTARTED_MS = EPOCH_MS + 120_000  # when a week was in the state
READER, ARTICLE = column_of("reader"), column_of("article")


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    honest = honest_run(of_question(READERS, shipped(READERS).declaration))
    oracle, log, right, sent = honest.oracle, honest.events, honest.log_ledger, events(honest.spec.tape)
    is_articles = oracle.codes.keys(log.cell) >= oracle.groups
    pane, (one, other) = sent[times.OWN] // STEP_MS, _read_again(sent)

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, ()))

    def articles(counts: Ledger) -> RunFacts:
        """Return the run with these articles and right reads."""
        reads = {cell: count for cell, count in right.items() if not _is_articles(cell, oracle)}
        return showing(
            Ledger({**reads, **{cell: count for cell, count in counts.items() if _is_articles(cell, oracle)}})
        )

    yield "articles, all of them right", honest

    both = np.intersect1d(log.cell[(log.id == one) & is_articles], log.cell[(log.id == other) & is_articles])
    yield "an article read in two panes, counted in each", showing(right + Ledger(dict.fromkeys(both.tolist(), 1)))

    panes = [
        folded(oracle, in_cells({name: each[pane == n] for name, each in sent.items()}, oracle)) for n in set(pane)
    ]
    yield "articles of panes, added up instead of united", articles(sum(panes[1:], panes[0]))

    in_missing = np.isin(log.id, sent["event_id"][pane == pane[0]])
    newest = in_missing & (oracle.begins_ms(log.cell) == pane[0] * STEP_MS)
    yield "a window without its first pane", showing(folded(oracle, log, ~newest))
    yield "a pane in none of its windows", showing(folded(oracle, log, ~in_missing))

    old = log.time_ms - oracle.begins_ms(log.cell)
    yield "windows of 59 panes", showing(folded(oracle, log, old < LENGTH_MS - STEP_MS))
    yield (
        "windows that slide by two panes",
        showing(Ledger({cell: n for cell, n in right.items() if oracle.codes.field(cell) // STEP_MS % 2 == 0})),
    )
    yield "a window that is not cleared for the next one", articles(_so_far(sent, oracle, log.cell))
    yield "articles by a sketch", articles(Ledger({cell: max(1, n + cell % 3 - 1) for cell, n in right.items()}))


@once
def of_a_week() -> Iterator[tuple[str, RunFacts]]:
    spec = of_question(WEEK, shipped(WEEK).declaration)
    sent = events(spec.tape)
    sent = {**sent, times.OWN: EPOCH_MS + TIMES_AS_LONG * (sent[times.OWN] - EPOCH_MS)}
    honest = honest_run(spec, sent)
    oracle, log, right = honest.oracle, honest.events, honest.log_ledger

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, ()))

    yield "a week, all of it right", honest

    old = log.time_ms - oracle.begins_ms(log.cell)
    yield "reads that left the state a slide early", showing(folded(oracle, log, old >= SLIDE_MS))
    moved = in_cells({**sent, times.OWN: sent[times.OWN] + SLIDE_MS}, oracle)
    after = moved.only((moved.time_ms - oracle.begins_ms(moved.cell) < SLIDE_MS) & np.isin(moved.cell, log.cell))
    yield "reads that left the state a slide late", showing(folded(oracle, LogEvents.joined((log, after))))

    is_open, is_old = log.closes_ms > RESTARTED_MS, log.time_ms < RESTARTED_MS
    yield "a week's state, lost at a restart", showing(folded(oracle, log, ~(is_open & is_old)))
    of_last_slide = is_old & (log.time_ms >= RESTARTED_MS - SLIDE_MS)
    yield "a state of a slide before the restart", showing(folded(oracle, log, ~(is_open & of_last_slide)))
    again = {
        cell: n for cell, n in folded(oracle, log, is_open & of_last_slide).items() if not _is_articles(cell, oracle)
    }
    yield "reads that a restored state has, counted once more", showing(right + Ledger(again))
    parts = (folded(oracle, log, is_open & is_old), folded(oracle, log, is_open & ~is_old))
    both = {cell: sum(part.count(cell) for part in parts) for cell in parts[0] if _is_articles(cell, oracle)}
    yield "articles of a restored state, added to those since", showing(Ledger({**dict(right.items()), **both}))


def _is_articles(cell: int, oracle: Oracle) -> bool:
    return oracle.codes.key(cell) >= oracle.groups


def _read_again(sent: Events) -> tuple[int, int]:
    """Return an event, and the next one of another pane with the same reader and article."""
    seen: dict[tuple[int, int], tuple[int, int]] = {}
    for at in np.argsort(sent[times.OWN]):
        pair = int(sent[READER][at]), int(sent[ARTICLE][at])
        pane, event = int(sent[times.OWN][at]) // STEP_MS, int(sent["event_id"][at])
        before, earlier = seen.setdefault(pair, (pane, event))
        if before != pane:
            return earlier, event
    raise AssertionError("no reader comes back to an article")


def _so_far(sent: Events, oracle: Oracle, cells: Ints) -> Ledger:
    """Count the articles of each reader from the first event to the end of each window."""
    found = {}
    for cell in np.unique(cells).tolist():
        if _is_articles(cell, oracle):
            before = sent[times.OWN] < oracle.codes.field(cell) + LENGTH_MS
            own = sent[READER] == oracle.codes.key(cell) - oracle.groups
            found[cell] = len(set(sent[ARTICLE][before & own].tolist()))
    return Ledger(found)
