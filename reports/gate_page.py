"""The page of a gate, made from its folder: the differences, each measured round, the three sides."""

from __future__ import annotations

from collections.abc import Iterator

from harness.experiments.folder import Folder
from harness.experiments.gating.gate import HEAD, SIDES, Answer, Effect, Gated
from harness.experiments.gating.rounds import METRICS, ROUNDS, Metric, idle_cores
from harness.measuring.stats import Ratio
from harness.model import Outcome
from harness.util.texts import many, three_digits
from reports import outage
from reports.exports import gate as exports
from reports.figures import bursts, forest
from reports.figures.style import GREEN, ORANGE, RED, picture
from reports.gated import HEADER, Record, outliers, percent, read, row
from reports.page import Link, Number, Page, Section, Table
from reports.saved import csv_of, save
from reports.sections import fairness

COLOURS = {Answer.REGRESSED: RED, Answer.OK: GREEN, Answer.IMPROVED: GREEN, Answer.INCONCLUSIVE: ORANGE}
METRICS_SAID = {
    "cost": "CPU seconds of the engine and its workers per million events, less what it takes when it is idle",
    "allocated": "bytes that all threads of its JVMs allocated, per million events",
    "Kafka traffic": "traffic between its processes and the broker, per million events",
    "Redis writes": "commands that write, per thousand events",
    "checkpoint": "bytes written to its checkpoint, per million events",
    "state rows": "rows of its state that it wrote, per thousand events",
    "memory": "the peak in a round",
    "catch-up": "from the start of a burst until the engine reported it done, per million events",
    "latency p50": "until half of a burst's events were seen in the results",
    "latency p99": "until 99 % of them were",
}


def write(folder: Folder) -> Page:
    """Write the exports, the page and its drawings from a gate's files."""
    record = read(folder)
    exports.save(record)
    page = page_of(record)
    save(page, {"rounds": csv_of(_curve(record))} if record.rounds and record.found.effects else {}, folder.path)
    return page


def page_of(record: Record) -> Page:
    found, asked = record.found, record.asked
    begun = f", {record.folder.begun}" if record.folder.begun else ""
    return Page(
        title=f"Gate: {asked['head']} against {asked['base']}",
        subtitle=f"{many(found.starts, 'start')} of each side, threshold {asked['threshold'] * 100:g}%{begun}",
        outcome=found.outcome,
        word=found.answer.value,
        sentence=f"{found.sentence[:1].upper()}{found.sentence[1:]}.",
        facts=tuple(_facts(record)),
        numbers=tuple(_numbers(record)),
        withheld=_withheld(found),
        sections=(
            *_speed(record),
            _sides(record),
            fairness.machine(record.environment),
            Section("reproduce", "Do it again", code=(exports.command(record),)),
            exports.steps(record),
        ),
    )


def _withheld(found: Gated) -> str:
    """Why the page may not show any figure; "" if it may."""
    if found.sides[HEAD].outcome is Outcome.FAIL:
        return "speed is not compared if counts are wrong"
    return "" if found.effects else found.sentence


def _facts(record: Record) -> Iterator[str]:
    yield (
        "Base and head, and the base once more, started together, several times over. "
        f"{record.burst.capitalize()} went into all of them at the same time, and all that each of them counted was "
        "judged."
    )
    if conditions := record.found.conditions:
        yield f"{conditions.words[:1].upper()}{conditions.words[1:]}."


def _numbers(record: Record) -> Iterator[Number]:
    for effect in record.found.effects:
        values = record.typical(effect)
        was = f"; head {three_digits(values[HEAD])} {effect.unit}" if values else ""
        yield Number(effect.metric, percent(effect.head.estimate), note=f"{effect.answer.value}{was}")


def _speed(record: Record) -> Iterator[Section]:
    """Empty if the counts are wrong: a gate has no effects then."""
    if record.found.effects:
        yield _effects(record)
        yield _rounds(record)


