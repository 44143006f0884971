"""Histories of gates as Apache Otava reads them: a CSV for each metric of each series, and the configuration that names
them. Of its importers only that for CSV can be told that less is better.

A CSV holds more columns than Otava asks for: it is also what a drawing shows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness.experiments.gating.history import History, Series
from reports.trended import in_words

FILE = "otava.yaml"
LESS_IS_BETTER = -1
COLUMNS = ("time", "commit", "head", "ratio", "low", "high", "detectable", "base_took", "head_took", "unit", "answer")


@dataclass(frozen=True)
class Test:
    """One metric of one series."""

    name: str
    series: Series
    rows: tuple[tuple[object, ...], ...]


def tests(history: History) -> tuple[Test, ...]:
    """What was declined is left out: nobody can tell what it is worth, and it would look like a change."""
    found = (Test(_name(metric, s), s, tuple(_rows(s, metric))) for metric in history.metrics for s in history.series)
    return tuple(each for each in found if each.rows)


def slug(metric: str) -> str:
    """For files, and for what is typed."""
    return re.sub("[^A-Za-z0-9]+", "-", metric)


def _name(metric: str, series: Series) -> str:
    return f"{slug(metric)}-{series.number}"


def _rows(series: Series, metric: str) -> Iterator[tuple[object, ...]]:
    for entry in series.entries:
        seen = entry.figure(metric)
        if seen and not seen.declined:
            took = ("" if each is None else each for each in (seen.base, seen.head))
            figures = (seen.ratio, seen.low, seen.high, seen.detectable, *took, seen.unit, seen.answer.value)
            yield entry.at.isoformat(), entry.commit, entry.head.named, *figures


def texts(history: History) -> Mapping[str, str]:
    """Name -> CSV."""
    return {each.name: _csv(each.rows) for each in tests(history)}


def _csv(rows: Iterable[tuple[object, ...]]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    return file.getvalue()


def configuration(history: History, folder: str) -> str:
    """`folder`: where the CSVs lie, from where Otava is started. A metric has the name of its test, because Otava
    refuses to validate a name that two tests have."""
    found = tests(history)
    groups = {"all": found} | {f"series-{s.number}": [t for t in found if t.series is s] for s in history.series}
    lines = [line for test in found for line in _test(test, folder)]
    named = [f"  {name}: [{', '.join(test.name for test in group)}]" for name, group in groups.items() if group]
    return "\n".join(["tests:", *lines, "test_groups:", *named]) + "\n" if found else "tests: {}\n"


def _test(test: Test, folder: str) -> Iterator[str]:
    yield f"  # series {test.series.number}: {in_words(test.series)}"
    yield f"  {test.name}:"
    yield "    type: csv"
    yield f"    file: {folder}/{test.name}.csv"
    yield "    time_column: time"
    yield "    attributes: [commit, head]"
    yield "    metrics:"
    yield f"      {test.name}: {{column: ratio, direction: {LESS_IS_BETTER}}}"
