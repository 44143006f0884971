"""How many events an experiment sends. The judge has a row for each event and each cell that it belongs to, so a
question whose events belong to many windows gets a smaller load.
"""

from __future__ import annotations

import numpy as np

from generators.tape import Tape
from harness.model import RunSpec
from workloads.registry import codec_of, oracle_of

TRIED = 1_000  # events
USUAL_CELLS = 3  # of an event; loads are made for so many


def cells_of_an_event(spec: RunSpec) -> float:
    """Return the mean number of cells for each value of the question, from the first events of the tape."""
    tape, oracle = Tape(spec.tape), oracle_of(spec)
    block = tape.events(0, np.arange(min(TRIED, tape.server_total(0)), dtype=np.int64))
    counted = codec_of(spec.tape).counts(block.content)
    events = {"event_id": block.id.astype(np.int64), "event_time_ms": block.event_time_rel_ms, **block.content}
    places = oracle.places({name: column[counted] for name, column in events.items()})
    return len(places.row) / len(oracle.values) / len(block)


def share(spec: RunSpec) -> float:
    """Return the share of the usual events that an experiment of this question sends; 1 for most questions."""
    return min(1.0, USUAL_CELLS / max(cells_of_an_event(spec), 1.0))
