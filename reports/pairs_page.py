"""The page of engines in pairs: the matrix of ratios, the starts of each pair, and whether three ratios agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.experiments import pairing
from harness.experiments.folder import Folder
from harness.experiments.pairing import Measured, Paired
from harness.util.texts import three_digits
from reports import paired
from reports.exports import experiment
from reports.figures import ratios
from reports.figures.ratios import Cell
from reports.figures.style import picture
from reports.page import Link, Page, Section, Table
from reports.paired import Record
from reports.saved import save
from reports.sections import fairness


def write(folder: Folder) -> Page:
    record = paired.read(folder)
    page = page_of(record)
    experiment.save(answer_of(record), folder.path)
    save(page, {}, folder.path)
    return page


def page_of(record: Record) -> Page:
    found = record.found
    known = any(each.ratio for each in found.pairs)
    return Page(
        title="Which engine costs less CPU: in pairs",
        subtitle=paired.subtitle(record),
        outcome=found.outcome,
        sentence=f"{found.sentence[:1].upper()}{found.sentence[1:]}.",
        facts=(
            "Both engines of a pair run at the same moment on the same cores, and get the same bursts. Every count of "
            "both is judged; an engine that counts wrong has no cost.",
        ),
        numbers=(),
        withheld="" if known else "no pair could be compared",
        sections=(
            *((_matrix(found),) if known else ()),
            _pairs(found),
            _notes(found),
            _runs(record),
            fairness.machine(record.environment),
            Section("reproduce", "Do it again", code=(paired.command(record),)),
        ),
    )


def cells(found: Paired) -> dict[tuple[str, str], Cell]:
    """Return each ratio and its inverse."""
    made = {}
    for each in found.pairs:
        if each.ratio:
            cell = Cell(each.ratio.estimate, each.ratio.low, each.ratio.high)
            made[each.pair.first, each.pair.second] = cell
            made[each.pair.second, each.pair.first] = cell.turned
    return made


def _matrix(found: Paired) -> Section:
    known = cells(found)
    alt = "; ".join(each.sentence for each in found.pairs if each.ratio)
    return Section(
        "matrix",
        "The ratios",
        picture=picture("ratios", alt, lambda sheet: ratios.draw(found.engines, known, sheet)),
        text=(
            f"Each cell is the cost of the row's engine divided by that of the column's, in CPU seconds per million "
            f"events. The second line is the interval, at {pairing.LEVEL:.0%}. Green: the row costs less. Grey: the "
            f"interval contains 1.",
        ),
        tables=(Table(("cost ratio to", *found.engines), tuple(_lines(found, known))),),
    )


def _lines(found: Paired, known: dict[tuple[str, str], Cell]) -> Iterator[tuple[str, ...]]:
    for row in found.engines:
        yield (row, *(_text(known.get((row, column))) for column in found.engines))


def _text(cell: Cell | None) -> str:
    return f"{cell.estimate:.2f} ({cell.low:.2f} to {cell.high:.2f})" if cell else "-"


def _pairs(found: Paired) -> Section:
    starts = tuple(
        (
            f"{each.pair.first} by {each.pair.second}",
            ", ".join(map(three_digits, each.starts)),
            f"{each.starts_differ:.1%}",
            f"{each.rounds_differ:.1%}",
        )
        for each in found.pairs
        if each.ratio
    )
    columns = ("pair", "the ratio of each start", "starts differ by", "rounds differ by")
    return Section(
        "pairs",
        "Pair by pair",
        text=(
            "CPU-s/M: CPU seconds of the engine and its workers per million events, less what it uses with nothing to "
            "do, and less what a JVM compiles. Those of one engine differ from pair to pair, since it shares the core "
            "with another one: only the ratio is to be compared.",
        ),
        tables=(
            Table(paired.HEADER, tuple(map(tuple, paired.rows(found)))),
            Table(columns, starts, "Start by start"),
        ),
    )


def _notes(found: Paired) -> Section:
    said = [*paired.notes(found)]
    return Section("notes", "Further observations", text=tuple(f"{each}." for each in said) or ("Nothing.",))


def _runs(record: Record) -> Section:
    rows = tuple(
        (Link(Path(run).name, f"{run}/report.html"), f"{each.pair.first} and {each.pair.second}", each.outcome.value)
        for each in record.found.pairs
        for run in each.runs
    )
    return Section(
        "runs",
        "One run of each side",
        text=("`streamgauge report RUN` writes the page of a run. The others are in runs/ too.",),
        tables=(Table(("run", "pair", "verdict"), rows),),
    )


def answer_of(record: Record) -> experiment.Answer:
    """Make a case of each pair for a CI job."""
    cases = tuple(map(_case, record.found.pairs))
    facts = dict(fairness.flat(record.environment))
    return experiment.Answer(
        "compare", record.found.outcome, record.found.sentence, paired.command(record), facts, cases
    )


def _case(each: Measured) -> experiment.ExperimentCase:
    run = each.runs[0] if each.runs else ""
    return experiment.ExperimentCase(
        "pairs", f"{each.pair.first} by {each.pair.second}", each.outcome, each.sentence, run
    )
