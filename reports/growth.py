"""The growth of an engine's state as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.host.disk_space import size_in_words
from harness.measuring.growth import cells_at
from harness.measuring.measurement import Growth, GrowthStep, Recovery
from harness.util.texts import many
from reports.outage import FIRST_OUTPUT


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
