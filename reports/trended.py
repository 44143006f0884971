"""A history of gates for a terminal, as JSON and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.gating.gate import ANY, Answer
from harness.experiments.gating.history import Entry, Figure, History, Series
from harness.model import Outcome
from harness.util.texts import many
from reports.gated import percent, times

OUTCOMES = {
    Answer.OK: Outcome.PASS,
    Answer.IMPROVED: Outcome.PASS,
    Answer.REGRESSED: Outcome.FAIL,
    Answer.INCONCLUSIVE: Outcome.UNKNOWN,
}
ROWS, SERIES = 7, 2  # most lines of a screen
FEW = 3  # up to so many changes are listed one by one
NOT_TOLD = ("engine", "base", "burst")  # parts of a series that `in_words` writes first


def newest(history: History) -> Entry:
    return history.entries[-1]


def head(history: History) -> str:
    last = newest(history)
    return f"{last.answer.value}  {day(last)}, {last.head.named}: {last.sentence}"


def counts(history: History) -> str:
    """Count the gates by answer."""
    found = Counter(each.answer for each in history.entries)
    each = ", ".join(f"{found[answer]:,} {answer.value}" for answer in Answer if found[answer])
    first, last = history.entries[0], newest(history)
    gates, series = len(history.entries), len(history.series)
    return f"{many(gates, 'gate')} in {series:,} series, {day(first)} to {day(last)}: {each}"


def series_lines(history: History) -> Iterator[str]:
    """Describe the newest series."""
    found = sorted(history.series, key=lambda each: each.entries[-1].at)
    for each in sorted(found[-SERIES:], key=lambda each: each.number):
        yield f"series {each.number}, {many(len(each.entries), 'gate')} since {day(each.entries[0])}: {in_words(each)}"
    if len(found) > SERIES:
        yield f"and {len(found) - SERIES:,} older series, which are on the page"


def in_words(series: Series) -> str:
    """List the changes that began a series. The first series of its kind is described completely."""
    if 0 < len(series.changes) <= FEW:
        return ", ".join(map(str, series.changes))
    what = series.what
    rest = ", ".join(f"{name} {value}" for name, value in what.items() if value and name not in NOT_TOLD)
    return f"{what['engine'] or 'an engine'} by {what['base']}, bursts of {what['burst']}; {rest}"


def header(history: History) -> tuple[str, ...]:
    return ("date", "head", "series", *history.metrics, "answer")


def rows(history: History) -> list[tuple[str, ...]]:
    """Return the newest gates, oldest first."""
    number = {id(entry): series.number for series in history.series for entry in series.entries}
    return [_row(entry, number[id(entry)], history.metrics) for entry in history.entries[-ROWS:]]


def _row(entry: Entry, series: int, metrics: tuple[str, ...]) -> tuple[str, ...]:
    figures = (entry.figure(metric) for metric in metrics)
    seen = (written(entry)(each.ratio) if each and not each.declined else "-" for each in figures)
    return day(entry), entry.commit or entry.head.named, str(series), *seen, entry.answer.value


def written(entry: Entry) -> Callable[[float], str]:
    """Return the function that writes a ratio of this gate."""
    return times if entry.threshold == ANY else percent


def with_interval(entry: Entry, figure: Figure) -> str:
    write = written(entry)
    return f"{write(figure.ratio)} ({write(figure.low)} to {write(figure.high)})"


def day(entry: Entry) -> str:
    return f"{entry.at.astimezone():%Y-%m-%d}"


def minute(entry: Entry) -> str:
    return f"{entry.at:%Y-%m-%d %H:%M} UTC"


def as_object(history: History, out: Path) -> dict[str, Any]:
    return {
        "command": "trend",
        "exit": 0,
        "page": str(out / "report.html"),
        "gates": len(history.entries),
        "series": [_series(each) for each in history.series],
        "passed_over": [each.sentence for each in history.passed_over],
    }


def _series(series: Series) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(series)
    return told | {"changes": [str(each) for each in series.changes]}
