"""Writes down how a run stands, once a second, for those who watch it (harness/rundir/live_lines.py).

It asks nothing of Kafka or of the store of the results: the load and the engine report their counts anyway, and the
observer polls the results anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.schedule import Schedule
from harness.evidence.changed_query import asked_of
from harness.model import EVENT_TIME, FaultReport, LoadStatus, RunSpec, Sentinel
from harness.results.sampler import sampled_keys
from harness.rundir.live_lines import LiveLines
from harness.rundir.store import Store
from harness.runner.cells_so_far import CellsSoFar, Group
from harness.runner.screen import Screen
from harness.terminal.progress_lines import Facts
from workloads.base import Columns, Oracle
from workloads.registry import codec_of, oracle_of, results_of
from workloads.sentinels import totals_of

EVERY_MS = 1000
OTHER_TIME = "the engine does not count by event time, so it is not known beforehand which window gets an event"
OTHER_QUESTION = "the question changes during the run, so no planned count holds for all of it"
GROWS = "the load is decided while it runs, so no count is known before its end"


@dataclass(frozen=True)
class Seen:
    """The facts of one second. `done` is None for an engine without progress."""

    load: LoadStatus
    planned: int
    done: int | None
    faults: Sequence[FaultReport]
    sentinels: Sequence[Sentinel]  # all that were sent so far
    changes: Callable[[int], Columns | None]  # of the results, from this one on; None without an observer


class LiveView:
    """Writes the lines of one run. `grows`: its load is decided while it runs."""

    def __init__(self, store: Store, now_ms: Callable[[], int], spec: RunSpec, *, grows: bool) -> None:
        self._lines, self._now_ms, self._spec = LiveLines(store.path), now_ms, spec
        self._oracle = oracle_of(spec)  # its own one: some keep what they were asked
        self._keys = sampled_keys(spec.tape)
        self._lacks = GROWS if grows else _lacks(spec)
        self._cells: CellsSoFar | None = None
        self._probes = Probes(self._oracle)
        self._rows = self._sentinels = 0
        self._faults: list[dict[str, Any]] = []
        self._next_ms = 0

    def beside(self, screen: Screen) -> Screen:
        """Return a screen that also writes the phases down."""
        return _Beside(screen, lambda name, waits_for: self._write("phase", name=name, waits_for=waits_for))

    def begin(self, epoch_ms: int, schedule: Schedule, planned: Columns) -> None:
        """Take the plan, once the load start is known."""
        self._probes.begin(epoch_ms)
        if not self._lacks:
            cells = CellsSoFar(self._oracle, self._keys, self._oracle.settle(planned, epoch_ms))
            self._cells = cells
        tape, polled = schedule.load.spec, len(self._keys)
        about: dict[str, Any] = {
            "keys": len(results_of(tape).keys),
            "polled": polled,
            "values": len(self._oracle.values),
        }
        if self._cells:
            about |= {"visible_is": self._cells.visible_is, "planned_visible": self._cells.planned_visible}
        about |= {"lacks": self._lacks, "grows": self._lacks == GROWS, "probes": tape.probes, "total": schedule.total}
        self._write("load plan", epoch_ms=epoch_ms, **about)
        if self._cells:
            self._write_cells(self._cells.all())

    def is_due(self) -> bool:
        return self._now_ms() >= self._next_ms

    def look(self, seen: Seen, schedule: Schedule) -> None:
        """Write the lines of a second."""
        now_ms = self._now_ms()
        self._next_ms = now_ms + EVERY_MS
        changes = seen.changes(self._rows)
        appeared_ms: list[float] = []
        visible: int | None = None
        if changes is not None and self._probes.begun:
            self._rows += len(changes["count"])
            appeared_ms = self._probes.appeared_ms(changes, schedule) if self._spec.time == EVENT_TIME else []
            if self._cells:
                self._write_cells(self._new_sentinels(seen.sentinels) + self._cells.take(changes))
                visible = self._cells.visible
        self._write(
            "second",
            offered=seen.load.sent,
            planned=seen.planned,
            processed=seen.done,
            visible=visible,
            probes_ms=[round(each, 1) for each in appeared_ms],
            **({"cells": self._cells.numbers} if self._cells and visible is not None else {}),
        )
        faults = [_told(report) for report in seen.faults]
        if faults != self._faults:
            self._faults = faults
            self._write("faults", reports=faults)

    def _new_sentinels(self, sentinels: Sequence[Sentinel]) -> list[Group]:
        new, self._sentinels = sentinels[self._sentinels :], len(sentinels)
        if not new or self._cells is None:
            return []
        return self._cells.also(totals_of(self._oracle, codec_of(self._spec.tape), new))

    def _write_cells(self, groups: Sequence[Group]) -> None:
        if groups:
            self._write("cells", groups=groups)

    def _write(self, kind: str, **facts: object) -> None:
        self._lines.write(kind, self._now_ms(), **facts)


class Probes:
    """The probes of a run that have not appeared yet, each with the time at which it was due."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._epoch_ms = self._known = 0
        self._due_us: dict[int, int] = {}  # cell -> due

    @property
    def begun(self) -> bool:
        return self._epoch_ms > 0

    def begin(self, epoch_ms: int) -> None:
        self._epoch_ms = epoch_ms

    def appeared_ms(self, changes: Columns, schedule: Schedule) -> list[float]:
        """Return how long after its due time each probe appeared that these changes show first."""
        self._learn(schedule)
        if not self._due_us:
            return []
        codes = self._oracle.codes.of(changes["campaign"], changes["window_ms"])
        rows = np.flatnonzero((changes["count"] != 0) & np.isin(codes, list(self._due_us)))
        found = []
        for cell, at_us in zip(codes[rows].tolist(), changes["at_us"][rows].tolist(), strict=True):
            if (due_us := self._due_us.pop(cell, None)) is not None:  # its first change
                found.append((at_us - due_us) / 1000)
        return found

    def _learn(self, schedule: Schedule) -> None:
        """Take the probes of a load that has grown since."""
        tape = schedule.load
        if self._known >= tape.probes.total:
            return
        events = tape.events(tape.spec.servers, np.arange(self._known, tape.probes.total, dtype=np.int64))
        self._known = tape.probes.total
        real = events.poison == 0
        columns = {name: column[real] for name, column in events.content.items()}
        columns |= {
            "event_id": events.id[real].astype(np.int64),
            "event_time_ms": events.event_time_rel_ms[real] + self._epoch_ms,
        }
        due_us = events.intended_us[real] + self._epoch_ms * 1000
        places = self._oracle.places(columns)
        for cell, row in zip(places.cell.tolist(), places.row.tolist(), strict=True):
            self._due_us[cell] = int(due_us[row])


class _Beside:
    def __init__(self, screen: Screen, note: Callable[[str, str], None]) -> None:
        self._screen, self._note = screen, note

    def phase(self, name: str, waits_for: str = "") -> None:
        self._note(name, waits_for)
        self._screen.phase(name, waits_for)

    def update(self, facts: Facts) -> None:
        self._screen.update(facts)


def _lacks(spec: RunSpec) -> str:
    """Return why the map of cells can't be kept for this run; "" if it can."""
    if spec.time != EVENT_TIME:
        return OTHER_TIME
    return OTHER_QUESTION if asked_of(spec.fault) else ""


def _told(report: FaultReport) -> dict[str, Any]:
    """Return the facts of a fault that a watcher needs."""
    return {
        "text": report.spec.text,
        "landed": report.landed,
        "healed": report.healed,
        "replayed": report.replayed,
        "reachable": report.reachable,
        "landed_ms": report.landed_ms or report.at_ms,
        "healed_ms": report.healed_ms,
        "proof": report.proof,
    }
