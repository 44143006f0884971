"""Histories of gates for Apache Otava: a CSV for each metric of each series, and the configuration that names them.

Only Otava's CSV importer has a setting for metrics where less is better. The CSVs have more columns than Otava reads,
because they also hold the numbers of the drawings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.experiments.gating.history import History, Series
from reports.saved import csv_of
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
    """List the tests. Declined figures are left out: their value is not trusted, and Otava would report it as a
    change.
    """
    found = (Test(_name(metric, s), s, tuple(_rows(s, metric))) for metric in history.metrics for s in history.series)
    return tuple(each for each in found if each.rows)


def slug(metric: str) -> str:
    """Turn a metric's name into one for files and the command line."""
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
    """Return the CSV of each test by name."""
    return {each.name: csv_of([COLUMNS, *each.rows]) for each in tests(history)}


def configuration(history: History, folder: str) -> str:
    """Return Otava's configuration. `folder` is the path of the CSVs as seen from where Otava runs. A metric is named
    like its test, because Otava's validation rejects a name that two tests share.
    """
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
