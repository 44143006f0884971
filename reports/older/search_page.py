"""The page of a search, from its experiment.json alone: the interval, latency against throughput, every trial."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.folder import FINISHED, Folder
from harness.experiments.searching.older_search import Held, Stage, Trial
from harness.model import Outcome
from harness.store import Store
from harness.texts import many
from reports.exports import experiment, suite
from reports.figures import throughput
from reports.figures.style import duration, picture
from reports.older.searched import Searched, range_of, read
from reports.page import Link, Number, Page, Section, Table
from reports.saved import save
from reports.sections import fairness, reproduce
from reports.sections import next_step as next_steps

TRIALS = ("no.", "stage", "events/s", "said", "p50", "p99", "CPU-s/M", "load CPU-s/M", "run")
REASONS = ("no.", "events/s", "why it is not said to have held")
ENDS = ("low", "mid", "high")
CURVE = (
    "offered_per_s",
    "held",
    *(f"{name}_{end}" for name in ("processed_per_s", "p50_ms", "p99_ms") for end in ENDS),
)


def write(folder: Folder) -> Page:
    """Make the page anew, with its drawing and its curve."""
    searched = read(folder)
    page = page_of(searched)
    experiment.save(answer_of(searched), folder.path)
    save(page, {"throughput": _curve(searched)} if searched.rungs else {}, folder.path)
    return page


def page_of(searched: Searched) -> Page:
    spec = searched.spec
    return Page(
        title=f"Highest sustainable rate of {spec.engine}/{spec.sink}",
        subtitle=f"{spec.title}, seed {spec.tape.seed}, disorder {spec.disorder_name}, {_begun(searched)}",
        outcome=searched.found.outcome,
        sentence=_sentence(searched),
        facts=tuple(_facts(searched)),
        numbers=(_held(searched), _failed(searched), _cost(searched)),
        withheld="",
        sections=(
            _throughput(searched),
            _trials(searched),
            _fairness(searched),
            _reproduce(searched),
            _next(searched),
        ),
    )


def _begun(searched: Searched) -> str:
    return Folder(searched.path).begun or searched.path.name


def _next(searched: Searched) -> Section:
    """It can't be gone on with: how one is made has changed since."""
    return next_steps.of_search(
        searched.path, searched.spec.engine, held=searched.found.held_per_s is not None, finished=True
    )


def answer_of(searched: Searched) -> experiment.Answer:
    """For a CI job: the search is one case; that a trial failed is no failure of a search."""
    spec = searched.spec
    case = experiment.Case(
        suite.classname((spec.title, spec.engine, spec.sink)),
        "highest sustainable rate",
        searched.found.outcome,
        _sentence(searched).removesuffix("."),
    )
    facts = {"seed": str(spec.tape.seed), **dict(_flat(searched.environment))}
    command = (_reproduce(searched).code or ("",))[-1]
    return experiment.Answer("search", case.outcome or Outcome.UNKNOWN, case.sentence, command, facts, (case,))


def _sentence(searched: Searched) -> str:
    """As the command says it, but for a search that ended before anything was at its limit."""
    found = searched.found
    if not searched.tried:
        return "No rate was tried, so nothing is known of the highest one."
    if found.held_per_s is not None and found.failed_per_s is None and not found.limited:
        return f"At least {found.held_per_s:,.0f} events/s: no rate failed, and no higher one was tried."
    return f"{found.sentence[:1].upper()}{found.sentence[1:]}."


def _facts(searched: Searched) -> Iterator[str]:
    yield (
        "A rate holds when its counts are right, its load certificate is valid, p99 of latency is at most "
        f"{duration(searched.settings.objective_p99_ms)}, and it is steady, in one run or by all of its runs together."
    )
    if searched.trials:
        counted = Counter(_said(searched, trial) for trial in searched.trials)
        told = ", ".join(f"{count} {said}" for said, count in counted.items())
        minutes = sum(trial.seconds for trial in searched.trials) / 60
        yield f"Trials: {len(searched.trials)} in {minutes:,.0f} minutes ({told})."
    yield from _doubts(searched)


