"""The load check: did the generator keep its schedule? Pure: a table of sends in, a Certificate out.

Lag is the time from a slice's due moment until the client had all of it, weighted by the slice's events. A void load
check withholds speed figures only: sending late does not make a count wrong. Events due before the load start are
warm-up: they must be sent, but their lag does not count.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from generators.sends import SENDS
from harness.model import Certificate, LoadWorker
from harness.util.nearest_rank import index_of

__all__ = ["SENDS", "certify"]

_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def certify(sends: pa.Table, intended: int, budget_ms: float, workers: tuple[LoadWorker, ...] = ()) -> Certificate:
    """Check a load. `intended` counts all planned events: slices that were never sent are missing from `sends`.

    `workers` sent by clocks of their own, whose error is an error of all times of `sends`.
    """
    sent, acked = (int(np.sum(_column(sends, name))) for name in ("sent", "acked"))
    lag_ms = _lag_ms(of_load(sends))
    reasons = (*_reasons(intended, sent, acked, lag_ms["p99.9"], budget_ms), *_of_clocks(workers, budget_ms))
    return Certificate(not reasons, reasons, sends.num_rows, intended, sent, acked, lag_ms, budget_ms, workers)


def of_load(sends: pa.Table) -> pa.Table:
    """Remove the rows of a warm-up."""
    return sends.filter(pc.greater(sends.column("intended_us"), 0))


def _reasons(intended: int, sent: int, acked: int, lag_ms: float, budget_ms: float) -> Iterator[str]:
    if not intended:
        yield "the tape has no events, so there was no schedule to keep"
    if sent < intended:
        yield f"{intended - sent:,} of {intended:,} planned records were not sent"
    if acked < sent:
        yield f"{sent - acked:,} of {sent:,} sent records were not acknowledged by Kafka"
    if lag_ms > budget_ms:
        yield (
            f"one event in a thousand was sent {lag_ms:,.1f} ms or more after it was due, but the limit is "
            f"{budget_ms:g} ms: lower the rate, free the machine, or raise lag_budget_ms"
        )


def _of_clocks(workers: tuple[LoadWorker, ...], budget_ms: float) -> Iterator[str]:
    for worker in workers:
        error_ms = worker.clock_error_ms
        if error_ms is None:
            yield f"the clock of the worker on {worker.host} is unknown: it was not measured before and after the load"
        elif error_ms > budget_ms:
            yield (
                f"the clock of the worker on {worker.host} is known to {error_ms:,.1f} ms only, but the limit is "
                f"{budget_ms:g} ms: use a faster network to it, a shorter run, or raise lag_budget_ms"
            )


def _lag_ms(sends: pa.Table) -> dict[str, float]:
    """Return quantiles over events, not over slices."""
    lag_us, events = _column(sends, "finished_us") - _column(sends, "intended_us"), _column(sends, "sent")
    if not events.sum():
        return dict.fromkeys(_QUANTILES, 0.0)
    order = np.argsort(lag_us)
    return {name: float(lag_us[order][index_of(events[order], share)]) / 1000.0 for name, share in _QUANTILES.items()}


def _column(sends: pa.Table, name: str) -> NDArray[np.int64]:
    return np.asarray(sends.column(name).to_numpy(), dtype=np.int64)
