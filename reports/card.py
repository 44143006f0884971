"""The guarantee card for a terminal, in Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.config import plan
from harness.engines import manifest as manifests
from harness.experiments.chaos import Card, Cell, Ran, Seen
from harness.experiments.chaos import card as made
from harness.experiments.folder import Folder
from harness.host import disk_space
from harness.measuring.recovery import WORDS
from harness.util.text_tables import markdown as table_lines

# From a column to the figure of a recovery. The first three fit a terminal.
FIGURES = {
    "back": "first_output_s",
    "silence": "longest_silence_s",
    "wrong for": "wrong_value_s",
    "detected": "detect_s",
    "over": "over_s",
    "caught up": "catch_up_s",
    "backlog": "peak_backlog",
    "outage": "loud_stop_s",
    "disagree": "disagreed_s",
    "CPU": "cpu_s",
    "tasks again": "tasks_again",
    "records again": "records_again",
    "benefit": "benefit_s",
}
COSTS = ("CPU", "tasks again", "records again", "benefit")  # in a table of their own on a page
SHORT = ("back", "silence", "wrong for")
HEADER = ("fault", "seen", "runs", *SHORT)
CLASSES = (
    "The class of a cell: L events are missing, D are too many, M are masked (one lost and one doubled in a cell). "
    "None of them is exactly once; D alone is at least once, L alone at most once, everything else is none. An "
    "engine that stopped for good without a wrong count stopped loudly, which is an outage and breaks no promise; "
    "one that hangs is stuck. A run does not prove a guarantee. It shows how many faults landed and what the counts "
    "were afterwards."
)

BESIDE = "Runs were parallel and shared the machine, so times and backlogs are larger than in a single run."


def of(experiment: Folder) -> Card:
    """Build the card from the stored results of an experiment."""
    settings: dict[str, Any] = experiment.load("settings", dict[str, Any])
    done: list[Ran] = experiment.load("done", list[Ran])
    workload = plan.workload_of({**settings["keys"], **settings["flags"]})
    sinks = dict.fromkeys((each.case.engine, each.case.sink) for each in done)
    return made(done, {(engine, sink): manifests.load(engine, workload).sink(sink).guarantee for engine, sink in sinks})


def save(card: Card, folder: Path) -> None:
    disk_space.write(folder / "card.md", ("\n".join(markdown(card)) + "\n").encode())
    value = msgspec.json.format(msgspec.json.encode(as_object(card, folder)), indent=1)
    disk_space.write(folder / "card.json", value + b"\n")


def tables(card: Card) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield a heading and the rows for each engine and sink. Cells below the sink's claim are marked."""
    for (engine, sink, claim), cells in groups(card).items():
        yield f"{engine}/{sink} claims {claim}", [_row(cell) for cell in cells]


CHANGES = ("engine", "change", "result")
WORDS_OF_CHANGES = (
    "right: as declared. refused: the new job stopped loudly, and the old one went on. ignored: the "
    "old query stayed in use, or the checkpoint kept the old setting. partial: the new query applies "
    "only after the change. residue: values of the old job remain. collision: two queries write to "
    "one cell. wrong: none of these."
)


def changes(card: Card) -> list[list[str]]:
    """List the engine, the change and the resulting word of each upgrade."""
    return [[f"{cell.engine}/{cell.sink}", cell.fault, cell.came] for cell in card.cells if cell.came]


def endings(card: Card) -> Iterator[str]:
    """Yield the details of each cell that is below its claim or unknown, and the notes on runs in parallel."""
    for cell in card.cells:
        if cell.kept is False or cell.seen is Seen.UNKNOWN:
            words = f" ({', '.join(cell.words)})" if cell.words else ""
            yield f"{cell.engine}/{cell.sink}, {cell.fault}: {cell.seen}{words}; {cell.sentence}"
            if cell.witness:
                yield f"  {cell.witness}"
    yield from beside(card)


def beside(card: Card) -> Iterator[str]:
    """Yield the notes on runs that shared the machine with others."""
    if card.beside:
        yield BESIDE
    for each in card.again:
        case = each.case
        yield (
            f"{case.engine}/{case.sink}, {case.fault}, seed {case.seed} was undecided in parallel with another run, "
            f"and was repeated alone: {each.sentence}"
        )


