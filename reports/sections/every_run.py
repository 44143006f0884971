"""The section of an experiment's page with each of its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.experiments.cases import RanCase
from reports.page import Link, Section, Table


def section(done: Sequence[RanCase], column: str, cell: Callable[[Any], str]) -> Section:
    """`column` is what distinguishes the runs of an engine, beside their seed."""
    rows = tuple(
        (
            Link(Path(each.run).name, f"{each.run}/report.html"),
            each.case.engine,
            cell(each.case),
            str(each.case.seed),
            each.outcome.value,
            each.sentence,
        )
        for each in done
    )
    return Section(
        "runs",
        "Every run",
        text=("In the order of execution. Each run has a page of its own.",),
        tables=(Table(("run", "engine", column, "seed", "verdict", "in words"), rows),),
    )
