"""What the parts of `bench` have in common: what each is told, what it took, and the records."""

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
RATE_PER_S = 2_500_000  # of the tape's own time; here it is sent as fast as it goes, 2,500 events a slice
EPOCH_MS = 1_763_700_000_000
READY_MADE = 2_500  # records of one call, as many as a slice has
MILLION = 1_000_000


@dataclass(frozen=True)
class Arguments:
    """What a part is told; not every part needs all of it."""

    events: int
    bootstrap: str = ""
    topic: str = ""
    classpath: str = ""
    folder: str = ""  # for what it has to write


@dataclass(frozen=True)
class Cost:
    """What a part took."""

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
    """The most memory that this process had, or the largest of its children (`resource.RUSAGE_CHILDREN`)."""
    unit = 1024.0 if sys.platform == "darwin" else 1.0  # Linux counts kibibytes, macOS bytes
    return resource.getrusage(whose).ru_maxrss / unit / 1024.0


def tape_of(events: int) -> Tape:
    profile = steady(RATE_PER_S, events * 1000 // RATE_PER_S)
    return Tape(TapeSpec(1, profile, SERVERS, 10, PARTITIONS, 100, 10, PRESETS["mobile"]))


def ready_made() -> list[Message]:
    """The first records of a tape, to be sent again and again by who is not to be billed for making them."""
    tape = tape_of(READY_MADE * SERVERS)
    return [*Encoder(tape.codec, EPOCH_MS).batch(next(tape.blocks(READY_MADE)))]
