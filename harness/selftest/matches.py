"""Planted mistakes of a question with matches: a small payment, then a large one of the same card."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from harness.evidence.ledger import Expectation, Ledger
from harness.evidence.observed import Observed, folded
from harness.judging.checks.case import RunFacts
from harness.selftest.by_hand import changed
from harness.selftest.declared import Events, claims_order, events, honest_run, of_question, once, swapped
from harness.selftest.pattern_model import Payment, matches
from workloads.declared.codec import column_of
from workloads.shipped import shipped

ASKED = of_question("pattern", shipped("pattern").declaration)
CARD, AMOUNT = column_of("card"), column_of("amount")
CARDS = 2  # few, so that payments of a card follow each other soon
WITHIN_MS = 1_000
NEVER_MS = 1 << 40
CENTS_BELOW, CENTS_FROM = 50_00, 400_00  # small, large


def payments() -> Events:
    sent = events(ASKED.tape)
    return {**sent, CARD: sent[CARD] % CARDS}


def of_cards(sent: Events, *, time: str = "event_time_ms") -> dict[int, list[Payment]]:
    """Return the small and large payments of each card."""
    found = defaultdict(list)
    columns = (sent[name].tolist() for name in (CARD, time, "event_id", AMOUNT))
    for card, at_ms, event, cents in zip(*columns, strict=True):
        if cents < CENTS_BELOW or cents >= CENTS_FROM:
            found[card].append((at_ms, event, cents < CENTS_BELOW))
    return found


def matched(cards: Iterable[list[Payment]], within_ms: int = WITHIN_MS) -> dict[int, int]:
    """Return all matches by the model."""
    return {last: first for card in cards for last, first in matches(card, within_ms).items()}


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    sent = payments()
    unordered, cards = honest_run(ASKED, sent), of_cards(sent)
    oracle, right = unordered.oracle, unordered.log_ledger
    log = unordered.events
    card_of = dict(zip(sent["event_id"].tolist(), sent[CARD].tolist(), strict=True))
    answers = matched(cards.values())

    def code(value: int, event: int) -> int:
        return oracle.codes.one(value * oracle.groups + card_of[event], event)

    left = {code(0, event): position for position, event in enumerate(sorted(answers))}  # a later event has a larger id
    honest = claims_order(unordered, left)

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, (), left=left))

    def saying(found: Mapping[int, int]) -> RunFacts:
        """Return the run with these matches: the small payment of each by its large one."""
        outputs = {code(0, event): 1 for event in found}
        return showing(Ledger({**outputs, **{code(1, event): first for event, first in found.items()}}))

    some, *_, late_one = sorted(answers)
    yield "matches, all of them right", saying(answers)
    yield "a match across a restart, counted twice", showing(right + Ledger({code(0, some): 1}))
    yield "a match that was lost", saying({last: first for last, first in answers.items() if last != some})
    yield (
        "matches of all cards from a restart on, lost with the small payments that waited",
        saying({last: first for last, first in answers.items() if not first < some <= last}),
    )
    yield (
        "a match with the small payment before the newest one",
        saying({**answers, late_one: _older(cards[card_of[late_one]], answers[late_one])}),
    )
    yield "a match that names its large payment twice", saying({**answers, some: some})
    yield "matches over the bound", saying(matched(cards.values(), WITHIN_MS + 300))
    yield "matches without a bound", saying(matched(cards.values(), NEVER_MS))
    yield "a small payment that two large ones match", saying({**_of_any_small(cards.values()), **answers})
    arrived = {**sent, "arrives_ms": sent["event_time_ms"] + sent["event_id"] * 7919 % 3_000}
    yield "matches in the order of arrival", saying(matched(of_cards(arrived, time="arrives_ms").values()))
    yield "a card's matches in another order", swapped(honest, key=card_of[some])

    late = np.isin(log.id, [answers[some], late_one])
    kept = folded(oracle, log, ~late)
    drops = changed(
        honest,
        permitted=late,
        dropped=late,
        drops_late=True,
        exact=True,
        in_order=False,
        spec=replace(honest.spec, late_dropped_max=2),
        expectation=Expectation(kept, kept),
        observed=Observed(kept, ()),
    )
    yield "matches of an engine that names what it dropped", drops
    yield "the same, and a match of a payment that it dropped", replace(drops, observed=Observed(right, ()))
    yield (
        "matches of an engine that does not name what it dropped",
        changed(drops, dropped=np.zeros(len(log), dtype=np.bool_), exact=False),
    )


def _older(card: list[Payment], small: int) -> int:
    """Return the small payment before this one."""
    before = [event for _, event, is_small in sorted(card) if is_small and event < small]
    return before[-1]


def _of_any_small(cards: Iterable[list[Payment]]) -> dict[int, int]:
    """Return the matches if a small payment goes on waiting after a match."""
    return {
        last: first
        for card in cards
        for small_at, first, is_small in card
        for at_ms, last, is_too in card
        if is_small and not is_too and 0 < at_ms - small_at < WITHIN_MS
    }
