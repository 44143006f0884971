"""Measurements of each load step from the files of an engine run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from generators.schedule import Schedule
from harness.experiments.curve.plateau import Floats, Latencies, Measured, Piece, Plateau, plateaus
from harness.judging.progress_curve import progress_lines
from harness.judging.stored_run import StoredRun
from harness.load.certificate import certify
from harness.measuring import latency
from harness.measuring.latency.ways import Raws
from harness.measuring.timeline import FILE as TIMELINE_FILE
from harness.model import INDEX_BITS, INDEX_MASK, Outcome, Verdict


def pieces_of(run: StoredRun) -> list[Piece]:
    """Read the offered load from the history."""
    return [msgspec.convert(told["piece"], Piece) for told in run.store.history("piece")]


def measured(run: StoredRun) -> list[Measured]:
    """Return the measurements in the order of the load steps. The run must be right and measured."""
    return list(_Files(run).all())


def where_wrong(run: StoredRun, verdict: Verdict) -> Plateau | None:
    """Return the load step with an event that proves a wrong count; None if no event is named."""
    wrong = (check for check in verdict.checks if check.outcome is Outcome.FAIL)
    ids = [int(each, 16) for check in wrong for witness in check.witnesses for each in witness.event_ids]
    return _plateau_at(run, _due_ms(Schedule(run.spec.tape), ids[0])) if ids else None


def where_last_told(run: StoredRun) -> Plateau | None:
    """Return the load step in which the engine reported progress for the last time."""
    lines = progress_lines(run.store)
    return _plateau_at(run, lines[-1].at_ms - run.epoch_ms) if lines else None


def _plateau_at(run: StoredRun, at_ms: int) -> Plateau | None:
    offered = plateaus(pieces_of(run), run.spec.window_ms)
    return next((each for each in offered if each.from_ms <= at_ms < each.until_ms), None)


def _due_ms(schedule: Schedule, event: int) -> int:
    (due_us,) = schedule.events(
        event >> INDEX_BITS, np.array([event & INDEX_MASK], dtype=np.int64)
    ).intended_us.tolist()
    return int(due_us) // 1000


class _Files:
    def __init__(self, run: StoredRun) -> None:
        self._run, self._epoch_ms = run, run.epoch_ms
        ways = latency.ways_of(run)
        self._probes, self._events = ways.probes, ways.of_events
        self._seconds = run.store.read_table(TIMELINE_FILE)
        self._sends = run.sends.table()  # each load step looks through all of it
        # Older versions named it differently.
        self._in_flight = "in_flight" if "in_flight" in self._seconds.column_names else "backlog"
        lines = progress_lines(run.store)
        self._ended_ms = np.array([line.at_ms - self._epoch_ms for line in lines], dtype=np.float64)
        self._took_ms = np.array([line.took_ms or np.nan for line in lines], dtype=np.float64)
        self._rows = np.array([line.rows for line in lines], dtype=np.float64)

    def all(self) -> Iterator[Measured]:
        run = self._run
        for plateau in plateaus(pieces_of(run), run.spec.window_ms):
            ended = (self._ended_ms >= plateau.from_ms) & (self._ended_ms < plateau.until_ms)
            state = self._column("state_bytes", plateau)
            known = state[np.isfinite(state)]
            yield Measured(
                plateau=plateau,
                probes=self._latencies(self._probes, plateau),
                events=self._latencies(self._events, plateau),
                backlog=self._column(self._in_flight, plateau),
                processed_per_s=_finite(self._column("processed_per_s", plateau).mean()),
                batch_took_ms=self._took_ms[ended],
                batch_events=self._rows[ended],
                engine_cpu_s=_finite(self._column("cpu_engine", plateau).sum()),
                load_cpu_s=_finite(self._column("cpu_generator", plateau).sum()),
                state_bytes=(float(known[0]), float(known[-1])) if len(known) else None,
                unsound=self._unsound(plateau),
            )

    def _latencies(self, raws: Raws, plateau: Plateau) -> Latencies:
        latencies = Latencies.of(np.zeros(0), np.zeros(0), plateau)
        for raw in raws:
            part = Latencies.of(raw.due_us / 1000 - self._epoch_ms, raw.corrected_ms, plateau)
            latencies = Latencies(latencies.blocks + part.blocks)
        return latencies

    def _column(self, name: str, plateau: Plateau) -> Floats:
        values = self._seconds.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
        return np.asarray(values[plateau.from_ms // 1000 : plateau.until_ms // 1000], dtype=np.float64)

    def _unsound(self, plateau: Plateau) -> str:
        """Each load step has a load check of its own, because late sending in one does not affect another."""
        due_us = self._sends.column("intended_us")
        inside = pc.and_(pc.greater(due_us, plateau.from_ms * 1000), pc.less_equal(due_us, plateau.until_ms * 1000))
        own = self._sends.filter(inside)
        planned = pc.sum(pc.subtract(own.column("slot_hi"), own.column("slot_lo"))).as_py() or 0
        return "; ".join(certify(own, planned, self._run.spec.lag_budget_ms).reasons)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
