"""Faults crossed with engines and sinks, and the class of guarantee that each was seen to keep. Pure.

A tier is a readable file that lists its cases; faults from the command line replace the list. A case is one engine, one
sink and one fault, run a few times with consecutive seeds. Its runs become a cell of the guarantee card. For each seed
a baseline run without a fault shows what happens anyway.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from harness.faults.base import Kind
from harness.measuring.measurement import Lack, Quantity, Recovery
from harness.model import AD_IMPRESSIONS, CheckResult, FaultReport, Outcome, UsageError, Verdict
from harness.util.suggest import is_file, nearest, why
from harness.util.texts import many
from workloads.shipped import folder_of

TIERS = folder_of(AD_IMPRESSIONS) / "chaos"
NO_FAULT = "none"
EVERY = "every"
MOST_JOBS = 4  # more were never tested


class Seen(StrEnum):
    """The class of the observed counts."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    AT_MOST_ONCE = "at most once"
    NONE = "none"
    STOPPED = "stopped loudly"  # for good, without a wrong count
    STUCK = "stuck"  # it hangs silently
    NOT_POSSIBLE = "n/a"
    UNKNOWN = "unknown"


# The classes that keep each claim. A loud stop is an outage and breaks no claim; a hanging engine keeps none.
KEEPS: Mapping[str, frozenset[Seen]] = {
    "exactly-once": frozenset({Seen.EXACTLY_ONCE, Seen.STOPPED}),
    "at-least-once": frozenset({Seen.EXACTLY_ONCE, Seen.AT_LEAST_ONCE, Seen.STOPPED}),
    "at-most-once": frozenset({Seen.EXACTLY_ONCE, Seen.AT_MOST_ONCE, Seen.STOPPED}),
    "none": frozenset(Seen) - {Seen.STUCK},
}
UNDECIDED = (Seen.NOT_POSSIBLE, Seen.UNKNOWN)


@dataclass(frozen=True)
class ChaosCase:
    """One planned run."""

    engine: str
    sink: str
    fault: str
    seed: int

    @property
    def twin(self) -> ChaosCase:
        return ChaosCase(self.engine, self.sink, NO_FAULT, self.seed)


@dataclass(frozen=True)
class Wrong:
    """The number of wrong counts by kind: L, D and M of the classes."""

    lost: int = 0
    duplicated: int = 0
    masked: int = 0

    def __add__(self, other: Wrong) -> Wrong:
        return Wrong(self.lost + other.lost, self.duplicated + other.duplicated, self.masked + other.masked)

    @property
    def seen(self) -> Seen:
        if self == Wrong():
            return Seen.EXACTLY_ONCE
        if not self.lost and not self.masked:
            return Seen.AT_LEAST_ONCE
        return Seen.AT_MOST_ONCE if not self.duplicated and not self.masked else Seen.NONE


@dataclass(frozen=True)
class Ran:
    """The result of a case."""

    case: ChaosCase
    seen: Seen
    sentence: str
    run: str = ""  # its directory, relative to the experiment's; empty: nothing was run
    wrong: Wrong = Wrong()
    words: tuple[str, ...] = ()
    recovery: tuple[Recovery, ...] = ()
    broken: bool = False  # the machine or our own program was at fault: a resumed experiment tries it again
    beside: bool = False  # another run shared the machine
    came: str = ""  # for an upgrade: the word for its outcome

    @property
    def is_again(self) -> bool:
        """True if the case must run again, alone. Wrong counts are wrong on any machine, and stand; an undecided run
        may have lacked the CPU that the other run took.
        """
        return self.beside and self.seen is Seen.UNKNOWN


@dataclass(frozen=True)
class Cell:
    """All runs of one fault on one engine and sink."""

    engine: str
    sink: str
    claim: str
    fault: str
    seen: Seen
    kept: bool | None  # None: unknown, or not possible there
    runs: int
    wrong: Wrong
    words: tuple[str, ...]
    recovery: Mapping[str, Quantity]
    witness: str  # directory of the run that shows it
    sentence: str
    came: str = ""


