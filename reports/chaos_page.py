"""The page of a chaos experiment, finished or not: the card as a picture and as tables, every run, the command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.experiments.chaos import KEEPS, Card, Cell, ChaosCase, Ran, Seen, pending
from harness.experiments.folder import Folder
from harness.experiments.upgrade import Word
from harness.install.origin import COMMAND
from harness.model import Outcome
from harness.rundir.store import Store
from harness.util.texts import many
from reports.card import (
    CHANGES,
    CLASSES,
    COSTS,
    FIGURES,
    WORDS_OF_CHANGES,
    beside,
    changes,
    counts,
    explained,
    full,
    groups,
    short,
    told,
)
from reports.card import of as card_of
from reports.card import save as save_card
from reports.command_flags import flag
from reports.exports import experiment, suite
from reports.figures import guarantee, losses
from reports.figures.style import Picture, picture
from reports.page import Link, Page, Section, Table
from reports.result import span_ms
from reports.saved import save
from reports.sections import fairness, next_step


@dataclass(frozen=True)
class Chaos:
    """The content of the page."""

    folder: Folder
    card: Card
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    wanted: tuple[ChaosCase, ...]
    done: tuple[Ran, ...]

    @property
    def missing(self) -> list[ChaosCase]:
        return pending(self.wanted, self.done)

    @property
    def outcome(self) -> Outcome:
        """The card's outcome; runs that were not made count as UNKNOWN."""
        return Outcome.worst([self.card.outcome, *([Outcome.UNKNOWN] if self.missing else [])])

    @property
    def sentence(self) -> str:
        if not self.missing:
            return self.card.sentence
        left = f"{len(self.missing)} of {many(len(self.wanted), 'run')} are missing"
        return f"{self.card.sentence}; {left}" if self.done else left

    @property
    def command(self) -> str:
        """The command line with the flags as the user gave them."""
        asked = self.settings.get("asked", {})
        flags = {**asked, **self.settings["flags"]}
        return shlex.join([COMMAND, "chaos", *(w for name, value in flags.items() for w in flag(name, value))])


def write(folder: Folder) -> Page:
    """Write the page, the card and the exports into the experiment's folder."""
    found = read(folder)
    page = page_of(found)
    save_card(found.card, folder.path)
    experiment.save(answer_of(found), folder.path)
    save(page, {}, folder.path)
    return page


def read(folder: Folder) -> Chaos:
    """Read the experiment's settings and runs from its folder. The card is made from the runs that are done."""
    settings: dict[str, Any] = folder.load("settings", dict[str, Any])
    machine: dict[str, Any] = folder.load("environment", dict[str, Any])
    wanted: list[ChaosCase] = folder.load("wanted", list[ChaosCase])
    done: list[Ran] = folder.load("done", list[Ran])
    return Chaos(folder, card_of(folder), settings, machine, tuple(wanted), tuple(done))


def answer_of(found: Chaos) -> experiment.Answer:
    """Return the answer for a CI job, with a case for each run."""
    claims = {(cell.engine, cell.sink): cell.claim for cell in found.card.cells}
    made = [
        _case(found, each.case, _outcome(each, claims[each.case.engine, each.case.sink]), each.sentence, each)
        for each in found.done
        if not each.is_again
    ]
    missing = [_case(found, case, Outcome.UNKNOWN, "not run", None) for case in found.missing]
    return experiment.Answer(
        "chaos",
        found.outcome,
        found.sentence,
        found.command,
        dict(fairness.flat(found.environment)),
        (*made, *missing),
    )


def _case(
    found: Chaos, case: ChaosCase, outcome: Outcome | None, sentence: str, ran: Ran | None
) -> experiment.ExperimentCase:
    group = suite.classname((str(found.settings["scenario"]), case.engine, case.sink))
    run, word = (ran.run, str(ran.seen)) if ran else ("", "not run")
    return experiment.ExperimentCase(group, f"{case.fault}, seed {case.seed}", outcome, sentence, run, word)


