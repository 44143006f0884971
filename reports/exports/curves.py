"""The numbers behind the drawings of a page as CSV, for drawings of your own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.rundir.missing_evidence import MissingEvidence
from reports.evidence import Evidence
from reports.figures import percentiles
from reports.saved import csv_of
from reports.sections import cells, latency, timeline

Rows = Iterable[Sequence[object]]


def texts(evidence: Evidence) -> dict[str, str]:
    """Return the CSV of each curve by name. Withheld and missing curves are left out."""
    found = {}
    for name, rows in _tables(evidence).items():
        try:
            found[name] = csv_of(rows())
        except MissingEvidence:
            continue
    return found


def _tables(evidence: Evidence) -> dict[str, Callable[[], Rows]]:
    counted: dict[str, Callable[[], Rows]] = {
        "cells": lambda: _cells(evidence),
        "timeline": lambda: _timeline(evidence),
    }
    if evidence.withheld:
        return counted
    return counted | {
        "latency": lambda: _latency(evidence),
        "cost": lambda: _cost(evidence),
    }


def _cells(evidence: Evidence) -> Rows:
    return [cells.COLUMNS, *cells.rows_of(evidence.case)]


def _timeline(evidence: Evidence) -> Rows:
    table = timeline.shown_of(evidence)
    wanted = (
        [name for _, _, columns in timeline.LOAD for name in columns] if evidence.withheld else table.column_names[1:]
    )
    names = ["second", *wanted]
    return [names, *zip(*(table.column(name).to_pylist() for name in names), strict=True)]


def _latency(evidence: Evidence) -> Rows:
    rows: list[Sequence[object]] = [("way", "share_of_events", "latency_ms")]
    for curve in latency.curves_of(evidence):
        shares, values = percentiles.points(curve)
        rows += [(curve.label, f"{share:.6f}", f"{ms:.3f}") for share, ms in zip(shares, values, strict=True)]
    return rows


def _cost(evidence: Evidence) -> Rows:
    m, of_part = evidence.measurement, ("part", "cpu_user_s", "cpu_system_s", "cpu_s_per_million", "peak_rss_mib")
    rows = ([*(getattr(each, name) for name in of_part), m.offered_per_s] for each in m.cost)
    return [(*of_part, "offered_per_s"), *rows]
