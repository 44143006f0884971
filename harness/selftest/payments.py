"""Planted mistakes of a shop's question: payments of a merchant in a window, and their sum, which refunds reduce.

It is the question of docs/test/own-question.md, with few merchants and short windows. A mistake is made in the events,
as by an engine, and the results are folded from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.evidence.ledger import Expectation
from harness.evidence.observed import LogEvents, Observed, folded
from harness.judging.checks.case import RunFacts
from harness.selftest.by_hand import judged
from harness.selftest.declared import EVENTS, Events, events, honest_run, in_cells, of_question, once
from workloads.base import Oracle
from workloads.declared.codec import column_of

DECLARED = """
id = "payments"
asks = "payments and cents of each merchant in windows of ten seconds"

[event.fields]
merchant = { kind = "choice", values = ["bakery", "garage", "kiosk"] }
cents = { kind = "integer", from = -4_000, to = 40_000 }
paid_at = { kind = "time" }

[oracle]
keys = ["merchant", "opens"]
step_ms = 10_000
cells = "SELECT event, merchant, tumbling(paid_at, 10000) AS opens, opens + 10000 AS closes, cents FROM events"
fold = '''
SELECT merchant, opens, count(*) AS payments, CAST(sum(cents) AS BIGINT) AS cents FROM cells GROUP BY merchant, opens
'''

[oracle.values]
payments = "count"
cents = "sum"
"""
SEALED = json.dumps({"text": DECLARED, "schema": None})
ASKED = of_question("payments", SEALED)
CENTS = column_of("cents")


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    honest, sent = honest_run(ASKED), events(ASKED.tape)
    oracle, log = honest.oracle, honest.events
    refunds = np.flatnonzero(sent[CENTS] < 0)
    first, all_rows = int(refunds[len(refunds) // 2]), np.arange(EVENTS)

    def showing(counted: Events) -> RunFacts:
        return replace(honest, observed=Observed(folded(oracle, in_cells(counted, oracle)), ()))

    def of(rows: np.ndarray) -> Events:
        return {name: column[rows] for name, column in sent.items()}

    yield "payments, all of them right", honest
    yield "a refund lost", showing(of(all_rows[all_rows != first]))
    yield "all refunds lost", showing(of(np.flatnonzero(sent[CENTS] >= 0)))
    yield "a refund that adds", showing({**sent, CENTS: np.where(all_rows == first, -sent[CENTS], sent[CENTS])})
    even = {**sent, CENTS: _refunded(sent, log, oracle)}
    paid_back = in_cells(even, oracle)
    said = folded(oracle, paid_back)
    nothing = tuple(sorted({*paid_back.cell.tolist()} - {*said}))
    expected = Expectation(said, said)
    evened = replace(honest, judged=judged(paid_back), tape_ledger=said, log_ledger=said, expectation=expected)
    yield "payments that are all paid back", replace(evened, observed=Observed(said, (), zeros=nothing))
    yield "the same, and no sum of them", replace(evened, observed=Observed(said, ()))
    yield "a refund twice", showing(of(np.sort(np.append(all_rows, first))))


def _refunded(sent: Events, log: LogEvents, oracle: Oracle) -> NDArray[np.int64]:
    """Return the cents of all payments, with the last one of one cell changed so that the sum is 0."""
    cents, cell = sent[CENTS].copy(), log.cell[oracle.codes.keys(log.cell) >= oracle.groups]
    rows = np.flatnonzero(cell == cell[0])
    cents[rows[-1]] = -cents[rows[:-1]].sum()
    return np.asarray(cents, dtype=np.int64)
