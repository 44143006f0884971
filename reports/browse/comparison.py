"""Two runs side by side: what differs in plan, counts, speed and cost. Pure.

It compares two runs that exist, and claims nothing beyond them; an experiment repeats runs and has intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from harness.measuring.cost import ENGINE, engine_s_per_million
from harness.measuring.measurement import Latency, Measurement, Recovery
from harness.measuring.recovery import WORDS
from harness.model import CheckResult, Outcome
from harness.util.texts import many, printable, shown, three_digits
from reports.browse.side import Side
from reports.figures.style import duration
from reports.page import Section, Table
from reports.sections.recovery import in_unit

NAMES = ("A", "B")
NOTHING = "-"
LONGEST = 300  # characters of a setting
WITNESSES = 3
MAIN_WAYS = ("probes", "rank-matched")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
TOTALS = {
    "planned": "records planned",
    "in_log": "records in the Kafka log",
    "countable": "events that count",
    "counted": "events counted",
    "cells": "cells",
    "late_dropped": "events dropped as late",
    "copies": "copies in the load",
}
# These decide how fast a machine is.
MACHINE = ("cpu", "machine", "granted.cores", "granted.quota")

Write = Callable[[float], str]
_rate: Write = "{:,.0f}/s".format
_s: Write = "{:.1f} s".format
_mib: Write = "{:,.0f} MiB".format
RATES: Mapping[str, tuple[Callable[[Measurement], float | None], Write]] = {
    "offered": (lambda m: m.offered_per_s, _rate),
    "processed": (lambda m: m.processed_per_s, _rate),
    "caught up at": (lambda m: m.catch_up_per_s, _rate),
    "ready after": (lambda m: m.ready_s, _s),
    "drained after the last event": (lambda m: m.drain_s, _s),
}


@dataclass(frozen=True)
class Row:
    """A figure of both runs. None: not measured, or withheld."""

    name: str
    values: tuple[float | None, float | None]
    write: Write
    notes: tuple[str, str] = ("", "")  # shown instead of a value that is missing

    @property
    def cells(self) -> tuple[str, str, str, str]:
        a, b = (
            note or NOTHING if value is None else self.write(value)
            for value, note in zip(self.values, self.notes, strict=True)
        )
        return self.name, a, b, self.ratio

    @property
    def ratio(self) -> str:
        a, b = self.values
        return f"{b / a:.2f}" if a is not None and b is not None and a > 0 and b >= 0 else ""


def sentence(a: Side, b: Side) -> str:
    """Summarize the answer in one line."""
    settings = _differences(a.plan, b.plan)
    plan = f"{many(len(settings), 'setting differs', 'settings differ')}" if settings else "the plan is the same"
    if a.events and a.events == b.events:
        plan += ", and both sent the same events"
    answers = f"Both are {a.outcome}" if a.outcome == b.outcome else f"A is {a.outcome} and B is {b.outcome}"
    return f"{answers}; {plan}."


def sections(a: Side, b: Side) -> tuple[Section, ...]:
    return (_plan(a, b), _counts(a, b), _speed(a, b), _cost(a, b), _machine(a, b))


# ---------------------------------------------------------------- The plan


def _plan(a: Side, b: Side) -> Section:
    text = []
    if a.events and b.events:
        same = a.events == b.events
        text.append("Both sent the same events." if same else "They sent different events.")
    if a.expected and b.expected:
        same = a.expected == b.expected
        text.append(
            "The plan expects the same counts of both." if same else "The plan expects different counts of them."
        )
    differing, equal = _tables(a.plan, b.plan, "setting")
    engine, _ = _tables(a.engine, b.engine, "key of the manifest")
    if not differing.rows:
        text.append("All settings are equal." if a.plan and b.plan else "The settings of a run are missing.")
    tables = (differing, _titled(engine, "The engine's manifest"), equal)
    return Section("plan", "Plan", text=tuple(text), tables=tables)


def _tables(a: Mapping[str, str], b: Mapping[str, str], what: str) -> tuple[Table, Table]:
    """Return the settings that differ, and folded those that are equal."""
    differing = tuple((name, _cell(a.get(name)), _cell(b.get(name))) for name in _differences(a, b))
    equal = tuple((name, _cell(a[name])) for name in a if a[name] == b.get(name))
    caption = f"{many(len(equal), 'setting is', 'settings are')} equal"
    return Table((what, *NAMES), differing), Table((what, "in both"), equal, caption, folded=True)


def _differences(a: Mapping[str, str], b: Mapping[str, str]) -> list[str]:
    return [name for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name)]


def _titled(table: Table, caption: str) -> Table:
    return Table(table.columns, table.rows, caption, folded=len(table.rows) > 8)


def _cell(value: str | None) -> str:
    return NOTHING if value is None else shown(printable(value), LONGEST)


# ---------------------------------------------------------------- The counts


def _counts(a: Side, b: Side) -> Section:
    missing = tuple(f"{name} has no verdict: {side.sentence}." for name, side in _named(a, b) if not side.verdict)
    totals = [dict(side.verdict.totals) if side.verdict else {} for side in (a, b)]
    rows = [
        (TOTALS.get(name, name), *(_count(each.get(name)) for each in totals), _apart(*(t.get(name) for t in totals)))
        for name in dict.fromkeys((*totals[0], *totals[1]))
    ]
    checks = tuple(_checks(a, b))
    witnesses = tuple(row for name, side in _named(a, b) for row in _witnesses(name, side))
    text = () if checks or missing else ("Every check has the same outcome in both.",)
    tables = (
        Table(("", *NAMES, "B - A"), tuple(rows)),
        Table(("check", *NAMES), checks, "Checks with another outcome, or without a PASS" if checks else ""),
        Table(("run", "check", "where", "expected", "seen"), witnesses, "The first wrong results" if witnesses else ""),
    )
    return Section("counts", "Counts", missing=missing, text=text, tables=tables)


def _checks(a: Side, b: Side) -> Iterator[tuple[str, str, str]]:
    one, other = ({each.name: each for each in side.verdict.checks} if side.verdict else {} for side in (a, b))
    for name in dict.fromkeys((*one, *other)):
        here, there = one.get(name), other.get(name)
        passed = all(each is None or each.outcome is Outcome.PASS for each in (here, there))
        if not passed or (here and there and here.asked != there.asked):
            yield name, _outcome(here), _outcome(there)


def _outcome(check: CheckResult | None) -> str:
    if check is None:
        return NOTHING
    word = f", {check.word}" if check.word else ""
    return f"{check.outcome.value}{word}: {check.sentence}"


def _witnesses(name: str, side: Side) -> Iterator[tuple[str, str, str, str, str]]:
    for check in side.verdict.checks if side.verdict else ():
        for witness in check.witnesses[:WITNESSES] if check.outcome is not Outcome.PASS else ():
            yield name, check.word or check.name, witness.cell, witness.expected, witness.seen


def _count(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def _apart(a: int | None, b: int | None) -> str:
    return "" if a is None or b is None else f"{b - a:+,}" if b != a else "0"


# ---------------------------------------------------------------- Speed and cost


def _speed(a: Side, b: Side) -> Section:
    rows = [*_rates(a.measurement, b.measurement), *_latencies(a, b, MAIN_WAYS)]
    others = sorted({each.way for side in (a, b) for each in _ways(side)} - {*MAIN_WAYS})
    return Section(
        "speed",
        "Speed",
        missing=tuple(_without(a, b)),
        text=tuple(_remarks(a, b)),
        tables=(
            _figures(rows),
            _figures([*_recoveries(a, b)], "After each fault"),
            _figures([*_latencies(a, b, others)], "Latency measured in other ways", folded=True),
        ),
    )


def _without(a: Side, b: Side) -> Iterator[str]:
    for name, side in _named(a, b):
        if side.measurement is None:
            yield f"the speed and the cost of {name}: {side.withheld or 'they were not measured'}."


def _remarks(a: Side, b: Side) -> Iterator[str]:
    if a.measurement and b.measurement:
        yield "One run each: a small difference may be chance. An experiment repeats runs and has intervals."
        if differing := [name for name in MACHINE if a.machine.get(name) != b.machine.get(name)]:
            yield f"The machines differ ({', '.join(differing)}), so speed and cost can't be compared."
    for name, side in _named(a, b):
        if side.measurement and side.outage.lasted_s:
            yield f"{name}: {side.outage.words}; a quantile that they decide is withheld."


def _rates(a: Measurement | None, b: Measurement | None) -> Iterator[Row]:
    for name, (read, write) in RATES.items():
        yield Row(name, (read(a) if a else None, read(b) if b else None), write)


def _ways(side: Side) -> tuple[Latency, ...]:
    return side.measurement.latency if side.measurement else ()


def _latencies(a: Side, b: Side, ways: tuple[str, ...] | list[str]) -> Iterator[Row]:
    for way in ways:
        for name, share in QUANTILES.items():
            found = [_quantile(side, way, name, share) for side in (a, b)]
            if any(value is not None or note for value, note in found):
                values, notes = zip(*found, strict=True)
                yield Row(f"latency {name.replace('p999', 'p99.9')}, {way}", (values[0], values[1]), duration, notes)


def _quantile(side: Side, way: str, name: str, share: float) -> tuple[float | None, str]:
    """Return a quantile in ms, or why there is none. One that a fault decides is no figure of the engine."""
    latency = next((each for each in _ways(side) if each.way == way), None)
    if latency is None:
        return None, ""
    if side.outage.covers(share):
        return None, "withheld"
    value: float | None = getattr(latency.corrected, name)
    return value, "never" if value is None else ""


def _recoveries(a: Side, b: Side) -> Iterator[Row]:
    for number, (one, other) in enumerate(zip_longest(a.recovery, b.recovery), 1):
        names = dict.fromkeys(name for each in (one, other) if each for name in each.quantities)
        for name in names:
            values, notes = zip(*(_quantity(each, name) for each in (one, other)), strict=True)
            label, unit = WORDS.get(name, (name, ""))
            yield Row(f"fault {number}: {label}", (values[0], values[1]), in_unit(unit), (notes[0], notes[1]))


def _quantity(recovery: Recovery | None, name: str) -> tuple[float | None, str]:
    found = recovery.quantities.get(name) if recovery else None
    return (None, "") if found is None else (found.value, str(found.lack or ""))


def _cost(a: Side, b: Side) -> Section:
    sides = (a.measurement, b.measurement)
    missing = [
        f"the cost of {name}'s engine: {side.measurement.cost_withheld}."
        for name, side in _named(a, b)
        if side.measurement and side.measurement.cost_withheld
    ]
    costs = [{each.part: each for each in side.cost} if side else {} for side in sides]
    parts = sorted(dict.fromkeys((*costs[0], *costs[1])), key=lambda part: part not in ENGINE)
    engine = [engine_s_per_million(side.cost) if side and not side.cost_withheld else None for side in sides]
    rows = [Row("engine with its workers, CPU-s per million events", (engine[0], engine[1]), three_digits)]
    for part in parts:
        one, other = (each.get(part) for each in costs)
        used = (one.cpu_s_per_million if one else None, other.cpu_s_per_million if other else None)
        peak = (one.peak_rss_mib if one else None, other.peak_rss_mib if other else None)
        rows += [Row(f"{part}, CPU-s per million events", used, three_digits), Row(f"{part}, peak memory", peak, _mib)]
    if not any(value is not None for row in rows for value in row.values) and all(sides):
        missing.append("CPU and memory of these runs were not recorded.")
    return Section("cost", "Cost", missing=tuple(missing), tables=(_figures(rows),))


def _figures(rows: list[Row], caption: str = "", *, folded: bool = False) -> Table:
    """Return the rows with a value or a note in at least one of both runs."""
    cells = tuple(row.cells for row in rows if any(value is not None for value in row.values) or any(row.notes))
    return Table(("", *NAMES, "B / A"), cells, caption, folded=folded)


def _machine(a: Side, b: Side) -> Section:
    differing, equal = _tables(a.machine, b.machine, "machine and versions")
    text = () if differing.rows else ("Machine and versions are equal.",)
    return Section("machine", "Machine and versions", text=text, tables=(differing, equal))


def _named(a: Side, b: Side) -> Iterator[tuple[str, Side]]:
    yield from zip(NAMES, (a, b), strict=True)
