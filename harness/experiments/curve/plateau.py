"""What a search offers to a living engine, and what became of it: values that all deciders share.

A plateau is a rate that is held for a while. It is decided window by window, so that one that an engine can't keep up
with ends at the next bound of a window.
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

# Latencies are kept as counts in bins, each wider than the one before by so much: what nobody has seen is in the last.
BIN = 0.01
LEAST_MS, MOST_MS = 0.5, 1e7
EDGES_MS: Floats = LEAST_MS * np.exp(BIN * np.arange(int(np.log(MOST_MS / LEAST_MS) / BIN) + 1))
BLOCK_MS = 20_000  # what is nearer to each other than that goes up and down together


class Why(StrEnum):
    """What a plateau is for."""

    WARM_UP = "warm-up"
    LOOK = "look"  # where about the engine falls behind
    REST = "rest"  # until it has caught up
    LEVEL = "level"  # counts for the curve
    AGAIN = "again"  # the same, visited once more
    PULSE = "pulse"  # a burst, and what is offered until it is worked off


@dataclass(frozen=True)
class Piece:
    """One window of load."""

    rate_per_s: float
    why: Why
    plateau: int  # its number: pieces of one plateau follow each other


@dataclass(frozen=True)
class Standing:
    """How engine and load stood when a piece was decided, a little before the pieces so far came to their end."""

    at_ms: int  # since the epoch
    due: int  # events
    done: int  # by the engine's own word
    waits_ms: float  # for how long the oldest event that is not done has waited
    batches: int = 0  # that have ended; none of an engine that does not tell of them
    busy_ms: float = 0.0  # what those took, together
    unseen_ms: float = 0.0  # for how long the oldest probe has waited that is due and that no reader saw
    unsent_ms: float = 0.0  # for so much of the load, at its rate, the generator is behind its schedule
    told_at_ms: int | None = None  # when the engine said what is done; None: just now

    @property
    def behind_ms(self) -> float:
        """By the engine's own word or by what readers see: who tells of what it only fetched is seen through."""
        return max(self.waits_ms, self.unseen_ms)

    @property
    def done_at_ms(self) -> int:
        return self.at_ms if self.told_at_ms is None else self.told_at_ms


@dataclass(frozen=True)
class Plateau:
    """Pieces of one rate that followed each other."""

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
    """A row of bins for each block of at least 20 s."""

    blocks: Counts  # (blocks, bins)

    @classmethod
    def of(cls, due_ms: Floats, took_ms: Floats, plateau: Plateau) -> Latencies:
        """Whole blocks up to the end of the plateau; what is left before them is its settling and counts for none."""
        count = max(1, (plateau.until_ms - plateau.from_ms) // BLOCK_MS)
        level_ms = max(plateau.from_ms, plateau.until_ms - count * BLOCK_MS)
        inside = (due_ms >= level_ms) & (due_ms < plateau.until_ms)
        block = ((due_ms[inside] - level_ms) // BLOCK_MS).astype(np.int64)
        place = np.searchsorted(EDGES_MS, took_ms[inside])  # infinity, which was never seen, is beyond the last edge
        flat = np.bincount(block * (len(EDGES_MS) + 1) + place, minlength=count * (len(EDGES_MS) + 1))
        return cls(flat.reshape(count, -1))

    @property
    def samples(self) -> int:
        return int(self.blocks.sum())

    def quantile_ms(self, share: float, chosen: Sequence[int] | NDArray[np.int64] | None = None) -> float:
        """Of all blocks, or of the chosen ones, each as often as it is named; infinite where it was never seen."""
        counts = (self.blocks if chosen is None else self.blocks[np.asarray(chosen)]).sum(axis=0)
        total = int(counts.sum())
        if not total:
            return float("nan")
        place = int(np.searchsorted(np.cumsum(counts), max(1, np.ceil(share * total - 1e-9))))
        return float(EDGES_MS[place]) if place < len(EDGES_MS) else float("inf")


NO_FLOATS: Floats = np.zeros(0)


@dataclass(frozen=True)
class Measured:
    """What the files say of one plateau."""

    plateau: Plateau
    probes: Latencies
    events: Latencies  # all of them
    # By the second: how many events were due and not done.
    backlog: Floats
    processed_per_s: float | None
    # Batches or commits that ended in it, in their order.
    batch_took_ms: Floats = field(default_factory=lambda: NO_FLOATS)
    batch_events: Floats = field(default_factory=lambda: NO_FLOATS)
    engine_cpu_s: float | None = None
    load_cpu_s: float | None = None
    state_bytes: tuple[float, float] | None = None  # at its begin and at its end
    unsound: str = ""  # why nothing of it counts: the load was not what it should have been
