"""Preview the load of a seed and a preset before a run: the first events, their lateness, and the number of cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from generators.tape import Tape
from harness.model import RunSpec
from harness.util.texts import many
from workloads.base import Kind
from workloads.registry import oracle_of

FIRST = 5
# Upper bounds of the histogram's bars: the age of an event when it is sent.
BARS_MS = (-1, 0, 10, 100, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000)
BAR_WIDTH = 36


@dataclass(frozen=True)
class Bar:
    """The number of events that are older than the previous bar's bound, up to this bound."""

    up_to_ms: int | None
    events: int


@dataclass(frozen=True)
class Preview:
    """The output of `streamgauge tape`."""

    digest: str
    events: int
    duration_ms: int
    counted: dict[str, int]  # for each value that is a count
    duplicates: int
    poison: int
    cells: int
    windows: int
    behind_watermark: int
    watermark_ms: int
    first: tuple[str, ...]
    lateness: tuple[Bar, ...]


def preview(spec: RunSpec) -> Preview:
    """Compute the preview in one pass over the tape."""
    tape, oracle = Tape(spec.tape), oracle_of(spec)
    histogram = np.zeros(len(BARS_MS) + 1, dtype=np.int64)
    duplicates = poison = behind = 0
    for block in tape.blocks():
        age_ms = block.intended_us // 1000 - block.event_time_rel_ms
        histogram += np.bincount(np.searchsorted(BARS_MS, age_ms, side="left"), minlength=len(histogram))
        duplicates += int(block.duplicate.sum())
        poison += int((block.poison != 0).sum())
        behind += int((age_ms > spec.window_ms + spec.watermark_ms).sum())
    cells, values = oracle.settle(oracle.plan(tape.blocks()), 0)
    return Preview(
        digest=tape.digest(),
        events=tape.total,
        duration_ms=tape.duration_ms,
        counted={
            value.name: int(values[oracle.codes.keys(cells) // oracle.groups == number].sum())
            for number, value in enumerate(oracle.values)
            if value.kind is Kind.COUNT
        },
        duplicates=duplicates,
        poison=poison,
        cells=len(cells),
        windows=len(np.unique(oracle.begins_ms(cells))),
        behind_watermark=behind,
        watermark_ms=spec.watermark_ms,
        first=tuple(_first(tape)),
        lateness=tuple(Bar(limit, int(n)) for limit, n in zip((*BARS_MS, None), histogram, strict=True)),
    )


def _first(tape: Tape) -> Iterator[str]:
    """Show the first event of each of the first servers; times count from the load start."""
    for server in range(min(FIRST, tape.spec.servers, tape.profile.total)):
        events = tape.events(server, np.zeros(1, dtype=np.int64))
        due = f"due {int(events.intended_us[0]) / 1000:8.3f} ms"
        time = f"event time {int(events.event_time_rel_ms[0]):+6d} ms"
        content = "poison" if events.poison[0] else tape.codec.say(events.content, 0)
        yield f"  server {server}  {due}  {time}  partition {events.partition[0]}  {content}"


def lines(shown: Preview) -> list[str]:
    """Format the preview in at most 24 lines of 80 columns."""
    most = max(bar.events for bar in shown.lateness) or 1
    head = [
        f"{many(shown.events, 'record')} in {shown.duration_ms / 1000:.1f} s, digest {shown.digest}",
        f"{_counted(shown)}{many(shown.cells, 'cell')} of {many(shown.windows, 'window')}; "
        f"{shown.duplicates:,} sent twice, {shown.poison:,} poison",
        "",
    ]
    bars = [
        f"{_label(low, bar.up_to_ms):>18}  {bar.events:>11,}  {'#' * -(-BAR_WIDTH * bar.events // most)}"
        for low, bar in zip((None, *BARS_MS), shown.lateness, strict=True)
        if bar.events
    ]
    return [*head, *shown.first, "", "how old events are when they are due:", *bars]


def _counted(shown: Preview) -> str:
    counts = " and ".join(f"{count:,} {name}" for name, count in shown.counted.items())
    return f"{counts} to count in " if counts else ""


def _label(low_ms: int | None, high_ms: int | None) -> str:
    if high_ms == -1:
        return "from the future"
    if low_ms == -1:
        return "0 ms"
    return f"> {low_ms:,} ms" if high_ms is None else f"{low_ms:,} to {high_ms:,} ms"
