"""Planted mistakes of `readers_join`: reads, each with the different articles of its reader in the last minute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from harness.evidence.ledger import Ledger
from harness.evidence.observed import Observed
from harness.judging.checks.case import RunFacts
from harness.selftest.declared import Events, claims_order, events, honest_run, in_order, of_question, once, swapped
from workloads.declared.codec import column_of
from workloads.shipped import shipped

ASKED = of_question("readers_join", shipped("readers_join").declaration)
READER, ARTICLE = column_of("reader"), column_of("article")
READERS = 3  # few, so that each reads articles again
LENGTH_MS, STEP_MS = 60_000, 1_000
WINDOWS = LENGTH_MS // STEP_MS  # that hold a read


def reads() -> Events:
    sent = events(ASKED.tape)
    return {**sent, READER: sent[READER] % READERS + 1}


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    sent = reads()
    unordered = honest_run(ASKED, sent)
    oracle, right = unordered.oracle, unordered.log_ledger
    left = in_order(unordered.events, oracle)
    honest = claims_order(unordered, left)
    of = list(zip(sent["event_id"].tolist(), sent[READER].tolist(), strict=True))
    outputs = {event: oracle.codes.one(reader, event) for event, reader in of}
    values = {event: oracle.codes.one(oracle.groups + reader, event) for event, reader in of}

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, (), left=left))

    def saying(answers: dict[int, int]) -> RunFacts:
        return showing(Ledger({**right, **{values[event]: answer for event, answer in answers.items()}}))

    middle, _ = of[len(of) // 2]
    yield "reads, all of them right", saying(joined(sent))
    every = Ledger(dict.fromkeys(outputs.values(), WINDOWS - 1))
    yield "a read that left with each window that holds it", showing(right + every)
    yield "a read that left again after a restart", showing(right + Ledger({outputs[middle]: 1}))
    yield "a read that never left", showing(Ledger({**right, outputs[middle]: 0, values[middle]: 0}))
    yield "reads with the window before", saying(joined(sent, ends_ms=-STEP_MS))
    yield "reads with the newest window that holds them", saying(joined(sent, ends_ms=LENGTH_MS - STEP_MS))
    yield "reads with what was read by their own time", saying(joined(sent, whole_seconds=False))
    yield "reads with what was read in half a minute", saying(joined(sent, length_ms=LENGTH_MS // 2))
    yield "a reader's reads in another order", swapped(honest, key=1)


def joined(sent: Events, *, ends_ms: int = 0, length_ms: int = LENGTH_MS, whole_seconds: bool = True) -> dict[int, int]:
    """Return the articles for each read in a plain way, of the window that ends `ends_ms` after the right one."""
    rows = list(zip(*(sent[name].tolist() for name in ("event_id", READER, ARTICLE, "event_time_ms")), strict=True))
    of_reader = defaultdict(list)
    for _, reader, article, read_at in rows:
        of_reader[reader].append((read_at, article))
    found = {}
    for event, reader, _, read_at in rows:
        ends = (read_at // STEP_MS + 1) * STEP_MS + ends_ms if whole_seconds else read_at + 1
        found[event] = len({article for at, article in of_reader[reader] if ends - length_ms <= at < ends})
    return found