def _doubts(searched: Searched) -> Iterator[str]:
    """What a reader has to know before believing the interval or the curve."""
    found, settings = searched.found, searched.settings
    held, failed = found.held_per_s or 0.0, found.failed_per_s or 0.0
    ladder = [trial for trial in searched.tried if trial.stage is Stage.LADDER]
    if broken := [t for t in ladder if t.held is Held.NO and t.rate_per_s <= held and not searched.excuse(t)]:
        yield f"On the ladder a rate failed that should hold: {_rates(broken)}."
    if inside := [t for t in searched.tried if t.held is Held.LIMITED and held < t.rate_per_s < failed]:
        yield f"Within the interval the generator was the limit, not the engine: {_rates(inside)}."
    if left_open := searched.left_open:
        yield f"No run grew at {_rates(left_open)}, but all together could not exclude it: counted as failed."
    rungs = len(settings.ladder) * settings.rounds
    if not any(Store(searched.path).history(FINISHED)):
        yield "The search is not finished."
    elif found.held_per_s is not None and len(ladder) < rungs:
        yield f"The search ended with {len(ladder)} of {many(rungs, 'run')} of its ladder."


def _rates(trials: list[Trial]) -> str:
    return ", ".join(f"{rate:,.0f}/s" for rate in sorted({trial.rate_per_s for trial in trials}))


def _held(searched: Searched) -> Number:
    label, rate = "highest rate that held", searched.found.held_per_s
    if not searched.tried:
        return Number(label, "", note="no rate was tried")
    if rate is None:
        some = any(trial.held is Held.YES for trial in searched.tried)
        return Number(label, "none", note="each that held failed too, or is above one" if some else "no trial held")
    telling = [trial for trial in searched.at(rate) if not searched.excuse(trial)]
    return Number(label, f"{rate:,.0f}", "events/s", _confirmed(telling))


def _confirmed(trials: Sequence[Trial]) -> str:
    """An open run confirms what another one has shown; where none has, all of them together did."""
    telling = [trial for trial in trials if trial.held in (Held.YES, Held.OPEN) and trial.stage is not Stage.LADDER]
    if not any(trial.held is Held.YES for trial in telling):
        return f"shown by {many(len(telling), 'run')} together"
    return "confirmed by a fresh run" if len(telling) > 1 else "not confirmed by a fresh run"


def _failed(searched: Searched) -> Number:
    label, found = "lowest rate that failed", searched.found
    if not searched.tried:
        return Number(label, "", note="no rate was tried")
    if found.failed_per_s is None:
        return Number(label, "none", note="the load generator was the limit" if found.limited else "none was too high")
    note = "no lower one failed"
    if found.held_per_s is not None:
        width = found.failed_per_s / found.held_per_s - 1
        note = f"the interval is {width:.1%} wide; {searched.settings.width:.0%} is narrow enough"
    return Number(label, f"{found.failed_per_s:,.0f}", "events/s", note)


def _cost(searched: Searched) -> Number:
    label, rate = "CPU per million events", searched.found.held_per_s
    if rate is None:
        return Number(label, "", note="no rate held")
    seen = [t.cpu_s_per_million for t in searched.at(rate) if t.cpu_s_per_million is not None]
    spread = range_of(seen)
    if spread is None:
        return Number(label, "", note="what the engine used is not known")
    between = (
        f", median of {many(len(seen), 'run')} ({_seconds(spread.low)} to {_seconds(spread.high)})"
        if len(seen) > 1
        else ""
    )
    return Number(label, _seconds(spread.mid), "s", f"the engine at {rate:,.0f} events/s{between}")


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _throughput(searched: Searched) -> Section:
    name, title = "throughput", "Latency against throughput"
    if not searched.has_figures:
        return Section(name, title, missing=("no trial has a figure that may be shown.",))
    rungs, objective = searched.rungs, searched.settings.objective_p99_ms
    alt = (
        f"Latency and processed rate at {len(rungs)} offered rates from {rungs[0].offered_per_s:,.0f} to "
        f"{rungs[-1].offered_per_s:,.0f} events per second. {_sentence(searched)}"
    )
    drawn = picture(name, alt, lambda sheet: throughput.draw(rungs, searched.knee, objective, sheet))
    return Section(name, title, picture=drawn, text=tuple(_below_the_drawing(searched)))


