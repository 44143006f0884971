"""The page of an engine on several numbers of cores or executors: a picture, a table, and what can't be concluded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.experiments.folder import Folder
from harness.experiments.scale import KIND, SCENARIO, Scaled, ScaleRequest, in_words, unit_of, whole
from harness.experiments.scaling_law import Estimate
from reports import scaled
from reports.exports import experiment
from reports.figures import scaling
from reports.figures.scaling import Mark, Scaling
from reports.figures.style import picture
from reports.page import Page, Section, Table
from reports.saved import csv_of, save
from reports.scaled import Record
from reports.sections import every_run, fairness, reproduce

STEPS = 60  # of the drawn curve
QUOTA = (
    "A part of a core is a CPU quota, as a container has one: in each period of 100 ms the engine runs at full speed "
    "until it has used its share, and then stands still with all of its threads. So the rate is a mean over pauses. It "
    "says nothing of what more cores do, and no law is fitted to it. The latency of these runs includes the pauses. A "
    "note on the page of each run says in how many periods the quota stopped it."
)


def write(folder: Folder) -> Page:
    record = scaled.read(folder)
    page = page_of(record)
    experiment.save(answer_of(record), folder.path)
    save(page, {"scaling": csv_of(_lines(record.found))}, folder.path)
    return page


def page_of(record: Record) -> Page:
    found = record.found
    begun = f", {record.folder.begun}" if record.folder.begun else ""
    rounds = "one round" if found.asked.settings.rounds == 1 else f"{found.asked.settings.rounds} rounds"
    unit, listed = f"{found.asked.unit}s", ", ".join(f"{each:g}" for each in found.asked.cores)
    return Page(
        title=f"How {found.asked.engine} scales with {unit}",
        subtitle=f"{listed} {unit}; {rounds} from seed {found.asked.seed}{begun}",
        outcome=found.outcome,
        sentence=f"{found.sentence[:1].upper()}{found.sentence[1:]}.",
        facts=tuple(f"{each[:1].upper()}{each[1:]}." for each in found.notes()),
        numbers=(),
        withheld="" if found.rates else "no run has a rate that may be shown",
        sections=(
            *_curve(found),
            every_run.section(found.done, unit, lambda case: f"{case.cores:g}"),
            fairness.machine(record.environment),
            Section(
                "reproduce",
                "Do it again",
                text=tuple(reproduce.hidden(found.asked.flags)),
                code=(scaled.command(found),),
            ),
        ),
    )


def _curve(found: Scaled) -> Iterator[Section]:
    title = f"Rate against {found.asked.unit}s"
    if not found.rates:
        yield Section("scaling", title, missing=("no run has a rate that may be shown.",))
        return
    drawn = Scaling(
        found.asked.engine,
        found.asked.unit,
        means=[_mark(each.cores, each.rate) for each in found.points],
        runs=[(cores, value) for cores, values in found.rates.items() for value in values],
        curve=[*_drawn(found)],
        reference=_mark(1, found.reference.rate) if found.reference else None,
    )
    alt = f"rate of {found.asked.engine} against its {found.asked.unit}s: " + "; ".join(
        f"{each.cores:g}: {scaled.rate(each.rate)}" for each in found.points
    )
    yield Section(
        "scaling",
        title,
        picture=picture("scaling", alt, lambda sheet: scaling.draw(drawn, sheet)),
        text=(
            "Each run freezes the engine during the load, thaws it, and measures how many events a second it then "
            "processes, until its backlog is done. Its sustainable rate is below that. CPU-s/M: CPU seconds of the "
            f"engine per million events meanwhile. {_given(found.asked)} The reference is a single process on one "
            "core.",
            *((QUOTA,) if found.asked.has_quota else ()),
            *(
                (
                    "The law: N cores do one * N / (1 + contention * (N - 1) + coherency * N * (N - 1)). Intervals are "
                    "at 95 %.",
                )
                if found.law
                else ()
            ),
        ),
        tables=(Table(scaled.header(found), tuple(map(tuple, scaled.rows(found, whole=True)))),),
    )


def _given(asked: ScaleRequest) -> str:
    """Say what an engine on so many of the unit has."""
    if asked.unit == "executor":
        brokers = "" if asked.flags.get("kafka") else " Kafka has three brokers here, and one for the reference."
        return (
            "Each executor runs one task at a time. Nothing is pinned: executors, driver, master, Kafka and Redis "
            f"share all cores of the machine, and the cost is that of the whole cluster.{brokers}"
        )
    return (
        "The engine is pinned to its cores. Kafka and Redis run on all, so that an engine on all cores of the machine "
        "shares them."
    )


def _drawn(found: Scaled) -> Iterator[Mark]:
    if law := found.law:
        for cores in np.linspace(min(whole(found.rates)), found.furthest, STEPS + 1):
            yield _mark(float(cores), law.at(float(cores)))


def _mark(cores: float, rate: Estimate) -> Mark:
    if rate.low is None or rate.high is None:
        return Mark(cores, rate.value, rate.value, rate.value)
    return Mark(cores, rate.value, rate.low, rate.high)


def _lines(found: Scaled) -> Iterator[tuple[object, ...]]:
    yield "kind", f"{found.asked.unit}s", "events_per_s", "low", "high"
    for cores, values in found.rates.items():
        yield from (("run", cores, value, "", "") for value in values)
    yield from (("reference", 1, value, "", "") for value in found.reference_rates)
    for cores, rate in found.curve.items():
        yield "law" if found.law and cores == int(cores) else "mean", cores, rate.value, rate.low or "", rate.high or ""


def answer_of(record: Record) -> experiment.Answer:
    """Build the answer for CI jobs, with a case for each run."""
    found = record.found
    cases = experiment.cases_of(
        SCENARIO, found.done, found.missing, lambda case: in_words(case.cores, unit_of(case, found.asked))
    )
    facts = {"seed": str(found.asked.seed), **dict(fairness.flat(record.environment))}
    return experiment.Answer(KIND, found.outcome, found.sentence, scaled.command(found), facts, cases)
