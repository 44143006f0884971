"""The rows that the judge holds: one for each event, each cell that it belongs to, and each value of the question.

An event of a question with overlapping windows has many. So experiments of such a question send fewer events, and a run
whose rows exceed the memory is refused.
"""

from __future__ import annotations

import numpy as np

from generators.schedule import Schedule
from generators.tape import Tape
from harness.model import HarnessError, RunSpec
from workloads.base import Places
from workloads.registry import codec_of, oracle_of

TRIED = 1_000  # events
USUAL_CELLS = 3  # of an event; loads are made for so many
ROW_BYTES = 150  # measured with 7 and with 36 million rows (docs/test/readers.md)
GB = 1_000_000_000


def first_places(spec: RunSpec) -> tuple[Places, int]:
    """Return the cells of the first events of the tape, and the number of these events."""
    tape = Tape(spec.tape)
    block = tape.events(0, np.arange(min(TRIED, tape.server_total(0)), dtype=np.int64))
    counted = codec_of(spec.tape).counts(block.content)
    events = {"event_id": block.id.astype(np.int64), "event_time_ms": block.event_time_rel_ms, **block.content}
    return oracle_of(spec).places({name: column[counted] for name, column in events.items()}), len(block)


def cells_of_an_event(spec: RunSpec) -> float:
    """Return the mean number of cells for each value of the question."""
    places, events = first_places(spec)
    return len(places.row) / len(oracle_of(spec).values) / max(events, 1)


def share(spec: RunSpec) -> float:
    """Return the share of the usual events that an experiment of this question sends; 1 for most questions."""
    return min(1.0, USUAL_CELLS / max(cells_of_an_event(spec), 1.0))


def most_events(spec: RunSpec, granted_bytes: int) -> int | None:
    """Return how many events of a declared question fit into the memory; None: its rows are not held."""
    return int(granted_bytes / _event_bytes(spec)) if spec.tape.declaration else None


def _event_bytes(spec: RunSpec) -> float:
    return cells_of_an_event(spec) * len(oracle_of(spec).values) * ROW_BYTES


def refuse_too_many(spec: RunSpec, granted_bytes: int) -> None:
    """Raise if a declared question has more rows than fit into the memory, before anything is started."""
    most, events = most_events(spec, granted_bytes), Schedule(spec.tape).total
    if most is not None and events > most:
        raise HarnessError(
            f"The judge of this run would need about {events * _event_bytes(spec) / GB:,.0f} GB of memory, and "
            f"{granted_bytes / GB:,.0f} GB are granted here: of {events:,} events each belongs to "
            f"{cells_of_an_event(spec):,.0f} cells, with {len(oracle_of(spec).values)} values each. Send at most "
            f"{most:,} events: lower --rate or --duration."
        )
