"""Measure the growth of an engine's state while nothing is evicted, and the cost of its checkpoints. Pure.

The figures are shown against the number of cells in the state, not against time, because the cost of a commit depends
on its size. The engine reports them per batch, once the batch's state is in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from statistics import median

from harness.judging.progress_curve import progress_lines
from harness.judging.stored_run import StoredRun
from harness.measuring.measurement import Commit, Growth, GrowthStep
from harness.model import Progress, RunSpec

STEPS = 5
# A load of only one or two windows fills a state, but does not grow it.
FEWEST_WINDOWS = 5


def of_run(run: StoredRun) -> Growth | None:
    """Measure the growth; None if it can't be measured.

    That is so if state is evicted during the load, if the load is only a few windows long, or if the engine does not
    report the state's size.
    """
    if not keeps_all(run.spec) or run.spec.tape.load_ms < FEWEST_WINDOWS * run.spec.window_ms:
        return None
    return grown(progress_lines(run.store), run.epoch_ms)


def keeps_all(spec: RunSpec) -> bool:
    """Return True if no window can be closed before the load ends."""
    return spec.watermark_ms >= spec.tape.warm_up_ms + spec.tape.load_ms


def grown(lines: Sequence[Progress], epoch_ms: int) -> Growth | None:
    """Take batches up to the largest state: after it, the closing events evicted."""
    told = sorted((line for line in lines if line.state_cells > 0), key=lambda line: line.at_ms)
    most = max((line.state_cells for line in told), default=0)
    upwards = [*takewhile(lambda line: line.state_cells < most, told)]
    commits = tuple(commit_of(line, epoch_ms) for line in told[: len(upwards) + 1])
    return Growth(commits, tuple(_steps(commits))) if commits else None


def commit_of(line: Progress, epoch_ms: int) -> Commit:
    return Commit(
        at_s=(line.at_ms - epoch_ms) / 1000,
        cells=line.state_cells,
        state_bytes=line.state_bytes or None,
        memory_bytes=line.memory_bytes or None,
        took_ms=line.commit_ms or None,
        written_bytes=line.commit_bytes or None,
    )


def _steps(commits: Sequence[Commit]) -> Iterator[GrowthStep]:
    """Split the growth into equal parts; leave out parts in which no batch ended."""
    most, low = commits[-1].cells, 0
    for part in range(1, STEPS + 1):
        high = most * part // STEPS
        own = [each for each in commits if low < each.cells <= high]
        if own:
            yield GrowthStep(
                cells=own[-1].cells,
                commits=len(own),
                state_bytes=known_of([each.state_bytes for each in own], max),
                memory_bytes=known_of([each.memory_bytes for each in own], max),
                took_ms=known_of([each.took_ms for each in own], median),
                written_bytes=known_of([each.written_bytes for each in own], median),
            )
        low = high


def known_of(values: Sequence[int | None], of: Callable[[list[int]], float]) -> int | None:
    known = [value for value in values if value is not None]
    return round(of(known)) if known else None


def cells_at(found: Growth, at_s: float) -> int:
    """Return the size of the last state known at that time."""
    return max((each.cells for each in found.commits if each.at_s <= at_s), default=0)