def _outcome(ran: Ran, claim: str) -> Outcome | None:
    """The outcome of one run against the sink's claim; None if the fault is not possible there."""
    if ran.seen is Seen.NOT_POSSIBLE:
        return None
    if ran.seen is Seen.UNKNOWN:
        return Outcome.UNKNOWN
    return Outcome.PASS if ran.seen in KEEPS[claim] else Outcome.FAIL


def page_of(found: Chaos) -> Page:
    card = found.card
    return Page(
        title="Guarantee card",
        subtitle=", ".join(_subtitle(found)),
        outcome=found.outcome,
        sentence=f"{found.sentence}.",
        facts=tuple(f"{cell.engine}/{cell.sink}, {cell.fault}: {told(cell)}" for cell in _worst(card)),
        numbers=(),
        withheld="",
        sections=(
            *_picture(card),
            *(_section(*key, cells) for key, cells in groups(card).items()),
            *_changes(card),
            Section("classes", "What the words mean", text=(CLASSES, *explained())),
            *_runs(found),
            fairness.machine(found.environment, "fairness"),
            Section("reproduce", "Do it again", code=(found.command,)),
            next_step.of_chaos(found.folder.path, card, found.missing),
        ),
    )


def _subtitle(found: Chaos) -> Iterator[str]:
    keys = {**found.settings["keys"], **found.settings["flags"]}
    seeds = sorted({case.seed for case in found.wanted})
    yield str(found.settings["scenario"])
    yield f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    yield from (f"{name} {value}" for name, value in keys.items() if name not in ("fault", "seed"))
    if found.folder.begun:
        yield found.folder.begun


def _worst(card: Card) -> list[Cell]:
    return [cell for cell in card.cells if cell.kept is False or cell.seen is Seen.UNKNOWN]


def _picture(card: Card) -> Iterator[Section]:
    if not card.cells:
        return
    marks = [_mark(cell) for cell in card.cells]
    alt = "; ".join(
        f"{mark.pair}, {mark.fault}: {mark.word}{', below its claim' if mark.below else ''}" for mark in marks
    )
    text = "Each cell is one fault on one engine and sink: the class of its counts and the time until the first output."
    yield Section(
        "card",
        "At a glance",
        picture=picture("card", alt, lambda sheet: guarantee.draw(marks, sheet)),
        text=(f"{text} An exclamation mark means: below the sink's claim.",),
    )


def _mark(cell: Cell) -> guarantee.Mark:
    back = cell.recovery.get(FIGURES["back"])
    pair = f"{cell.engine}/{cell.sink}"
    return guarantee.Mark(
        cell.fault,
        pair,
        cell.seen,
        f"{pair}, {cell.fault}: {told(cell)}",
        cell.kept is False,
        short(cell, "back") if back is not None and back.value is not None else "",
    )


def _section(engine: str, sink: str, claim: str, cells: Sequence[Cell]) -> Section:
    """The classes and the recoveries are separate tables, so that each fits the page's width."""
    times = tuple(column for column in FIGURES if column not in COSTS)
    return Section(
        re.sub(r"\W+", "-", f"on {engine} {sink}"),
        f"{engine}/{sink} claims {claim}",
        picture=_losses(sink, cells),
        tables=(
            Table(("kept", "fault", "seen", "runs", "counts", "witness"), tuple(_row(cell) for cell in cells)),
            Table(("fault", *times), tuple(_figures(cells, times)), "Recovery"),
            Table(("fault", *COSTS), tuple(_figures(cells, COSTS)), "What it cost"),
            Table(("fault", "what was seen"), tuple((cell.fault, told(cell)) for cell in cells), "Every cell", True),
        ),
    )


# Of a cluster: what the loss of each part cost, side by side.
LOSSES = {"first output after the fault": "first_output_s", "longest time without output": "longest_silence_s"}
OVER_BASELINE = "CPU of the engine over its baseline run"


