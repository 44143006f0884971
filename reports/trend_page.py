"""The page of a history of gates: the ratios of each metric over time, series by series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.experiments.gating.gate import ANY
from harness.experiments.gating.history import Entry, History, Series
from harness.host import disk_space
from harness.util.texts import many
from reports import trended
from reports.exports import otava
from reports.figures import trend
from reports.figures.style import picture
from reports.gated import percent, times
from reports.page import Page, Section, Table
from reports.saved import begin, save

FILE = "trend.json"  # marks a folder as a trend's output
DRAWN, PANELS = 300, 6
LISTED = 100
OTAVA = ("uvx --from apache-otava otava analyze all --config-file otava.yaml --magnitude 0.05",)


def write(history: History, out: Path) -> Page:
    """Write the page, its drawings, and the input of Otava."""
    begin(out, FILE, trended.as_object(history, out))
    disk_space.write(out / otava.FILE, otava.configuration(history, "figures").encode())
    page = page_of(history)
    save(page, otava.texts(history), out)
    return page


def page_of(history: History) -> Page:
    last = trended.newest(history)
    return Page(
        title="Trend of gates",
        subtitle=trended.counts(history),
        outcome=trended.OUTCOMES[last.answer],
        sentence=f"The newest gate, {trended.minute(last)}, is {last.answer.value}: {last.sentence}.",
        facts=("Each point is a gate: the ratio of its head to its base, with the interval of that gate.",),
        numbers=(),
        withheld="",
        sections=(*_read(history), *_metrics(history), _series(history), _gates(history), _otava()),
    )


def _read(history: History) -> Iterator[Section]:
    if history.passed_over:
        missing = tuple(f"{each.sentence}." for each in history.passed_over)
        yield Section("passed-over", "What could not be read", missing=missing)


def _metrics(history: History) -> Iterator[Section]:
    for metric in history.metrics:
        yield _metric(history, metric)


def _metric(history: History, metric: str) -> Section:
    entries = history.entries[-DRAWN:]
    panels, left_out = _panels(history, entries, metric)
    name = f"trend-{otava.slug(metric)}"
    days = [trended.day(each) for each in entries]
    alt = f"{metric}, head by base: " + "; ".join(_alt(panel) for panel in panels)
    text = ["Dashed: the threshold of the newest gate of a series."]
    if len(entries) < len(history.entries):
        text.append(f"The newest {DRAWN} gates are drawn; the CSVs below hold all {len(history.entries):,}.")
    if left_out:
        text.append(f"Not drawn: {left_out} older series.")
    drawn = picture(name, alt, lambda sheet: trend.draw(panels, days, sheet)) if panels else None
    return Section(name, f"{metric[:1].upper()}{metric[1:]}", picture=drawn, text=tuple(text))


def _panels(history: History, entries: Sequence[Entry], metric: str) -> tuple[list[trend.Panel], int]:
    """The newest series with a figure of this metric, and the number of older ones."""
    index = {id(entry): number for number, entry in enumerate(entries)}
    found = []
    for series in history.series:
        own = [entry for entry in series.entries if id(entry) in index]
        if any(_point(entry, 0, metric).ratio is not None for entry in own):
            found.append((index[id(own[-1])], series, [_point(entry, index[id(entry)], metric) for entry in own]))
    newest = sorted(found, key=lambda each: each[0])[-PANELS:]
    panels = [_panel(each, points) for _, each, points in sorted(newest, key=lambda each: each[1].number)]
    return panels, len(found) - len(newest)


def _panel(series: Series, points: Sequence[trend.Point]) -> trend.Panel:
    threshold = series.entries[-1].threshold
    return trend.Panel(_title(series), tuple(points), None if threshold == ANY else threshold)


def _title(series: Series) -> str:
    new = ", ".join(f"{each.name} {each.after}" for each in series.changes)
    return f"series {series.number}: {new or series.what['engine'] + ' by ' + series.what['base']}"


def _point(entry: Entry, index: int, metric: str) -> trend.Point:
    """A declined figure is drawn as its answer only: its value is not trusted."""
    figure = entry.figure(metric)
    if figure is None or figure.declined:
        return trend.Point(index, (figure.answer if figure else entry.answer).value)
    return trend.Point(index, figure.answer.value, figure.ratio, figure.low, figure.high)


def _alt(panel: trend.Panel) -> str:
    ratios = [each.ratio for each in panel.points if each.ratio is not None]
    write = times if panel.threshold is None else percent
    return f"{panel.title}, {many(len(ratios), 'gate')}, from {write(ratios[0])} to {write(ratios[-1])}"


def _series(history: History) -> Section:
    names = dict.fromkeys(name for series in history.series for name in series.what)
    columns = ("series", "gates", "from", "to", "new in it", *names)
    rows = tuple(
        (
            str(each.number),
            f"{len(each.entries):,}",
            trended.day(each.entries[0]),
            trended.day(each.entries[-1]),
            ", ".join(map(str, each.changes)),
            *(each.what.get(name, "") for name in names),
        )
        for each in history.series
    )
    text = "Only gates of the same series can be compared. Another CPU model or another version starts a new series."
    return Section("series", "Series", text=(text,), tables=(Table(columns, rows),))


def _gates(history: History) -> Section:
    number = {id(entry): str(series.number) for series in history.series for entry in series.entries}
    newest = history.entries[-LISTED:]
    rows = tuple(
        (
            trended.minute(e),
            e.head.named,
            e.commit,
            e.base.named,
            number[id(e)],
            *_figures(e, history),
            e.answer.value,
            e.sentence,
        )
        for e in reversed(newest)
    )
    columns = ("when", "head", "commit", "base", "series", *history.metrics, "answer", "in words")
    caption = f"{many(len(newest), 'gate')}, the newest first"
    return Section("gates", "Every gate", tables=(Table(columns, rows, caption, folded=True),))


def _figures(entry: Entry, history: History) -> Iterator[str]:
    for metric in history.metrics:
        figure = entry.figure(metric)
        seen = trended.with_interval(entry, figure) if figure else ""
        yield "declined" if figure and figure.declined else seen


def _otava() -> Section:
    text = (
        f"Where a series changed is a question for Apache Otava: {otava.FILE} names a test for each metric of each "
        "series, and groups them as `all` and by series. Run it in this folder:"
    )
    return Section("otava", "Change points", text=(text,), code=OTAVA)
