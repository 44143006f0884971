"""Torn: if the sink claims it, a reader sees the outputs of a batch all at once, or none of them.

Each poll reads one version of the table. So all events of a batch must be seen for the first time by the same poll,
which may show several batches. Only events with one record are compared: of two records it is unknown which one a row
is from. A batch that was planned anew is left out, because its events belonged to another batch before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from harness.evidence.observed import NO_BATCH, Watched
from harness.judging.checks.case import EXAMPLES, Ints, RunFacts, failed, first_rows, nobody_looked
from harness.judging.checks.kinds import COUNTS
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many
from workloads.base import Kind

NAME = "torn"


def check(case: RunFacts) -> CheckResult:
    if not case.whole_batches:
        return CheckResult(NAME, Outcome.PASS, f"this sink does not claim whole batches{_beside(case)}", asked=False)
    if case.watched is None:
        return nobody_looked(NAME, case)
    shown = _shown(case, case.watched)
    if not shown:
        sentence = (
            "it is unknown which outputs are of one batch. whole_batches = true in the manifest is only for outputs of "
            "events by an engine whose batches are known"
        )
        return CheckResult(NAME, Outcome.UNKNOWN, sentence, word="no batches", blame="evidence")
    torn = [each for each in shown if each.is_torn]
    if not torn:
        events = many(sum(len(each.cell) for each in shown), "event")
        whole = f"each of {many(len(shown), 'batch', 'batches')} was seen whole, {events}"
        return CheckResult(NAME, Outcome.PASS, whole)
    sentence = f"{_parts(torn, shown)}, the first one is {torn[0].batch}"
    return failed(NAME, sentence, len(torn), (_witness(case, each) for each in torn[:EXAMPLES]), "half a batch")


class Shown(NamedTuple):
    """A batch as a reader saw it: the cells of its events, and the poll that first showed each, in order of polls."""

    batch: int
    cell: Ints
    at_us: Ints

    @property
    def is_torn(self) -> bool:
        return bool(self.at_us[0] != self.at_us[-1])


def _beside(case: RunFacts) -> str:
    shown = _shown(case, case.watched) if case.watched else []
    torn = [each for each in shown if each.is_torn]
    return f"; {_parts(torn, shown)}" if torn else ""


def _parts(torn: Sequence[Shown], shown: Sequence[Shown]) -> str:
    return f"a reader saw a part of {many(len(torn), 'batch', 'batches')} of {len(shown):,} before the rest"


def _shown(case: RunFacts, seen: Watched) -> list[Shown]:
    """Final outputs are left out: they do not come with the batch that read their events."""
    if case.final or all(value.kind is not Kind.PER_EVENT for value in case.oracle.values):
        return []
    rows = np.flatnonzero(case.are(case.events.cell, COUNTS) & ~case.dropped & (case.batch != NO_BATCH))
    rows = rows[~np.isin(case.batch[rows], [*_planned_anew(case)])]
    cells, first, times = np.unique(case.events.cell[rows], return_index=True, return_counts=True)
    known, batch = cells[times == 1], case.batch[rows[first[times == 1]]]
    there = np.flatnonzero(seen.count > 0)
    there = there[first_rows(seen.cell[there])]
    there = there[np.isin(seen.cell[there], known)]
    batch = batch[np.searchsorted(known, seen.cell[there])]
    order = np.lexsort((seen.at_us[there], batch))
    batch, there = batch[order], there[order]
    begins = np.flatnonzero(np.diff(batch, prepend=-1))
    parts = np.split(there, begins[1:]) if len(there) else []
    return [
        Shown(int(batch[begin]), seen.cell[part], seen.at_us[part]) for begin, part in zip(begins, parts, strict=True)
    ]


def _planned_anew(case: RunFacts) -> Iterator[int]:
    """Yield the batches from the first one on that the checkpoint had lost."""
    earlier = case.batch_log.earlier if case.batch_log else ()
    if earlier:
        yield from range(min(run.batch for run in earlier), int(case.batch.max(initial=0)) + 1)


def _witness(case: RunFacts, shown: Shown) -> Witness:
    first_us, last_us = int(shown.at_us[0]), int(shown.at_us[-1])
    rest = shown.cell[shown.at_us > first_us]
    return Witness(
        cell=f"batch {shown.batch}",
        expected=f"all {many(len(shown.cell), 'event')} at once",
        seen=f"{len(shown.cell) - len(rest):,} of them first",
        detail=f"the last {(last_us - first_us) / 1e6:.2f} s later, the first {case.when(first_us)}",
        event_ids=tuple(f"{case.oracle.codes.field(int(each)):012x}" for each in rest[:EXAMPLES]),
        batches=(shown.batch,),
        from_ms=first_us // 1000,
        until_ms=last_us // 1000,
    )
