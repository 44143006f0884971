"""The pages of `serve`, from values to HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode

from harness.util import local_time
from harness.util.texts import many, printable
from harness.web.server import Answer
from reports import saved
from reports.browse import comparison, series
from reports.browse.filtering import ON_A_PAGE, Choices, Wanted
from reports.browse.index import PAGE, RUN, Entry
from reports.browse.places import address
from reports.browse.series import METRICS, Series
from reports.browse.side import TIMELINE, Side
from reports.figures import over_time
from reports.figures.style import picture
from reports.listing import RUNNING
from reports.page import Link, Section, Table, filled

# Nothing from another host, and no script at all.
OWN = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
AGAIN_S = 3  # a page of a run in progress is loaded again after this
FOREIGN_SHOWN = 100
ENGINES_SHOWN = 4
ONE_OF = {"runs": "run", "runs and experiments": "run or experiment"}
DRAWN = 300  # runs of a series


def html(
    template: str,
    title: str,
    *,
    at: str = "",
    subtitle: str = "",
    text: Sequence[str] = (),
    links: Sequence[Link] = (),
    sections: Sequence[Section] = (),
    refresh_s: int = 0,
    status: HTTPStatus = HTTPStatus.OK,
    **values: object,
) -> Answer:
    """Fill a template. A character that is no text, as in a file's name, is replaced."""
    body = filled(
        template,
        None,
        title=printable(title),
        at=at,
        subtitle=printable(subtitle),
        text=text,
        links=links,
        sections=sections,
        refresh_s=refresh_s,
        **values,
    )
    return Answer(body.encode(errors="replace"), status=status, policy=OWN)


def problem(status: HTTPStatus, sentence: str) -> Answer:
    return html("browse.html.j2", status.phrase, text=(printable(sentence),), status=status)


# ---------------------------------------------------------------- The list


@dataclass(frozen=True)
class Row:
    """One line of the list. `place` is empty if there is nothing to compare."""

    name: str
    href: str
    about: str
    state: str
    sentence: str
    engine: str
    scenario: str
    fault: str
    made: str
    place: str


def row_of(entry: Entry) -> Row:
    engine = _few(entry.engines) + (f"/{entry.sink}" if entry.sink else "")
    return Row(
        printable(entry.name),
        href(entry),
        "" if about(entry) == href(entry) else about(entry),
        entry.state,
        sentence(entry) if entry.kind in (RUN, PAGE) else f"{entry.kind}: {sentence(entry)}".rstrip(": "),
        printable(engine),
        printable(_few(entry.scenarios)),
        printable(entry.fault),
        entry.made,
        entry.place if entry.kind == RUN else "",
    )


def sentence(entry: Entry) -> str:
    """Return the sentence of a run with the reader's times."""
    return local_time.local(entry.sentence, entry.made_ms)


def stands(entry: Entry) -> str:
    return f"{entry.state}: {sentence(entry)}" if entry.sentence else entry.state


