"""Measure the state of a long window before and after each fault: its size, and the cost of its checkpoints. Pure.

It is measured where a scenario requires a full window in the state. An engine reports its state with each batch, or
with each checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from harness.judging.progress_curve import progress_lines
from harness.judging.stored_run import StoredRun
from harness.measuring.growth import commit_of, known_of
from harness.measuring.measurement import Commit, StatePart, WindowState
from harness.model import Checkpoint

WHOLE = "in the load"


def of_run(run: StoredRun) -> WindowState | None:
    """Measure the state; None if the scenario does not require a full window, or the engine does not report it."""
    if "full-window" not in run.spec.requires:
        return None
    told = [commit_of(line, run.epoch_ms) for line in progress_lines(run.store) if line.state_bytes or line.state_cells]
    checkpoints = [of_checkpoint(each, run.epoch_ms) for each in run.checkpoints if not each.failed]
    strikes = [(each.spec.text, (each.at_ms - run.epoch_ms) / 1000) for each in run.faults if each.landed]
    return parted(told or checkpoints, strikes, _closed_s(run))


def _closed_s(run: StoredRun) -> float:
    """Return when the closing events were sent, which empty the state. An engine may have come back after the load."""
    loaded_ms = next((entry["at_ms"] for entry in run.store.history("loaded")), 0)
    closing_ms = (entry["at_ms"] for entry in run.store.history("marks") if entry["at_ms"] > loaded_ms > 0)
    return (next(closing_ms, run.epoch_ms + run.spec.tape.load_ms) - run.epoch_ms) / 1000


def of_checkpoint(told: Checkpoint, epoch_ms: int) -> Commit:
    """The state of an engine that reports checkpoints is in them, as a whole."""
    at_s = (told.at_ms + told.took_ms - epoch_ms) / 1000
    return Commit(at_s, 0, told.size_bytes, None, told.took_ms, told.written_bytes)


def parted(commits: Sequence[Commit], strikes: Sequence[tuple[str, float]], until_s: float) -> WindowState | None:
    """Split the commits since the load start by the faults, each with its name and when it struck."""
    during = tuple(sorted((each for each in commits if 0 <= each.at_s <= until_s), key=lambda each: each.at_s))
    return WindowState(during, tuple(_parts(during, strikes, until_s))) if during else None


def _parts(during: Sequence[Commit], strikes: Sequence[tuple[str, float]], end_s: float) -> Iterator[StatePart]:
    """A size is that of the last commit before the first fault, and of the first one after each fault."""
    ends_s = [0.0, *(at_s for _, at_s in strikes), end_s]
    names = [f"before {strikes[0][0]}" if strikes else WHOLE, *(f"after {name}" for name, _ in strikes)]
    for number, (name, (from_s, until_s)) in enumerate(zip(names, pairwise(ends_s), strict=True)):
        own = [each for each in during if from_s <= each.at_s < until_s or each.at_s == until_s == end_s]
        nearest = own[:1] if number else own[-1:]
        yield StatePart(
            name=name,
            commits=len(own),
            cells=nearest[0].cells or None if nearest else None,
            state_bytes=nearest[0].state_bytes if nearest else None,
            took_ms=known_of([each.took_ms for each in own], median),
            written_bytes=known_of([each.written_bytes for each in own], median),
        )
