"""The guarantee card: on a terminal, in Markdown, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.chaos import Card, Cell, Seen
from harness.model import Outcome
from harness.recovery import WORDS
from reports.page import Link, Page, Section, Table
from reports.page import save as save_page

# Column: what of a recovery it shows. The first three fit a terminal.
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
}
SHORT = ("back", "silence", "wrong for")
HEADER = ("fault", "seen", "runs", *SHORT)
WIDTHS = (29, 16, 4, 7, 7, 9)
CLASSES = (
    "The class of a cell: L events are missing, D are too many, M are masked (one lost and one doubled in a cell). "
    "None of them is exactly once; D alone is at least once, L alone at most once, all else none. An engine that "
    "stopped for good without a wrong count stopped loudly, which is an outage and breaks no promise; one that hangs "
    "is stuck. A run proves no guarantee; it says that this many faults landed and what the counts were afterwards."
)


def save(card: Card, folder: Path, settings: Mapping[str, Any]) -> None:
    (folder / "card.md").write_text("\n".join(markdown(card)) + "\n", encoding="utf-8")
    value = msgspec.json.format(msgspec.json.encode(as_object(card, folder)), indent=1)
    (folder / "card.json").write_bytes(value + b"\n")
    save_page(page(card, settings), {}, folder)


def tables(card: Card) -> Iterator[tuple[str, list[list[str]]]]:
    """A heading and its rows for each engine and sink; below its claim is marked."""
    for (engine, sink, claim), cells in groups(card).items():
        yield f"{engine}/{sink} claims {claim}", [_row(cell) for cell in cells]


def endings(card: Card) -> Iterator[str]:
    """What has to be read on: each cell below its claim, and each that nobody knows."""
    for cell in card.cells:
        if cell.kept is False or cell.seen is Seen.UNKNOWN:
            words = f" ({', '.join(cell.words)})" if cell.words else ""
            yield f"{cell.engine}/{cell.sink}, {cell.fault}: {cell.seen}{words}; {cell.sentence}"
            if cell.witness:
                yield f"  {cell.witness}"


def groups(card: Card) -> dict[tuple[str, str, str], list[Cell]]:
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in card.cells:
        found.setdefault((cell.engine, cell.sink, cell.claim), []).append(cell)
    return found


def _row(cell: Cell) -> list[str]:
    return [cell.fault, _seen(cell), str(cell.runs), *(_short(cell, column) for column in SHORT)]


def _seen(cell: Cell) -> str:
    return f"{cell.seen} !" if cell.kept is False else str(cell.seen)


def _short(cell: Cell, column: str) -> str:
    """Empty where it does not apply; else its figure, or what it lacks."""
    quantity = cell.recovery.get(FIGURES[column])
    if quantity is None:
        return ""
    return quantity.text(lambda value: f"{value:.1f} s" if WORDS[FIGURES[column]][1] == "s" else f"{value:,.0f}")


def _full(cell: Cell, column: str) -> str:
    """With what it was more than its twin's."""
    quantity = cell.recovery.get(FIGURES[column])
    if quantity is None:
        return ""
    digits = 1 if WORDS[FIGURES[column]][1] == "s" else 0
    over = "" if quantity.over_twin is None else f" ({quantity.over_twin:+,.{digits}f})"
    return _short(cell, column) + over


def _counts(cell: Cell) -> str:
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
        yield f"| fault | seen | runs | counts | {' | '.join(FIGURES)} | witness |"
        yield "| --- | --- | --- | --- |" + " --- |" * (len(FIGURES) + 1)
        for cell in cells:
            figures = " | ".join(_full(cell, column) for column in FIGURES)
            seen = f"**{cell.seen}**, below its claim" if cell.kept is False else str(cell.seen)
            witness = f"[{Path(cell.witness).name}]({cell.witness}/summary.md)" if cell.witness else ""
            yield f"| `{cell.fault}` | {seen} | {cell.runs} | {_counts(cell)} | {figures} | {witness} |"
        yield ""
        yield from (f"- `{cell.fault}`: {_told(cell)}" for cell in cells)
    yield ""
    yield "Figures in brackets are what is more than in the run of the same seed without a fault."


def _told(cell: Cell) -> str:
    words = f" ({', '.join(cell.words)})" if cell.words else ""
    return f"{cell.seen}{words}: {cell.sentence}"


def page(card: Card, settings: Mapping[str, Any]) -> Page:
    sections = tuple(_section(*key, cells) for key, cells in groups(card).items())
    keys = {**settings["keys"], **settings["flags"]}
    asked = ", ".join(f"{name} {value}" for name, value in keys.items() if name != "fault")
    about = Section("classes", "What the words mean", text=(CLASSES, *_explained()))
    return Page(
        title="Guarantee card",
        subtitle=asked,
        outcome=card.outcome,
        sentence=f"{card.sentence}.",
        facts=(),
        numbers=(),
        withheld="",
        sections=(*sections, about),
    )


def _section(engine: str, sink: str, claim: str, cells: list[Cell]) -> Section:
    """What was seen and how it came back, apart: each fits a page."""
    recovered = tuple((cell.fault, *(_full(cell, column) for column in FIGURES)) for cell in cells if cell.recovery)
    shown = [Table(("", "fault", "seen", "runs", "counts", "witness"), tuple(_page_row(cell) for cell in cells))]
    if recovered:
        shown.append(Table(("fault", *FIGURES), recovered, "How it came back"))
    told = tuple((cell.fault, _told(cell)) for cell in cells)
    shown.append(Table(("fault", "what was seen"), told, "Every cell", folded=True))
    return Section(f"{engine}-{sink}", f"{engine}/{sink} claims {claim}", tables=tuple(shown))


def _page_row(cell: Cell) -> tuple[str | Link, ...]:
    witness = Link("its run", f"{cell.witness}/report.html") if cell.witness else ""
    undecided = "n/a" if cell.seen is Seen.NOT_POSSIBLE else Outcome.UNKNOWN.value
    kept = {True: Outcome.PASS.value, False: Outcome.FAIL.value, None: undecided}[cell.kept]
    return kept, cell.fault, str(cell.seen), str(cell.runs), _counts(cell), witness


def _explained() -> Iterator[str]:
    yield "PASS keeps what the sink claims, FAIL is below it; n/a can't be done there, and the folded table says why."
    yield (
        "Recovery counts from the moment at which the fault struck. never: it could have come and did not; for good: "
        "it lasted until the end; not known: it could not come, because the load had ended or the next fault struck "
        "first; withheld: no speed is shown for wrong counts. Empty: does not apply. In brackets: more than in the run "
        "without a fault."
    )
