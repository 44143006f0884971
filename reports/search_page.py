"""The page of a search, made from its files: latency against the rate, the interval, each rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.curve import lives as lives_of
from harness.experiments.curve import steer
from harness.experiments.curve.labels import Held
from harness.experiments.curve.plateau import Measured
from harness.experiments.folder import Folder
from harness.experiments.searching import search
from harness.experiments.searching.search import QUICK, WHOLE, digits
from harness.experiments.searching.searched import Searched, read
from harness.util.texts import many, three_digits
from reports import curve
from reports.curve import knee, rungs, time_spent
from reports.exports import experiment, suite
from reports.figures import throughput
from reports.figures.style import duration, picture
from reports.figures.throughput import Rung
from reports.page import Number, Page, Section, Table
from reports.saved import save
from reports.sections import fairness, next_step, reproduce

RATES = ("events/s", "", "visits", "p50", "p90", "p99", "p99.9", "longest", "processed/s", "CPU-s/M", "load CPU-s/M")
LINKS = ("life", "after", "events/s", "p50", "p99", "CPU-s/M", "load CPU-s/M")


def write(folder: Folder) -> Page:
    """Write the page with its drawing and numbers, and the exports."""
    searched = read(folder)
    page = page_of(searched)
    experiment.save(answer_of(searched), folder.path)
    save(page, {"throughput": curve.as_csv(searched)} if searched.visits else {}, folder.path)
    return page


def page_of(searched: Searched) -> Page:
    spec = searched.spec
    begun = Folder(searched.path).begun or searched.path.name
    return Page(
        title=f"Latency against the rate: {spec.engine}/{spec.sink}",
        subtitle=f"{spec.title}, seed {spec.tape.seed}, disorder {spec.disorder_name}, {begun}",
        outcome=searched.found.outcome,
        sentence=_sentence(searched),
        facts=tuple(_facts(searched)),
        numbers=(_interval(searched), _held(searched), _cost(searched)),
        withheld="",
        sections=(
            _throughput(searched),
            _rates(searched),
            _drift(searched),
            _lives(searched),
            _fairness(searched),
            _reproduce(searched),
            next_step.of_search(
                searched.path, searched.engine, held=bool(searched.found.low_per_s), finished=searched.finished
            ),
        ),
    )


def answer_of(searched: Searched) -> experiment.Answer:
    """Return the answer for a CI job: the search is one case. A rate that was exceeded is no failure of a search."""
    spec, found = searched.spec, searched.found
    case = experiment.ExperimentCase(
        suite.classname((spec.title, spec.engine, spec.sink)), "highest sustainable rate", found.outcome, found.sentence
    )
    facts = {"seed": str(spec.tape.seed), **dict(fairness.flat(searched.environment))}
    command = (_reproduce(searched).code or ("",))[-1]
    return experiment.Answer("search", found.outcome, case.sentence, command, facts, (case,))


def _sentence(searched: Searched) -> str:
    sentence = searched.found.sentence
    return f"{sentence if sentence.startswith('p99') else sentence[:1].upper() + sentence[1:]}."


def _facts(searched: Searched) -> Iterator[str]:
    objective = duration(searched.settings.life.objective_p99_ms)
    yield (
        f"All rates were offered to one running engine, one after the other, and all of its counts were judged. The "
        f"answer is the rate at which p99 of latency, by probes and by all events, crosses {objective}."
    )
    answer = searched.found.answer
    if answer and answer.second_way_per_s:
        yield (
            f"A second way, by how long batches of n events take: {digits(answer.second_way_per_s)} events/s, where "
            f"two of them take {objective}."
        )
    if told := "; ".join(map(curve.pulse_in_words, curve.pulses(searched))):
        yield f"A burst, which does not prove that a rate is sustained: {told}."
    if answer and answer.low_per_s is not None:
        yield f"Batches of one size took up to {answer.drift:.0%} longer in one repeat than in another."
    if searched.units:
        told = "; ".join(
            f"{digits(u.catch_up_per_s)} events/s, {three_digits(u.cpu_s_per_million)} CPU-s/M" for u in searched.units
        )
        yield f"The reference on this machine, after it was frozen at {searched.units[0].offered_per_s:,.0f}/s: {told}."
    if searched.measured:
        yield f"Load: {', '.join(f'{name} {seconds:.0f} s' for name, seconds in searched.load_s().items())}."
    yield from time_spent(searched)
    if unsound := [each for each in searched.measured if each.unsound]:
        told = ", ".join(f"{each.plateau.rate_per_s:,.0f}/s ({each.unsound})" for each in unsound[:3])
        yield f"{many(len(unsound), 'plateau')} were ignored, because their load check failed: {told}."


def _interval(searched: Searched) -> Number:
    found = searched.found
    if found.answer is None or found.answer.low_per_s is None or found.answer.high_per_s is None:
        return Number("highest sustainable rate", "", note=found.answer.why_not if found.answer else "not known")
    low, high = digits(found.answer.low_per_s), digits(found.answer.high_per_s)
    note = "; ".join([f"{found.answer.width:.0%} wide", *_share(searched)])
    return Number("highest sustainable rate", f"{low} to {high}", "events/s", note)


def _share(searched: Searched) -> Iterator[str]:
    if searched.shares:
        low, high = searched.shares
        yield f"{low:.0%} to {high:.0%} of the reference engine's rate"


def _held(searched: Searched) -> Number:
    held = [label for label in searched.labels if label.held is Held.YES]
    if not held:
        return Number("highest sustained rate", "none", note="a sustained rate needs two repeats of a minute")
    return Number("highest sustained rate", f"{held[-1].rate_per_s:,.0f}", "events/s", held[-1].reason)


def _cost(searched: Searched) -> Number:
    """The note names the rate, because an event costs less at a higher rate."""
    label = "CPU per million events"
    known = [rung for rung in rungs(searched) if rung.cpu_s_per_million]
    low = searched.found.low_per_s
    if not known or low is None:
        return Number(label, "", note="no rate is known to be sustained")
    rung = min(known, key=lambda rung: abs(rung.offered_per_s - low))
    assert rung.cpu_s_per_million is not None
    return Number(
        label, three_digits(rung.cpu_s_per_million.mid), "s", f"the engine at {rung.offered_per_s:,.0f} events/s"
    )


def _throughput(searched: Searched) -> Section:
    name, title = "throughput", "Latency against throughput"
    if not searched.visits:
        return Section(name, title, missing=("no rate has a figure that may be shown.",))
    seen, objective = rungs(searched), searched.settings.life.objective_p99_ms
    alt = (
        f"Latency, processed rate and CPU at {len(seen)} offered rates from {seen[0].offered_per_s:,.0f} to "
        f"{seen[-1].offered_per_s:,.0f} events per second. {_sentence(searched)}"
    )
    foretold = curve.foretold(searched)
    drawn = picture(name, alt, lambda sheet: throughput.draw(seen, knee(searched), objective, sheet, foretold))
    return Section(name, title, picture=drawn, text=tuple(_below_the_drawing(searched)))


def _below_the_drawing(searched: Searched) -> Iterator[str]:
    yield (
        "A filled mark is a rate that was sustained in two repeats. An open mark is one that was not, or had only "
        "one repeat. Latency is that of all events. Bands are drawn from whole blocks of 20 s; those of the "
        "processed rate and of CPU go from the lowest repeat to the highest."
    )
    if curve.foretold(searched):
        yield "The predicted p99 follows from the time that batches of n events take, if the machine is constant."
    if searched.found.low_per_s is not None:
        yield "p99 crosses the objective within the dark band; nothing beyond it is sustained."
    if not any(rung.p999_ms for rung in rungs(searched)):
        yield "p99.9 is drawn where ten events of each of two repeats took longer. There was no such rate."


def _rates(searched: Searched) -> Section:
    if not searched.visits:
        return Section("rates", "Each rate", text=("No rate was tested.",))
    reasons = tuple((f"{label.rate_per_s:,.0f}", label.held.value, label.reason) for label in searched.labels)
    text = (
        "Held (sustained): two repeats of a minute, a minute apart, each with p99 within the objective. Failed "
        "(exceeded): the backlog grew, or both repeats miss the objective. Open (undecided): neither. The load's "
        "CPU is the same work for each event, so it shows how fast the machine was."
    )
    return Section(
        "rates",
        "Each rate",
        text=(text,),
        tables=(
            Table(RATES, tuple(tuple(_row(searched, rung)) for rung in rungs(searched))),
            Table(("events/s", "", "why"), reasons, "Reasons"),
        ),
    )


def _row(searched: Searched, rung: Rung) -> Iterator[str]:
    label = searched.label_of(rung.offered_per_s)
    yield from (f"{rung.offered_per_s:,.0f}", label.held.value, str(label.visits))
    for latency in (rung.p50_ms, rung.p90_ms, rung.p99_ms, rung.p999_ms):
        yield duration(latency.mid) if latency else "-"
    yield duration(rung.most_ms) if rung.most_ms is not None else "-"
    yield f"{rung.achieved_per_s.mid:,.0f}" if rung.achieved_per_s else "-"
    for cost in (rung.cpu_s_per_million, rung.load_cpu_s_per_million):
        yield three_digits(cost.mid) if cost else "-"


def _drift(searched: Searched) -> Section:
    rows = [
        (f"{life}", f"{visit.plateau.from_ms % lives_of.APART_MS / 1000:,.0f} s", *_cells_of(visit))
        for life, own in enumerate(searched.lived, 1)
        for visit in lives_of.linked(own)
    ]
    text = "One rate is offered early and late, and in each engine run. Differences here are not caused by the rate."
    if not rows:
        return Section("drift", "Drift", text=("No rate was offered early and late.",))
    return Section("drift", "Drift", text=(text,), tables=(Table(LINKS, tuple(rows)),))


def _cells_of(visit: Measured) -> Iterator[str]:
    yield f"{visit.plateau.rate_per_s:,.0f}"
    yield from (duration(visit.events.quantile_ms(share)) for share in (0.5, 0.99))
    for cpu_s in (visit.engine_cpu_s, visit.load_cpu_s):
        cost = curve.per_million(visit, cpu_s)
        yield three_digits(cost) if cost is not None else "-"


def _lives(searched: Searched) -> Section:
    rows = tuple(
        (str(number), life.outcome.value, f"{life.seconds:,.0f} s", Path(life.run).name, life.sentence)
        for number, life in enumerate(searched.lives, 1)
    )
    planned = tuple(
        (name, f"{least_s} to {most_s} s") for name, (least_s, most_s) in steer.budget_s(searched.settings.life).items()
    )
    text = "Each is a run in a directory of its own below runs/; `streamgauge report` writes the page of one."
    return Section(
        "lives",
        "Engine runs",
        text=(text if rows else "There was none.",),
        tables=(
            *((Table(("no.", "verdict", "took", "run", "in words"), rows),) if rows else ()),
            Table(("part of an engine run's load", "planned"), planned, "The budget", folded=True),
        ),
    )


def _fairness(searched: Searched) -> Section:
    asked = dict(fairness.flat(msgspec.to_builtins(searched.settings)))
    spec = search.spec_of_a_life(searched.spec, searched.settings)
    run = {name: value for name, value in fairness.settings(spec).items() if name != "profile"}
    return Section(
        "fairness",
        "Fairness card",
        text=("Every engine run has these settings. The rates are decided during the run.",),
        tables=(
            Table(("", ""), tuple(fairness.flat(searched.environment)), "Machine and versions"),
            Table(("setting", "value"), tuple(asked.items()), "The search", folded=True),
            Table(("setting", "value"), tuple(run.items()), "All settings of each run", folded=True),
        ),
    )


def _reproduce(searched: Searched) -> Section:
    settings, remarks = searched.settings, []
    if settings not in (_as_asked(QUICK, searched), _as_asked(WHOLE, searched)):
        remarks = ["Its settings differ from those of this version of the program. The fairness card lists them."]
    quick = settings.lives == QUICK.lives
    return reproduce.of_a_search(searched.spec, searched.engine, settings.life.objective_p99_ms, remarks, quick=quick)


def _as_asked(settings: Any, searched: Searched) -> Any:
    own = searched.settings.life
    return replace(
        settings, life=replace(settings.life, window_ms=own.window_ms, objective_p99_ms=own.objective_p99_ms)
    )
