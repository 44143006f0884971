"""What a fault is.

A fault waits for its moment, strikes, proves that it landed, and heals, and its healing is seen too. A fault without
proof did not happen, and a run whose fault did not happen has not passed anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.faults.moment import Moment
from harness.model import EngineManifest, FaultReport, FaultSpec, RunSpec, SinkClaim, TapeSpec


class Fault(Protocol):
    """One planned fault of one run, or a plan of several. Everything happens in `poll`."""

    @property
    def needs(self) -> tuple[str, ...]:
        """What this machine, engine or run must have for it and has not, in words; empty when nothing is missing."""

    def poll(self, now: Moment) -> None:
        """Look and act, about every 50 ms. May block for as long as a kill or a restart takes."""

    def busy(self) -> bool:
        """The engine is down because of this fault, and will be started again by it."""

    def settled(self) -> bool:
        """Not in the middle of anything: not begun, or over."""

    def over(self) -> bool:
        """Nothing more will come of it."""

    def heal(self, now: Moment) -> None:
        """Undo whatever is still done, whatever happened; the engine runs again afterwards if it was ours to start."""

    def reports(self) -> tuple[FaultReport, ...]: ...


@dataclass(frozen=True)
class Context:
    """What is known of a run before anything is started."""

    spec: RunSpec
    manifest: EngineManifest
    claim: SinkClaim


# The moment of a fault for which none is given: in the middle of a short load, or in a sink's writing where it has to
# be there. The first of these for which the fault can wait.
USUAL = {"time": "t>=10s", "offset": "offset=50%", "batch": "batch>=3", "now": "now", "point": "c2:batch=3"}


@dataclass(frozen=True)
class Kind:
    """One line of the catalogue: a fault that can be planned by its name."""

    name: str
    family: str  # the file that it lies in
    what: str
    correct: str  # what a correct pipeline does
    make: Callable[[FaultSpec, Context], Fault]
    needs: str = ""  # in words, for the list; what is really missing is found by `make`
    options: Mapping[str, str] = field(default_factory=dict)  # name -> its default, and with that what it looks like
    moments: tuple[str, ...] = ("batch", "offset", "time", "now")
    links: tuple[str, ...] = ()  # where the engine must be led through a proxy: the one in its option `link`, or all
    brokers: int = 1  # how many an embedded Kafka must have for it
    own_disk: bool = False  # the checkpoint has to lie on a small disk of its own
    reshape: Callable[[TapeSpec, FaultSpec, Kind], TapeSpec] | None = None  # input faults are spent on the tape

    @property
    def usual(self) -> str:
        """The moment that it takes when none is given."""
        return next(text for moment, text in USUAL.items() if moment in self.moments)


def option(spec: FaultSpec, kind: Kind, name: str) -> str:
    return spec.options.get(name, kind.options[name])
