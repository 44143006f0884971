"""The measurements of each load step as a file of the run, from which the answer and the picture can be made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from harness.experiments.curve.plateau import ENDS_MS, Counts, Floats, Latencies, Measured, Plateau
from harness.rundir.store import Store

T = TypeVar("T")
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


LATENCIES, ARRAYS = ("probes", "events"), ("backlog", "batch_took_ms", "batch_events")


def save(store: Store, measured: Sequence[Measured]) -> None:
    store.write_json(FILE, [_converted(each, Kept, _sparse, _numbers) for each in measured])


def load(store: Store) -> list[Measured]:
    kept: list[Kept] = store.read_as(FILE, list[Kept])
    return [_converted(each, Measured, _latencies, _floats) for each in kept]


def _converted(each: Any, to: type[T], latencies: Callable[[Any], Any], arrays: Callable[[Any], Any]) -> T:
    """Both have the same fields, and differ in how they hold latencies and arrays."""
    values = {name: getattr(each, name) for name in Kept.__struct_fields__}
    values |= {name: latencies(values[name]) for name in LATENCIES}
    return to(**values | {name: arrays(values[name]) for name in ARRAYS})


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