def groups(card: Card) -> dict[tuple[str, str, str], list[Cell]]:
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in card.cells:
        found.setdefault((cell.engine, cell.sink, cell.claim), []).append(cell)
    return found


def _row(cell: Cell) -> list[str]:
    return [cell.fault, _seen(cell), str(cell.runs), *(short(cell, column) for column in SHORT)]


def _seen(cell: Cell) -> str:
    return f"{cell.seen} !" if cell.kept is False else str(cell.seen)


def short(cell: Cell, column: str) -> str:
    """Write the figure of a column, or why it is missing; "" where the column does not apply."""
    quantity = cell.recovery.get(FIGURES[column])
    if quantity is None:
        return ""
    return quantity.text(lambda value: f"{value:.1f} s" if WORDS[FIGURES[column]][1] == "s" else f"{value:,.0f}")


def full(cell: Cell, column: str) -> str:
    """Write the figure of a column with its difference from the baseline run."""
    quantity = cell.recovery.get(FIGURES[column])
    if quantity is None:
        return ""
    digits = 1 if WORDS[FIGURES[column]][1] == "s" else 0
    over = "" if quantity.over_twin is None else f" ({quantity.over_twin:+,.{digits}f})"
    return short(cell, column) + over


def counts(cell: Cell) -> str:
    wrong = cell.wrong
    parts = [
        f"{n} {count:,}" for n, count in (("L", wrong.lost), ("D", wrong.duplicated), ("M", wrong.masked)) if count
    ]
    return ", ".join(parts)


def as_object(card: Card, folder: Path) -> dict[str, Any]:
    return {
        "command": "chaos",
        "verdict": card.outcome.value,
        "exit": card.outcome.exit_code,
        "sentence": card.sentence,
        "experiment": str(folder),
        "cells": msgspec.to_builtins(card.cells),
        "beside": card.beside,
        "again": msgspec.to_builtins(card.again),
    }


def markdown(card: Card) -> Iterator[str]:
    yield "# Guarantee card"
    yield ""
    yield f"**{card.outcome.value}**: {card.sentence}."
    yield ""
    yield CLASSES
    for (engine, sink, claim), cells in groups(card).items():
        yield ""
        yield f"## {engine}/{sink} claims {claim}"
        yield ""
        rows = [_markdown_row(cell) for cell in cells]
        yield from table_lines(("fault", "seen", "runs", "counts", *FIGURES, "witness"), rows)
        yield ""
        yield from (f"- `{cell.fault}`: {told(cell)}" for cell in cells)
    if came := changes(card):
        yield from ("", "## Result of each change", "")
        yield from table_lines(CHANGES, [[engine, f"`{change}`", word] for engine, change, word in came])
    yield ""
    yield "Figures in brackets are the difference from the baseline run of the same seed without a fault."
    for line in beside(card):
        yield ""
        yield line


def _markdown_row(cell: Cell) -> list[str]:
    seen = f"**{cell.seen}**, below its claim" if cell.kept is False else str(cell.seen)
    witness = f"[{Path(cell.witness).name}]({cell.witness}/summary.md)" if cell.witness else ""
    figures = (full(cell, column) for column in FIGURES)
    return [f"`{cell.fault}`", seen, str(cell.runs), counts(cell), *figures, witness]


def told(cell: Cell) -> str:
    words = f" ({', '.join(cell.words)})" if cell.words else ""
    return f"{cell.seen}{words}: {cell.sentence}"


def explained() -> Iterator[str]:
    yield "PASS keeps what the sink claims, FAIL is below it; n/a is impossible there; the folded table has the reason."
    yield (
        "Recovery counts from the moment at which the fault struck. never: it was possible but did not happen; for "
        "good: "
        "it lasted until the end; not known: the load ended or the next fault struck first; withheld: no speed is "
        "shown for wrong counts. Empty: does not apply. In brackets: the difference from the baseline run without a "
        "fault."
    )
    yield (
        "CPU is the engine's CPU time from the strike to the end of the run. Tasks again are tasks that Spark lost and "
        "ran again, records again those of batches that ran again after a restart. Benefit is the time until an engine "
        "with more resources had less to do than before, for 5 s."
    )