def _few(names: Sequence[str]) -> str:
    more = len(names) - ENGINES_SHOWN
    return ", ".join(names[:ENGINES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def href(entry: Entry) -> str:
    """Return the page that a reader expects: the stored one, or that of the files."""
    if entry.is_experiment or not entry.has_page:
        return about(entry)
    return file_address(entry.place, saved.FILE)


def about(entry: Entry) -> str:
    return address("in" if entry.is_experiment else "run", *entry.place.split("/"))


def live(entry: Entry) -> str:
    """Return the address of the live page, which ends with a slash: what it loads lies below it."""
    return address("live", *entry.place.split("/"), "")


def file_address(place: str, name: str) -> str:
    return address("files", *place.split("/"), *name.split("/"))


def listed(
    found: Sequence[Entry],
    shown: Sequence[Entry],
    number: int,
    pages: int,
    *,
    title: str,
    subtitle: str,
    action: str,
    choices: Choices,
    wanted: Wanted,
    foreign: Sequence[Entry],
    running: Sequence[Entry],
    a: str,
    text: Sequence[str] = (),
    links: Sequence[Link] = (),
    of: int,
    what: str,
) -> Answer:
    """Return a page of the list. `found`: all that match the filter, out of `of`."""
    count = f"{len(found):,} of {of:,}" if len(found) != of else f"{of:,}"
    count += f" {ONE_OF[what] if of == 1 else what}"
    if pages > 1:
        first = (number - 1) * ON_A_PAGE
        count += f"; {first + 1:,} to {first + len(shown):,} are shown, the newest first"
    more = {**wanted.as_query(), **({"a": a} if a else {})}
    return html(
        "browse_list.html.j2",
        title,
        at="list",
        subtitle=subtitle,
        text=text,
        links=links,
        action=action,
        choices=choices,
        wanted=wanted,
        count=count if of else f"There are no {what} here yet.",
        rows=[row_of(entry) for entry in shown],
        running=[
            {
                "href": live(entry),
                "name": printable(entry.name),
                "sentence": entry.sentence or entry.kind,
            }
            for entry in running
        ],
        pages=[_page(each, number, action, more) for each in range(1, pages + 1)] if pages > 1 else [],
        foreign=[{"name": printable(each.name), "sentence": each.sentence} for each in foreign[:FOREIGN_SHOWN]],
        foreign_caption=many(len(foreign), "other folder") + ", not read",
        a=a,
        refresh_s=AGAIN_S if running and wanted.is_all and not a else 0,
    )


def _page(each: int, number: int, action: str, query: Mapping[str, str]) -> Link:
    return Link(str(each), "" if each == number else f"{action}?{encoded({**query, 'page': str(each)})}")


def encoded(query: Mapping[str, str]) -> str:
    return urlencode(query, errors="surrogateescape")


# ---------------------------------------------------------------- One run


def run_page(entry: Entry, sections: Sequence[Section]) -> Answer:
    links = [Link("Compare with another run", f"/?{encoded({'a': entry.place})}")] if entry.kind == RUN else []
    if entry.has_page:
        links = [Link("The report", file_address(entry.place, saved.FILE)), *links]
    if entry.state == RUNNING:
        links = [Link("Watch it live", live(entry)), *links]
    text = [stands(entry)]
    if not entry.has_page and entry.state != RUNNING:
        text.append("It has no report.html. `streamgauge report RUN` makes one from the files that are left.")
    asked = entry.series or ", ".join((*entry.engines, *entry.scenarios))
    return html(
        "browse.html.j2",
        entry.name,
        subtitle=f"{asked}; made {entry.made}" if entry.made else asked,
        text=text,
        links=links,
        sections=sections,
        refresh_s=AGAIN_S if entry.state == RUNNING else 0,
    )


# ---------------------------------------------------------------- Two runs


def compared(a: Side, b: Side) -> Answer:
    sides = [
        {
            "letter": letter,
            "name": printable(side.entry.name),
            "href": href(side.entry),
            "outcome": side.outcome,
            "sentence": local_time.local(side.sentence, side.entry.made_ms),
            "asked": f"{side.entry.series}; made {side.entry.made}",
            "other": f"/?{encoded({'a': other.entry.place})}",
            "other_text": f"another run instead of {letter}",
        }
        for letter, side, other in zip(comparison.NAMES, (a, b), (b, a), strict=True)
    ]
    shots = [
        {"text": f"{letter}: {printable(side.entry.name)}", "href": file_address(side.entry.place, TIMELINE)}
        for letter, side in zip(comparison.NAMES, (a, b), strict=True)
        if side.has_timeline
    ]
    return html(
        "browse_compare.html.j2",
        "Two runs side by side",
        summary=comparison.sentence(a, b),
        sides=sides,
        sections=[each for each in comparison.sections(a, b) if each.missing or each.text or each.tables],
        shots=shots,
    )


# ---------------------------------------------------------------- Trends


def trends(found: Sequence[Series], histories: Sequence[str]) -> Answer:
    columns = ("runs of one plan", "runs", "newest", *(metric.name for metric in METRICS))
    rows: tuple[tuple[str | Link, ...], ...] = tuple(
        (
            Link(each.name, f"/trend?{encoded({'series': each.name})}"),
            f"{len(each.entries):,}",
            f"{each.newest.state}, {each.newest.made}",
            *(each.row(metric) for metric in METRICS),
        )
        for each in found
    )
    text = ["Runs of a series differ in their seed alone. No figure is shown for a run with wrong counts."]
    if not rows:
        text = ["No plan has two judged runs yet."]
    gates = tuple((Link(printable(each), f"/gates?{encoded({'history': each})}"),) for each in histories)
    sections = [Section("runs", "Runs", text=tuple(text), tables=(Table(columns, rows),))]
    if gates:
        sections.append(Section("gates", "Gates", tables=(Table(("history",), gates),)))
    return html("browse.html.j2", "Trends", at="trends", sections=sections)


def trend(of: Series) -> Answer:
    """Return the page of one series: the figures of its runs over time."""
    entries = of.entries[-DRAWN:]
    drawn = [metric for metric in METRICS if any(metric.read(each.figures) is not None for each in entries)]
    panels = [
        over_time.Panel(metric.name, tuple(metric.read(each.figures) for each in entries), metric is METRICS[0])
        for metric in drawn
    ]
    counted = ", ".join(f"{count:,} {state}" for state, count in series.outcomes(of.entries).items())
    text = [f"{many(len(of.entries), 'run')}: {counted}."]
    if len(entries) < len(of.entries):
        text.append(f"The newest {DRAWN} are drawn.")
    alt = f"{', '.join(metric.name for metric in drawn)} of {many(len(entries), 'run')}"
    verdicts, times = [each.state for each in entries], series.times(entries)
    shown = picture("trend", alt, lambda sheet: over_time.draw(panels, verdicts, times, sheet)) if panels else None
    rows: tuple[tuple[str | Link, ...], ...] = tuple(
        (
            each.state,
            Link(printable(each.name), href(each)),
            each.made,
            *(metric.write(value) if (value := metric.read(each.figures)) is not None else "" for metric in METRICS),
        )
        for each in reversed(entries)
    )
    table = Table(("verdict", "run", "made", *(metric.name for metric in METRICS)), rows)
    section = Section("runs", "Runs over time", picture=shown, text=tuple(text), tables=(table,))
    return html("browse.html.j2", of.name, at="trends", sections=[section])
