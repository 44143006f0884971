"""The load that a search offers to a running engine, and its measurements: values that all parts of a search share.

A plateau is a load step: a rate that is held for a while. It is decided window by window, so that a step that the
engine can't keep up with ends at the next boundary of a window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# Latencies are counts in bins, each wider than the one before by this share. Events that were never seen are in the
# last.
BIN = 0.01
LEAST_MS, MOST_MS = 0.5, 1e7
EDGES_MS: Floats = LEAST_MS * np.exp(BIN * np.arange(int(np.log(MOST_MS / LEAST_MS) / BIN) + 1))
BLOCK_MS = 20_000  # samples within a block are correlated


class Why(StrEnum):
    """The purpose of a load step."""

    WARM_UP = "warm-up"
    LOOK = "look"  # finds roughly where the engine falls behind
    REST = "rest"  # until the engine has caught up
    LEVEL = "level"  # counts for the curve
    AGAIN = "again"  # counts as well: a repeat
    PULSE = "pulse"  # a burst, and the load until it is worked off


@dataclass(frozen=True)
class Piece:
    """One window of load."""

    rate_per_s: float
    why: Why
    plateau: int  # number of the load step, whose pieces are adjacent


@dataclass(frozen=True)
class Standing:
    """The state of engine and load when a piece was decided, shortly before the end of the pieces so far."""

    at_ms: int  # since the load start
    due: int  # events
    done: int  # as reported by the engine
    waits_ms: float  # delay of the oldest event that is not done
    batches: int = 0  # number of ended batches; 0 for an engine that does not report them
    busy_ms: float = 0.0  # total duration of those
    unseen_ms: float = 0.0  # delay of the oldest probe that is due and not visible yet
    unsent_ms: float = 0.0  # delay of the generator behind its schedule
    told_at_ms: int | None = None  # when the engine reported its progress; None: just now

    @property
    def behind_ms(self) -> float:
        """The longer delay of the engine's report and the visible results, because an engine may report records as done
        that it has only fetched.
        """
        return max(self.waits_ms, self.unseen_ms)

    @property
    def done_at_ms(self) -> int:
        return self.at_ms if self.told_at_ms is None else self.told_at_ms


@dataclass(frozen=True)
class Plateau:
    """Adjacent pieces of one rate."""

    number: int
    rate_per_s: float
    why: Why
    from_ms: int
    until_ms: int

    @property
    def length_s(self) -> float:
        return (self.until_ms - self.from_ms) / 1000


def plateaus(pieces: Sequence[Piece], window_ms: int) -> Iterator[Plateau]:
    at_ms = 0
    for number, group in groupby(pieces, key=lambda piece: piece.plateau):
        own = list(group)
        until_ms = at_ms + len(own) * window_ms
        yield Plateau(number, own[0].rate_per_s, own[0].why, at_ms, until_ms)
        at_ms = until_ms


@dataclass(frozen=True)
class Latencies:
    """A histogram for each block of at least 20 s."""

    blocks: Counts  # (blocks, bins)

    @classmethod
    def of(cls, due_ms: Floats, took_ms: Floats, plateau: Plateau) -> Latencies:
        """Count whole blocks up to the end of the load step. The time before them is for settling and is left out."""
        count = max(1, (plateau.until_ms - plateau.from_ms) // BLOCK_MS)
        level_ms = max(plateau.from_ms, plateau.until_ms - count * BLOCK_MS)
        inside = (due_ms >= level_ms) & (due_ms < plateau.until_ms)
        block = ((due_ms[inside] - level_ms) // BLOCK_MS).astype(np.int64)
        index = np.searchsorted(EDGES_MS, took_ms[inside])  # infinity, for events never seen, is beyond the last edge
        flat = np.bincount(block * (len(EDGES_MS) + 1) + index, minlength=count * (len(EDGES_MS) + 1))
        return cls(flat.reshape(count, -1))

    @property
    def samples(self) -> int:
        return int(self.blocks.sum())

    def quantile_ms(self, share: float, chosen: Sequence[int] | NDArray[np.int64] | None = None) -> float:
        """Return a quantile of all blocks, or of the chosen ones with repetitions; infinite if it was never seen."""
        counts = (self.blocks if chosen is None else self.blocks[np.asarray(chosen)]).sum(axis=0)
        total = int(counts.sum())
        if not total:
            return float("nan")
        index = int(np.searchsorted(np.cumsum(counts), max(1, np.ceil(share * total - 1e-9))))
        return float(EDGES_MS[index]) if index < len(EDGES_MS) else float("inf")


NO_FLOATS: Floats = np.zeros(0)


@dataclass(frozen=True)
class Measured:
    """The measurements of one load step."""

    plateau: Plateau
    probes: Latencies
    events: Latencies  # all events
    # The number of events due and not done, by the second.
    backlog: Floats
    processed_per_s: float | None
    # Batches or commits that ended in it, in order.
    batch_took_ms: Floats = field(default_factory=lambda: NO_FLOATS)
    batch_events: Floats = field(default_factory=lambda: NO_FLOATS)
    engine_cpu_s: float | None = None
    load_cpu_s: float | None = None
    state_bytes: tuple[float, float] | None = None  # at its begin and at its end
    unsound: str = ""  # why it does not count: the load differed from the plan
