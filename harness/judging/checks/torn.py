"""Torn: if the sink claims it, a reader sees the outputs of a batch all at once, or none of them.

Each poll reads one version of the table. So all events of a batch must be seen for the first time by the same poll,
which may show several batches. Only events with one record are compared: of two records it is unknown which one a row
is from. A batch that was planned anew is left out, because its events belonged to another batch before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.evidence.observed import NO_BATCH, Watched
from harness.judging.checks.case import EXAMPLES, Ints, RunFacts, failed, first_rows, nobody_looked
from harness.judging.checks.kinds import COUNTS
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many

NAME = "torn"


def check(case: RunFacts) -> CheckResult:
    if not case.whole_batches:
        return CheckResult(NAME, Outcome.PASS, "this sink does not claim that batches are seen whole", asked=False)
    if case.watched is None:
        return nobody_looked(NAME, case)
    batch, cell, at_us = _seen(case, case.watched)
    if not len(batch):
        sentence = (
            "it is unknown which outputs are of one batch. whole_batches = true in the manifest is only for outputs of "
            "events by an engine whose batches are known"
        )
        return CheckResult(NAME, Outcome.UNKNOWN, sentence, word="no batches", blame="evidence")
    batches, first = np.unique(batch, return_index=True)
    ends = np.append(first[1:], len(batch))
    torn = [slice(begin, end) for begin, end in zip(first, ends, strict=True) if at_us[begin] != at_us[end - 1]]
    if not torn:
        sentence = f"each of {many(len(batches), 'batch', 'batches')} was seen whole, {many(len(batch), 'event')}"
        return CheckResult(NAME, Outcome.PASS, sentence)
    sentence = (
        f"a reader saw a part of {many(len(torn), 'batch', 'batches')} of {len(batches):,} before the rest, "
        f"the first one is {batch[torn[0].start]}"
    )
    witnesses = (_witness(case, batch[each], cell[each], at_us[each]) for each in torn[:EXAMPLES])
    return failed(NAME, sentence, len(torn), witnesses, "half a batch")


def _seen(case: RunFacts, seen: Watched) -> tuple[Ints, Ints, Ints]:
    """Return batch, cell and first poll of each event that was seen, by batch and then by poll."""
    rows = np.flatnonzero(case.are(case.events.cell, COUNTS) & ~case.dropped & (case.batch != NO_BATCH))
    rows = rows[~np.isin(case.batch[rows], [*_planned_anew(case)])]
    cells, first, times = np.unique(case.events.cell[rows], return_index=True, return_counts=True)
    known = cells[times == 1]
    batch = case.batch[rows[first[times == 1]]]
    shown = np.flatnonzero(seen.count > 0)
    shown = shown[first_rows(seen.cell[shown])]
    shown = shown[np.isin(seen.cell[shown], known)]
    of_cell = np.searchsorted(known, seen.cell[shown])
    order = np.lexsort((seen.at_us[shown], batch[of_cell]))
    return batch[of_cell][order].astype(np.int64), seen.cell[shown][order], seen.at_us[shown][order]


def _planned_anew(case: RunFacts) -> Iterator[int]:
    """Yield the batches from the first one on that the checkpoint had lost."""
    earlier = case.batch_log.earlier if case.batch_log else ()
    if earlier:
        yield from range(min(run.batch for run in earlier), int(case.batch.max(initial=0)) + 1)


def _witness(case: RunFacts, batch: Ints, cell: Ints, at_us: Ints) -> Witness:
    last_us = int(at_us[-1])
    early = int(np.count_nonzero(at_us < last_us))
    return Witness(
        cell=f"batch {batch[0]}",
        expected=f"all {many(len(batch), 'event')} at once",
        seen=f"{early:,} of them first",
        detail=f"the rest {(last_us - int(at_us[0])) / 1e6:.2f} s after the first, which came "
        f"{case.when(int(at_us[0]))}",
        event_ids=tuple(f"{case.oracle.codes.field(int(each)):012x}" for each in cell[at_us == last_us][:EXAMPLES]),
        batches=(int(batch[0]),),
        from_ms=int(at_us[0]) // 1000,
        until_ms=last_us // 1000,
    )
