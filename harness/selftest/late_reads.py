"""Planted mistakes of late policies: a read is in the first result, in a correction, in the side output, or dropped.

The engine names each late read with its watermark. So it is known to the read in which of these it has to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from harness.evidence.ledger import Ledger
from harness.evidence.observed import NamedLate, Observed
from harness.judging.checks.case import RunFacts
from harness.selftest.declared import Names, events, of_question, once, run_with_old, with_watermarks
from harness.util.seeded_draws import Lane, between
from workloads.base import Ints, Mask
from workloads.registry import results_of
from workloads.shipped import shipped

ASKED = of_question("readers_late", shipped("readers_late").declaration)
EACH_OLD = 10
OLDEST_MS = 60_000
FAR_MS = 1 << 50  # a watermark that no event can have set


def run_of(names: Names) -> RunFacts:
    """Return a run with reads up to a minute late."""
    ids = events(ASKED.tape)["event_id"]
    behind_ms = between(Lane.of(1, "late reads").at(ids), ASKED.watermark_ms, OLDEST_MS)
    return run_with_old(ASKED, np.where(ids % EACH_OLD == EACH_OLD - 1, behind_ms, 0), names)


def part_of(case: RunFacts, policy: str) -> Mask:
    """Select the events in the cells of a policy, such as `again:all`."""
    keys = results_of(ASKED.tape).keys
    own = [number for number, key in enumerate(keys) if key.startswith(f"reads:{policy}:")]
    return np.isin(case.oracle.codes.keys(case.events.cell), own)


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    honest = run_of(lambda record, _, watermark_ms: with_watermarks(record, watermark_ms))
    right, log = honest.observed.counts, honest.events
    first, again, aside = (part_of(honest, policy) for policy in ("again:first", "again:all", "aside:all"))
    is_late = np.isin(log.record, log.record[honest.dropped])
    corrects, is_put_aside = again & is_late & ~honest.dropped, aside & is_late
    one = np.flatnonzero(corrects)[0]
    second_half = log.time_ms > np.median(log.time_ms)

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, ()))

    def without(rows: Mask) -> RunFacts:
        return showing(right - honest.fold(rows))

    yield "late reads, each in its class", honest
    both = aside & (log.record == log.record[(first & ~honest.dropped)][0])
    yield "a read in the first result and in the side output", showing(right + honest.fold(both))
    twice = again & (log.record == log.record[one])
    yield "a read in two corrections", showing(right + honest.fold(twice))
    yield "a correction that is lost", without(twice)
    corrected = {cell: honest.fold(corrects).count(cell) for cell in honest.fold(corrects)}
    yield "corrections that replace the result instead of adding to it", showing(Ledger({**right, **corrected}))
    yield "corrections that add the whole result again", showing(_added_again(honest, corrected))
    yield "a side output that is lost after a restart", without(is_put_aside & second_half)
    yield "a side output that leaves twice after a restart", showing(right + honest.fold(is_put_aside & second_half))
    late = first & honest.dropped & np.isin(log.cell, right.cells)  # others were there in time
    yield "a late read in the first result", showing(right + honest.fold(late & (log.record == log.record[late][0])))
    in_time = first & ~honest.dropped
    early = in_time & (log.record == log.record[in_time][-1])
    yield "a read in the side output that was in time", without(early)
    yield "late reads dropped that could still correct", without(corrects)
    yield "a read that is lost, and named with a watermark that nothing has set", _excused(honest)


def _added_again(honest: RunFacts, corrected: Mapping[int, int]) -> Ledger:
    """A correction gives the whole result, and a sink adds it to the one before."""
    whole = honest.observed.counts
    return whole + Ledger({cell: whole.count(cell) - late for cell, late in corrected.items()})


def _excused(honest: RunFacts) -> RunFacts:
    """The read is in no result, and its name says that it was too late for each."""
    lost = honest.events.record[honest.dropped][0]

    def names(record: Ints, _: Ints, watermark_ms: Ints) -> NamedLate:
        return with_watermarks(record, np.where(record == lost, FAR_MS, watermark_ms))

    shown = honest.observed.counts - honest.fold((honest.events.record == lost) & ~honest.dropped)
    return replace(run_of(names), observed=Observed(shown, ()))