def _effects(record: Record) -> Section:
    name, found = "effects", record.found
    rows = [_row(effect) for effect in found.effects]
    threshold = record.asked["threshold"]
    alt = "; ".join(f"{each.metric} {percent(each.head.estimate)}: {each.answer.value}" for each in found.effects)
    reasons = [f"{each.metric}: {each.reason}." for each in found.effects if each.reason]
    return Section(
        name,
        "What differs",
        picture=picture(name, alt, lambda sheet: forest.draw(rows, threshold, sheet)),
        text=(
            "Less is always better. REGRESSED: the head takes more by at least the threshold, and significantly "
            "more than the base. IMPROVED: the reverse. OK: the interval ends below the threshold. The base by "
            "itself shows the noise, since both sides are the same.",
            *(f"{each[:1].upper()}{each[1:]}." for each in outliers(found)),
            *reasons,
        ),
        tables=(Table(HEADER, tuple(row(each) for each in found.effects)),),
    )


def _row(effect: Effect) -> forest.Row:
    answer = effect.answer
    head, control = _span(effect.head), _span(effect.control)
    return forest.Row(effect.metric, answer.value, COLOURS[answer], head, control, effect.detectable)


def _span(ratio: Ratio) -> forest.Span:
    return forest.Span(ratio.estimate - 1, ratio.low - 1, ratio.high - 1)


def _rounds(record: Record) -> Section:
    name, title, metrics = "rounds", "The rounds, as they were measured", _compared(record)
    if not record.rounds:
        return Section(name, title, missing=(f"{ROUNDS} is missing or empty.",))
    panels = [_panel(record, metric) for metric in metrics]
    alt = "; ".join(f"{panel.title}: {many(len(panel.series[0].values), 'round')} a side" for panel in panels)
    said = "; ".join(f"{metric.name}: {METRICS_SAID[metric.name]}" for metric in metrics)
    drawn = picture(name, alt, lambda sheet: bursts.draw(panels, sheet))
    return Section(name, title, picture=drawn, text=(f"{said}.",))


def _compared(record: Record) -> list[Metric]:
    """The metrics with an effect. Wrong counts leave none."""
    told = {each.metric for each in record.found.effects}
    return [metric for metric in METRICS if metric.name in told]


def _panel(record: Record, metric: Metric) -> bursts.Panel:
    begun_ms = record.rounds[0].at_ms
    series = []
    for side in SIDES:
        points = [((at_ms - begun_ms) / 1000, value) for at_ms, value in _points(record, side, metric)]
        series.append(bursts.Series(side, tuple(x for x, _ in points), tuple(y for _, y in points)))
    return bursts.Panel(f"{metric.name}, {metric.unit}", tuple(series))


def _points(record: Record, side: str, metric: Metric) -> list[tuple[float, float]]:
    own = [each for each in record.rounds if each.side == side]
    idle = idle_cores(own)
    return [(each.at_ms, value) for each in own if (value := metric.of(each, idle)) is not None]


def _curve(record: Record) -> Iterator[tuple[str, ...]]:
    yield "side", "second", "metric", "unit", "value"
    for metric in _compared(record):
        for series in _panel(record, metric).series:
            for second, value in zip(series.seconds, series.values, strict=True):
                yield series.name, f"{second:.3f}", metric.name, metric.unit, f"{value:.6g}"


def _sides(record: Record) -> Section:
    rows = tuple(
        (
            Link(name, f"{side.run}/report.html") if side.run else name,
            record.named[name],
            side.outcome.value,
            side.sentence,
            outage.in_words(side.recovery),
        )
        for name, side in record.found.sides.items()
    )
    return Section(
        "sides",
        "The three sides",
        text=("Each side is a complete run with a page and evidence of its own.",),
        tables=(Table(("side", "what", "counts", "in words", "after its fault"), rows),),
    )
