"""Planted mistakes of a question with an output for each event: orders, each with its user's earlier orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from harness.evidence.ledger import Ledger
from harness.evidence.observed import Observed
from harness.judging.checks.case import RunFacts
from harness.selftest.declared import Events, claims_order, events, honest_run, in_order, of_question, once, swapped
from workloads.base import NULL
from workloads.declared.codec import column_of
from workloads.shipped import shipped

ASKED = of_question("enrichment", shipped("enrichment").declaration)
USER = column_of("user")
LENGTH_MS = 10_000  # length of a window


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    unordered, sent = honest_run(ASKED), events(ASKED.tape)
    oracle, right = unordered.oracle, unordered.log_ledger
    left = in_order(unordered.events, oracle)
    honest = claims_order(unordered, left)
    orders = list(zip(sent["event_id"].tolist(), sent[USER].tolist(), strict=True))
    outputs = {event: oracle.codes.one(user, event) for event, user in orders}
    values = {event: oracle.codes.one(oracle.groups + user, event) for event, user in orders}

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, (), left=left))

    def saying(answers: dict[int, int]) -> RunFacts:
        return showing(Ledger({**right, **{values[event]: answer for event, answer in answers.items()}}))

    answers = answered(sent)
    none = next(event for event in sorted(answers) if answers[event] == NULL)
    some = next(event for event in sorted(answers) if answers[event] != NULL)
    other = next(event for event in sorted(answers) if answers[event] not in (NULL, answers[some]))
    yield "orders, all of them right", saying(answers)
    yield "an order that left twice", showing(right + Ledger({outputs[some]: 1}))
    yield "an order that never left", showing(Ledger({**right, outputs[some]: 0, values[some]: 0}))
    yield "an order with the window before the newest one", saying(answered(sent, behind_ms=LENGTH_MS))
    yield "an order with the window in which it lies itself", saying(answered(sent, behind_ms=-LENGTH_MS))
    yield "an order with what another user had", saying({some: answers[other], other: answers[some]})
    yield "an order with null, where there was something", saying({some: NULL})
    yield "an order with 0, where there was nothing", saying({none: 0})
    disordered = swapped(honest, key=oracle.codes.key(next(iter(left))))
    yield "a user's orders in another order", disordered
    yield "the same, where no order is claimed", replace(disordered, in_order=False)
    yield "a claim of order, and nothing that tells of it", replace(honest, observed=Observed(right, ()))


def answered(sent: Events, *, behind_ms: int = 0) -> dict[int, int]:
    """Return the answer to each order, computed in a plain way. With `behind_ms` as if the order were that much
    earlier.
    """
    rows = list(zip(*(sent[name].tolist() for name in ("event_id", USER, "event_time_ms")), strict=True))
    orders = Counter((user, time_ms // LENGTH_MS) for _, user, time_ms in rows)
    answers = {}
    for event, user, time_ms in rows:
        over = (time_ms - behind_ms) // LENGTH_MS
        windows = [window for each, window in orders if each == user and window < over]
        answers[event] = orders[user, max(windows)] if windows else NULL
    return answers
