"""A comparison of engines as text for a terminal, as Markdown, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.cases import pending
from harness.experiments.compare import BUSY_CPU, Leg, LegRun, Ran, Row, Settings, Sustained, Table, table
from harness.experiments.folder import Folder
from harness.experiments.searching.searched import KIND, Searched
from harness.experiments.searching.searched import read as read_search
from harness.measuring.stats import Interval
from harness.model import Outcome
from harness.rundir.store import Store
from harness.util.text_tables import markdown as table_lines
from harness.util.texts import three_digits


def _rate(value: float) -> str:
    return f"{value / 1000:,.0f}k/s"


def _cpu(value: float) -> str:
    return f"{three_digits(value)} s"


_ms, _s, _mib = "{:,.0f} ms".format, "{:.1f} s".format, "{:,.0f} MiB".format
FIXED_RATE = "offered_per_s"
# Figure -> its heading on a terminal, its description, and the format of a value.
FIGURES: Mapping[str, tuple[str, str, Callable[[float], str]]] = {
    FIXED_RATE: ("rate", "the fixed rate, events/s", "{:,.0f}/s".format),
    "p50_ms": ("p50", "median latency in Redis", _ms),
    "p99_ms": ("p99", "p99 of latency in Redis", _ms),
    "cpu_s_per_million": ("CPU/M", "CPU-s/M at the fixed rate, with start", _cpu),
    "peak_rss_mib": ("memory", "peak memory", _mib),
    "catch_up_per_s": ("catch-up", "events/s while it catches up", _rate),
    BUSY_CPU: ("busy CPU/M", "CPU-s per million while it catches up", _cpu),
    "first_output_s": ("back in", "first output after the kill", _s),
    "caught_up_s": ("caught up", "caught up after the kill", _s),
    "start_s": ("start", "from its start to the first answer", _s),
}
COST = "cores"
SHORT = ("p50_ms", "p99_ms", "cpu_s_per_million", "catch_up_per_s", "first_output_s")
HEADER = ("engine", "verdict", *(FIGURES[name][0] for name in SHORT), COST)
ABOUT_COST = (
    "cores: how many it would take until the engine catches up as fast as the single-process reference, did it scale "
    "perfectly: its CPU seconds per event while it catches up, times the reference's events per second. No engine "
    "scales perfectly, so it is a lower bound."
)


@dataclass(frozen=True)
class Compared:
    """The content of the page."""

    folder: Folder
    asked: Mapping[str, Any]
    environment: Mapping[str, Any]
    done: tuple[Ran, ...]
    found: Table
    missing: tuple[LegRun, ...]
    searches: Mapping[str, Searched]  # by engine, if one was made

    @property
    def engines(self) -> list[str]:
        return list(self.asked["engines"])

    def stores(self, engine: str, leg: Leg) -> list[Store]:
        own = [each for each in self.done if each.case.engine == engine and each.case.leg is leg]
        return [Store(self.folder.path / each.run) for each in own]


def read(folder: Folder) -> Compared:
    asked: dict[str, Any] = folder.load("asked", dict[str, Any])
    folder.refuse_other_settings(asked["settings"], Settings)
    done: list[Ran] = folder.load("done", list[Ran])
    machine: dict[str, Any] = folder.load("environment", dict[str, Any])
    places: dict[str, str] = folder.load("searches", dict[str, str])
    folders = {engine: Folder.open(folder.path / path, KIND) for engine, path in places.items()}
    curves = {engine: read_search(own) for engine, own in folders.items()}
    sustained = {engine: _sustained(curve) for engine, curve in curves.items()}
    wanted: list[LegRun] = folder.load("wanted", list[LegRun])
    missing = tuple(pending(wanted, done))
    found = table(asked["engines"], done, asked["seed"], sustained, missing)
    return Compared(folder, asked, machine, tuple(done), found, missing, curves)


def _sustained(curve: Searched) -> Sustained:
    return Sustained(curve.found.sentence, curve.found.low_per_s, curve.found.high_per_s)


def searched(found: Table) -> Iterator[str]:
    """Yield the sustainable rates, if they were searched for."""
    for row in found.rows:
        if row.sustained:
            yield f"{row.engine}: {row.sustained.sentence}"


def rows(found: Table) -> list[list[str]]:
    """Return the table with the figures that fit a terminal."""
    return [[row.engine, row.outcome.value, *(_median(row, name) for name in SHORT), cost(row)] for row in found.rows]


def full_table(found: Table) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return the table with every figure, and its interval if it has one."""
    header = ("engine", "verdict", *(heading for heading, _, _ in FIGURES.values()), COST)
    return header, [
        [row.engine, row.outcome.value, *(with_interval(row.figures.get(name), name) for name in FIGURES), cost(row)]
        for row in found.rows
    ]


def at_rate(found: Table) -> Iterator[str]:
    """Yield a line with the rate of the figures at a fixed rate, since their headings do not name it."""
    for interval in [row.figures[FIXED_RATE] for row in found.rows if FIXED_RATE in row.figures][:1]:
        yield f"p50, p99 and CPU/M at {interval.median:,.0f} events/s"


def endings(found: Table) -> Iterator[str]:
    """Yield a sentence for each engine whose outcome is not PASS."""
    for row in found.rows:
        if row.outcome is not Outcome.PASS:
            yield f"{row.engine}: {row.sentence}"


def cost(row: Row) -> str:
    if row.cost_cores is None:
        return "-"
    return f"{row.cost_cores:.1f}"


def _median(row: Row, name: str) -> str:
    interval = row.figures.get(name)
    return "-" if interval is None else FIGURES[name][2](interval.median)


def with_interval(interval: Interval | None, name: str) -> str:
    if interval is None:
        return "-"
    write = FIGURES[name][2]
    if interval.low is None or interval.high is None:
        return write(interval.median)
    return f"{write(interval.median)} ({write(interval.low)} to {write(interval.high)})"


def markdown(found: Table, command: str, machine: Sequence[tuple[str, str]]) -> str:
    header, lines = full_table(found)
    told = [f"**{found.outcome.value}**: {found.sentence}", "", f"    {command}", ""]
    told += table_lines(header, lines)
    told += ["", ABOUT_COST, "", ", ".join(f"{name} {value}" for name, value in machine)]
    return "\n".join([*told, *(f"- {ending}" for ending in (*searched(found), *endings(found)))]) + "\n"


def as_object(found: Table, experiment: Path) -> dict[str, Any]:
    return {
        "command": "compare",
        "verdict": found.outcome.value,
        "exit": found.outcome.exit_code,
        "sentence": found.sentence,
        "experiment": str(experiment),
        "engines": msgspec.to_builtins(found.rows),
    }