@dataclass(frozen=True)
class Card:
    """The guarantee card."""

    cells: tuple[Cell, ...]
    again: tuple[Ran, ...] = ()  # runs that were undecided beside another run, and were made again alone
    beside: bool = False  # some runs shared the machine

    @property
    def broken(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.kept is False)

    @property
    def outcome(self) -> Outcome:
        """FAIL if a cell is below its claim; else UNKNOWN if a cell, or every cell, is undecided."""
        if self.broken:
            return Outcome.FAIL
        seen = [cell.seen for cell in self.cells]
        decided = any(each not in UNDECIDED for each in seen)
        return Outcome.PASS if decided and Seen.UNKNOWN not in seen else Outcome.UNKNOWN

    @property
    def sentence(self) -> str:
        kept, unknown = (sum(cell.kept is True for cell in self.cells), self._count(Seen.UNKNOWN))
        parts = [f"{kept} of {many(len(self.cells), 'cell')} keep what their sink claims"]
        parts += [f"{len(self.broken)} are below it"] if self.broken else []
        parts += [f"{unknown} unknown"] if unknown else []
        parts += [f"{count} n/a"] if (count := self._count(Seen.NOT_POSSIBLE)) else []
        return ", ".join(parts)

    def _count(self, seen: Seen) -> int:
        return sum(cell.seen is seen for cell in self.cells)


@dataclass(frozen=True)
class Rows:
    """A part of a tier: each fault on each of these sinks. Without sinks, all sinks of the engine."""

    engine: str
    faults: tuple[str, ...]
    sinks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tier:
    """The content of a tier's file."""

    cases: tuple[Rows, ...]
    name: str = ""  # as the user gave it
    scenario: str = "calm"
    keys: Mapping[str, Any] = field(default_factory=dict)  # keys of a scenario, for all of its runs
    twins: bool = True
    pairs: int = 0  # number of additional pairs of faults, drawn from the seed


CASE_KEYS = tuple(each.name for each in fields(Rows))
TIER_KEYS = tuple(each.name for each in fields(Tier) if each.name != "name")


