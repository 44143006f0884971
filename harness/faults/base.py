"""The interface of a fault.

A fault waits for its moment, strikes, proves that it took effect, and is undone, which is proved too. A fault without
proof did not happen, and a run whose fault did not happen can't pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.faults.run_at_poll import Moment
from harness.model import EngineManifest, FaultReport, FaultSpec, RunSpec, SinkClaim, TapeSpec


class Fault(Protocol):
    """One planned fault of one run, or a plan of several. `poll` does all the work."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Return what this machine, engine or run lacks for the fault, as sentences; empty if nothing is missing."""

    def poll(self, now: Moment) -> None:
        """Observe and act, about every 50 ms. May block for as long as a kill or a restart takes."""

    def busy(self) -> bool:
        """Return whether the engine is down because of this fault, which will restart it."""

    def settled(self) -> bool:
        """Return whether the fault has not begun, or is over."""

    def over(self) -> bool:
        """Return whether nothing more will happen."""

    def heal(self, now: Moment) -> None:
        """Undo whatever is still in effect, in any state. The engine runs afterwards if the fault had to start it."""

    def reports(self) -> tuple[FaultReport, ...]: ...


@dataclass(frozen=True)
class Context:
    """The facts about a run before anything is started."""

    spec: RunSpec
    manifest: EngineManifest
    claim: SinkClaim


PROGRESS = ("batch", "offset", "time", "now")
ANY_MOMENT = ("point", *PROGRESS)

# The default moment of a fault: in the middle of a short load, or inside a sink's write if it must be there. The
# first of these that the fault supports.
USUAL = {"time": "t>=10s", "offset": "offset=50%", "batch": "batch>=3", "now": "now", "point": "c2:batch=3"}


@dataclass(frozen=True)
class Kind:
    """One entry of the catalogue: a fault that can be planned by its name."""

    name: str
    what: str
    correct: str  # the behaviour of a correct pipeline
    make: Callable[[FaultSpec, Context], Fault]
    needs: str = ""  # for the list; `make` checks what is really missing
    options: Mapping[str, str] = field(default_factory=dict)  # name -> its default, which also defines its format
    moments: tuple[str, ...] = ANY_MOMENT
    links: tuple[str, ...] = ()  # services to reach through a proxy: the one in its option `link`, or all
    brokers: int = 1  # brokers that an embedded Kafka needs for it
    own_disk: str = ""  # what must be on a separate small disk: "checkpoint" or "postgresql"
    reshape: Callable[[TapeSpec, FaultSpec, Kind], TapeSpec] | None = None  # input faults change the tape
    family: str = ""  # the catalogue has it from the file

    @property
    def usual(self) -> str:
        """Return the default moment."""
        return next(text for moment, text in USUAL.items() if moment in self.moments)


def option(spec: FaultSpec, kind: Kind, name: str) -> str:
    return spec.options.get(name, kind.options[name])
