"""The arguments, the costs and the records that the parts of `bench` share."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass

from generators.disorder import PRESETS
from generators.encode import Encoder, Message
from generators.profiles import steady
from generators.tape import Tape
from harness.model import TapeSpec

PARTITIONS = 4
SERVERS = 10
RATE_PER_S = 2_500_000  # in the tape's time, 2,500 events a slice; the bench sends as fast as it can
EPOCH_MS = 1_763_700_000_000
READY_MADE = 2_500  # records of one call, as many as a slice has
MILLION = 1_000_000


@dataclass(frozen=True)
class Arguments:
    """The arguments of a part; not every part needs all of them."""

    events: int
    bootstrap: str = ""
    topic: str = ""
    classpath: str = ""
    folder: str = ""  # for what it has to write


@dataclass(frozen=True)
class Cost:
    """The cost of a part."""

    events: int
    wall_s: float
    cpu_s: float
    peak_mib: float
    detail: dict[str, float]

    @property
    def per_s(self) -> float:
        return self.events / self.wall_s

    @property
    def per_cpu_s(self) -> float:
        return self.events / self.cpu_s

    @property
    def cpu_s_per_million(self) -> float:
        return MILLION / self.per_cpu_s


def peak_mib(whose: int) -> float:
    """Return the peak memory of this process, or of the largest child (`resource.RUSAGE_CHILDREN`)."""
    unit = 1024.0 if sys.platform == "darwin" else 1.0  # Linux counts kibibytes, macOS bytes
    return resource.getrusage(whose).ru_maxrss / unit / 1024.0


def tape_of(events: int) -> Tape:
    profile = steady(RATE_PER_S, events * 1000 // RATE_PER_S)
    return Tape(TapeSpec(1, profile, SERVERS, 10, PARTITIONS, 100, 10, PRESETS["mobile"]))


def ready_made() -> list[Message]:
    """Return the first records of a tape, for parts that send them again and again without the cost of making them."""
    tape = tape_of(READY_MADE * SERVERS)
    return [*Encoder(tape.codec, EPOCH_MS).batch(next(tape.blocks(READY_MADE)))]