def tiers() -> dict[str, str]:
    """Return the first comment line of each tier by its name."""
    names = {path.stem: path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") for path in TIERS.glob("*.toml")}
    return dict(sorted(names.items(), key=lambda item: list(ORDER).index(item[0])))


ORDER = ("smoke", "pr", "upgrade", "upgrades", "sinks", "cluster", "nightly")


def read_tier(name: str) -> Tier:
    """Read a shipped tier by name, or a user's own by the path of its file."""
    path = Path(name) if name.endswith(".toml") else TIERS / f"{name}.toml"
    if not is_file(path):
        names = list(tiers())
        raise UsageError(
            f"There is no tier {name!r}{nearest(name, names)}. Shipped are {', '.join(names)}; any other is the path "
            "of a .toml file."
        )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        tier = replace(msgspec.convert(table, Tier), name=name)
    except (OSError, ValueError, RecursionError) as error:  # includes the errors of TOML, UTF-8 and msgspec
        raise UsageError(f"The tier {path} can't be read: {why(error)}. Correct the file.") from None
    _refuse_unknown(path, table, TIER_KEYS)
    for rows in table["cases"]:
        _refuse_unknown(path, rows, CASE_KEYS)
    return tier


def _refuse_unknown(path: Path, table: Mapping[str, Any], known: Sequence[str]) -> None:
    """An ignored key would silently leave out what the user asked for."""
    if unknown := next((key for key in table if key not in known), None):
        raise UsageError(
            f"The tier {path}: unknown key {unknown!r}; the keys there are {', '.join(known)}{nearest(unknown, known)}."
        )


def crossed(rows: Sequence[Rows], sinks_of: Mapping[str, Sequence[str]], kinds: Mapping[str, Kind]) -> list[ChaosCase]:
    """Return the cases in the order of the file without repetitions. `every` stands for each fault at its usual
    moment.
    """
    wanted: dict[ChaosCase, None] = {}
    for row in rows:
        faults = [f"{kind.name}@{kind.usual}" for kind in kinds.values()] if row.faults == (EVERY,) else row.faults
        for sink in row.sinks or sinks_of[row.engine]:
            wanted |= {ChaosCase(row.engine, sink, fault, 0): None for fault in faults}
    return list(wanted)


def drawn(cases: Sequence[ChaosCase], pairs: int, seed: int, kinds: Mapping[str, Kind]) -> list[ChaosCase]:
    """Draw pairs of faults, the second soon after the first is over: most bugs of recovery need no more than two."""
    dice = random.Random(f"chaos {seed}")
    places = list(dict.fromkeys((case.engine, case.sink) for case in cases))
    timed = [kind for kind in kinds.values() if "time" in kind.moments and kind.reshape is None]
    found = []
    for _ in range(pairs if places else 0):
        engine, sink = dice.choice(places)
        first, second = dice.sample(timed, 2)
        text = f"{first.name}@t>={dice.randint(4, 9)}s; {second.name}@t>=+{dice.randint(1, 4)}s"
        found.append(ChaosCase(engine, sink, text, 0))
    return found


def runs_of(cases: Sequence[ChaosCase], seed: int, rounds: int, *, twins: bool) -> list[ChaosCase]:
    """Return all runs in order: the baseline runs of an engine and sink before its faults."""
    wanted: dict[ChaosCase, None] = {}
    for case in cases:
        for number in range(rounds):
            run = ChaosCase(case.engine, case.sink, case.fault, seed + number)
            if twins:
                wanted[run.twin] = None
            wanted[run] = None
    return list(wanted)


def pending(wanted: Sequence[ChaosCase], done: Sequence[Ran]) -> list[ChaosCase]:
    made = {each.case for each in done if not each.is_again}
    return [case for case in wanted if case not in made]


def announced(case: ChaosCase, wanted: Sequence[ChaosCase]) -> str:
    return f"case {wanted.index(case) + 1} of {len(wanted)}: {case.fault} on {case.engine}/{case.sink}"


def standing(done: Sequence[Ran]) -> list[Ran]:
    """Return the results that count: an undecided run that shared the machine is replaced by the same case alone."""
    alone = {each.case for each in done if not each.is_again}
    return [each for each in done if not (each.is_again and each.case in alone)]


def next_of(
    wanted: Sequence[ChaosCase], done: Sequence[Ran], going: Sequence[ChaosCase], judged: Sequence[ChaosCase]
) -> ChaosCase | None:
    """Return the next case to start beside those whose engines are up (`going`) and those that are only being judged
    (`judged`). None: no case may start before one of them is done. A fault waits for its baseline run, and a repeated
    case for all others.
    """
    under_way = {*going, *judged}
    again = {each.case for each in done if each.is_again}
    left = pending(wanted, done)
    free = [case for case in left if case not in under_way and (case.fault == NO_FAULT or case.twin not in left)]
    if under_way & again:
        return None
    if beside := [case for case in free if case not in again]:
        return beside[0]
    return free[0] if free and not under_way else None


def carried(cores: float, memory_bytes: int, need_bytes: int) -> int:
    """Return how many runs the machine can do at a time: one per core, limited by memory."""
    by_memory = memory_bytes // need_bytes if need_bytes else MOST_JOBS
    return max(1, min(int(cores), by_memory, MOST_JOBS))


# Unreadable or ambiguous results, a wrong state, and results that change when the engine stops guarantee nothing.
NOTHING_SURE = ("readable", "ambiguous", "order", "state", "stopped")


def classified(verdict: Verdict, faults: Sequence[FaultReport], state: str, *, planned: bool) -> tuple[Seen, Wrong]:
    """Return the class of one run. Events that a stopped engine did not reach are unseen, and not lost."""
    if planned and any(not report.reachable for report in faults):
        return Seen.NOT_POSSIBLE, Wrong()
    landed = any(report.landed for report in faults)
    if verdict.outcome is Outcome.UNKNOWN or (planned and not landed):
        return Seen.UNKNOWN, Wrong()
    wrong = wrong_of(verdict)
    if state in ("drained", "unsettled"):
        if _not_of_the_sink(verdict):
            return Seen.NONE, wrong
        return (Seen.NONE if any(_check(verdict, name) for name in NOTHING_SURE) else wrong.seen), wrong
    if wrong != Wrong():
        return wrong.seen, wrong
    return {"crashed": Seen.STOPPED, "stuck": Seen.STUCK}.get(state, Seen.UNKNOWN), wrong


def against_claim(verdict: Verdict, faults: Sequence[FaultReport], state: str, claim: str, *, planned: bool) -> str:
    """Return in words whether the sink's declared guarantee allows a FAIL; "" if the run is no FAIL, or failed in
    something else than how often events count.
    """
    if verdict.outcome is not Outcome.FAIL:
        return ""
    seen, _ = classified(verdict, faults, state, planned=planned)
    if _not_of_the_sink(verdict):
        return ""
    if seen in UNDECIDED or seen in (Seen.EXACTLY_ONCE, Seen.STUCK):
        return ""
    return f"{'within' if seen in KEEPS[claim] else 'breaks'} the declared guarantee {claim}"


def _not_of_the_sink(verdict: Verdict) -> bool:
    """A wrong value beside lost or duplicated events may result from these."""
    return bool(_check(verdict, "shifted")) or (bool(_check(verdict, "wrong")) and wrong_of(verdict) == Wrong())


def wrong_of(verdict: Verdict) -> Wrong:
    """Return L, D and M. An event counted in a cell without events is a duplicate."""
    counted = {name: _check(verdict, name) for name in ("lost", "duplicated", "phantom", "masked", "late")}
    if any(check.name == "late" and check.word == "lost" for check in verdict.checks):
        counted["lost"] += counted["late"]  # it could have been late, and was not
    return Wrong(counted["lost"], counted["duplicated"] + counted["phantom"], counted["masked"])


def _check(verdict: Verdict, name: str) -> int:
    failed: Iterator[CheckResult] = (
        check for check in verdict.checks if check.name == name and check.outcome is Outcome.FAIL
    )
    return next((max(1, check.count) for check in failed), 0)


def card(done: Sequence[Ran], claims: Mapping[tuple[str, str], str]) -> Card:
    """Return a cell for each engine, sink and fault, in the order of the runs. `claims` are by engine and sink."""
    cells: dict[tuple[str, str, str], list[Ran]] = {}
    stand = standing(done)
    for each in stand:
        cells.setdefault((each.case.engine, each.case.sink, each.case.fault), []).append(each)
    order = list(dict.fromkeys(key[:2] for key in cells))
    rows = sorted(cells.items(), key=lambda item: order.index(item[0][:2]))
    return Card(
        tuple(_cell(runs, claims[key[:2]]) for key, runs in rows),
        tuple(each for each in done if each not in stand),
        any(each.beside for each in done),
    )


def _cell(runs: Sequence[Ran], claim: str) -> Cell:
    """The counts of all runs add up: one that lost and one that duplicated make a sink without a guarantee."""
    judged = [each for each in runs if each.seen not in UNDECIDED]
    wrong = sum((each.wrong for each in judged), Wrong())
    classes = {each.seen for each in judged}
    worst = [each for each in (Seen.STUCK, Seen.NONE) if each in classes]
    if not judged:
        seen = Seen.UNKNOWN if any(each.seen is Seen.UNKNOWN for each in runs) else Seen.NOT_POSSIBLE
    elif worst:
        seen = worst[0]
    else:
        seen = Seen.STOPPED if wrong == Wrong() and Seen.STOPPED in classes else wrong.seen
    witness = next((each for each in runs if each.seen is seen), runs[0])
    case = witness.case
    return Cell(
        engine=case.engine,
        sink=case.sink,
        claim=claim,
        fault=case.fault,
        seen=seen,
        kept=None if seen in UNDECIDED else seen in KEEPS[claim],
        runs=len(judged),
        wrong=wrong,
        words=tuple(dict.fromkeys(word for each in judged for word in each.words)),
        recovery=_figures([each.recovery for each in judged if each.recovery]),
        witness=witness.run,
        sentence=witness.sentence,
        came=witness.came,
    )


def _figures(runs: Sequence[tuple[Recovery, ...]]) -> dict[str, Quantity]:
    """The worst of each run over its faults, then the median over the runs, if all of them reached it."""
    names = dict.fromkeys(name for run in runs for fault in run for name in fault.quantities)
    return {name: _middle([_worst(run, name) for run in runs]) for name in names}


def _worst(run: tuple[Recovery, ...], name: str) -> Quantity | None:
    found = [fault.quantities[name] for fault in run if name in fault.quantities]
    return _lacking(found) or max(found, key=lambda each: each.value or 0.0, default=None)


def _lacking(found: Sequence[Quantity]) -> Quantity | None:
    """The worst quantity without a value."""
    order = [*Lack, None]
    return min((each for each in found if each.value is None), key=lambda each: order.index(each.lack), default=None)


def _middle(found: Sequence[Quantity | None]) -> Quantity:
    known = [each for each in found if each is not None]
    values = [each.value for each in known if each.value is not None]
    if lacking := _lacking(known):
        return lacking
    if len(values) == 1:
        return known[0]
    over = [each.over_twin for each in known if each.over_twin is not None]
    return Quantity(median(values), f"median of {many(len(values), 'run')}", median(over) if over else None)
