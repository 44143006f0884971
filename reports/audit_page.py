"""The page of an audit: its groups and sets as tables, shares, windows over time, and measured beside published
latency.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.ticker import FuncFormatter

from harness.audit.checks import Audited
from harness.model import Outcome
from harness.util.texts import many, three_digits
from reports import audited as words
from reports.figures import audited as drawing
from reports.figures.style import DURATION, picture
from reports.page import Page, Section, Table
from reports.saved import begin, save

FILE = "audit.json"  # marks a folder as an audit's output
ENGINES, CURVES, LISTED = 25, 8, 1000
TIMES = FuncFormatter(lambda share, _: f"{three_digits(share)} x")


def write(audited: Sequence[Audited], target: str, out: Path) -> Page:
    begin(out, FILE, words.as_object(audited, target))
    page = page_of(audited, target)
    save(page, {}, out)
    return page


def page_of(audited: Sequence[Audited], target: str) -> Page:
    below = Path(target)
    return Page(
        title="Audit of results",
        subtitle=f"{many(len(audited), 'set')} below {below.name or target}",
        outcome=words.outcome(audited),
        sentence=f"{words.summary(audited).partition('  ')[2]}.",
        facts=(f"Found: {words.totals(audited)}. A set may have several words.", f"Load: {words.loads(audited)}."),
        numbers=(),
        withheld="",
        sections=(
            _groups(audited),
            _shares(audited),
            *_windows(audited, below),
            _latency(audited),
            _sets(audited, below),
        ),
    )


def _groups(audited: Sequence[Audited]) -> Section:
    table = Table(words.HEADER, tuple(tuple(row) for row in words.screen(audited, most=None)))
    return Section("groups", "By engine and what was found", tables=(table,))


def _engines(audited: Sequence[Audited]) -> list[str]:
    return list(dict.fromkeys(sorted(each.engine for each in audited)))


def _left_out(engines: Sequence[str]) -> tuple[str, ...]:
    return (f"Not drawn: {many(len(engines) - ENGINES, 'more engine')}.",) if len(engines) > ENGINES else ()


def _shares(audited: Sequence[Audited]) -> Section:
    rows = []
    for engine in _engines(audited)[:ENGINES]:
        points = [(each.share, each.outcome) for each in audited if each.engine == engine and each.share is not None]
        rows.append(drawing.Row(engine, tuple(points)))
    text = ("What the usual cell of each set holds, by what was offered. At 1 the usual cell is right.",)
    if not any(row.points for row in rows):
        return Section("shares", "Share of what was offered", missing=("No load is known.",))
    alt = "; ".join(f"{row.engine}: {many(len(row.points), 'set')}{_range(row)}" for row in rows)
    drawn = picture("shares", alt, lambda sheet: drawing.draw_rows(rows, "times what was offered", TIMES, sheet))
    return Section("shares", "Share of what was offered", picture=drawn, text=(*text, *_left_out(_engines(audited))))


def _range(row: drawing.Row) -> str:
    values = [value for value, _ in row.points]
    return f", {min(values):.2f} to {max(values):.2f}" if values else ""


def _windows(audited: Sequence[Audited], below: Path) -> Iterator[Section]:
    """One set of each of the worst groups, and a right one for comparison."""
    worst = [next((one for one in group.sets if one.curve), None) for group in words.groups(audited)]
    found = [each for each in worst if each is not None]
    wrong = [each for each in found if each.outcome is not Outcome.PASS]
    right = [each for each in found if each.outcome is Outcome.PASS]
    shown = [*wrong[: CURVES - bool(right)], *right[:1]]
    if not shown:
        return
    curves = [_curve(each, below) for each in shown]
    alt = "; ".join(f"{each.title}, {min(each.shares):.2f} to {max(each.shares):.2f}" for each in curves)
    drawn = picture("windows", f"Views of each window: {alt}", lambda sheet: drawing.draw_curves(curves, sheet))
    text = (
        "What each window of a set holds, by what was offered: one set for each of the worst groups, and a right one."
    )
    yield Section("windows", "Count per window over time", picture=drawn, text=(text,))


def _curve(each: Audited, below: Path) -> drawing.Curve:
    title = f"{words.place(each, below)}: {', '.join(each.words)}"
    return drawing.Curve(title, tuple(at for at, _ in each.curve), tuple(share for _, share in each.curve))


def _latency(audited: Sequence[Audited]) -> Section:
    """Latency of a window's last update after its end: the definition of the original benchmark."""
    rows = []
    for engine in _engines(audited)[:ENGINES]:
        own = [each for each in audited if each.engine == engine]
        points = [(each.latency_p99_ms, each.outcome) for each in own if (each.latency_p99_ms or 0) > 0]
        claims = {each.offered.published_p99_ms for each in own if each.offered.published_p99_ms}
        rows.append(drawing.Row(engine, tuple((ms, its) for ms, its in points if ms), tuple(sorted(claims))))
    known = any(row.claims for row in rows)
    text = (
        "p99 of the last update of a window after its end, a point a set.",
        "Published figures: "
        + (
            "those that --loads names."
            if known
            else "N/A: none is known. Put them into the column published_p99_ms of --loads."
        ),
    )
    if not any(row.points for row in rows):
        return Section("latency", "Latency", missing=("No set records when its windows were updated.",))
    alt = "; ".join(f"{row.engine}: {many(len(row.points), 'set')}" for row in rows)
    drawn = picture("latency", alt, lambda sheet: drawing.draw_rows(rows, "p99", DURATION, sheet, log=True))
    return Section("latency", "Latency by set", picture=drawn, text=(*text, *_left_out(_engines(audited))))


def _sets(audited: Sequence[Audited], below: Path) -> Section:
    shown = audited[:LISTED]
    rows = zip(words.rows(shown, below), shown, strict=True)
    full = tuple(
        (*row, _claim(each), "; ".join(f"{f.word}: {f.sentence}" for f in each.findings)) for row, each in rows
    )
    caption = f"{len(shown):,} of {len(audited):,} sets, the worst first"
    table = Table((*words.EACH, "published p99", "in words"), full, caption, folded=True)
    return Section("sets", "Every set", tables=(table,))


def _claim(each: Audited) -> str:
    return words.latency(each.offered.published_p99_ms) or "N/A"
