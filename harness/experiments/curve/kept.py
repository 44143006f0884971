"""The measurements of each load step as a file of the run, from which the answer and the picture can be made again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from harness.experiments.curve.plateau import ENDS_MS, Counts, Floats, Latencies, Measured, Plateau
from harness.rundir.store import Store

FILE = "plateaus.json"

Sparse = list[list[tuple[int, int]]]  # for each block, the bins that are not empty, with their counts
Numbers = list[float | None]  # None: unknown


class Kept(msgspec.Struct, frozen=True):
    """`Measured`, as it is stored."""

    plateau: Plateau
    probes: Sparse
    events: Sparse
    backlog: Numbers
    processed_per_s: float | None
    batch_took_ms: Numbers
    batch_events: Numbers
    engine_cpu_s: float | None
    load_cpu_s: float | None
    state_bytes: tuple[float, float] | None
    unsound: str


def save(store: Store, measured: Sequence[Measured]) -> None:
    store.write_json(FILE, [_kept(each) for each in measured])


def load(store: Store) -> list[Measured]:
    kept: list[Kept] = store.read_as(FILE, list[Kept])
    return [_measured(each) for each in kept]


def _kept(each: Measured) -> Kept:
    return Kept(
        plateau=each.plateau,
        probes=_sparse(each.probes),
        events=_sparse(each.events),
        backlog=_numbers(each.backlog),
        processed_per_s=each.processed_per_s,
        batch_took_ms=_numbers(each.batch_took_ms),
        batch_events=_numbers(each.batch_events),
        engine_cpu_s=each.engine_cpu_s,
        load_cpu_s=each.load_cpu_s,
        state_bytes=each.state_bytes,
        unsound=each.unsound,
    )


def _measured(kept: Kept) -> Measured:
    return Measured(
        plateau=kept.plateau,
        probes=_latencies(kept.probes),
        events=_latencies(kept.events),
        backlog=_floats(kept.backlog),
        processed_per_s=kept.processed_per_s,
        batch_took_ms=_floats(kept.batch_took_ms),
        batch_events=_floats(kept.batch_events),
        engine_cpu_s=kept.engine_cpu_s,
        load_cpu_s=kept.load_cpu_s,
        state_bytes=kept.state_bytes,
        unsound=kept.unsound,
    )


def _sparse(latencies: Latencies) -> Sparse:
    return [[(int(at), int(block[at])) for at in np.flatnonzero(block)] for block in latencies.blocks]


def _latencies(sparse: Sparse) -> Latencies:
    blocks: Counts = np.zeros((len(sparse), len(ENDS_MS)), dtype=np.int64)
    for block, held in zip(blocks, sparse, strict=True):
        for at, count in held:
            block[at] = count
    return Latencies(blocks)


def _numbers(values: Floats) -> Numbers:
    return [float(value) if np.isfinite(value) else None for value in values]


def _floats(numbers: Numbers) -> Floats:
    return np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