def _below_the_drawing(searched: Searched) -> Iterator[str]:
    yield (
        "A filled mark is a rate that held, an open one a rate that did not. Where a rate was tried more than once the "
        "mark is the median, and the band goes from the lowest to the highest."
    )
    if searched.knee and searched.knee.failed_per_s:
        yield "The engine's limit lies within the dark band; nothing beyond it is sustained."
    if warm_up_ms := searched.settings.warm_up_ms:
        yield (
            f"Processed is the mean over the whole load. Its first {duration(warm_up_ms)} go up to the offered rate, "
            "so that it lies below that even where the engine keeps up."
        )
    unseen = sum(t.p99_ms is None for t in searched.tried)
    if unseen:
        yield f"Trials without a point for p99, because it was withheld or could not be measured: {unseen}."


def _trials(searched: Searched) -> Section:
    numbered = list(enumerate(searched.trials, 1))
    reasons = tuple((str(no), _rate(trial), trial.reason) for no, trial in numbered if trial.held is not Held.YES)
    text = (
        "In the order in which they ran. Each is a run with a page of its own: report.html in its directory below "
        "runs/. A dash is a figure that was not measured, or withheld because counts or load were not right. Sending "
        "costs the same work for each event, so its CPU shows how fast the machine was. A rate that failed while "
        "sending cost a seventh more than at another time is tried again."
    )
    return Section(
        "trials",
        "Every trial",
        text=(text if numbered else "None was made.",),
        tables=(
            *(
                (Table(TRIALS, tuple(_row(no, trial, _said(searched, trial)) for no, trial in numbered)),)
                if numbered
                else ()
            ),
            *((Table(REASONS, reasons, "Reasons"),) if reasons else ()),
        ),
    )


def _said(searched: Searched, trial: Trial) -> str:
    return searched.excuse(trial) or trial.held.value


def _rate(trial: Trial) -> str:
    if trial.held is Held.ESTIMATE:
        return f"about {float(f'{trial.rate_per_s:.3g}'):,.0f}"
    return f"{trial.rate_per_s:,.0f}"


def _row(number: int, trial: Trial, said: str) -> tuple[str | Link, ...]:
    """Of its directory the name alone: the experiment may have been moved."""
    return (
        str(number),
        trial.stage.value,
        _rate(trial),
        said,
        *("-" if figure is None else duration(figure) for figure in (trial.p50_ms, trial.p99_ms)),
        *(
            "-" if figure is None else _seconds(figure)
            for figure in (trial.cpu_s_per_million, trial.load_cpu_s_per_million)
        ),
        Link(Path(trial.run).name, f"runs/{Path(trial.run).name}/report.html"),
    )


def _fairness(searched: Searched) -> Section:
    asked = msgspec.to_builtins(searched.settings)
    run = {name: value for name, value in fairness.settings(searched.spec).items() if name != "profile"}
    return Section(
        "fairness",
        "Fairness card",
        text=("Every trial is a fresh run with these settings, at a rate that the search chooses.",),
        tables=(
            Table(("setting", "value"), tuple((name, _text(value)) for name, value in asked.items()), "The search"),
            Table(("", ""), tuple(_flat(searched.environment)), "Machine and versions"),
            Table(("setting", "value"), tuple(run.items()), "All settings of each run", folded=True),
        ),
    )


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(f"{share:g}" for share in value)
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


def _flat(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in environment.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        else:
            yield name, str(value)


def _reproduce(searched: Searched) -> Section:
    other = "It was made of a fresh run for each trial; a search offers its rates to one living engine now."
    return reproduce.of_a_search(searched.spec, searched.settings.objective_p99_ms, [other])


def _curve(searched: Searched) -> str:
    """What the drawing shows, as CSV. An empty field was not measured or is withheld."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CURVE)
    for rung in searched.rungs:
        ranges = (rung.achieved_per_s, rung.p50_ms, rung.p99_ms)
        ends = [end for each in ranges for end in ((each.low, each.mid, each.high) if each else ("", "", ""))]
        writer.writerow([rung.offered_per_s, "yes" if rung.held else "no", *ends])
    return file.getvalue()
