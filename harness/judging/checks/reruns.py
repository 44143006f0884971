"""Explain wrong counts by batches that ran, were forgotten, and ran again.

If a checkpoint is edited while the engine is down, it no longer contains some batches whose results were written. A
sink that only adds counts them twice. A sink with a fence by batch number takes the new run of a number for the old one
and skips it, including events that only the new run has. Our sink keeps a number per key, so that it skips nothing
of a key in which the old run wrote nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness.evidence.ledger import Difference, Ledger
from harness.judging.checks.case import RunFacts
from harness.judging.lateness import in_run
from harness.model import EarlierRun


def counted_twice(case: RunFacts, over: list[Difference]) -> str:
    """Return the runs whose events are exactly the surplus; "" if there are none."""
    surplus = Ledger((d.cell, d.surplus) for d in over)
    for runs in _stretches(case):
        if _is(case, _in_any(case, runs), surplus):
            return f"exactly {_name(runs)} once more: the checkpoint had lost that run"
    return ""


def skipped(case: RunFacts, short: list[Difference]) -> str:
    """Return the runs whose repetition had further events that are exactly the missing ones; "" if there are none."""
    missing = Ledger((d.cell, -d.surplus) for d in short)
    for runs in _stretches(case):
        again = (case.batch >= runs[0].batch) & (case.batch <= runs[-1].batch)
        first = _in_any(case, runs)
        keys = case.oracle.codes.keys(case.events.cell)
        fenced = np.isin(keys, np.unique(keys[first & ~case.dropped]))
        for where, skips in (("", True), (" in campaigns of its first run", fenced)):
            if _is(case, again & ~first & skips, missing):
                more = f"exactly what {_name(runs)} had more{where} when planned anew"
                return f"{more}: the checkpoint had lost the first run"
    return ""


def _stretches(case: RunFacts) -> Iterator[list[EarlierRun]]:
    """Yield all runs of successive batches that were forgotten at the same start."""
    earlier = case.batch_log.earlier if case.batch_log else ()
    for start in sorted({run.start for run in earlier}):
        runs = sorted((run for run in earlier if run.start == start), key=lambda run: run.batch)
        for first in range(len(runs)):
            for last in range(first, len(runs)):
                if runs[last].batch - runs[first].batch == last - first:
                    yield runs[first : last + 1]


def _in_any(case: RunFacts, runs: list[EarlierRun]) -> NDArray[np.bool_]:
    result = np.zeros(len(case.events), dtype=np.bool_)
    for run in runs:
        result |= in_run(case.events, run)
    return result


def _is(case: RunFacts, rows: NDArray[np.bool_], ledger: Ledger) -> bool:
    """Return True if these events, without late ones, are exactly those counts."""
    rows = rows & ~case.dropped
    if rows.sum() != ledger.total:  # a fast test that excludes most
        return False
    return case.fold(rows) == ledger


def _name(runs: list[EarlierRun]) -> str:
    first, last = runs[0].batch, runs[-1].batch
    return f"batch {first}" if first == last else f"batches {first} to {last}"
