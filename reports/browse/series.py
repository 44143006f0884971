"""Runs over time: a series holds the runs that differ in their seed alone. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from harness.model import Outcome
from harness.util.texts import three_digits
from reports.browse.index import RUN, Entry, Figures
from reports.figures.style import duration

JUDGED = tuple(each.value for each in Outcome)
LEAST = 2  # runs of a series


@dataclass(frozen=True)
class Metric:
    """A figure that is followed over time."""

    name: str
    read: Callable[[Figures], float | None]
    write: Callable[[float], str]


METRICS = (
    Metric("p99 of latency", lambda each: each.p99_ms, duration),
    Metric("processed events/s", lambda each: each.processed_per_s, "{:,.0f}".format),
    Metric("CPU-s per million events", lambda each: each.cpu_s_per_million, three_digits),
)


@dataclass(frozen=True)
class Series:
    """Runs of one plan, the oldest first."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def newest(self) -> Entry:
        return self.entries[-1]

    def values(self, metric: Metric) -> list[float | None]:
        return [metric.read(each.figures) for each in self.entries]

    def row(self, metric: Metric) -> str:
        """Write the newest value beside the median of those before it; "" without a value."""
        known = [value for value in self.values(metric) if value is not None]
        if not known:
            return ""
        if len(known) == 1:
            return metric.write(known[0])
        return f"{metric.write(known[-1])} (median before: {metric.write(median(known[:-1]))})"


def found(entries: Iterable[Entry]) -> list[Series]:
    """Return all series with several judged runs, that with the newest run first."""
    runs: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.kind == RUN and entry.series and entry.state in JUDGED:
            runs.setdefault(entry.series, []).append(entry)
    ordered = [Series(name, tuple(sorted(own, key=_time))) for name, own in runs.items() if len(own) >= LEAST]
    return sorted(ordered, key=lambda each: _time(each.newest), reverse=True)


def _time(entry: Entry) -> tuple[int, str]:
    return entry.made_ms or 0, entry.name


def outcomes(series: Sequence[Entry]) -> Mapping[str, int]:
    return {state: count for state in JUDGED if (count := sum(each.state == state for each in series))}


def times(entries: Sequence[Entry]) -> list[str]:
    """Return a short time of each run: its date, or its time of day if all are of one day."""
    one_day = len({entry.made[:10] for entry in entries}) == 1
    return [entry.made[11:16] if one_day else entry.made[:10] for entry in entries]