def _losses(sink: str, cells: Sequence[Cell]) -> Picture | None:
    """Draw what each fault cost, if the engine ran on a cluster; None for others."""
    struck = [cell for cell in cells if "tasks_again" in cell.recovery]
    if len(struck) < 2:
        return None
    panels = [losses.Panel(title, tuple(_value(cell, name) for cell in struck)) for title, name in LOSSES.items()]
    panels.append(losses.Panel(OVER_BASELINE, tuple(_over_baseline(cell) for cell in struck)))
    faults = [named(cell.fault) for cell in struck]
    alt = "; ".join(f"{panel.title}: {_each(faults, panel)}" for panel in panels)
    return picture(f"losses-{sink}", alt, lambda sheet: losses.draw(faults, panels, sheet))


def _each(faults: Sequence[str], panel: losses.Panel) -> str:
    pairs = zip(faults, panel.values_s, strict=True)
    return ", ".join(f"{fault} {losses.written(value_s)}" for fault, value_s in pairs)


def _value(cell: Cell, name: str) -> float | None:
    return cell.recovery[name].value if name in cell.recovery else None


def _over_baseline(cell: Cell) -> float | None:
    return cell.recovery["cpu_s"].over_twin if "cpu_s" in cell.recovery else None


def _figures(cells: Sequence[Cell], columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for cell in cells:
        if any(values := [full(cell, column) for column in columns]):
            yield cell.fault, *values


def _row(cell: Cell) -> tuple[str | Link, ...]:
    witness = Link("its run", f"{cell.witness}/report.html") if cell.witness else ""
    undecided = "n/a" if cell.seen is Seen.NOT_POSSIBLE else Outcome.UNKNOWN.value
    kept = {True: Outcome.PASS.value, False: Outcome.FAIL.value, None: undecided}[cell.kept]
    return kept, cell.fault, str(cell.seen), str(cell.runs), counts(cell), witness


def _runs(found: Chaos) -> Iterator[Section]:
    rows = tuple(_ran(found, each) for each in found.done)
    left = tuple((f"{case.engine}/{case.sink}", case.fault, str(case.seed)) for case in found.missing)
    yield Section(
        "runs",
        "Every run",
        text=(
            "In the planned order. The runs without a fault are the baselines of the others.",
            *beside(found.card),
        ),
        tables=(
            Table(("engine/sink", "fault", "seed", "seen", "took", "run"), rows),
            Table(("engine/sink", "fault", "seed"), left, "Missing"),
        ),
    )


def _ran(found: Chaos, each: Ran) -> tuple[str | Link, ...]:
    case = each.case
    run = Link("its page", f"{each.run}/report.html") if each.run else ""
    span = span_ms(Store(found.folder.path / each.run)) if each.run else None
    took = f"{(span[1] - span[0]) / 1000:.0f} s" if span else ""
    return f"{case.engine}/{case.sink}", case.fault, str(case.seed), str(each.seen), took, run


def _changes(card: Card) -> Iterator[Section]:
    if not (rows := changes(card)):
        return
    marks = [_change(cell) for cell in card.cells if cell.came]
    alt = "; ".join(f"{mark.pair}, {mark.fault}: {mark.word}" for mark in marks)
    yield Section(
        "changes",
        "Result of each change",
        picture=picture("changes", alt, lambda sheet: guarantee.draw(marks, sheet)),
        text=(WORDS_OF_CHANGES,),
        tables=(Table(CHANGES, tuple(map(tuple, rows))),),
    )


def _change(cell: Cell) -> guarantee.Mark:
    """The mark shows the word of the upgrade instead of the class of its counts."""
    name, pair, word = named(cell.fault), f"{cell.engine}/{cell.sink}", Word(cell.came)
    return guarantee.Mark(name, pair, word, f"{pair}, {name}: {word}; {cell.sentence}")


def named(change: str) -> str:
    """Shorten a change for a picture: drop the usual moment and the families of settings. A bare `change-job` is the
    same job again.
    """
    text = re.sub(r"@(t|offset)>=[^@]*$", "", change)
    text = re.sub(r"(?:[\w-]+\.)+(?=[\w-]+\.[\w-]*[A-Za-z])", "", text)
    text = re.sub(r"^change-job\((.*)\)", r"\1", text).replace("conf=", "").replace("+", " + ")
    return text.replace("change-job", "the same job")
