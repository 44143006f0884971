"""The sections of a run's page, one per module, each made from the run's files. To add one: a module and a line in
SECTIONS.

A section never ends a page: missing files and errors are shown in the section's place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.rundir.missing_evidence import MissingEvidence
from reports.evidence import Evidence
from reports.page import Section
from reports.sections import (
    backfill,
    backlog,
    bursts,
    cells,
    checks,
    company,
    cost,
    fairness,
    growth,
    latency,
    lateness,
    next_step,
    recovery,
    reproduce,
    seam,
    seam_output,
    state,
    table_layout,
    timeline,
    times,
    window_state,
    wrong,
)


@dataclass(frozen=True)
class Maker:
    """A function that makes a section. `speed`: the section shows speed or cost."""

    id: str
    title: str
    make: Callable[[Evidence], Section | None]
    speed: bool = False


SECTIONS: tuple[Maker, ...] = (
    Maker("wrong", "What is wrong", wrong.section),
    Maker("cells", "Every cell", cells.section),
    Maker("seam", "Files and Kafka", seam.section),
    Maker("seam-output", "From files to Kafka", seam_output.section, speed=True),
    Maker("backfill", "Batch and stream", backfill.section),
    Maker("timeline", "The run over time", timeline.section),
    Maker("backlog", "Backlog", backlog.section, speed=True),
    Maker("bursts", "Bursts", bursts.section, speed=True),
    Maker("growth", "A growing state", growth.section, speed=True),
    Maker("window-state", "State of the window", window_state.section, speed=True),
    Maker("company", "Another reader", company.section, speed=True),
    Maker("recovery", "Recovery", recovery.section),
    Maker("latency", "Latency by percentile", latency.section, speed=True),
    Maker("cost", "Cost", cost.section, speed=True),
    Maker("lateness", "Disorder that was sent", lateness.section),
    Maker("times", "Events in another window", times.section),
    Maker("table-files", "Files of the table", table_layout.section),
    Maker("state", "Contents of the state", state.section),
    Maker("checks", "Checks", checks.section),
    Maker("fairness", "Fairness card", fairness.section),
    Maker("reproduce", "Do it again", reproduce.section),
    Maker("next", next_step.TITLE, next_step.section),
)


def sections(evidence: Evidence) -> tuple[Section, ...]:
    """Return all sections that this run may show, in the order of the page."""
    made = (_made(maker, evidence) for maker in SECTIONS if not (maker.speed and evidence.withheld))
    return tuple(section for section in made if section is not None)


def _made(maker: Maker, evidence: Evidence) -> Section | None:
    try:
        return maker.make(evidence)
    except MissingEvidence as error:
        return Section(maker.id, maker.title, missing=(f"{error}.",))
    except Exception as error:  # noqa: BLE001 - whatever a damaged run holds, the rest of its page is still made
        what = f"this section can't be made from the files of this run ({type(error).__name__}: {error})."
        return Section(maker.id, maker.title, missing=(what,))
