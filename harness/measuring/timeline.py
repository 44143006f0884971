"""The timeline of a run, by second, from its files: events offered, sent and processed, and the resources used. Pure.

Second s is [s, s + 1) since the load start; earlier events are in all totals, but are not shown. Rates are of that
second, levels (backlog, lag, bytes) of its end. An unknown column is full of nulls; a missing file costs its own
columns only.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.judging.progress_curve import (
    Curve,
    by_progress,
    by_results,
    last_known,
    progress_lines,
    seen_before_told,
    sent,
    told_before_seen,
)
from harness.judging.stored_run import StoredRun
from harness.measuring import cost
from harness.measuring.measurement import TIMELINE
from harness.measuring.stats import Floats
from harness.model import Progress
from harness.rundir.missing_evidence import unless_missing

FILE = "timeline.parquet"
# CPU columns and their parts. An engine's Python workers belong to the engine.
_CPU = {
    "cpu_engine": ("engine", "python workers"),
    "cpu_kafka": ("kafka",),
    "cpu_redis": ("redis",),
    "cpu_generator": ("generator",),
    "cpu_harness": ("harness",),
}


def timeline(run: StoredRun, latency_by_second: pa.Table | None) -> pa.Table:
    """Build a row per second, from load start until the engine was done, with the columns of `measurement.TIMELINE`."""
    lines = Lines(run)
    columns: dict[str, Floats] = {
        "offered_per_s": lines.offered(),
        "sent_per_s": lines.rate(lines.sent),
        "processed_per_s": lines.rate(lines.processed),
        "backlog": lines.backlog(),
        "in_flight": lines.in_flight(),
        "watermark_lag_ms": lines.watermark_lag_ms(),
        "state_bytes": lines.state_bytes(),
        **{name: lines.cpu(parts) for name, parts in _CPU.items()},
        **lines.latency(latency_by_second),
    }
    table = {"second": pa.array(np.arange(lines.seconds, dtype=np.int32))}
    table |= {name: pa.array(values, from_pandas=True) for name, values in columns.items()}  # NaN becomes null
    return pa.table({name: table[name] for name in TIMELINE})


class Lines:
    """All columns of one run; each reads its own file."""

    def __init__(self, run: StoredRun) -> None:
        self._run, store = run, run.store
        self._reel = run.schedule
        self._tape = self._reel.load
        self.before = self._reel.warm_up_total  # records sent before the load start, which are in all curves
        self._epoch_ms = int(next(store.history("epoch"))["epoch_ms"])
        ended = next(store.history("engine"), None)
        end_ms = ended["at_ms"] - self._epoch_ms if ended else self._tape.duration_ms
        self.seconds = max(1, -(-max(end_ms, self._tape.duration_ms) // 1000))
        self._bounds_s: Floats = np.arange(self.seconds + 1, dtype=np.float64)

    @cached_property
    def _progress(self) -> tuple[Progress, ...]:
        return progress_lines(self._run.store)

    @cached_property
    def sent(self) -> Curve | None:
        return unless_missing(lambda: sent(self._run.sends) if self._run.sends.num_rows else None)

    @cached_property
    def processed(self) -> Curve | None:
        """The curve of processed events, from the engine's own offsets.

        It is read off the visible results instead if the engine reports nothing, reports much later, or reports much
        that no reader saw.
        """
        return self._seen if self.processed_as_seen else self._told_done

    @cached_property
    def processed_as_seen(self) -> bool:
        told, seen = self._told_done, self._seen
        if seen is None or told is None:
            return seen is not None
        return seen_before_told(told, seen) or (not self._run.claim.final and told_before_seen(told, seen))

    @cached_property
    def _told_done(self) -> Curve | None:
        begin_s = -self._reel.warm_up_ms / 1000
        return by_progress(self._progress, self._epoch_ms, self._run.spec.tape.partitions, begin_s)

    @cached_property
    def _seen(self) -> Curve | None:
        samples = unless_missing(lambda: self._run.samples)
        if samples is None or self.sent is None:
            return None
        return by_results(samples, self._epoch_ms, float(self.sent.total[-1]))

    def offered(self) -> Floats:
        """Return the profile's rate plus the probes, which are spread evenly over it."""
        profile = self._tape.profile
        probes = self._tape.total - profile.total
        share = np.minimum(self._bounds_s * 1000 / max(1, profile.duration_ms), 1.0)
        return np.diff(profile.cumulative((self._bounds_s * 1e6).astype(np.int64)) + probes * share)

    def rate(self, curve: Curve | None) -> Floats:
        return np.diff(curve.spread(self._bounds_s)) if curve else self._nothing()

    def backlog(self) -> Floats:
        """Return events due and not processed, at the end of each second.

        They are compared with due events, not with sent ones: a fault that also stops the generator must not shrink the
        backlog.
        """
        if self.processed is None:
            return self._nothing()
        due = self.before + np.cumsum(self.offered())
        return np.asarray(np.maximum(0.0, due - self.processed.known(self._bounds_s[1:])))

    def in_flight(self) -> Floats:
        """Return events sent and not processed, to test for growth.

        A running batch counts as processed in proportion, because its steps would hide real growth.
        """
        if self.sent is None or self.processed is None:
            return self._nothing()
        ends = self._bounds_s[1:]
        return np.maximum(0.0, self.sent.known(ends) - self.processed.spread(ends))

    def watermark_lag_ms(self) -> Floats:
        ends = self._bounds_s[1:]
        return self._epoch_ms + ends * 1000 - self._told("watermark_ms")

    def state_bytes(self) -> Floats:
        """Return the size that the engine reports; else that of its checkpoint, including unpurged old versions."""
        told = self.told_state_bytes()
        return told if np.isfinite(told).any() else self.checkpoint_bytes()

    def told_state_bytes(self) -> Floats:
        return self._told("state_bytes")

    def checkpoint_bytes(self) -> Floats:
        """Return the size of all files, old versions included."""
        table = unless_missing(lambda: self._run.store.read_table("state.parquet"))
        if table is None:
            return self._nothing()
        known = table.filter(pc.is_valid(table.column("checkpoint_bytes")))
        return last_known(self._since_epoch_s(known), _floats(known, "checkpoint_bytes"), self._bounds_s[1:])

    def cpu(self, parts: tuple[str, ...]) -> Floats:
        """Return the CPU use in cores."""
        table = cost.resources_of(self._run)
        if table is None:
            return self._nothing()
        used = [self._cpu_of(table.filter(pc.equal(table.column("part"), part))) for part in parts]
        known = [each for each in used if each is not None]
        return np.sum(known, axis=0) if known else self._nothing()

    def latency(self, by_second: pa.Table | None) -> dict[str, Floats]:
        columns = {name: self._nothing() for name in ("latency_p50_ms", "latency_p99_ms")}
        if by_second is not None:
            seconds = by_second.column("second").to_numpy()
            within = (seconds >= 0) & (seconds < self.seconds)
            for name, values in columns.items():
                values[seconds[within]] = _floats(by_second, name.removeprefix("latency_"))[within]
        return columns

    def _cpu_of(self, rows: pa.Table) -> Floats | None:
        if not rows.num_rows:
            return None
        used = _floats(rows, "cpu_user_s") + _floats(rows, "cpu_system_s")
        return np.diff(np.interp(self._bounds_s, self._since_epoch_s(rows), used))

    def _told(self, key: str) -> Floats:
        """Return the newest value of a progress field at each second's end. 0 means unknown."""
        told = [(line.at_ms, getattr(line, key)) for line in self._progress if getattr(line, key) > 0]
        at_s = (np.array([at for at, _ in told], dtype=np.float64) - self._epoch_ms) / 1000
        return last_known(at_s, np.array([value for _, value in told], dtype=np.float64), self._bounds_s[1:])

    def _since_epoch_s(self, table: pa.Table) -> Floats:
        return (_floats(table, "at_ms") - self._epoch_ms) / 1000

    def _nothing(self) -> Floats:
        return np.full(self.seconds, np.nan)


def _floats(table: pa.Table, name: str) -> Floats:
    return np.asarray(table.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)
