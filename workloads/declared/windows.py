"""The length of the windows of a declared question, found by sample events. A job needs it to name windows by their
ends.
"""

from __future__ import annotations

import pyarrow.compute as pc

from workloads.declared.declaration import Declaration
from workloads.declared.oracle import CLOSES, OPENS, Oracle
from workloads.declared.sample import SEED, sample


def length_ms(declared: Declaration) -> int | None:
    """Return the time from `opens` to `closes`; None if it differs, as for sessions, or if there is no such window."""
    question = declared.question
    if question.merge or question.number != OPENS:
        return None
    oracle = Oracle(question, declared.relations(SEED))
    _, events = sample(declared)
    cells = oracle.cells(events)
    if not len(cells):  # what it takes is rare
        _, events = sample(declared, at_once=True)
        cells = oracle.cells(events)
    lengths = pc.unique(pc.subtract(cells.column(CLOSES), cells.column(OPENS))).to_pylist()
    return lengths[0] if len(lengths) == 1 else None
