"""The rows that the judge holds: one for each event, each cell that it belongs to, and each value of the question.

An event of a question with overlapping windows has many. So experiments of such a question send fewer events, and a run
whose rows exceed the memory is refused.
"""

from __future__ import annotations

import numpy as np

from generators.schedule import Schedule
from generators.tape import Tape
from harness.model import HarnessError, RunSpec
from workloads.registry import codec_of, oracle_of

TRIED = 1_000  # events
USUAL_CELLS = 3  # of an event; loads are made for so many
ROW_BYTES = 150  # measured with 7 and with 36 million rows (docs/test/readers.md)
GB = 1_000_000_000


def cells_of_an_event(spec: RunSpec) -> float:
    """Return the mean number of cells for each value of the question, from the first events of the tape."""
    tape, oracle = Tape(spec.tape), oracle_of(spec)
    block = tape.events(0, np.arange(min(TRIED, tape.server_total(0)), dtype=np.int64))
    counted = codec_of(spec.tape).counts(block.content)
    events = {"event_id": block.id.astype(np.int64), "event_time_ms": block.event_time_rel_ms, **block.content}
    places = oracle.places({name: column[counted] for name, column in events.items()})
    return len(places.row) / len(oracle.values) / max(len(block), 1)


def share(spec: RunSpec) -> float:
    """Return the share of the usual events that an experiment of this question sends; 1 for most questions."""
    return min(1.0, USUAL_CELLS / max(cells_of_an_event(spec), 1.0))


def refuse_too_many(spec: RunSpec, granted_bytes: int) -> None:
    """Raise if a declared question has more rows than fit into the memory, before anything is started."""
    if not spec.tape.declaration:
        return
    events, cells, values = Schedule(spec.tape).total, cells_of_an_event(spec), len(oracle_of(spec).values)
    event_bytes = cells * values * ROW_BYTES
    if events * event_bytes > granted_bytes:
        raise HarnessError(
            f"The judge of this run would need about {events * event_bytes / GB:,.0f} GB of memory, and "
            f"{granted_bytes / GB:,.0f} GB are granted here: of {events:,} events each belongs to {cells:,.0f} cells, "
            f"with {values} values each. Send at most {int(granted_bytes / event_bytes):,} events: lower --rate or "
            f"--duration."
        )
