"""The section of a run with a growing state, its cost against the number of cells, and the same in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.host.disk_space import size_in_words
from harness.measuring.growth import cells_at
from harness.measuring.measurement import Commit, Growth, GrowthStep, Recovery
from harness.util.texts import many
from reports.evidence import Evidence
from reports.figures import growth as figure
from reports.figures.style import BLUE, ORANGE, RED, picture
from reports.outage import FIRST_OUTPUT
from reports.page import Section, Table

COLUMNS = ("cells, up to", "state", "memory of its store", "commits", "one took", "one wrote")
TEXT = (
    "Nothing left the state during the load. Each dot is a batch when its state was in the checkpoint, as the "
    "engine reports it. A commit is the time of all its tasks, and memory is that of the state store. The table has "
    "the largest sizes, and the medians of the commits."
)


def section(evidence: Evidence) -> Section | None:
    found = evidence.measurement.growth
    if found is None:
        return None
    panels = tuple(panels_of(found, evidence.recovery))
    alt = f"{', '.join(panel.title for panel in panels)} against the cells in the state"
    tables = [Table(COLUMNS, tuple(rows(found)))]
    if back := tuple(returns(found, evidence.recovery)):
        tables.append(Table(("fault", "cells then", "first output after"), back))
    return Section(
        "growth",
        "A growing state",
        picture=picture("growth", alt, lambda sheet: figure.draw(panels, sheet)) if panels else None,
        text=(TEXT,),
        tables=tuple(tables),
    )


def panels_of(found: Growth, recoveries: Sequence[Recovery]) -> Iterator[figure.Panel]:
    """Yield the panels with known values."""
    sizes = [
        _dots("the state", BLUE, found.commits, [each.state_bytes for each in found.commits], joined=True),
        _dots("memory of its store", ORANGE, found.commits, [each.memory_bytes for each in found.commits], joined=True),
    ]
    took = _dots("took", BLUE, found.commits, [each.took_ms for each in found.commits])
    wrote = _dots("wrote", BLUE, found.commits, [each.written_bytes for each in found.commits])
    panels = (
        ("size, bytes", "bytes", sizes),
        ("a commit took", "ms", [took]),
        ("a commit wrote, bytes", "bytes", [wrote]),
        ("first output after a fault", "ms", [_returns(found, recoveries)]),
    )
    for title, unit, dots in panels:
        if known := tuple(each for each in dots if len(each.values)):
            yield figure.Panel(title, unit, known)


def _dots(
    name: str, colour: str, commits: Sequence[Commit], values: Sequence[int | None], *, joined: bool = False
) -> figure.Dots:
    known = [(each.cells, value) for each, value in zip(commits, values, strict=True) if value is not None]
    return figure.Dots(name, [cells for cells, _ in known], [value for _, value in known], colour, joined=joined)


def _returns(found: Growth, recoveries: Sequence[Recovery]) -> figure.Dots:
    """Faults without a known first output are left out."""
    back = [(cells_at(found, each.struck_s), each.quantities.get(FIRST_OUTPUT)) for each in recoveries]
    known = [(cells, each.value * 1000) for cells, each in back if each is not None and each.value is not None]
    return figure.Dots("after a fault", [cells for cells, _ in known], [ms for _, ms in known], RED)


def rows(found: Growth) -> Iterator[tuple[str, ...]]:
    """Yield a row for each step of the growth."""
    for step in found.steps:
        sizes = (step.state_bytes, step.memory_bytes)
        yield (f"{step.cells:,}", *map(_size, sizes), str(step.commits), _ms(step.took_ms), _size(step.written_bytes))


def returns(found: Growth, recoveries: Sequence[Recovery]) -> Iterator[tuple[str, str, str]]:
    """Yield for each fault the cells in the state when it struck and the time until the first output."""
    for each in recoveries:
        back = each.quantities.get(FIRST_OUTPUT)
        cells = f"{cells_at(found, each.struck_s):,}"
        yield each.fault, cells, "-" if back is None else back.text(lambda seconds: f"{seconds:.1f} s")


def in_words(found: Growth, recoveries: Sequence[Recovery]) -> str:
    """Summarize in one sentence the final size, the commits at the start and the end, and the recoveries."""
    [*lower, last] = found.steps
    said = [_largest(last)]
    said += [_commit(step, f"at up to {step.cells:,}") for step in lower[:1] if step.took_ms is not None]
    said += [_commit(last, "in the end")] if last.took_ms is not None else []
    back = [f"{after} at {cells}" for _, cells, after in returns(found, recoveries)]
    return "; ".join([*said, f"output again after {', '.join(back)}"] if back else said)


def _commit(step: GrowthStep, where: str) -> str:
    wrote = "" if step.written_bytes is None else f" and wrote {_size(step.written_bytes)}"
    return f"a commit took {_ms(step.took_ms)}{wrote} {where}"


def _largest(step: GrowthStep) -> str:
    size = "" if step.state_bytes is None else f", {_size(step.state_bytes)}"
    memory = "" if step.memory_bytes is None else f" with {_size(step.memory_bytes)} of memory"
    return f"{many(step.cells, 'cell')}{size}{memory}"


def _size(size: int | None) -> str:
    return "-" if size is None else size_in_words(size)


def _ms(ms: int | None) -> str:
    return "-" if ms is None else f"{ms:,} ms"
